"""Graphs from the weights of libpysal: from the real classes, and from stand-ins alike."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

import gtvcvx as gtv

from_pysal = gtv.EmpiricalGraph.from_pysal

IDS = ["e", "b", "island", "a"]
A = np.array([[0.0, 2.0, 0.0, 1.0], [2.0, 0.0, 0.0, 0.0], [0.0] * 4, [1.0, 0.0, 0.0, 0.0]])
NEIGHBOURS = {"e": ["b", "a"], "b": ["e"], "island": [], "a": ["e"]}
WEIGHTS = {"e": [2.0, 1.0], "b": [2.0], "island": [], "a": [1.0]}
KNN = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


class Index(list):
    """What is asked of a pandas.Index: to be gone through."""


def weights_like(matrix, ids, transform="O"):
    """What is read of libpysal.weights.W and WSP."""
    return SimpleNamespace(sparse=sp.csr_matrix(matrix), id_order=ids, transform=transform)


def graph_like(matrix, ids, transformation="O"):
    """What is read of libpysal.graph.Graph, whose isolates have a self-loop of weight 0."""
    matrix = np.asarray(matrix, dtype=float)
    row, col = np.nonzero(matrix)
    alone = np.flatnonzero(~matrix.any(axis=1))
    data = np.r_[matrix[row, col], np.zeros(len(alone))]
    sparse = sp.csr_array((data, (np.r_[row, alone], np.r_[col, alone])), shape=matrix.shape)
    return SimpleNamespace(
        sparse=sparse, unique_ids=Index(ids), transformation=transformation, transform=print
    )


KINDS = [weights_like, graph_like]
pytestmark = pytest.mark.filterwarnings("error")


def named_edges(graph):
    ends = ((graph.nodes[i], graph.nodes[j]) for i, j in graph.edges.tolist())
    return dict(zip(map(frozenset, ends), graph.weights.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_symmetric_weights_become_one_edge_a_pair(kind):
    graph = from_pysal(kind(A, IDS))
    assert graph.nodes == IDS
    assert graph.edges.tolist() == [[0, 1], [0, 3]]
    assert graph.weights.tolist() == [2.0, 1.0]
    assert graph.degrees[2] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_own_neighbours_and_zeros_are_left_out(kind):
    given = kind(A + np.eye(4), IDS)
    stored = given.sparse.copy()
    stored.data[:] = 0.0
    assert from_pysal(given).edges.tolist() == [[0, 1], [0, 3]]
    assert from_pysal(kind(A, IDS)).n_edges == 2
    given.sparse = stored
    assert from_pysal(given).n_edges == 0
    assert stored.nnz > 0  # what was given is left as it was


@pytest.mark.parametrize("kind", KINDS)
def test_one_sided_weights_are_refused_by_id_unless_told_otherwise(kind):
    with pytest.raises(ValueError, match=r"not symmetric, the weight from 'x' to 'y' is 1, .* 0\."):
        from_pysal(kind(KNN, ["x", "y", "z"]))
    found = {
        how: from_pysal(kind(KNN, ["x", "y", "z"]), symmetrize=how)
        for how in ("max", "min", "mean")
    }
    xy, yz = frozenset("xy"), frozenset("yz")
    assert named_edges(found["max"]) == {xy: 1.0, yz: 1.0}
    assert named_edges(found["min"]) == {yz: 1.0}
    assert named_edges(found["mean"]) == {xy: 0.5, yz: 1.0}
    with pytest.raises(ValueError, match=r"symmetrize: None, 'max', 'min' or 'mean' .* 'sum'"):
        from_pysal(kind(KNN, ["x", "y", "z"]), symmetrize="sum")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("transform", "word"), [("R", "row"), ("V", "variance")])
def test_standardized_weights_are_told_by_name(kind, transform, word):
    rows = A / np.maximum(A.sum(axis=1, keepdims=True), 1.0)
    with pytest.raises(ValueError, match=rf"are {word}-.* \(transform '{transform}'\): take them"):
        from_pysal(kind(rows, IDS, transform))
    assert from_pysal(kind(A / 4, IDS, "D")).weights.tolist() == [0.5, 0.25]


def test_last_digits_do_not_make_weights_asymmetric():
    rounded = A.copy()
    rounded[0, 1] = np.nextafter(2.0, 3.0)
    np.testing.assert_allclose(from_pysal(weights_like(rounded, IDS)).weights, [2.0, 1.0])
    rounded[0, 1] = 2.0 + 1e-6
    with pytest.raises(ValueError, match="not symmetric"):
        from_pysal(weights_like(rounded, IDS))


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_weights_that_are_none_are_refused_by_id(value):
    wrong = A.copy()
    wrong[0, 3] = wrong[3, 0] = value
    with pytest.raises(ValueError, match=r"w: the weight from 'e' to 'a' is (-1|nan|inf); finite"):
        from_pysal(weights_like(wrong, IDS))


@pytest.mark.parametrize("given", [{"a": ["b"]}, A, sp.csr_array(A), None])
def test_other_objects_are_refused(given):
    with pytest.raises(TypeError, match="w: a W, WSP or Graph of libpysal is expected, got "):
        from_pysal(given)


def test_ids_that_are_no_labels_are_refused():
    with pytest.raises(ValueError, match="w: nodes: label 'a' occurs twice"):
        from_pysal(weights_like(A, ["a", "b", "c", "a"]))


class TestRealClasses:
    """The stand-ins above are right only if this holds, too."""

    @pytest.fixture
    def w(self):
        weights = pytest.importorskip("libpysal.weights", reason="libpysal (extra bench)")
        return weights.W(NEIGHBOURS, WEIGHTS, id_order=list(IDS), silence_warnings=True)

    @pytest.fixture
    def graph(self):
        graphs = pytest.importorskip("libpysal.graph", reason="libpysal (extra bench)")
        return graphs.Graph.from_dicts(NEIGHBOURS, WEIGHTS)

    def test_w_and_wsp(self, w):
        assert named_edges(from_pysal(w)) == named_edges(from_pysal(weights_like(A, IDS)))
        assert from_pysal(w).nodes == from_pysal(w.to_WSP()).nodes == IDS
        assert named_edges(from_pysal(w.to_WSP())) == named_edges(from_pysal(w))
        w.id_order = sorted(IDS)
        assert from_pysal(w).nodes == sorted(IDS)
        assert named_edges(from_pysal(w)) == named_edges(from_pysal(weights_like(A, IDS)))
        w.transform = "R"
        with pytest.raises(ValueError, match=r"row-standardized \(transform 'R'\)"):
            from_pysal(w)
        w.transform = "O"
        assert from_pysal(w).n_edges == 2

    def test_graph(self, graph):
        assert from_pysal(graph).nodes == IDS
        assert named_edges(from_pysal(graph)) == named_edges(from_pysal(graph_like(A, IDS)))
        assert from_pysal(graph.assign_self_weight()).n_edges == 2
        assert from_pysal(graph.transform("D")).n_edges == 2
        for kind, word in (("R", "row-standardized"), ("V", "variance-stabilized")):
            with pytest.raises(ValueError, match=rf"{word} \(transform '{kind}'\)"):
                from_pysal(graph.transform(kind))

    def test_nearest_neighbours(self):
        graphs = pytest.importorskip("libpysal.graph", reason="libpysal (extra bench)")
        points = np.random.default_rng(0).random((30, 2))
        knn = graphs.Graph.build_knn(points, k=3)
        with pytest.raises(ValueError, match="need not be mutual"):
            from_pysal(knn)
        for how, mutual in (("max", False), ("min", True)):
            found = from_pysal(knn, symmetrize=how)
            ours = gtv.graph_construction.knn_graph(points, 3, weights="binary", mutual=mutual)
            assert np.array_equal(found.edges, ours.edges)
            assert np.array_equal(found.weights, ours.weights)
