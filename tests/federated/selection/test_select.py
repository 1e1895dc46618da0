"""Edge selection: against plain formulas, invariances, and how often right edges are dropped."""

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.stats import chi2

import gtvcvx as gtv
from gtvcvx.federated.selection import (
    LocalEstimate,
    local_estimate,
    message_shapes,
    select_edges,
    wald_statistics,
)

COVARIANCES = ("HC0", "HC1", "HC3", "ols")


def model(n, p=20, V=40, K=5, seed=0):
    """Clusters of linear models as in the paper, and a graph with a fifth of all pairs wrong."""
    rng = np.random.default_rng(seed)
    label = np.repeat(np.arange(K), V // K)
    w = rng.standard_normal((K, p)) * p**-0.25
    X = rng.standard_normal((V, n, p))
    y = np.einsum("vnp,vp->vn", X, w[label]) + rng.standard_normal((V, n))
    i, j = np.triu_indices(V, 1)
    joined = (label[i] == label[j]) ^ (rng.random(len(i)) < 0.2)
    return label, X, y, gtv.EmpiricalGraph(V, np.column_stack([i, j])[joined])


def small(seed=1, m=15, p=3, V=4):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((V, m, p)), rng.standard_normal((V, m))
    edges = [(0, 1), (1, 2), (0, 3)]
    return X, y, gtv.EmpiricalGraph(V, edges, weights=[0.5, 2.0, 3.0])


def plain_linear(X, y, kind):
    """Least squares and its covariance, Omega / n, by the formulas as they are printed."""
    n, p = X.shape
    H = X.T @ X / n
    inverse = np.linalg.inv(H)
    theta = inverse @ X.T @ y / n
    e = y - X @ theta
    if kind == "ols":
        return theta, inverse * (e @ e) / (n - p) / n
    sigma = np.zeros((p, p))
    for x, error in zip(X, e, strict=True):
        correction = {"HC0": 1.0, "HC1": n / (n - p)}.get(kind, (1 - x @ inverse @ x / n) ** -2.0)
        sigma += error**2 * correction * np.outer(x, x) / n
    return theta, inverse @ sigma @ inverse / n


def true_edges(selection, label):
    return label[selection.candidates[:, 0]] == label[selection.candidates[:, 1]]


@pytest.mark.parametrize("kind", COVARIANCES)
def test_statistics_are_the_printed_formula(kind):
    X, y, graph = small()
    each = [plain_linear(X[i], y[i], kind) for i in range(4)]
    found = select_edges(graph, gtv.SquaredLoss.stack(X, y), covariance=kind)
    for (i, j), value in zip(graph.edges, found.statistics, strict=True):
        d = each[i][0] - each[j][0]
        assert value == pytest.approx(d @ np.linalg.inv(each[i][1] + each[j][1]) @ d, rel=1e-10)
    assert found.threshold == pytest.approx(chi2.ppf(1 - 0.05 / 3, 3), rel=1e-9)
    assert found.p_values == pytest.approx(1 - chi2.cdf(found.statistics, 3), abs=1e-12)
    assert np.array_equal(found.kept, found.p_values >= 0.05 / 3)
    assert found.status == "asymptotic"
    assert found.floats_per_message == 3 + 6
    assert found.floats_sent.tolist() == [18, 18, 9, 9]


def test_hc0_drops_right_edges_and_hc3_does_not():
    """Acceptance 5: n = 50 rows, p = 20, 40 nodes, 5 clusters, corruption .2."""
    dropped = {"HC0": [], "HC3": []}
    for seed in range(3):
        label, X, y, graph = model(50, seed=seed)
        for kind, shares in dropped.items():
            found = select_edges(graph, gtv.SquaredLoss.stack(X, y), covariance=kind)
            right = true_edges(found, label)
            shares.append(np.mean(~found.kept[right]))
            assert np.mean(found.kept[~right]) < 0.05
    assert np.mean(dropped["HC0"]) > 0.30
    assert np.mean(dropped["HC3"]) < 0.02


def test_wrong_edges_go_and_right_ones_come():
    label, X, y, graph = model(100, p=5, V=20)
    losses = gtv.SquaredLoss.stack(X, y)
    for candidates in ("graph", "complete"):
        found = select_edges(graph, losses, candidates=candidates)
        assert np.array_equal(found.kept, true_edges(found, label))
    assert len(found.candidates) == 190
    assert found.graph.n_edges == 5 * 6
    assert np.all(found.floats_sent == 19 * 20)


def test_kept_edges_keep_their_weights_and_labels():
    X, y, graph = small()
    graph = gtv.EmpiricalGraph(4, graph.edges, graph.weights, nodes="abcd")
    y[3] += 50 * X[3, :, 0]  # so that edge (0, 3) goes
    found = select_edges(graph, gtv.SquaredLoss.stack(X, y))
    assert found.kept.tolist() == [True, False, True]
    assert np.array_equal(found.graph.edges, graph.edges[found.kept])
    assert np.array_equal(found.graph.weights, graph.weights[found.kept])
    assert list(found.graph.nodes) == list("abcd")
    assert "2 of 3 edges kept" in repr(found)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_units_of_features_and_targets_do_not_matter(kind):
    X, y, graph = small()
    before = select_edges(graph, gtv.SquaredLoss.stack(X, y), covariance=kind)
    losses = gtv.SquaredLoss.stack(X * [1e-9, 1e7, 3.0], y * 1e5)
    after = select_edges(graph, losses, covariance=kind)
    assert after.statistics == pytest.approx(before.statistics, rel=1e-9)


@pytest.mark.parametrize("kind", ["logistic", "poisson", "pseudohuber"])
def test_units_of_features_do_not_matter_for_other_losses(kind):
    losses, scaled = (smooth(kind, scale) for scale in ([1.0, 1.0, 1.0], [1e-4, 1e3, 3.0]))
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (0, 3)])
    before, after = (select_edges(graph, some).statistics for some in (losses, scaled))
    assert after == pytest.approx(before, rel=1e-6)


