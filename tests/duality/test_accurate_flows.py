"""Flows of an interior-point method: bounds keep their digits, and are never above the optimum."""

from itertools import product

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint

NODES, DIM, ROWS = 15, 3, 5
LOSSES = {
    "absolute": lambda X, y, sign: gtv.AbsoluteLoss(X, y),
    "quantile-box": lambda X, y, sign: gtv.QuantileLoss(X, y, 0.3) + gtv.Box(-0.7, 0.7),
    "hinge": lambda X, y, sign: gtv.HingeLoss(X, sign),
    "logistic": lambda X, y, sign: gtv.LogisticLoss(X, (sign + 1) // 2),
    "huber-l1": lambda X, y, sign: gtv.HuberLoss(X, y, delta=0.5) + gtv.L1(0.05),
}
PENALTIES = {
    "l2": "l2",
    "linf": "linf",
    "singular": gtv.Quadratic(np.array([[1.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 1.0]])),
}
# In raw units hinges leave feasible flows hardly any margin, and sweeps crawl.
LOSING = {("hinge", "l2"), ("hinge", "linf")}


def instance(loss, penalty, share, unit, rng):
    """A problem whose first column is in another unit."""
    graph = generators.nearest_neighbours(rng.random((NODES, 2)), 3)
    X = rng.standard_normal((NODES, ROWS, DIM))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal((NODES, ROWS))
    sign = np.where(y + rng.standard_normal(y.shape) > 0, 1, -1)
    X[:, :, 0] *= unit
    labelled = rng.random(NODES) < share
    labelled[0] = True
    losses = [
        LOSSES[loss](X[i], y[i], sign[i]) if labelled[i] else gtv.ZeroLoss() for i in range(NODES)
    ]
    return gtv.GTVProblem(graph, losses, PENALTIES[penalty], 0.1)


def accurate(problem):
    """Clarabel's point and flow, as they are, and its own relative gap."""
    method = InteriorPoint(problem)
    answer = method._solver(1e-10).solve()
    x = np.array(answer.x)
    w = problem.losses.project_domain(x[: NODES * DIM].reshape(NODES, DIM))
    own = abs(answer.obj_val - answer.obj_val_dual) / max(1.0, abs(answer.obj_val))
    return w, method._read_flow(w, np.array(answer.z)), own


@pytest.mark.parametrize(("loss", "penalty"), list(product(LOSSES, PENALTIES)))
def test_accurate_flows_prove_as_much_and_no_flow_proves_too_much(loss, penalty):
    rng = np.random.default_rng(12)
    for share, unit in ((1.0, 1.0), (0.3, 1.0), (1.0, 1e3)):
        problem = instance(loss, penalty, share, unit, rng)
        w, u, own = accurate(problem)
        value = problem.value(w)
        size = max(1.0, abs(value))
        for noise in (0.0, 1e-9, 1e-3, 1.0):
            near = u + noise * np.abs(u).max() * rng.standard_normal(u.shape)
            bound, _ = problem.lower_bound(near)
            gap, _ = problem.bounds.gap(w, near)
            assert gap.total >= -1e-12 * size
            assert bound <= value + 1e-12 * size
            assert value - gap.total <= value
            if noise == 0.0 and own <= 1e-8 and not (unit > 1.0 and (loss, penalty) in LOSING):
                assert gap.total <= 1e-6 * size
                assert value - bound <= 1e-6 * size
