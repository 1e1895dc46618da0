"""The loss with several classes as users meet it: refused by name, solved, as CVXPY has it."""

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import federated

N = 12


def data(K=3, p=2, m=6, seed=0):
    """Two groups of nodes on a ring with chords; some labels at every node."""
    rng = np.random.default_rng(seed)
    edges = [(i, (i + 1) % N) for i in range(N)] + [(0, 5), (2, 9)]
    X = rng.standard_normal((N, m, p))
    X[:, :, 0] = 1.0
    W = 1.5 * rng.standard_normal((2, p, K))[(np.arange(N) >= N // 2).astype(int)]
    y = (X @ W + rng.gumbel(size=(N, m, K))).argmax(axis=2)
    return gtv.EmpiricalGraph(N, edges), X, y


def optimum(graph, X, y, K, penalty, lam, ridge=0.0, labelled=None):
    """By CVXPY, node by node from the definition."""
    p = X.shape[2]
    W = [cp.Variable((p, K)) for _ in range(N)]
    cost = 0.0
    for i in range(N) if labelled is None else np.flatnonzero(labelled):
        Z = X[i] @ W[i]
        own = cp.sum(cp.multiply(np.eye(K)[y[i]], Z))
        cost += (cp.sum(cp.log_sum_exp(Z, axis=1)) - own) / X.shape[1]
        cost += 0.5 * ridge * cp.sum_squares(W[i])
    norm = {"l1": 1, "l2": 2, "linf": "inf"}[penalty]
    for i, j in graph.edges:
        cost += lam * cp.norm(cp.vec(W[i] - W[j], order="C"), norm)
    return cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize(
    ("penalty", "ridge", "K"), [("l2", 0.0, 3), ("l1", 0.1, 3), ("linf", 0.0, 4), ("l1", 0.0, 2)]
)
def test_solved_as_cvxpy_has_it(penalty, ridge, K):
    graph, X, y = data(K)
    labelled = np.arange(N) % 5 != 1
    losses = gtv.MultinomialLogisticLoss.stack(X, y, labelled, n_classes=K, ridge=ridge)
    problem = gtv.GTVProblem(graph, losses, penalty, 0.08)
    solution = problem.solve(rtol=1e-7)
    assert solution.status == "optimal"
    expected = optimum(graph, X, y, K, penalty, 0.08, ridge, labelled)
    assert solution.value == pytest.approx(expected, rel=1e-6)
    assert solution.dual_value <= expected + 1e-7 * expected
    # Without a ridge term what flows into a node adds up to zero over the classes.
    if not ridge:
        flow = (graph.incidence.T @ solution.u).reshape(N, -1, K)
        np.testing.assert_allclose(flow.sum(axis=2), 0.0, atol=1e-9)


def test_one_node_alone_a_table_and_a_stack_are_the_same():
    graph, X, y = data()
    stacked = gtv.MultinomialLogisticLoss.stack(X, y, ridge=0.1, intercept=0)
    node = np.repeat(np.arange(N), y.shape[1])
    order = np.random.default_rng(1).permutation(len(node))
    table = gtv.MultinomialLogisticLoss.from_rows(
        X.reshape(-1, 2)[order], y.ravel()[order], node[order], ridge=0.1, intercept=0
    )
    alone = [gtv.MultinomialLogisticLoss(X[i], y[i], 3, ridge=[0.0, 0.1]) for i in range(N)]
    w = np.random.default_rng(2).standard_normal((N, 6))
    values = [
        gtv.GTVProblem(graph, losses, "l2", 0.1).value(w) for losses in (stacked, table, alone)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)
    same = alone[0].everywhere(N)
    assert same.value(w)[3] == pytest.approx(alone[0].value(w[3]))


def test_two_classes_are_the_logistic_loss():
    """``W_1 - W_0 = w``: a ridge on both columns is half of it on the difference."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 3)), rng.integers(0, 2, 20)
    two = gtv.MultinomialLogisticLoss(X, y, ridge=0.2)
    one = gtv.LogisticLoss(X, y, ridge=0.1)
    w = rng.standard_normal(3)
    # The best columns with this difference are -w / 2 and w / 2.
    W = np.stack([-0.5 * w, 0.5 * w], axis=1)
    assert two.value(W.ravel()) == pytest.approx(one.value(w), rel=1e-12)
    least = two.batch([two], 6).minimizer()[0].reshape(3, 2)
    np.testing.assert_allclose(least[:, 1] - least[:, 0], one.batch([one], 3).minimizer()[0])


def test_two_classes_on_a_graph_with_l1_are_the_logistic_loss():
    """The jump of w costs at least that of both columns, halved; so lambda is the same."""
    graph, X, y = data(2)
    two = gtv.GTVProblem(graph, gtv.MultinomialLogisticLoss.stack(X, y), "l1", 0.05)
    one = gtv.GTVProblem(graph, gtv.LogisticLoss.stack(X, y), "l1", 0.05)
    a, b = two.solve(rtol=1e-8), one.solve(rtol=1e-8)
    assert a.value == pytest.approx(b.value, rel=1e-7)
    # With l2 the columns -w / 2 and w / 2 jump by w / sqrt(2) together.
    two = gtv.GTVProblem(graph, gtv.MultinomialLogisticLoss.stack(X, y), "l2", 0.1 * np.sqrt(2.0))
    one = gtv.GTVProblem(graph, gtv.LogisticLoss.stack(X, y), "l2", 0.1)
    a, b = two.solve(rtol=1e-8), one.solve(rtol=1e-8)
    assert a.value == pytest.approx(b.value, rel=1e-7)
    W = a.w.reshape(N, 2, 2)
    np.testing.assert_allclose(W[:, :, 1] - W[:, :, 0], b.w, atol=1e-2)


def test_probabilities():
    _, X, y = data()
    loss = gtv.MultinomialLogisticLoss(X[0], y[0], 3)
    w = np.random.default_rng(4).standard_normal(6)
    p = loss.probabilities(w)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(-np.log(p[np.arange(6), y[0]]).mean(), loss.value(w))
    with pytest.raises(ValueError, match="w: a vector of length 6"):
        loss.probabilities(w[:5])


def test_sums_and_what_cannot_be_added():
    _, X, y = data()
    loss = gtv.MultinomialLogisticLoss(X[0], y[0], 3)
    a, w = np.linspace(-1.0, 1.0, 6), np.linspace(0.0, 2.0, 6)
    total = loss + gtv.Ridge(0.5) + gtv.PointLoss(a) + loss
    expected = 2.0 * loss.value(w) + 0.25 * w @ w + (w - a) @ (w - a)
    assert total.value(w) == pytest.approx(expected)
    batch = total.batch([total], 6)
    s = total.gradient(w)
    assert batch.fenchel_gap(w[None], s[None])[0] == pytest.approx(0.0, abs=1e-12)
    for other in (gtv.L1(0.1), gtv.Nonnegative(), gtv.LogisticLoss(np.ones((2, 6)), [0, 1])):
        with pytest.raises(TypeError, match="can be added to MultinomialLogisticLoss"):
            loss + other
    with pytest.raises(ValueError, match="the same for all classes"):
        loss + gtv.Ridge([0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [0, 1, 3, 0, 1, 2], "n_classes": 3}, "y: entry .2,. is 3.0, a class 0..2"),
        ({"y": [0, 1, 0.5, 0, 1, 2]}, "y: entry .2,. is 0.5, a class"),
        ({"y": [0, 1, -1, 0, 1, 2]}, "y: entry .2,. is -1.0"),
        ({"y": [0, 1]}, "y: 6 targets are expected"),
        ({"n_classes": 1}, "n_classes: an integer >= 2"),
        ({"n_classes": 2.5}, "n_classes: an integer >= 2"),
        ({"ridge": -1.0}, "ridge: entry .0,. is -1.0"),
        ({"ridge": [1.0, 2.0, 3.0]}, "ridge: a number or an array of shape .2,."),
        ({"intercept": 2}, "intercept: a column 0..1"),
    ],
)
def test_refused_by_name(changes, message):
    _, X, y = data()
    given = {"X": X[0], "y": y[0], **changes}
    with pytest.raises(ValueError, match=message):
        gtv.MultinomialLogisticLoss(**given)


def test_numbers_of_classes_of_a_graph_agree():
    graph, X, y = data()
    losses = [gtv.MultinomialLogisticLoss(X[i], y[i] % 2, 2) for i in range(N)]
    losses[3] = gtv.MultinomialLogisticLoss(X[3][:, :1], y[3], 4)
    with pytest.raises(ValueError, match="one number of classes"):
        gtv.GTVProblem(graph, losses, "l2", 0.1)
    losses[3] = gtv.MultinomialLogisticLoss(X[3], y[3], 3)
    with pytest.raises(ValueError, match="dimension 6"):
        gtv.GTVProblem(graph, losses, "l2", 0.1)


def test_files(tmp_path):
    graph, X, y = data()
    losses = gtv.MultinomialLogisticLoss.stack(X, y, ridge=0.1, intercept=0)
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    problem.save(tmp_path / "problem.npz")
    again = gtv.GTVProblem.load(tmp_path / "problem.npz")
    w = np.random.default_rng(5).standard_normal((N, 6))
    assert again.value(w) == problem.value(w)


def test_separable_data_have_no_minimizer_and_a_valid_gap():
    graph, X, _ = data()
    y = (X[:, :, 1] > 0).astype(int) + (X[:, :, 1] > 1.0)
    problem = gtv.GTVProblem(graph, gtv.MultinomialLogisticLoss.stack(X, y), "l2", 0.1)
    with pytest.warns(gtv.SmallObjectiveWarning):
        solution = problem.solve(rtol=1e-6)
    assert np.isfinite(solution.w).all()
    assert abs(solution.value - solution.gap) <= 1e-6
    assert solution.gap < 1e-3


def test_exact_refuses_by_name():
    graph, X, y = data()
    problem = gtv.GTVProblem(graph, gtv.MultinomialLogisticLoss.stack(X, y), "l1", 0.1)
    with pytest.raises(ValueError, match="EXACT does not support the loss of kind 'multinomial'"):
        problem.solve(solver="EXACT")


def test_raw_units_beside_an_intercept():
    """A year that is not centred, and an income: no one primal weight serves these columns."""
    graph, _, _ = data()
    rng = np.random.default_rng(7)
    year, income = rng.integers(1990, 2020, (N, 8)) * 1.0, rng.uniform(2e4, 9e4, (N, 8))
    Z = np.stack([0.0 * year, 0.2 * (2005 - year), (income - 5e4) / 1e4], axis=2)
    y = (Z + rng.gumbel(size=Z.shape)).argmax(axis=2)
    X = np.stack([np.ones_like(year), year, income], axis=2)
    problem = gtv.GTVProblem(graph, gtv.MultinomialLogisticLoss.stack(X, y), "l2", 0.1)
    solution = problem.solve(rtol=1e-6)
    assert solution.status == "optimal"
    assert solution.info["method"] == "interior point"


def test_a_class_that_nobody_has():
    """Its parameters would go to minus infinity: there is no minimizer."""
    graph, X, y = data()
    losses = gtv.MultinomialLogisticLoss.stack(X, y % 2, n_classes=3)
    solution = gtv.GTVProblem(graph, losses, "l2", 0.1).solve(rtol=1e-6)
    two = gtv.MultinomialLogisticLoss.stack(X, y % 2)
    assert solution.status == "optimal"
    expected = gtv.GTVProblem(graph, two, "l2", 0.1).solve(rtol=1e-6).value
    assert solution.value == pytest.approx(expected, rel=3e-6)


def test_weights_of_data_points():
    graph, X, y = data()
    weights = np.random.default_rng(8).integers(0, 4, y.shape)
    weights[:, 0] = 1
    loss = gtv.MultinomialLogisticLoss
    stacked = loss.stack(X, y, n_classes=3, ridge=0.1, sample_weight=weights)
    w = np.random.default_rng(9).standard_normal((N, 6))
    for i in (0, 5):
        rows = np.repeat(np.arange(y.shape[1]), weights[i])
        repeated = loss(X[i][rows], y[i][rows], 3, ridge=0.1)
        alone = loss(X[i], y[i], 3, ridge=0.1, sample_weight=weights[i])
        assert stacked.value(w)[i] == pytest.approx(repeated.value(w[i]), rel=1e-12)
        assert alone.value(w[i]) == pytest.approx(repeated.value(w[i]), rel=1e-12)
        np.testing.assert_allclose(alone.prox(w[i], 2.0), repeated.prox(w[i], 2.0), atol=1e-9)
    assert (2.0 * alone).value(w[0]) == pytest.approx(2.0 * alone.value(w[0]))
    solution = gtv.GTVProblem(graph, stacked, "l2", 0.1).solve(rtol=1e-7)
    assert solution.status == "optimal"


def test_without_features_classes_have_frequencies():
    loss = gtv.MultinomialLogisticLoss(None, [0, 1, 1, 2])
    W = loss.batch([loss], 3).minimizer()[0]
    np.testing.assert_allclose(loss.probabilities(W), np.tile([0.25, 0.5, 0.25], (4, 1)))


def test_cross_validation_scores_held_out_rows_by_their_log_loss():
    graph, X, y = data(seed=3)
    problem = gtv.GTVProblem(graph, gtv.MultinomialLogisticLoss.stack(X, y, ridge=0.05), "l2", 0.1)
    found = gtv.cross_validate(problem, [0.01, 0.1, 10.0], cv=3)
    # Even chances are worth log 3; the groups differ.
    assert found.mean_errors.min() < np.log(3.0)
    assert found.mean_errors[0] > 0.0


def test_federated_algorithms_take_it():
    graph, X, y = data()
    losses = gtv.MultinomialLogisticLoss.stack(X, y, ridge=0.1)
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    net = federated.Network.from_problem(problem)
    run = federated.simulate(federated.PrimalDual(), net, rounds=150, record_every=50)
    assert problem.value(run.w) == pytest.approx(problem.solve(rtol=1e-7).value, rel=1e-3)
