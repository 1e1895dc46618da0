"""Graphs whose elimination would fill in too much are told from others without ordering them."""

import networkx as nx
import numpy as np
import pytest

from gtvcvx._deadline import Expired, now, until
from gtvcvx.block_cholesky import _growth, _plan
from gtvcvx.block_cholesky._fronts import elimination, minimum_degree
from gtvcvx.block_cholesky._growth import hopeless
from gtvcvx.block_cholesky._plan import plan
from verify._filling import filled, growth

N = 7_000
# Each with a share of what it fills in that it must be told at least, and at most.
GRAPHS = {
    "path": lambda: nx.path_graph(N),
    "star": lambda: nx.star_graph(N - 1),
    "tree": lambda: nx.barabasi_albert_graph(N, 1, seed=1),
    "grid": lambda: nx.grid_2d_graph(70, 100),
    "regular": lambda: nx.random_regular_graph(4, N, seed=1),
    "random": lambda: nx.fast_gnp_random_graph(N, 6.0 / N, seed=1),
    "hubs": lambda: nx.barabasi_albert_graph(N, 3, seed=1),
    "small world": lambda: nx.watts_strogatz_graph(N, 6, 0.1, seed=1),
    "components": lambda: nx.disjoint_union_all(
        [nx.random_regular_graph(4, 100, seed=seed) for seed in range(N // 100)]
    ),
    "random beside lone edges": lambda: nx.disjoint_union(
        nx.random_regular_graph(4, N, seed=1),
        nx.from_edgelist((2 * i, 2 * i + 1) for i in range(N)),
    ),
}


def edges_of(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    return len(graph), np.array(sorted(tuple(sorted(edge)) for edge in graph.edges), np.int64)


@pytest.mark.parametrize("name", GRAPHS)
def test_growth_is_what_is_filled_in_up_to_a_factor(name):
    n, edges = edges_of(GRAPHS[name]())
    exact = elimination(minimum_degree(n, edges), edges).squares
    assert exact / _growth.DOUBT <= growth(n, edges) <= exact * _growth.DOUBT


@pytest.mark.parametrize("graph", [nx.grid_2d_graph(9, 11), nx.random_regular_graph(3, 60, seed=1)])
def test_a_table_of_effects_tells_what_elimination_does(graph):
    n, edges = edges_of(graph)
    exact = elimination(minimum_degree(n, edges), edges).squares
    assert filled(n, edges) == growth(n, edges) == exact


def test_no_graph_is_refused_that_fits_and_none_ordered_that_does_not(monkeypatch):
    n, edges = edges_of(GRAPHS["regular"]())
    exact = elimination(minimum_degree(n, edges), edges).squares
    assert not hopeless(n, edges, exact)
    assert hopeless(n, edges, exact / 30.0)
    ordered = []
    monkeypatch.setattr(_plan, "minimum_degree", lambda *given: ordered.append(given))
    assert plan(n, edges, 2, 2.0**3 * exact / 60.0) is None
    assert not ordered


def test_small_graphs_are_not_contracted(monkeypatch):
    monkeypatch.setattr(_growth, "growth", lambda *given: pytest.fail("it was contracted"))
    n, edges = edges_of(nx.random_regular_graph(4, 1_000, seed=1))
    assert not hopeless(n, edges, 0.0)
    assert not hopeless(10**6, np.empty((0, 2), np.int64), 0.0)


def test_contracting_looks_at_the_clock():
    n, edges = edges_of(GRAPHS["grid"]())
    with pytest.raises(Expired), until(now()):
        growth(n, edges)


@pytest.mark.parametrize(
    "graph",
    [nx.star_graph(20_000), nx.complete_bipartite_graph(2, 20_000), nx.wheel_graph(20_000)],
    ids=["star", "two centres", "wheel"],
)
def test_hubs_come_last(graph):
    n, edges = edges_of(graph)
    place = minimum_degree(n, edges)
    np.testing.assert_array_equal(np.sort(place), np.arange(n))
    degree = np.bincount(edges.ravel())
    hubs = np.flatnonzero(degree > 1_000)
    assert set(place[hubs]) == set(range(n - len(hubs), n))
    # Nothing is filled in that need not be: a column has an effect on itself and few others.
    assert elimination(place, edges).squares <= 10 * n
