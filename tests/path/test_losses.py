"""lambda_max and paths for every kind of loss, smooth or not, and with constraints."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked_from_terms
from gtvcvx.path import lambda_path
from gtvcvx.path._critical import critical

N = 10
EDGES = [(i, (i + 1) % N) for i in range(N)] + [(0, 5), (2, 8)]
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, len(EDGES))


def row_term(kind, seed=0):
    """Five data points at each node but node 3; two groups of nodes."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.delete(np.arange(N), 3), 5)
    X = rng.standard_normal((len(node), 2))
    z = np.sum(X * np.where(node[:, None] < 5, [1.0, -1.0], [-0.5, 1.0]), axis=1)
    y = {
        "logistic": lambda: (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(z)).astype(float),
        "hinge": lambda: np.where(z + rng.standard_normal(len(z)) > 0, 1.0, -1.0),
    }.get(kind, lambda: z + 0.3 * rng.standard_normal(len(z)))()
    term = {"kind": kind, "node": node, "X": X, "y": y}
    delta = {"delta": np.full(len(z), 0.5)}
    more = {"huber": delta, "pseudohuber": delta, "quantile": {"level": np.full(len(z), 0.3)}}
    return term | more.get(kind, {})


def everywhere(kind, **values):
    return {"kind": kind, "node": np.arange(N)} | {
        name: np.broadcast_to(value, (N, *np.shape(value))).astype(float)
        for name, value in values.items()
    }


TERMS = {
    **{
        kind: [row_term(kind)]
        for kind in ("huber", "pseudohuber", "poisson", "absolute", "quantile")
    },
    "logistic": [row_term("logistic"), everywhere("ridge", mu=0.1)],
    "hinge": [row_term("hinge"), everywhere("ridge", mu=0.1)],
    "lasso": [row_term("squared"), everywhere("l1", kappa=0.3)],
    "box": [row_term("squared"), everywhere("box", lower=[-0.1, -np.inf], upper=[0.3, 0.05])],
    "simplex": [row_term("squared"), everywhere("simplex", total=1.0)],
    "two kinds": [row_term("squared"), row_term("absolute", seed=1)],
}


def problem_with(name, penalty="l2"):
    losses = stacked_from_terms(TERMS[name], 2)
    return gtv.GTVProblem(gtv.EmpiricalGraph(N, EDGES, WEIGHTS), losses, penalty)


def optimum(problem):
    """Optimal value by Clarabel, or by SCS where Clarabel gives up on some exponential cones."""
    model = problem.cvxpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    if model.status != cp.OPTIMAL:
        model.solve(solver=cp.SCS, eps_abs=1e-9, eps_rel=1e-9, max_iters=200_000)
    assert model.status == cp.OPTIMAL
    return model.value


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("name", TERMS)
def test_consensus_is_optimal_above_and_not_below(name, penalty):
    problem = problem_with(name, penalty)
    found = critical(problem)
    assert found.lower < found.upper <= (1 + 1e-3) * found.lower
    assert np.ptp(found.w, axis=0).max() <= 1e-8
    above = problem.with_lam(found.upper)
    value = above.value(found.w)
    assert optimum(above) == pytest.approx(value, rel=5e-8, abs=5e-8)
    assert above.bounds.gap_of(found.w, found.u).total <= 1.1e-8 * max(1.0, abs(value))
    below = problem.with_lam(0.99 * found.lower)
    assert optimum(below) < value - 1e-5


@pytest.mark.parametrize("name", TERMS)
def test_path(name):
    problem = problem_with(name)
    path = lambda_path(problem, n_lams=5, min_ratio=0.05)
    assert path.n_clusters[0] == 1
    assert path.n_clusters[-1] > 1
    assert path.rel_gaps.max() <= 1e-6
    for lam, solution in zip(path.lams, path, strict=True):
        exact = optimum(problem.with_lam(lam))
        assert solution.dual_value <= exact + 1e-7 * max(1.0, abs(exact))
        assert solution.value == pytest.approx(exact, rel=2e-6, abs=2e-6)


def test_constraints_that_contradict_each_other():
    lower = np.where(np.arange(N)[:, None] < 5, 0.0, 2.0) * np.ones(2)
    box = {"kind": "box", "node": np.arange(N), "lower": lower, "upper": lower + 1.0}
    losses = stacked_from_terms([row_term("squared"), box], 2)
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(N, EDGES, WEIGHTS), losses, "l2")
    with pytest.raises(ValueError, match="problem: no parameters that are constant"):
        critical(problem)
    assert lambda_path(problem, [1.0, 0.1]).rel_gaps.max() <= 1e-6
