"""The empirical graph: orientation, merging, the ways to build one, and what is refused."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from gtvcvx import DoubledEdgesWarning, EmpiricalGraph, GTVProblem, PointLoss

# Random lists of edges may happen to name every pair twice.
pytestmark = pytest.mark.filterwarnings("ignore::gtvcvx.DoubledEdgesWarning")


def naive_merged(edges, weights):
    """Sum of the weights of every unordered pair of ends."""
    total = {}
    for (i, j), a in zip(edges, weights, strict=True):
        key = (min(i, j), max(i, j))
        total[key] = total.get(key, 0.0) + a
    return total


def naive_incidence(graph):
    D = np.zeros((graph.n_edges, graph.n_nodes))
    for e, (head, tail) in enumerate(graph.edges):
        D[e, head], D[e, tail] = 1.0, -1.0
    return D


@st.composite
def edge_lists(draw):
    n = draw(st.integers(2, 8))
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] != p[1])
    edges = draw(st.lists(pairs, max_size=20))
    weights = draw(
        st.lists(st.floats(1e-3, 1e3), min_size=len(edges), max_size=len(edges)),
    )
    return n, edges, weights


class TestEdges:
    @given(edge_lists())
    def test_oriented_sorted_and_merged(self, instance):
        n, edges, weights = instance
        graph = EmpiricalGraph(n, edges, weights)
        expected = naive_merged(edges, weights)
        assert [tuple(e) for e in graph.edges.tolist()] == sorted(expected)
        np.testing.assert_allclose(
            graph.weights, [expected[key] for key in sorted(expected)], rtol=1e-14
        )
        assert graph.edges.dtype == np.int64
        assert graph.weights.dtype == np.float64
        assert (graph.edges[:, 0] < graph.edges[:, 1]).all()

    @given(edge_lists())
    def test_incidence_divergence_and_degrees(self, instance):
        n, edges, weights = instance
        graph = EmpiricalGraph(n, edges, weights)
        D = naive_incidence(graph)
        assert graph.incidence.shape == (graph.n_edges, n)
        np.testing.assert_array_equal(graph.incidence.toarray(), D)
        np.testing.assert_array_equal(graph.divergence.toarray(), D.T)
        np.testing.assert_array_equal(graph.degrees, np.abs(D).sum(axis=0))

    @given(edge_lists(), st.randoms(use_true_random=False))
    def test_order_and_direction_of_the_input_do_not_matter(self, instance, random):
        n, edges, weights = instance
        shuffled = list(zip(edges, weights, strict=True))
        random.shuffle(shuffled)
        flipped = [((j, i) if random.random() < 0.5 else (i, j), a) for (i, j), a in shuffled]
        first = EmpiricalGraph(n, edges, weights)
        second = EmpiricalGraph(n, [e for e, _ in flipped], [a for _, a in flipped])
        np.testing.assert_array_equal(first.edges, second.edges)
        np.testing.assert_allclose(first.weights, second.weights, rtol=1e-14)

    @pytest.mark.parametrize("weights", [None, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]])
    def test_an_adjacency_list_that_names_each_pair_twice_is_noticed(self, weights):
        pairs = np.array([[0, 1], [2, 1], [1, 3]])
        both = np.concatenate([pairs, pairs[:, ::-1]])
        once = EmpiricalGraph(4, pairs, weights and weights[:3])
        with pytest.warns(DoubledEdgesWarning, match="named twice, once in each direction"):
            twice = EmpiricalGraph(4, both, weights)
        np.testing.assert_array_equal(twice.edges, once.edges)
        np.testing.assert_array_equal(twice.weights, 2.0 * once.weights)
        with pytest.warns(DoubledEdgesWarning) as caught:
            EmpiricalGraph(4, both[::-1], weights)
        assert [warning.filename for warning in caught] == [__file__]

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize(
        "edges",
        [
            [],
            [[0, 1], [1, 2]],
            [[0, 1], [0, 1]],  # parallel edges
            [[0, 1], [1, 0], [1, 2]],
            [[0, 1], [1, 0], [1, 2], [1, 2]],
            [[0, 1], [1, 0], [1, 2], [2, 0]],
            [[0, 1], [1, 0], [0, 1], [1, 0]],
        ],
    )
    def test_other_lists_are_not(self, edges):
        EmpiricalGraph(3, edges)

    @given(edge_lists())
    def test_components(self, instance):
        n, edges, weights = instance
        graph = EmpiricalGraph(n, edges, weights)
        found = {frozenset(np.flatnonzero(graph.components == c)) for c in set(graph.components)}
        assert found == {frozenset(c) for c in nx.connected_components(graph.to_networkx())}

    def test_weights_default_to_one_and_parallel_edges_add_up(self):
        graph = EmpiricalGraph(3, [(2, 0), (0, 2), (1, 2)])
        assert graph.edges.tolist() == [[0, 2], [1, 2]]
        assert graph.weights.tolist() == [2.0, 1.0]

    @pytest.mark.parametrize("edges", [[], np.empty((0, 2)), np.empty((0, 2), dtype=np.int32)])
    def test_without_edges(self, edges):
        graph = EmpiricalGraph(3, edges)
        assert (graph.n_nodes, graph.n_edges) == (3, 0)
        assert graph.edges.shape == (0, 2)
        assert graph.weights.shape == (0,)
        assert graph.incidence.shape == (0, 3)
        assert graph.components.tolist() == [0, 1, 2]
        assert graph.degrees.tolist() == [0, 0, 0]

    @pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint8, np.uint64])
    def test_every_integer_dtype(self, dtype):
        graph = EmpiricalGraph(120, np.array([[119, 0], [5, 119]], dtype=dtype))
        assert graph.edges.tolist() == [[0, 119], [5, 119]]

    def test_later_changes_of_the_input_do_not_reach_the_graph(self):
        edges, weights = np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0])
        graph = EmpiricalGraph(3, edges, weights)
        edges[:], weights[:] = 0, -1.0
        assert graph.edges.tolist() == [[0, 1], [1, 2]]
        assert graph.weights.tolist() == [1.0, 2.0]


class TestPositions:
    def test_they_come_along_and_are_no_part_of_a_problem(self):
        places = [[0.0, 1.0, 5.0], [2.0, 3.0, 5.0]]
        graph = EmpiricalGraph(2, [[0, 1]], positions=places)
        assert graph.positions.tolist() == [[0.0, 1.0], [2.0, 3.0]]
        bare = graph.with_positions(None)
        assert bare.positions is None
        assert bare.edges is graph.edges
        assert graph.positions is not None
        assert EmpiricalGraph(2, [[0, 1]]).positions is None
        there = bare.with_positions(np.ones((2, 2)))
        assert there.positions.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        data = [GTVProblem(each, PointLoss.stack(np.eye(2))).to_data() for each in (graph, bare)]
        assert repr(data[0]) == repr(data[1])

    def test_graphs_pickled_without_positions_have_none(self):
        graph = EmpiricalGraph(2, [[0, 1]])
        assert "positions" not in vars(graph)
        assert pickle.loads(pickle.dumps(graph)).positions is None

    @pytest.mark.parametrize("places", [np.ones((3, 2)), np.ones((2, 1)), [[0.0, np.nan], [0, 0]]])
    def test_wrong_ones_are_refused(self, places):
        with pytest.raises(ValueError, match="positions: "):
            EmpiricalGraph(2, [[0, 1]], positions=places)
        with pytest.raises(ValueError, match="positions: "):
            EmpiricalGraph(2, [[0, 1]]).with_positions(places)


class TestCached:
    def test_what_is_made_of_edges_is_made_once(self):
        graph = EmpiricalGraph(2, [[0, 1]])
        made = graph.cached("a", list)
        assert graph.cached("a", lambda: pytest.fail("it is there")) is made
        assert graph.cached("b", dict) == {}

    def test_nobody_else_is_given_it(self):
        graph = EmpiricalGraph(2, [[0, 1]])
        graph.cached("a", list)
        there = pickle.loads(pickle.dumps(graph))
        assert there.cached("a", lambda: "afresh") == "afresh"
        assert there.edges.tolist() == [[0, 1]]

    def test_what_fails_is_tried_again(self):
        graph = EmpiricalGraph(2, [[0, 1]])
        with pytest.raises(ZeroDivisionError):
            graph.cached("a", lambda: 1 // 0)
        assert graph.cached("a", lambda: 2) == 2


class TestNetworkX:
    def test_labels_and_weights(self):
        G = nx.Graph()
        G.add_edge("b", "a", weight=2.5)
        G.add_edge("a", ("c", 1))
        G.add_node(7)
        graph = EmpiricalGraph.from_networkx(G)
        assert graph.nodes == ["b", "a", ("c", 1), 7]
        assert graph.edges.tolist() == [[0, 1], [1, 2]]
        assert graph.weights.tolist() == [2.5, 1.0]
        assert graph.index["a"] == 1

    def test_other_weight_attribute_or_none(self):
        G = nx.Graph()
        G.add_edge(0, 1, weight=2.0, distance=3.0)
        assert EmpiricalGraph.from_networkx(G, weight="distance").weights.tolist() == [3.0]
        assert EmpiricalGraph.from_networkx(G, weight=None).weights.tolist() == [1.0]

    def test_multigraph_merges(self):
        G = nx.MultiGraph([(0, 1), (1, 0), (1, 2)])
        assert EmpiricalGraph.from_networkx(G).weights.tolist() == [2.0, 1.0]

    def test_round_trip(self):
        G = nx.karate_club_graph()
        back = EmpiricalGraph.from_networkx(G).to_networkx()
        assert list(back.nodes) == list(G.nodes)
        assert nx.utils.edges_equal(
            G.edges(data="weight"), back.edges(data="weight"), directed=False
        )

    @pytest.mark.parametrize("attributes", [{"weight": 0.0}, {"weight": None}, {"weight": -1}])
    def test_bad_weight_names_the_labels(self, attributes):
        G = nx.Graph()
        G.add_edge("Aa", "Bb", **attributes)
        with pytest.raises((TypeError, ValueError), match=r"^G: weights: "):
            EmpiricalGraph.from_networkx(G)

    def test_self_loop_names_the_label(self):
        with pytest.raises(ValueError, match=r"G: edges: edge 0 is a self-loop at node 'Bb'"):
            EmpiricalGraph.from_networkx(nx.Graph([("Bb", "Bb")]))

    def test_weight_below_zero_names_the_ends(self):
        G = nx.Graph()
        G.add_edge("Aa", "Bb", weight=-2.0)
        with pytest.raises(ValueError, match=r"edge 0 = \('Aa', 'Bb'\) has weight -2\.0"):
            EmpiricalGraph.from_networkx(G)

    def test_directed_empty_and_other_types(self):
        with pytest.raises(ValueError, match="G: an undirected graph"):
            EmpiricalGraph.from_networkx(nx.DiGraph([(0, 1)]))
        with pytest.raises(ValueError, match="G: n_nodes: at least one node"):
            EmpiricalGraph.from_networkx(nx.Graph())
        with pytest.raises(TypeError, match=r"G: a networkx\.Graph is expected, got list"):
            EmpiricalGraph.from_networkx([(0, 1)])


class TestAdjacency:
    A = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.5], [0.0, 0.5, 0.0]])

    @pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, sp.csr_array, sp.coo_matrix])
    def test_dense_and_sparse(self, form):
        graph = EmpiricalGraph.from_adjacency(form(self.A), nodes=["a", "b", "c"])
        assert graph.edges.tolist() == [[0, 1], [1, 2]]
        assert graph.weights.tolist() == [2.0, 0.5]
        assert graph.nodes == ["a", "b", "c"]

    @given(edge_lists())
    def test_round_trip_through_the_matrix(self, instance):
        n, edges, weights = instance
        graph = EmpiricalGraph(n, edges, weights)
        A = np.zeros((n, n))
        A[graph.edges[:, 0], graph.edges[:, 1]] = graph.weights
        back = EmpiricalGraph.from_adjacency(sp.csc_array(A + A.T))
        np.testing.assert_array_equal(back.edges, graph.edges)
        np.testing.assert_array_equal(back.weights, graph.weights)

    def test_duplicate_entries_add_up_without_wrapping(self):
        rows, columns = [0, 0, 1, 1], [1, 1, 0, 0]
        data = np.array([200, 100, 200, 100], dtype=np.uint8)
        matrix = sp.coo_array((data, (rows, columns)), shape=(2, 2))
        assert EmpiricalGraph.from_adjacency(matrix).weights.tolist() == [300.0]
        assert matrix.nnz == 4

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("entries", [[(0, 1), (1, 0)], [(1, 0)], [(0, 1)]])
    def test_not_finite(self, bad, entries):
        A = self.A.copy()
        for i, j in entries:
            A[i, j] = bad
        i, j = min(entries)
        with pytest.raises(ValueError, match=rf"adjacency: entry \({i}, {j}\) is {bad}"):
            EmpiricalGraph.from_adjacency(A)

    def test_not_symmetric_not_square_not_numbers(self):
        with pytest.raises(ValueError, match=r"not symmetric, entries \(0, 1\) and \(1, 0\)"):
            EmpiricalGraph.from_adjacency(np.triu(self.A))
        with pytest.raises(ValueError, match="adjacency: a square matrix"):
            EmpiricalGraph.from_adjacency(self.A[:2])
        with pytest.raises(ValueError, match="adjacency: a square matrix"):
            EmpiricalGraph.from_adjacency([1.0, 2.0])
        with pytest.raises(TypeError, match="adjacency: an array of numbers"):
            EmpiricalGraph.from_adjacency([["0", "1"], ["1", "0"]])

    def test_loop_and_negative_entry(self):
        with pytest.raises(ValueError, match="self-loop at node 2"):
            EmpiricalGraph.from_adjacency(np.diag([0.0, 0.0, 1.0]))
        with pytest.raises(ValueError, match=r"edge 0 = \(0, 1\) has weight -2\.0"):
            EmpiricalGraph.from_adjacency(-self.A)


def test_from_csv(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\nNY,NJ,2\nNJ,PA,0.5\nNJ,NY,1\n")
    graph = EmpiricalGraph.from_csv(path)
    assert graph.nodes == ["NY", "NJ", "PA"]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.weights.tolist() == [3.0, 0.5]


class TestRefused:
    @pytest.mark.parametrize(
        ("n_nodes", "error"),
        [(0, ValueError), (-3, ValueError), (2.0, TypeError), ("3", TypeError), (True, TypeError)],
    )
    def test_n_nodes(self, n_nodes, error):
        with pytest.raises(error, match="n_nodes: "):
            EmpiricalGraph(n_nodes, [])

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            ([(0, 1), (2, 2)], r"edges: edge 1 is a self-loop at node 2"),
            ([(0, 1), (1, 3)], r"edges: edge 1 = \(1, 3\) has an end outside 0\.\.2"),
            ([(0, 1), (-1, 2)], r"edges: edge 1 = \(-1, 2\) has an end outside 0\.\.2"),
            ([(0, 1, 2)], r"edges: shape \(m, 2\) is expected, got \(1, 3\)"),
            ([0, 1], r"edges: shape \(m, 2\) is expected, got \(2,\)"),
            (np.empty((3, 0)), r"edges: shape \(m, 2\) is expected, got \(3, 0\)"),
            ([(0, 1), (2,)], r"edges: a regular array is expected"),
        ],
    )
    def test_edges(self, edges, message):
        with pytest.raises(ValueError, match=message):
            EmpiricalGraph(3, edges)

    @pytest.mark.parametrize(
        "edges", [[(0.0, 1.0)], [(0, np.nan)], [("a", "b")], [(True, False)], None]
    )
    def test_edges_that_are_not_integers(self, edges):
        with pytest.raises(TypeError, match="edges: integers are expected, got dtype"):
            EmpiricalGraph(3, edges)

    @pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, -np.inf])
    def test_weight_names_its_edge(self, bad):
        with pytest.raises(ValueError, match=rf"weights: edge 1 = \('b', 'c'\) has weight {bad}"):
            EmpiricalGraph(3, [(0, 1), (2, 1)], [1.0, bad], nodes=["a", "b", "c"])

    def test_weights_of_another_shape_or_type(self):
        for weights in ([1.0], [[1.0, 2.0]], 1.0):
            with pytest.raises(ValueError, match=r"weights: shape \(2,\) is expected"):
                EmpiricalGraph(3, [(0, 1), (1, 2)], weights)
        for weights in (["1", "2"], [1j, 2.0], [1.0, [2.0]], [object(), 1.0]):
            with pytest.raises(TypeError, match="weights: an array of numbers is expected"):
                EmpiricalGraph(3, [(0, 1), (1, 2)], weights)

    def test_parallel_edges_that_overflow(self):
        with pytest.raises(ValueError, match=r"parallel edges \(0, 1\) add up to infinity"):
            EmpiricalGraph(2, [(0, 1), (1, 0)], [1.7e308, 1.7e308])

    @pytest.mark.parametrize(
        ("nodes", "error", "message"),
        [
            (["a", "b"], ValueError, "nodes: 3 labels are expected, got 2"),
            (["a", "b", "a"], ValueError, "nodes: label 'a' occurs twice"),
            (np.array([1, 2, 1]), ValueError, "nodes: label 1 occurs twice"),
            ([["a"], ["b"], ["c"]], TypeError, r"nodes: label \['a'\] has no hash"),
        ],
    )
    def test_nodes(self, nodes, error, message):
        with pytest.raises(error, match=message):
            EmpiricalGraph(3, [(0, 1)], nodes=nodes)
