"""Few rows beside many coordinates: nothing takes n d^2, and everything is as with matrices."""

import copy
import tracemalloc

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality import _polyhedral
from gtvcvx.losses.batched import _thin
from gtvcvx.losses.batched._stacked import stacked_from_terms
from gtvcvx.losses.batched.composite import _domain, _least_multipliers, _null_space
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.multinomial import _batch as multinomial
from gtvcvx.losses.batched.multinomial import _domain as of_classes

N, D = 9, 6


@pytest.fixture
def thin(monkeypatch):
    """Let rows be taken whatever they take."""
    for module in (_null_space, _least_multipliers, _polyhedral, multinomial):
        monkeypatch.setattr(module, "pays", lambda rows, k, d: True)
    for module in (_domain, of_classes):
        monkeypatch.setattr(module, "SMALL", 0)


def parts_of(counts, rng):
    """Rows at nodes that have so many; some of them are multiples of others."""
    node = np.repeat(np.arange(len(counts)), counts)
    X = rng.standard_normal((len(node), D))
    X[1::4] = -2.0 * X[::4][: len(X[1::4])]
    y = rng.standard_normal(len(node))
    return Parts.of([{"kind": "absolute", "node": node, "X": X, "y": y}], len(counts), D)


@pytest.mark.usefixtures("thin")
def test_null_spaces_are_those_of_projectors():
    """Nodes without rows, with dependent ones, and with more than coordinates among them."""
    rng = np.random.default_rng(0)
    parts = parts_of([3, 0, 2, 9, 1, 6], rng)
    every, none = np.ones(len(parts.X), dtype=bool), np.zeros((6, D), dtype=bool)
    for rows in (every, rng.random(len(every)) < 0.6):
        null = _null_space.NullSpace.of(parts, rows, none)
        assert null.beside is not None
        dense = _domain.complement(parts, rows, none)
        x = rng.standard_normal((6, D))
        expected = np.einsum("kij,kj->ki", dense, x)
        np.testing.assert_allclose(null.apply(x), expected, atol=1e-12)
        assert not null.apply(x)[null.dimensions == 0].any()
        np.testing.assert_allclose(null.projector(), dense, atol=1e-12)
        np.testing.assert_allclose(null.dimensions, np.einsum("kjj->k", dense), atol=1e-9)


def problem(kind, ridge, m=2, seed=1):
    rng = np.random.default_rng(seed)
    X, d = rng.standard_normal((N, m, D)), D
    if kind == "multinomial":
        d = 3 * D
        losses = gtv.MultinomialLogisticLoss.stack(X, rng.integers(0, 3, (N, m)), n_classes=3)
    else:
        z = rng.standard_normal((N, m))
        losses = {
            "logistic": lambda: gtv.LogisticLoss.stack(X, (z > 0.0) * 1.0),
            "hinge": lambda: gtv.HingeLoss.stack(X, np.where(z > 0.0, 1.0, -1.0)),
            "poisson": lambda: gtv.PoissonLoss.stack(X, np.floor(np.abs(3.0 * z))),
        }[kind]()
    if ridge:
        term = {"kind": "ridge", "node": np.arange(N), "mu": np.full(N, ridge)}
        losses = losses + stacked_from_terms([term], d)
    edges = [(i, (i + 1) % N) for i in range(N)] + [(0, 4), (2, 7)]
    return gtv.GTVProblem(gtv.EmpiricalGraph(N, edges), losses, "l2", 0.3)


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["logistic", "hinge", "poisson", "multinomial"])
def test_gaps_are_those_of_matrices(kind, ridge, request):
    """The same flow and point, far from the optimum and near it."""
    dense = problem(kind, ridge)
    solution = dense.solve(rtol=1e-7)
    rng = np.random.default_rng(2)
    pairs = [(solution.w, solution.u + step * rng.standard_normal(solution.u.shape))
             for step in (0.0, 0.1)]  # fmt: skip
    expected = [dense.bounds.gap(*pair)[0].total for pair in pairs]
    request.getfixturevalue("thin")
    few = problem(kind, ridge)
    found = [few.bounds.gap(*pair)[0].total for pair in pairs]
    assert found[0] == pytest.approx(expected[0], rel=1e-4, abs=1e-9)
    assert found[1] == pytest.approx(expected[1], rel=1e-2)  # repairs end a little elsewhere
    best = dense.solve(rtol=1e-9).value
    assert all(few.value(w) - gap <= best + 1e-9 for (w, _), gap in zip(pairs, found, strict=True))
    assert few.solve(rtol=1e-7).value == pytest.approx(best, abs=1e-6)


@pytest.mark.usefixtures("thin")
def test_the_ground_is_given_by_rows(monkeypatch):
    conservation = problem("logistic", 0.0).bounds._domains._conservation
    unit = np.random.default_rng(5).random(len(conservation.generators.node))
    node, rows, _ = ground = conservation.to_ground(unit)
    of_rows = conservation.system(np.ones(11), ground).degrees
    monkeypatch.setattr(_polyhedral, "pays", lambda rows, k, d: False)
    blocks = conservation.to_ground(unit)
    found = np.zeros_like(blocks)
    np.add.at(found, node, rows[:, :, None] * rows[:, None, :])
    np.testing.assert_allclose(found, blocks, atol=1e-14)
    degrees = conservation.system(np.ones(11), blocks).degrees
    np.testing.assert_allclose(of_rows, degrees, rtol=1e-14)


@pytest.mark.parametrize("kind", ["logistic", "absolute", "hinge and l1", "multinomial"])
def test_no_array_of_all_nodes_matrices(kind):
    """Bounds of 60 nodes with 240 coordinates stay below one array (n, d, d)."""
    rng, n, d = np.random.default_rng(4), 60, 240
    if kind == "multinomial":
        losses = gtv.MultinomialLogisticLoss.stack(
            rng.standard_normal((n, 2, 24)), rng.integers(0, 10, (n, 2)), n_classes=10
        )
    else:
        X, y = rng.standard_normal((n, 3, d)), rng.standard_normal((n, 3))
        losses = (
            gtv.AbsoluteLoss.stack(X, y)
            if kind == "absolute"
            else gtv.LogisticLoss.stack(X, (y > 0.0) * 1.0)
        )
        if kind == "hinge and l1":
            term = {"kind": "l1", "node": np.arange(n), "kappa": np.full((n, d), 0.1)}
            losses = gtv.HingeLoss.stack(X, np.sign(y)) + stacked_from_terms([term], d)
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 4)
    p = gtv.GTVProblem(graph, losses, "l2", 0.05)
    assert n * d * d > _thin.SMALL
    w, u = np.zeros((n, d)), 0.01 * rng.standard_normal((graph.n_edges, d))
    # What it compiles takes memory of its own; another problem's losses keep nothing for this one.
    copy.deepcopy(p).bounds.gap(w, u)
    tracemalloc.start()
    gap = p.bounds.gap(w, u)[0].total
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(gap)
    assert most < 8 * n * d * d
