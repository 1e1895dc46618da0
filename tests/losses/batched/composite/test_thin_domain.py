"""Few unbounded rows beside l1 terms: the same domains as with matrices, in the memory of rows."""

import tracemalloc

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._polyhedral import DomainRepair
from gtvcvx.losses.batched.composite import _batch, _thin_domain

N, D = 9, 7
GRAPH = gtv.EmpiricalGraph(N, [(i, i + 1) for i in range(N - 1)] + [(0, 5), (2, 8)])


def lasso(rng, i):
    """Up to as many rows as coordinates: at the last nodes these leave nothing free, or held."""
    m = (1, 1, 2, 2, 3, 3, 3, D, 9)[i]
    X = rng.standard_normal((m, D)) * 10.0 ** rng.uniform(-1.0, 1.0, D)
    if i == 1:
        X[:] = np.eye(D)[3]  # along a coordinate, whose generator vanishes
    if i == 2:
        X[1] = -2.0 * X[0]
    if i == 3:
        X[0] = np.eye(D)[0] + 1e-4 * np.eye(D)[1]  # nearly
    return gtv.LassoLoss(X, rng.standard_normal(m), 0.2)


def beside_huber(rng, i):
    """Bounded rows beside squares, and an l1 term at some nodes."""
    X = rng.standard_normal((3, D))
    own = X[2:] if i else rng.standard_normal((D, D))
    loss = gtv.HuberLoss(X[:2], rng.standard_normal(2), 0.3) + gtv.SquaredLoss(own, own[:, 0])
    return loss + gtv.L1(0.1) if i % 2 else loss


def some_unlabelled(rng, i):
    return None if i % 3 == 1 else lasso(rng, i)


MIXES = [lasso, beside_huber, some_unlabelled]


def problem(mix, penalty="l2"):
    rng = np.random.default_rng(4)
    losses = {i: loss for i in range(N) if (loss := mix(rng, i)) is not None}
    return gtv.GTVProblem(GRAPH, losses, penalty, 0.5)


def both(mix, monkeypatch, penalty="l2"):
    """Return a problem as it is solved when it is large, and with matrices."""
    monkeypatch.setattr(_thin_domain, "pays", lambda *sizes: True)
    thin = problem(mix, penalty)
    assert thin.bounds._domains is not None
    assert not isinstance(thin.bounds._domains._generators.vectors, np.ndarray)
    monkeypatch.setattr(_batch, "fits", lambda parts: False)
    dense = problem(mix, penalty)
    assert dense.bounds._domains is not None
    return thin, dense


@pytest.mark.parametrize("mix", MIXES)
def test_domains_are_the_same(mix, monkeypatch):
    thin, dense = both(mix, monkeypatch)
    for (_, a), (_, b) in zip(thin.losses.parts, dense.losses.parts, strict=True):
        found, expected = a.domain(), b.domain()
        assert (found is None) == (expected is None)
        if found is None:
            continue
        for name in ("owner", "low", "high", "scale"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        T = expected.projector[found.owner]
        projected = np.einsum("qij,qj->qi", T, found.vectors.toarray())
        np.testing.assert_allclose(projected, expected.vectors, atol=1e-13)
        lengths = np.linalg.norm(expected.vectors, axis=1)
        np.testing.assert_allclose(np.sqrt(found.squares), lengths, rtol=1e-11)
        rows, indptr = found.projector
        for i, matrix in enumerate(expected.projector):
            V = rows[indptr[i] : indptr[i + 1]]
            np.testing.assert_allclose(np.eye(D) - V.T @ V, matrix, atol=1e-13)


def test_boxes_leave_more_free_than_rows(monkeypatch):
    """Coordinates with two bounds take any flow: domains have matrices then."""
    monkeypatch.setattr(_thin_domain, "pays", lambda *sizes: True)
    given = problem(lambda rng, i: lasso(rng, i) + gtv.Box(-1.0, 1.0) if i == 4 else lasso(rng, i))
    for (_, batch), boxed in zip(given.losses.parts, (True,), strict=True):
        assert isinstance(batch.domain().vectors, np.ndarray) == boxed
    assert given.solve(rtol=1e-6).rel_gap <= 1e-6


@pytest.mark.parametrize("mix", MIXES)
def test_projections_are_the_same(mix, monkeypatch, rng):
    thin, dense = both(mix, monkeypatch)
    repairs = [DomainRepair(p.graph, p.losses, p.penalty, p.capacities) for p in (thin, dense)]
    Q, m = len(repairs[0]._generators.node), GRAPH.n_edges
    flow = Flow(rng.standard_normal((m, D)), rng.standard_normal(Q))
    conductance, ground = rng.uniform(0.1, 1.0, m), rng.uniform(0.1, 1.0, Q)
    found, expected = (
        r._conservation.project_both(flow, 1e-15, r._conservation.metric(conductance, ground))
        for r in repairs
    )
    np.testing.assert_allclose(found.u, expected.u, atol=1e-9)
    np.testing.assert_allclose(found.b, expected.b, atol=1e-9)
    assert np.linalg.norm(repairs[1]._conservation.residual_of(found)) <= 1e-12


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("mix", MIXES)
def test_solutions_are_proved_as_well(mix, penalty, monkeypatch):
    thin, dense = both(mix, monkeypatch, penalty)
    found = thin.solve(rtol=1e-7)
    best = dense.solve("CLARABEL", rtol=1e-9)
    assert found.rel_gap <= 1e-7
    assert found.dual_value <= best.value + 1e-9
    assert found.value >= best.dual_value - 1e-9


def test_a_lasso_takes_the_memory_of_its_rows():
    """Matrices would take 29 megabytes each, and there were seven."""
    rng = np.random.default_rng(0)
    n, d = 160, 150
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 4)
    X, y = rng.standard_normal((n, 2, d)), rng.standard_normal((n, 2))
    given = gtv.GTVProblem(graph, [gtv.LassoLoss(X[i], y[i], 0.1) for i in range(n)], "l2", 0.1)
    given.solve(rtol=1e-3)  # what compilation takes is not the problem's
    tracemalloc.start()
    solution = given.solve(rtol=1e-3)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert solution.rel_gap <= 1e-3
    assert most <= 29e6
