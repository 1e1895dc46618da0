"""The factorization by fronts solves what dense algebra solves, on every shape of graph."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest

from gtvcvx._deadline import Expired, now, until
from gtvcvx.block_cholesky import _factor
from gtvcvx.block_cholesky import _fronts as fronts_module
from gtvcvx.block_cholesky._compiled import assemble
from gtvcvx.block_cholesky._factor import BlockCholesky, TwofoldCholesky
from gtvcvx.block_cholesky._fronts import DEFAULTS, FrontPrices, elimination, fronts, minimum_degree
from gtvcvx.block_cholesky._plan import plan
from tests.block_cholesky import _naive_fronts as naive

GRAPHS = {
    "path": nx.path_graph(9),
    "star": nx.star_graph(8),
    "complete": nx.complete_graph(7),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 6)),
    "regular": nx.random_regular_graph(4, 30, seed=0),
    "forest with isolated nodes": nx.Graph([(0, 3), (3, 5), (6, 7)]),
}


def edges_of(name):
    graph = GRAPHS[name]
    return 1 + max(graph), np.array(sorted(graph.edges), np.int64)


def positive(rng, count, d):
    root = rng.standard_normal((count, d, d))
    return root @ root.transpose(0, 2, 1)


def dense(n, d, P, edges, weights, X, node, row_weights):
    H = np.zeros((n, d, n, d))
    for i in range(n):
        H[i, :, i, :] += P[i]
    for r, i in enumerate(node):
        H[i, :, i, :] += row_weights[r] * np.outer(X[r], X[r])
    for (i, j), weight in zip(edges, weights, strict=True):
        H[i, :, i, :] += weight
        H[j, :, j, :] += weight
        H[i, :, j, :] -= weight
        H[j, :, i, :] -= weight
    return H.reshape(n * d, n * d)


def instance(name, d):
    """Two rows at each node, and a positive matrix at each node and edge."""
    rng = np.random.default_rng(d)
    n, edges = edges_of(name)
    node = np.repeat(np.arange(n), 2)
    X = rng.standard_normal((2 * n, d))
    weights = positive(rng, n, d), rng.random(2 * n), positive(rng, len(edges), d)
    return n, edges, node, X, weights, rng


@pytest.mark.parametrize("kind", [BlockCholesky, TwofoldCholesky])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("name", GRAPHS)
def test_it_solves_what_dense_algebra_solves(name, d, kind):
    n, edges, node, X, (P, row_weights, edge_weights), rng = instance(name, d)
    factor = kind(plan(n, edges, d), edges, node, X)
    H = dense(n, d, P, edges, edge_weights, X, node, row_weights)
    for _ in range(2):  # nothing is left of an earlier one
        factor.factorize(P, row_weights, edge_weights)
        right = rng.standard_normal((n, d))
        expected = np.linalg.solve(H, right.ravel()).reshape(n, d)
        np.testing.assert_allclose(factor.solve(right), expected, rtol=1e-8, atol=1e-10)


def test_a_share_of_the_diagonal_is_added_to_it():
    n, edges, node, X, weights, rng = instance("grid", 2)
    factor = BlockCholesky(plan(n, edges, 2), edges, node, X, shift=0.25)
    factor.factorize(*weights)
    H = dense(n, 2, weights[0], edges, weights[2], X, node, weights[1])
    right = rng.standard_normal((n, 2))
    expected = np.linalg.solve(H + 0.25 * np.diag(np.diag(H)), right.ravel())
    np.testing.assert_allclose(factor.solve(right).ravel(), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("front", [0.0, 1e9])
def test_whatever_is_eliminated_together_the_solution_is_the_same(front, monkeypatch):
    n, edges, node, X, weights, rng = instance("grid", 3)
    right = rng.standard_normal((n, 3))
    factor = BlockCholesky(plan(n, edges, 3), edges, node, X)
    factor.factorize(*weights)
    expected = factor.solve(right)
    defaults = (FrontPrices(front=front),)
    monkeypatch.setattr(fronts, "__defaults__", defaults)
    other = plan(n, edges, 3)
    # A graph without any cut through fronts is eliminated at once; and none is joined for nothing.
    assert (len(other.pivots) == 1) == (front > 0.0)
    factor = BlockCholesky(other, edges, node, X)
    factor.factorize(*weights)
    np.testing.assert_allclose(factor.solve(right), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", [BlockCholesky, TwofoldCholesky])
def test_variables_that_nothing_determines_rest(kind):
    edges = np.array([[0, 1]])
    factor = kind(plan(3, edges, 2), edges, np.empty(0, np.int64), np.empty((0, 2)))
    factor.factorize(np.zeros((3, 2, 2)), np.empty(0), np.eye(2)[None])
    step = factor.solve(np.array([[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]]))
    np.testing.assert_allclose(step[0] - step[1], [1.0, 2.0], atol=1e-12)
    np.testing.assert_allclose(step[2], 0.0, atol=1e-12)


def test_twice_the_digits_keep_what_small_weights_determine():
    """Beside rows of weights 2^60 it is edges of weights 2^-27 that determine all but 2^-60."""
    edges, node, X = (
        np.array([[0, 1], [1, 2]]),
        np.array([0, 2]),
        np.array([[3.0, 1.0], [1.0, 3.0]]),
    )
    x = np.array([[1.0, -3.0], [0.0, 0.0], [3.0, -1.0]])  # but for 2^-60 at the first node
    known = np.zeros((3, 2, 2)), np.full(2, 2.0**60), np.tile(2.0**-27 * np.eye(2), (2, 1, 1))
    jumps = x[edges[:, 0]] - x[edges[:, 1]]
    right = np.zeros((3, 2))
    np.add.at(right, edges[:, 0], 2.0**-27 * jumps)
    np.add.at(right, edges[:, 1], -(2.0**-27) * jumps)
    right[0] += X[0]
    single = BlockCholesky(plan(3, edges, 2), edges, node, X)
    single.factorize(*known)
    assert np.abs(single.solve(right) - x).max() > 0.1
    factor = TwofoldCholesky(plan(3, edges, 2), edges, node, X)
    factor.factorize(*known)
    np.testing.assert_allclose(factor.solve(right), x, atol=1e-9)
    found, rows, differences = factor.moves(right)
    np.testing.assert_allclose(found, x, atol=1e-9)
    np.testing.assert_allclose(differences, jumps, atol=1e-9)
    # Its own digits are not enough for that.
    np.testing.assert_allclose(rows[0], 2.0**-60, rtol=1e-6)


LOOKS = {BlockCholesky: "A_LOOK", TwofoldCholesky: "A_TWOFOLD_LOOK"}


def factored(name, kind):
    n, edges = edges_of(name)
    rng = np.random.default_rng(2)
    X, node = rng.standard_normal((3 * n, 2)), np.repeat(np.arange(n), 3)
    weights = np.ones(3 * n), np.tile(np.eye(2), (len(edges), 1, 1))
    return kind(plan(n, edges, 2), edges, node, X), np.zeros((n, 2, 2)), *weights


@pytest.mark.parametrize("kind", LOOKS)
@pytest.mark.parametrize("name", ["complete", "grid"])
def test_a_factorization_in_pieces_is_the_same(name, kind, monkeypatch):
    whole, *known = factored(name, kind)
    whole.factorize(*known)
    monkeypatch.setattr(_factor, LOOKS[kind], 1.0)
    pieces, *known = factored(name, kind)
    pieces.factorize(*known)
    right = np.random.default_rng(0).standard_normal(known[0].shape[:2])
    np.testing.assert_array_equal(pieces.solve(right), whole.solve(right))
    twice = whole.solve(right)
    whole.factorize(*known)  # once more, over what was there
    np.testing.assert_array_equal(whole.solve(right), twice)


@pytest.mark.parametrize("kind", LOOKS)
def test_the_deadline_strikes_inside_of_a_factorization(kind, monkeypatch):
    factor, *known = factored("complete", kind)
    with until(now() - 1.0):
        factor.factorize(*known)  # too short to be looked into
        monkeypatch.setattr(_factor, LOOKS[kind], 1.0)
        with pytest.raises(Expired):
            factor.factorize(*known)


@pytest.mark.parametrize("few", [0, 3_000])
def test_the_deadline_strikes_inside_of_an_ordering(few, monkeypatch):
    monkeypatch.setattr(fronts_module, "FEW", few)
    n, edges = edges_of("grid")
    with until(now() - 1.0), pytest.raises(Expired):
        plan(n, edges, 2)


def test_what_would_take_too_many_multiplications_is_not_planned():
    n, edges = edges_of("complete")
    assert plan(n, edges, 2, most=10.0) is None
    found = plan(n, edges, 2, most=1e4)
    size = 2 * n
    assert found.multiplications(2) == pytest.approx(size**3 / 6)
    assert found.entries(2) == size**2


@pytest.mark.parametrize("few", [0, 3_000])
def test_the_factor_has_the_columns_of_elimination(few, monkeypatch):
    monkeypatch.setattr(fronts_module, "FEW", few)
    # A cycle of five: the first two eliminated leave an edge between their neighbours.
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    assert naive.filled(np.arange(5), edges) == [{1, 4}, {2, 4}, {3, 4}, {4}, set()]
    found = elimination(np.arange(5), edges, 13.0)
    assert found.squares == 13
    assert found.first.tolist() == [0, 1, 2, 5]  # the last three have an effect on each other
    assert [set(part) for part in np.split(found.rest, found.rest_starts[1:-1])] == [
        {1, 4},
        {2, 4},
        set(),
    ]
    assert found.parent.tolist() == [1, 2, -1]
    assert elimination(np.arange(5), edges, 12.0) is None


def ragged(flat, starts):
    return [flat[a:b].tolist() for a, b in pairwise(starts)]


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("seed", range(12))
def test_plans_are_those_of_sets_and_lists(seed, d, monkeypatch):
    rng = np.random.default_rng([seed, d])
    n = int(rng.integers(1, 60))
    ends = np.sort(rng.integers(0, n, (int(rng.integers(0, 4 * n)), 2)), axis=1)
    edges = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    if seed % 3:  # as of larger graphs
        monkeypatch.setattr(fronts_module, "FEW", 0)
    if seed % 2:  # too little room, and many looks at the clock
        monkeypatch.setattr(fronts_module, "ROOM", 1)
        monkeypatch.setattr(fronts_module, "A_LOOK", 7)
    found, expected = plan(n, edges, d), naive.plan(minimum_degree(n, edges), edges, d, DEFAULTS)
    assert {
        "pivots": found.pivots.tolist(),
        "nodes": ragged(found.nodes, found.node_starts),
        "children": ragged(found.children, found.child_starts),
        "places": ragged(found.places, found.place_starts),
        "edges": ragged(found.edges, found.edge_starts),
        "waiting": found.waiting,
        "largest": found.largest,
    } == expected
    panels = [k * len(row) for k, row in zip(expected["pivots"], expected["nodes"], strict=True)]
    assert np.diff(found.panel_starts).tolist() == panels


def test_rows_and_edges_are_assembled_at_their_nodes():
    blocks, X = np.zeros((3, 2, 2)), np.array([[1.0, 2.0], [3.0, 0.0]])
    weight = np.array([[[2.0, 1.0], [1.0, 5.0]]])
    assemble(blocks, np.array([0, 0]), X, np.array([1.0, 2.0]), np.array([[0, 2]]), weight)
    np.testing.assert_allclose(np.triu(blocks[0]), [[1.0 + 18.0 + 2.0, 2.0 + 1.0], [0.0, 9.0]])
    np.testing.assert_allclose(np.triu(blocks[2]), [[2.0, 1.0], [0.0, 5.0]])
    assert not blocks[1].any()


@pytest.mark.parametrize(("n", "d"), [(60, 5), (43, 6), (64, 2)])
@pytest.mark.parametrize("held", [True, False])
def test_large_fronts_are_eliminated_in_panels(n, d, held, monkeypatch):
    """By products of matrices, as one by one: also where a matrix is singular."""
    rng = np.random.default_rng(n)
    heads, tails = np.triu_indices(n, 1)
    edges = np.column_stack([heads, tails])
    root = rng.standard_normal((len(edges), d, d)) * 10.0 ** rng.uniform(-2, 2, (len(edges), 1, 1))
    blocks = root @ root.transpose(0, 2, 1)
    P = np.tile(np.eye(d), (n, 1, 1)) if held else np.zeros((n, d, d))
    none = np.empty((0, d))
    found, right = plan(n, edges, d), rng.standard_normal((n, d))
    if not held:
        right -= right.mean(axis=0)
    asked, solutions = [], []
    update = _factor._update
    monkeypatch.setattr(_factor, "_update", lambda *args: (asked.append(args[1]), update(*args)))
    for panel in (64, 10_000):
        monkeypatch.setattr(_factor, "PANEL", panel)
        factor = _factor.BlockCholesky(found, edges, np.empty(0, np.int64), none)
        factor.factorize(P, np.empty(0), blocks)
        solutions.append(factor.solve(right))
    assert asked == list(range(0, n * d - 63, 64))
    laplacian = np.zeros((n, d, n, d))
    for (i, j), block in zip(edges, blocks, strict=True):
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            laplacian[a, :, b, :] += sign * block
    matrix = laplacian.reshape(n * d, n * d) + np.kron(np.eye(n), np.eye(d)) * held
    for x in solutions:
        left = np.abs(matrix @ x.ravel() - right.ravel()).max()
        assert left <= 1e-9 * np.abs(matrix).max() * np.abs(x).max()
    np.testing.assert_allclose(*(x - x.mean(axis=0) * (not held) for x in solutions), atol=1e-8)