def smooth(kind, scale=(1.0, 1.0, 1.0), m=60):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((4, m, 3))
    z = X @ [0.5, -0.3, 0.2]
    draws = {
        "logistic": lambda: gtv.LogisticLoss.stack(
            X * scale, rng.random(z.shape) < 1 / (1 + np.exp(-z))
        ),
        "poisson": lambda: gtv.PoissonLoss.stack(X * scale, rng.poisson(np.exp(z))),
        "huber": lambda: gtv.HuberLoss.stack(X * scale, z + rng.standard_t(3, z.shape), delta=1.0),
        "pseudohuber": lambda: gtv.PseudoHuberLoss.stack(
            X * scale, z + rng.standard_t(3, z.shape), delta=1.0
        ),
    }
    return draws[kind]()


@pytest.mark.parametrize("kind", ["logistic", "poisson", "huber", "pseudohuber"])
def test_smooth_losses_have_the_sandwich_of_their_derivatives(kind):
    """Scores and Hessians by differences of the loss itself."""
    losses = smooth(kind)
    (term,) = losses.terms()
    at = term["node"] == 0
    rows = [{**{k: v[at] for k, v in term.items() if k != "kind"}, "kind": kind}]
    rows[0]["node"] = np.arange(at.sum())
    each = gtv.losses.stacked_from_terms(rows, 3)
    own = gtv.losses.stacked_from_terms([{**rows[0], "node": np.zeros(at.sum(), int)}], 3)
    n, step = int(at.sum()), 1e-5
    x = cp.Variable((1, 3))
    cp.Problem(cp.Minimize(own.expression(x)[0])).solve(solver="CLARABEL")

    def scores(w):
        return each.gradient(np.tile(w, (n, 1)))

    made = local_estimate_of(own, "HC0")
    assert made.theta == pytest.approx(x.value[0], abs=1e-4)
    assert np.linalg.norm(scores(made.theta).mean(axis=0)) <= 1e-9
    H = np.array(
        [
            (scores(made.theta + step * e) - scores(made.theta - step * e)).mean(axis=0) / step / 2
            for e in np.eye(3)
        ]
    )
    inverse, g = np.linalg.inv(H), scores(made.theta)
    assert made.covariance == pytest.approx(inverse @ (g.T @ g / n) @ inverse.T / n, rel=1e-4)
    assert local_estimate_of(own, "HC1").covariance == pytest.approx(
        made.covariance * n / (n - 3), rel=1e-12
    )
    larger = local_estimate_of(own, "HC3").covariance - made.covariance
    assert np.linalg.eigvalsh(larger)[0] > 0


