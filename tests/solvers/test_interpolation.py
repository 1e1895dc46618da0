"""Where rows are fewer than coordinates one model for each component fits all data, at once."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import gtvcvx as gtv
from gtvcvx.solvers._interpolation import interpolating

N, M, D = 20, 3, 70
EDGES = [[i, i + 1] for i in range(N - 1)]
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, M, D))
Y = RNG.standard_normal((N, M))
SIGNS, COUNTS = np.sign(Y), np.floor(3.0 * np.abs(Y))
KINDS = {
    "squared": lambda i: gtv.SquaredLoss(X[i], Y[i]),
    "absolute": lambda i: gtv.AbsoluteLoss(X[i], Y[i]),
    "quantile": lambda i: gtv.QuantileLoss(X[i], Y[i], 0.3),
    "huber": lambda i: gtv.HuberLoss(X[i], Y[i], 0.5),
    "pseudohuber": lambda i: gtv.PseudoHuberLoss(X[i], Y[i], 0.5),
    "hinge": lambda i: gtv.HingeLoss(X[i], SIGNS[i]),
    "logistic": lambda i: gtv.LogisticLoss(X[i], 0.5 * (1.0 + SIGNS[i])),
    "poisson": lambda i: gtv.PoissonLoss(X[i], COUNTS[i]),
}


def problem(losses, penalty="l2", edges=EDGES):
    return gtv.GTVProblem(gtv.EmpiricalGraph(N, edges), losses, penalty, 0.1)


@pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")
@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
@pytest.mark.parametrize("kind", KINDS)
def test_all_data_are_fitted_without_an_iteration(kind, penalty):
    losses = [KINDS[kind](i) for i in range(N)]
    solution = problem(losses, penalty).solve(rtol=1e-9)
    assert solution.status == "optimal"
    assert solution.info["method"] == "interpolation"
    assert solution.n_iter == 0
    assert np.ptp(solution.w, axis=0).max() == 0.0
    # No w is below what each node has for itself.
    best = np.sum(COUNTS - scipy.special.xlogy(COUNTS, COUNTS)) / M if kind == "poisson" else 0.0
    assert solution.value == pytest.approx(best, abs=1e-8)
    assert solution.dual_value <= best + 1e-12


@pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")
def test_unlabelled_nodes_and_components_have_models_of_their_own():
    edges = [edge for edge in EDGES if edge != [9, 10]]
    losses = {i: KINDS["squared" if i < 10 else "absolute"](i) for i in range(1, N, 2)}
    solution = problem(losses, edges=edges).solve(rtol=1e-9)
    assert solution.info["method"] == "interpolation"
    assert len(np.unique(solution.w, axis=0)) == 2
    assert solution.value <= 1e-9


def test_components_count_their_own_rows():
    """Thirty rows each fit forty coordinates, sixty do not."""
    data = gtv.SquaredLoss.stack(X[:, :, :40], Y)
    halves = [edge for edge in EDGES if edge != [9, 10]]
    assert interpolating(problem(data)) is None
    assert interpolating(problem(data, edges=halves)) is not None


def contradicting():
    rows = X.copy()
    rows[1] = rows[0]
    return gtv.SquaredLoss.stack(rows, Y)


@pytest.mark.parametrize(
    "losses",
    [
        contradicting(),
        gtv.PointLoss.stack(X[:, 0]),
        [gtv.LassoLoss(X[i], Y[i], 0.1) for i in range(N)],
        [gtv.LogisticLoss(X[i], 0.5 * (1.0 + SIGNS[i]), 0.1) for i in range(N)],
    ],
    ids=["contradictions", "points", "l1 terms", "ridges"],
)
def test_what_no_model_fits_is_left_to_iterations(losses):
    given = problem(losses)
    assert interpolating(given) is None
    solution = given.solve(rtol=1e-6)
    assert solution.info["method"] != "interpolation"
    assert solution.value > 1e-3
    assert solution.rel_gap <= 1e-6


def test_rows_that_say_the_same_twice_are_fitted():
    rows, labels = X.copy(), Y.copy()
    rows[1], labels[1] = rows[0], labels[0]
    solution = problem(gtv.SquaredLoss.stack(rows, labels)).solve(rtol=1e-9)
    assert solution.info["method"] == "interpolation"


def test_no_lambda_asks_twice(monkeypatch):
    """Every value of a path takes the same model."""
    given, solved = problem(gtv.SquaredLoss.stack(X, Y)), []
    lstsq = scipy.linalg.lstsq
    monkeypatch.setattr(
        "scipy.linalg.lstsq", lambda *a, **options: solved.append(1) or lstsq(*a, **options)
    )
    path = gtv.lambda_path(given, [1.0, 0.1, 0.01], rtol=1e-9)
    assert [solution.info["method"] for solution in path] == ["interpolation"] * 3
    assert len(solved) == 1


def test_other_rules_of_stopping_iterate():
    given = problem(gtv.SquaredLoss.stack(X, Y))
    assert given.solve(stop="iterations", max_iter=10).n_iter == 10


def test_a_value_of_nothing_has_no_small_gap_beside_it():
    """Relative to it alone iterations go on, and lose nothing."""
    solution = problem(gtv.SquaredLoss.stack(X, Y)).solve(rtol=1e-6, atol=0.0, max_iter=100)
    assert solution.n_iter == 100
    assert solution.gap <= 1e-20
