"""Problems in coordinates of what their rows span: the same optimum, in fewer dimensions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import StackedLoss, stacked_from_terms
from gtvcvx.solvers import _auto
from gtvcvx.solvers._row_space import RowSpace

N, M, D = 8, 3, 80
KINDS = ["squared", "logistic", "huber", "poisson", "hinge", "points"]


def losses_of(kind: str, mu: float | np.ndarray = 0.1) -> StackedLoss:
    """Three rows at each of eight nodes, and a ridge; or points."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((N, M, D)) / np.sqrt(D), rng.standard_normal((N, M))
    node, X, y = np.repeat(np.arange(N), M), X.reshape(-1, D), y.ravel()
    targets = {
        "squared": y,
        "logistic": (y > 0.0).astype(float),
        "huber": y,
        "poisson": np.abs(np.rint(y)),
        "hinge": np.where(y > 0.0, 1.0, -1.0),
    }
    if kind == "points":
        return gtv.PointLoss.stack(rng.standard_normal((N, D)))
    row = {"kind": kind, "node": node, "X": X, "y": targets[kind]}
    row |= {"delta": np.ones(len(y))} if kind == "huber" else {}
    ridge = {"kind": "ridge", "node": np.arange(N), "mu": np.full((N, D), mu)}
    return stacked_from_terms([row, ridge], D)


def problem_of(kind: str, penalty: str = "l2", mu: float | np.ndarray = 0.1) -> gtv.GTVProblem:
    """The same on a ring with a chord."""
    edges = [(i, (i + 1) % N) for i in range(N)] + [(0, 4)]
    return gtv.GTVProblem(gtv.EmpiricalGraph(N, edges), losses_of(kind, mu), penalty, 0.05)


