"""The spanning forest against NetworkX."""

import networkx as nx
import numpy as np
import pytest
from _plain_instances import instance

from verify.certificates._forest import components, spanning_forest


@pytest.mark.parametrize("seed", range(5))
def test_forest_spans_with_the_largest_slack(seed: int) -> None:
    data = instance(seed, kind="components", n=30)
    edges = data["edges"]
    rng = np.random.default_rng(seed)
    slack, active = rng.random(len(edges)), rng.random(len(edges)) < 0.9
    count, component = components(edges[active], 30)
    roots = np.zeros(30, dtype=bool)
    roots[np.unique(component, return_index=True)[1]] = True
    forest = spanning_forest(edges, slack, active, roots, component)
    links = [e for e in forest.parent_edge if e >= 0]
    assert len(links) == 30 - count
    assert active[links].all()
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (i, j, s) for (i, j), s, a in zip(edges.tolist(), slack, active, strict=True) if a
    )
    tree = nx.maximum_spanning_tree(graph)
    assert slack[links].sum() == pytest.approx(tree.size(weight="weight"))
    seen: set[int] = set()
    for i in forest.order:
        assert forest.parent_edge[i] < 0 or forest.parent[i] in seen
        seen.add(i)
    for i, e in enumerate(forest.parent_edge):
        if e >= 0:
            head, tail = (i, forest.parent[i]) if forest.sign[i] > 0 else (forest.parent[i], i)
            assert edges[e].tolist() == [head, tail]
