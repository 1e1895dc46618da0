"""Graph fidelity and the constants of the error bounds."""

import math

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.selection import (
    compatibility_bound,
    edge_amplification,
    graph_fidelity,
    suggested_lam,
)

TWO_PATHS = gtv.EmpiricalGraph(6, [(0, 1), (1, 2), (3, 4), (4, 5)])


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([(0, 1), (1, 2), (3, 4), (4, 5)], 1.0),
        ([(0, 1), (1, 2), (3, 4), (4, 5), (2, 3)], 2 / (1 + 1)),
        ([(0, 1), (3, 4)], 2 / 4),
        ([], 2 / 6),
        ([(0, 5), (0, 3)], 2 / (4 + 2)),
    ],
)
def test_fidelity_counts_components_and_wrong_edges(edges, expected):
    assert graph_fidelity(gtv.EmpiricalGraph(6, edges), TWO_PATHS) == pytest.approx(expected)


def test_fidelity_needs_the_same_nodes():
    with pytest.raises(ValueError, match="true_graph"):
        graph_fidelity(gtv.EmpiricalGraph(5, []), TWO_PATHS)
    with pytest.raises(ValueError, match="true_graph"):
        graph_fidelity(gtv.EmpiricalGraph(6, [], nodes="abcdef"), TWO_PATHS)


GRAPHS = {
    "two paths": TWO_PATHS,
    "star": gtv.generators.star(5),
    "grid": gtv.generators.grid(3, 4),
    "random": gtv.generators.sbm([9, 8], 0.5, 0.1, 3),
    "isolated": gtv.EmpiricalGraph(4, [(1, 3)]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_amplification_is_that_of_the_pseudo_inverse(name):
    graph = GRAPHS[name]
    inverse = np.linalg.pinv(graph.incidence.toarray())
    expected = np.linalg.norm(inverse, axis=0).max()
    assert edge_amplification(graph) == pytest.approx(expected, rel=1e-10)
    degree = graph.degrees.max()
    assert compatibility_bound(graph) == pytest.approx(0.5 / math.sqrt(degree))
    lam = suggested_lam(graph, 2.0, 50)
    assert lam == pytest.approx(2 * expected * math.sqrt(math.log(graph.n_nodes) / 50))


def test_a_graph_without_edges():
    graph = gtv.EmpiricalGraph(3, [])
    assert edge_amplification(graph) == suggested_lam(graph, 1.0, 1) == 0.0
    with pytest.raises(ValueError, match="graph"):
        compatibility_bound(graph)


@pytest.mark.parametrize(("noise", "rows", "name"), [(math.nan, 1, "noise"), (1.0, 0, "rows")])
def test_bad_numbers_are_refused_by_name(noise, rows, name):
    with pytest.raises(ValueError, match=f"^{name}: "):
        suggested_lam(TWO_PATHS, noise, rows)