@pytest.mark.parametrize("penalty", ["l2", "squared"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_solution_is_one_of_the_whole_problem(kind: str, penalty: str) -> None:
    """The gap is no smaller than the value less what any flow proves, that of the solution too."""
    problem = problem_of(kind, penalty)
    solution = problem.solve(rtol=1e-6)
    assert solution.status == "optimal"
    assert solution.w.shape == (N, D)
    assert solution.value == problem.value(solution.w)
    assert solution.dual_value <= solution.value
    bound = problem.lower_bound(solution.u)[0]
    assert bound >= solution.dual_value - 1e-9
    assert problem.bounds.gap_of(solution.w, solution.u).total <= solution.gap + 1e-9


def test_iterations_are_in_as_many_coordinates_as_there_are_rows() -> None:
    """Callbacks and starts are in those of the user all the same."""
    problem, seen = problem_of("logistic"), []
    space = RowSpace.of(problem)
    assert space is not None
    assert space.problem.dim == N * M
    solution = problem.solve(rtol=1e-9, callback=lambda progress: seen.append(progress))
    assert seen[-1].w.shape == (N, D)
    assert seen[-1].u.shape == (N + 1, D)
    assert seen[-1].value == pytest.approx(problem.value(seen[-1].w), rel=1e-12)
    again = problem.solve(rtol=1e-9, warm_start=solution)
    assert again.n_iter <= solution.n_iter / 2


def test_lambda_is_that_of_the_problem() -> None:
    """What is kept for all values of lambda does not keep the first one."""
    first = problem_of("logistic")
    first.solve()
    other = first.with_lam(0.5)
    assert other.solve().value == pytest.approx(
        gtv.GTVProblem(other.graph, other.losses, "l2", 0.5).solve().value, rel=1e-5
    )


def test_an_intercept_without_a_ridge_has_coordinates_of_its_own() -> None:
    """Rotations would mix it with coordinates that have one."""
    mu = np.full(D, 0.1)
    mu[7] = 0.0
    problem = problem_of("logistic", mu=mu)
    space = RowSpace.of(problem)
    assert space is not None
    assert space.problem.dim == N * M + 1
    solution = problem.solve(rtol=1e-7)
    assert solution.status == "optimal"
    assert problem.bounds.gap_of(solution.w, solution.u).total <= solution.gap + 1e-9


@pytest.mark.parametrize("penalty", ["l1", "linf"])
def test_norms_that_tell_coordinates_apart_have_none(penalty: str) -> None:
    """Nor do terms of single coordinates, ridges of many kinds, or rows that span nearly all."""
    assert RowSpace.of(problem_of("logistic", penalty)) is None
    assert RowSpace.of(problem_of("logistic", mu=np.linspace(0.1, 1.0, D))) is None
    l1 = stacked_from_terms([{"kind": "l1", "node": np.arange(N), "kappa": np.ones((N, D))}], D)
    problem = problem_of("logistic")
    assert RowSpace.of(gtv.GTVProblem(problem.graph, problem.losses + l1, "l2", 0.1)) is None


def test_a_gap_that_roundings_of_the_basis_hide_is_looked_for_in_all_coordinates() -> None:
    """What it may have lost is part of the gap, and not within a tolerance far below that."""
    problem = problem_of("logistic")
    solution = problem.solve(rtol=1e-14, max_iter=400)
    assert solution.gap >= 0.0
    assert problem.bounds.gap_of(solution.w, solution.u).total <= solution.gap + 1e-12


def test_rooms_do_not_grow_with_the_square_of_the_dimension() -> None:
    """Twenty thousand coordinates with an l1 term wanted 27 GiB before the first iteration."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2, 1, 20_000)), np.ones((2, 1))
    losses = gtv.LassoLoss.stack(X, y, kappa=0.1)
    assert losses.value(np.zeros((2, 20_000))) == pytest.approx(1.0)


def test_an_elastic_net_takes_no_matrix_for_a_node() -> None:
    """Its conjugates are finite everywhere; 500 x 5,000 wanted 93 GiB for zeros."""
    rng, d = np.random.default_rng(0), 20_000
    X, y = rng.standard_normal((60, d)), rng.standard_normal(60)
    nodes = np.arange(20)
    each = np.full((20, d), 0.1)
    terms = [
        {"kind": "squared", "node": np.repeat(nodes, 3), "X": X, "y": y},
        {"kind": "ridge", "node": nodes, "mu": each},
        {"kind": "l1", "node": nodes, "kappa": each},
    ]
    for _, batch in stacked_from_terms(terms, d).parts:
        assert batch.domain() is None


@pytest.mark.parametrize(
    ("kind", "n", "d", "reduced"),
    [
        ("logistic", 100, 250, False),
        ("squared", 100, 250, True),  # factored once
        ("logistic", 20, 5_000, True),  # 20 coordinates of 5,000
        ("logistic", 20, 100, True),  # matrices as they are
    ],
)
def test_few_rows_do_not_become_matrices(kind: str, n: int, d: int, reduced: bool) -> None:
    """Models factored these again and again: ten times as long for the first."""
    rng = np.random.default_rng(2)
    y = (rng.random(n) < 0.5).astype(float)
    row = {"kind": kind, "node": np.arange(n), "X": rng.standard_normal((n, d)), "y": y}
    ridge = {"kind": "ridge", "node": np.arange(n), "mu": np.full((n, d), 0.1)}
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 5)
    problem = gtv.GTVProblem(graph, stacked_from_terms([row, ridge], d), "l2", 0.1)
    assert (RowSpace.of(problem) is not None) == reduced


def test_a_model_that_fits_all_data_has_all_its_digits() -> None:
    """The gap had what a basis may lose, far above an objective of 1e-26, and users were warned."""
    rng = np.random.default_rng(4)
    losses = gtv.SquaredLoss.stack(rng.standard_normal((20, 1, 80)), rng.standard_normal((20, 1)))
    graph = gtv.generators.nearest_neighbours(rng.random((20, 2)), 5)
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    assert RowSpace.of(problem) is None
    assert problem.solve(rtol=1e-2).gap < 1e-24


def test_flows_lead_back_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 500 x 5,000 they took two seconds more after the limit, and 70 megabytes."""
    problem, sizes = problem_of("logistic"), []
    restore = RowSpace.restore

    def counted(self: RowSpace, x: np.ndarray) -> np.ndarray:
        sizes.append(len(x))
        return restore(self, x)

    monkeypatch.setattr(RowSpace, "restore", counted)
    solution = problem.solve()
    assert sizes == [N]
    assert solution.u.shape == (N + 1, D)
    assert solution.u is solution.u
    assert sizes == [N, N + 1]
    assert pickle.loads(pickle.dumps(problem.solve())).u == pytest.approx(solution.u)
    assert problem.lower_bound(solution.u)[0] >= solution.dual_value - 1e-9


def test_time_is_kept_for_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters of 900 x 10,000 came seven seconds after the limit."""
    problem, limits = problem_of("logistic"), []
    space = RowSpace.of(problem)
    assert space is not None
    monkeypatch.setattr(RowSpace, "reserve", lambda self, n: 10.0 * n)
    inner = _auto._by_coordinates

    def seen(problem, start, given):
        limits.append(given.time_limit)
        return inner(problem, start, given)

    monkeypatch.setattr(_auto, "_by_coordinates", seen)
    problem.solve(time_limit=100.0 * N)
    assert limits == [90.0 * N]
    assert 0.0 <= RowSpace.of(problem_of("logistic"))._seconds < 10.0
