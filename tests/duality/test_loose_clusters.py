"""Clusters of loose edges: what is missing at nodes goes along trees, the rest by a system."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._loose_clusters import LooseClusters
from gtvcvx.duality._systems import Metric, Systems
from gtvcvx.graph import differences

N, D = 12, 3


@pytest.fixture
def problem():
    """A ring with chords and a node alone; some nodes have rows."""
    rng = np.random.default_rng(0)
    edges = [(i, (i + 1) % 11) for i in range(11)] + [(0, 5), (2, 8), (3, 9)]
    X, y = rng.standard_normal((N, 4, D)), rng.standard_normal((N, 4))
    losses = gtv.HuberLoss.stack(X, y, delta=0.5)
    return gtv.GTVProblem(gtv.EmpiricalGraph(N, edges), losses, "l2", 0.1)


def clusters(problem, room):
    return LooseClusters(problem.graph, problem.bounds._correction._balance_rows, room)


def test_flows_along_trees_leave_what_is_missing_to_the_roots(problem):
    rng = np.random.default_rng(1)
    m = problem.graph.n_edges
    room = np.where(rng.random(m) < 0.6, rng.random(m), 0.0)
    found, missing = clusters(problem, room), rng.standard_normal((N, D))
    sent = found.sent(missing)
    assert not sent[room == 0.0].any()
    left = missing + problem.graph.divergence @ sent
    # Loose edges are inside of clusters, and each cluster has one node with all that it misses.
    ends = found.labels[problem.graph.edges]
    assert (ends[room > 0.0, 0] == ends[room > 0.0, 1]).all()
    assert 1 < len(np.unique(found.labels)) < N
    for label in np.unique(found.labels):
        inside = found.labels == label
        assert np.count_nonzero(np.abs(left[inside]).max(axis=1) > 1e-13) <= 1
        np.testing.assert_allclose(left[inside].sum(axis=0), missing[inside].sum(axis=0))
    np.testing.assert_array_equal(found.overloaded, np.abs(sent).max(axis=1) > room)
    assert found.overloaded.any()


def test_trees_take_the_edges_with_most_room(problem):
    room = np.linspace(1.0, 2.0, problem.graph.n_edges)
    sent = clusters(problem, room).sent(np.random.default_rng(2).standard_normal((N, D)))
    used = np.abs(sent).max(axis=1) > 0.0
    # The widest of each cycle is never left out: of the ring and its chords, these.
    assert np.count_nonzero(used) <= 10
    assert used[room >= np.sort(room)[-3]].all()


def test_the_system_is_that_of_the_whole_with_fused_nodes(problem):
    rng = np.random.default_rng(3)
    m, parts = problem.graph.n_edges, problem.bounds._correction._parts
    room = np.where(np.arange(m) < 6, 1.0, 0.0)
    found, whole = (
        clusters(problem, room),
        Systems(problem.graph, parts, problem.penalty, problem.bounds._correction._balance_rows),
    )
    root = rng.standard_normal((m, D, D))
    metric = Metric(
        root @ root.transpose(0, 2, 1), rng.random(len(parts.rows)), rng.random((N, D)), np.zeros(N)
    )
    right = rng.standard_normal((N, D))
    found.factorize(metric)
    x = found.solve(right)
    # The limit of stiff edges inside: the same potentials at their ends.
    stiff = metric._replace(u=metric.u + 1e7 * room[:, None, None] * np.eye(D))
    whole.factorize(stiff)
    np.testing.assert_allclose(x, whole.solve(right), atol=1e-5)
    assert np.abs(differences(problem.graph.edges, x)[room > 0.0]).max() == 0.0


def test_without_loose_edges_every_node_is_a_cluster(problem):
    found = clusters(problem, np.zeros(problem.graph.n_edges))
    assert len(np.unique(found.labels)) == N
    assert not found.sent(np.ones((N, D))).any()
