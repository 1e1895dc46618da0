"""Losses with weights in every method: the optimum is that of rows repeated so often."""

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx.solvers.driver import Limits, Run
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned

N, M, D = 8, 4, 2
GRAPH = gtv.EmpiricalGraph(N, [(i, i + 1) for i in range(N - 1)] + [(0, 4)])
CLASSES = {
    "squared": (gtv.SquaredLoss, {}),
    "logistic": (gtv.LogisticLoss, {"ridge": 0.2}),
    "huber": (gtv.HuberLoss, {"delta": 0.3}),
    "pseudohuber": (gtv.PseudoHuberLoss, {"delta": 0.3}),
    "poisson": (gtv.PoissonLoss, {}),
    "absolute": (gtv.AbsoluteLoss, {}),
    "quantile": (gtv.QuantileLoss, {"level": 0.7}),
    "hinge": (gtv.HingeLoss, {}),
}


def table(kind):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N * M, D))
    node = np.repeat(np.arange(N), M)
    z = X @ np.array([0.6, -0.4]) * np.where(node < 4, 1.0, -1.0) + 0.4 * rng.standard_normal(N * M)
    y = {
        "logistic": (z > 0.0).astype(float),
        "hinge": np.where(z > 0.0, 1.0, -1.0),
        "poisson": rng.poisson(np.exp(z)).astype(float),
    }.get(kind, z)
    return X, y, node, rng.integers(0, 4, N * M)


def problems(kind, penalty="l2"):
    """One problem by weights, and by rows repeated; nodes count twice, or three times."""
    cls, parameters = CLASSES[kind]
    X, y, node, s = table(kind)
    factors = np.where(np.arange(N) % 2, 2.0, 3.0)
    rows = np.repeat(np.arange(N * M), s)
    first = cls.from_rows(X, y, node, N, sample_weight=s, **parameters)
    second = cls.from_rows(X[rows], y[rows], node[rows], N, **parameters)
    return tuple(
        gtv.GTVProblem(GRAPH, losses, penalty, 0.15)
        for losses in (first * factors, factors * second)
    )


def blockwise(problem):
    return Blockwise(problem, planned(problem))


@pytest.mark.parametrize("method", [None, InteriorPoint, blockwise])
@pytest.mark.parametrize("kind", CLASSES)
def test_weights_are_repetitions(kind, method):
    values = []
    for problem in problems(kind):
        if method is None:
            solution = problem.solve(rtol=1e-8)
        else:
            run = Run(problem, Limits(1e-8, 200), "TEST")
            run.drive(method(problem))
            solution = run.solution()
        assert solution.rel_gap <= 1e-6
        values.append(solution.value)
    assert values[0] == pytest.approx(values[1], rel=2e-6)


@pytest.mark.parametrize("kind", ["squared", "point"])
def test_exact_solutions_have_gap_zero(kind):
    losses = problems("squared")[0].losses
    if kind == "point":
        losses = gtv.PointLoss.stack(np.arange(2.0 * N).reshape(N, 2)) * np.linspace(0.1, 2.0, N)
    problem = gtv.GTVProblem(GRAPH, losses, "l1", 0.15)
    solution = problem.solve("EXACT")
    assert solution.value == pytest.approx(problem.solve(rtol=1e-9).value, rel=1e-8)
    certificate = verify.certify(problem, solution.exact.w, solution.exact.u, rtol=0.0)
    assert certificate.status == "CERTIFIED"


@pytest.mark.parametrize("penalty", ["l1", "linf", "squared"])
def test_other_penalties_and_certificates(penalty):
    problem = problems("huber", penalty)[0]
    solution = problem.solve(rtol=1e-7)
    certificate = verify.certify(problem, solution.w, solution.u)
    assert certificate.status == "CERTIFIED"
    w = problem.solve(solver="CLARABEL").w
    assert problem.value(w) == pytest.approx(solution.value, rel=1e-5)


def test_map_smoothing_without_features():
    """One number a node with a weight, on a chain: solved by maximum flows, and proved."""
    rng = np.random.default_rng(1)
    n = 40
    y, s = np.where(np.arange(n) < 20, 1.0, 3.0) + rng.standard_normal(n), rng.uniform(0.1, 5.0, n)
    chain = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    problem = gtv.GTVProblem(chain, gtv.SquaredLoss.stack(None, y) * s, "l1", 4.0)
    solution = problem.solve(rtol=1e-10)
    exact = problem.solve("EXACT")
    assert solution.value == pytest.approx(exact.value, rel=1e-9)
    assert solution.w == pytest.approx(exact.w, abs=1e-6)
    assert verify.certify(problem, solution.w, solution.u).status == "CERTIFIED"


def test_problems_with_weights_are_saved(tmp_path):
    problem = problems("quantile")[0]
    problem.save(tmp_path / "problem.npz")
    again = gtv.GTVProblem.load(tmp_path / "problem.npz")
    w = np.random.default_rng(0).standard_normal((N, D))
    assert again.value(w) == problem.value(w)
    data = again.to_data()
    assert np.array_equal(data["terms"][0]["weight"], problem.to_data()["terms"][0]["weight"])
    data["terms"][0]["weight"] = -data["terms"][0]["weight"]
    with pytest.raises(ValueError, match=r"weight: entry \(0,\) is -.* a normal number > 0"):
        gtv.GTVProblem.from_data(data)