def local_estimate_of(losses, covariance):
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    both = [
        {**term, "node": np.concatenate([term["node"], term["node"] + 1])}
        for term in losses.terms()
    ]
    for term in both:
        for name in set(term) - {"kind", "node"}:
            term[name] = np.concatenate([term[name], term[name]])
    both = gtv.losses.stacked_from_terms(both, losses.dim)
    found = select_edges(graph, both, covariance=covariance)
    assert found.statistics[0] == pytest.approx(0.0, abs=1e-20)
    (term,) = losses.terms()
    classes = {
        "logistic": gtv.LogisticLoss,
        "poisson": gtv.PoissonLoss,
        "huber": gtv.HuberLoss,
        "pseudohuber": gtv.PseudoHuberLoss,
    }
    extra = {"delta": term["delta"]} if "delta" in term else {}
    return local_estimate(classes[term["kind"]](term["X"], term["y"], **extra), covariance)


def test_the_order_of_nodes_and_ends_does_not_matter():
    X, y, graph = small()
    before = select_edges(graph, gtv.SquaredLoss.stack(X, y))
    order = np.array([2, 0, 3, 1])  # new number of each node
    moved = gtv.EmpiricalGraph(4, order[graph.edges])
    places = np.argsort(order)
    after = select_edges(moved, gtv.SquaredLoss.stack(X[places], y[places]))
    value = {frozenset(e): s for e, s in zip(moved.edges.tolist(), after.statistics, strict=True)}
    for edge, statistic in zip(graph.edges, before.statistics, strict=True):
        assert value[frozenset(order[edge].tolist())] == pytest.approx(statistic, rel=1e-12)
    estimates = [local_estimate(gtv.SquaredLoss(X[i], y[i])) for i in range(4)]
    assert wald_statistics(estimates, graph.edges[:, ::-1]) == pytest.approx(before.statistics)


def test_what_is_sent_is_enough():
    X, y, graph = small()
    messages = [local_estimate(gtv.SquaredLoss(X[i], y[i])).message() for i in range(4)]
    for message in messages:
        assert {k: v.shape for k, v in message.items()} == message_shapes(3)
        assert all(v.dtype == np.float64 for v in message.values())
    received = [LocalEstimate.from_message(message) for message in messages]
    expected = select_edges(graph, gtv.SquaredLoss.stack(X, y)).statistics
    assert wald_statistics(received, graph.edges) == pytest.approx(expected, rel=1e-13)
    with pytest.raises(ValueError, match=r"^covariance: 6 numbers"):
        LocalEstimate.from_message({"theta": np.zeros(3), "covariance": np.zeros(5)})


def test_a_graph_without_edges_keeps_all_of_none():
    X, y, _ = small()
    found = select_edges(gtv.EmpiricalGraph(4, []), gtv.SquaredLoss.stack(X, y))
    assert (found.threshold, found.graph.n_edges, len(found.kept)) == (math.inf, 0, 0)


def test_the_level_holds_for_many_rows():
    """Of 300 pairs of equal models about one in twenty is rejected at level .05 each."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 60, 2))
    y = X @ [1.0, 2.0] + rng.standard_normal((600, 60)) * (0.5 + np.abs(X[:, :, 0]))
    graph = gtv.EmpiricalGraph(600, np.arange(600).reshape(-1, 2))
    found = select_edges(graph, gtv.SquaredLoss.stack(X, y))
    assert 0.02 < np.mean(found.p_values < 0.05) < 0.09
    # Errors are larger where features are: the classical covariance does not know.
    assert (
        np.mean(select_edges(graph, gtv.SquaredLoss.stack(X, y), covariance="ols").p_values < 0.05)
        > 0.12
    )


RNG = np.random.default_rng(7)
X6, Y6 = RNG.standard_normal((6, 3)), RNG.standard_normal(6)
SEPARABLE = np.sort(RNG.standard_normal(9)), np.repeat([0.0, 1.0], [5, 4])
REFUSED = {
    "as many rows as columns": (gtv.SquaredLoss(X6[:3], Y6[:3]), "more than 3 rows"),
    "dependent columns": (gtv.SquaredLoss(X6[:, [0, 1, 1]] * [1, 1, 1e6], Y6), "dependent"),
    "a zero column": (gtv.SquaredLoss(X6 * [1, 0, 1], Y6), "dependent"),
    "separable": (gtv.LogisticLoss(np.c_[SEPARABLE[0], np.ones(9)], SEPARABLE[1]), "separable"),
    "one label": (gtv.LogisticLoss(X6, np.ones(6)), "separable|dependent"),
    "no counts": (gtv.PoissonLoss(np.c_[np.ones(6), X6[:, 0]], np.zeros(6)), "separable"),
    "few inliers": (gtv.HuberLoss(X6, 1e6 * Y6, 1e-9), "dependent"),
    "exact fit": (gtv.SquaredLoss(X6, X6 @ [1.0, 2.0, 3.0]), "exactly"),
    "kinks": (gtv.AbsoluteLoss(X6, Y6), "got absolute"),
    "l1": (gtv.LassoLoss(X6, Y6, 0.1), "got l1"),
    "no data": (gtv.ZeroLoss(), "got no rows"),
    "points": (gtv.PointLoss(np.zeros(3)), "got point"),
    "two losses": (gtv.SquaredLoss(X6, Y6) + gtv.SquaredLoss(X6, Y6), "several losses"),
    "weights": (gtv.SquaredLoss(X6, Y6, sample_weight=np.arange(1.0, 7.0)), "is weighted"),
    "a cvxpy loss": (gtv.CvxpyLoss(cp.sum_squares, dim=3), "expected, got"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nodes_without_an_estimate_are_refused_by_name(name):
    loss, message = REFUSED[name]
    d = loss.dim or 3
    good = gtv.SquaredLoss(RNG.standard_normal((9, d)), RNG.standard_normal(9))
    graph = gtv.EmpiricalGraph(2, [(0, 1)], nodes=["Rome", "Oslo"])
    with pytest.raises(ValueError, match=f"node 'Oslo': .*({message})"):
        select_edges(graph, [good, loss])


@pytest.mark.parametrize(
    "name", ["as many rows as columns", "dependent columns", "separable", "one label", "no counts"]
)
@pytest.mark.parametrize("kind", ["HC0", "HC1", "HC3"])
def test_a_ridge_helps_and_is_called_heuristic(name, kind):
    loss, _ = REFUSED[name]
    other = gtv.SquaredLoss(RNG.standard_normal((9, loss.dim)), RNG.standard_normal(9))
    found = select_edges(gtv.EmpiricalGraph(2, [(0, 1)]), [loss, other], ridge=0.1, covariance=kind)
    assert found.status == "heuristic"
    assert 0 <= found.statistics[0] < np.inf


def test_a_ridge_is_that_of_the_loss():
    asked = local_estimate(gtv.LogisticLoss(X6, np.ones(6)), ridge=0.3)
    own = local_estimate(gtv.LogisticLoss(X6, np.ones(6), ridge=0.3))
    assert own.status == asked.status == "heuristic"
    assert own.theta == pytest.approx(asked.theta, rel=1e-10)
    assert own.covariance == pytest.approx(asked.covariance, rel=1e-10)
    assert own.theta == pytest.approx(
        gtv.LogisticLoss(X6, np.ones(6), ridge=0.3 - 1e-9).prox(np.zeros(3), 1e9), rel=1e-6
    )
    # The sandwich with a ridge: its rows have the variance of the data's.
    for kind in ("HC0", "HC3"):
        J = 2 * X6.T @ X6 + 6 * 0.4 * np.eye(3)
        e = Y6 - X6 @ np.linalg.solve(J, 2 * X6.T @ Y6)
        h = 2 * np.einsum("ri,ij,rj->r", X6, np.linalg.inv(J), X6)
        c = (1 - h) ** -2.0 if kind == "HC3" else np.ones(6)
        meat = 4 * X6.T @ np.diag(e**2 * c) @ X6 + 6 * 0.4 * (2 * e @ e / 6) * np.eye(3)
        expected = np.linalg.inv(J) @ meat @ np.linalg.inv(J)
        made = local_estimate(gtv.SquaredLoss(X6, Y6), kind, ridge=0.4)
        assert made.covariance == pytest.approx(expected, rel=1e-10)
    # The classical covariance with a ridge: s^2 (X^T X + (n mu / 2) I)^-1.
    J = X6.T @ X6 + 6 * 0.4 / 2 * np.eye(3)
    e = Y6 - X6 @ np.linalg.solve(J, X6.T @ Y6)
    s2 = e @ e / (6 - np.trace(np.linalg.solve(J, X6.T @ X6)))
    made = local_estimate(gtv.SquaredLoss(X6, Y6), "ols", ridge=0.4)
    assert made.covariance == pytest.approx(s2 * np.linalg.inv(J), rel=1e-10)


def test_separable_rows_are_found_exactly():
    """Against all sign patterns of a line: separable if and only if labels change once."""
    x = np.array([-2.0, -1.0, 0.5, 1.0, 3.0, 4.0])
    for labels in itertools.product([0.0, 1.0], repeat=6):
        changes = int(np.sum(np.diff(labels) != 0))
        loss = gtv.LogisticLoss(np.column_stack([x * 1e-5, np.ones(6)]), labels)
        if changes <= 1:
            with pytest.raises(ValueError, match="separable"):
                local_estimate(loss)
        else:
            assert np.all(np.isfinite(local_estimate(loss, "HC0").theta))


def test_a_row_of_leverage_one_is_refused_for_hc3_alone():
    X = np.column_stack([np.r_[1.0, np.zeros(7)], RNG.standard_normal(8), np.ones(8)])
    loss = gtv.SquaredLoss(X, RNG.standard_normal(8))
    with pytest.raises(ValueError, match="node 'Oslo': row 0 has leverage 1"):
        local_estimate(loss, node="Oslo")
    with pytest.raises(ValueError, match="fitted exactly"):
        local_estimate(loss, "HC0")
    assert local_estimate(loss, "ols").covariance[0, 0] > 0


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"covariance": "HC4"}, "covariance"),
        ({"candidates": "all"}, "candidates"),
        ({"ridge": -1.0}, "ridge"),
        ({"ridge": math.inf}, "ridge"),
    ],
)
def test_bad_options_are_refused_by_name(change, name):
    X, y, graph = small()
    with pytest.raises(ValueError, match=f"^{name}: "):
        select_edges(graph, gtv.SquaredLoss.stack(X, y), **change)


def test_the_classical_covariance_is_for_squared_losses():
    with pytest.raises(ValueError, match="node 'Oslo': covariance 'ols'"):
        local_estimate(gtv.HuberLoss(X6, Y6, 9.0), "ols", node="Oslo")
