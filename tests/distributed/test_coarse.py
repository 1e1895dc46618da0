"""Polishing over shards: groups have the solution, and the flow inside them proves it."""

import numpy as np
import pytest
from _problems import CASES, graph_of
from _sharded import joined_nodes, load, parts_of, spread_edges, spread_nodes

import gtvcvx as gtv
from gtvcvx.distributed import shard
from gtvcvx.distributed._bounds import ShardedBounds
from gtvcvx.distributed._coarse import CoarseSettings, GatheredCoarsening, _edges_of
from gtvcvx.distributed._iteration import ShardedPrimalDual
from gtvcvx.distributed.engines import LocalEngine


def clustered(penalty="l2", seed=0, n=60):
    """Return a problem whose solution has three clusters, and unlabelled nodes."""
    rng = np.random.default_rng(seed)
    graph = graph_of(n, seed)
    values = np.where(np.arange(n) < n // 3, -3.0, 4.0)[:, None] * [1.0, 0.5]
    X = rng.normal(size=(n, 2, 2))
    y = np.einsum("nmd,nd->nm", X, values) + 0.1 * rng.normal(size=(n, 2))
    losses = gtv.SquaredLoss.stack(X, y, labelled=rng.random(n) < 0.7)
    return gtv.GTVProblem(graph, losses, penalty, 0.3)


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
def test_a_polish_finds_the_solution_and_its_flow(penalty, tmp_path):
    problem = clustered(penalty)
    exact = problem.solve(rtol=1e-10)
    parts = parts_of(problem, tmp_path, 4)
    method = ShardedPrimalDual(parts)
    method.run(400)
    polisher = GatheredCoarsening(parts, 1e-8)
    found = polisher.polish(method.w, method.u, np.inf, np.inf, method.weight, 0.0)
    w = joined_nodes(parts, found.w)
    assert problem.value(w) <= exact.value + 1e-6 * max(1.0, exact.value)
    gap, _ = ShardedBounds(parts).gap(found.w, found.conserved)
    assert gap.total <= 1e-5 * max(1.0, exact.value)
    assert found.overload <= 1e-3
    for part, flow in zip(parts, found.inside, strict=True):
        norms = problem.penalty.dual_norm(flow)
        assert np.all(norms <= part.problem.capacities * (1.0 + 1e-12))


def test_flows_between_groups_keep_their_direction(tmp_path):
    """The group that reaches over a cut has the lower number, and the tails of the edges."""
    rng = np.random.default_rng(1)
    n, numbers = 60, np.repeat([0, 1, 2], 20)
    ends = [(i, i + k) for k in (1, 2, 3) for i in range(n - k) if (i < 20) == (i + k < 20)]
    ends += [(19, 20), (3, 50)]
    points = np.where(np.arange(n) < 20, -3.0, 4.0)[:, None] + 0.1 * rng.normal(size=(n, 2))
    graph = gtv.EmpiricalGraph(n, ends)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2", 1.0)
    exact = problem.solve(rtol=1e-10)
    shard(problem, tmp_path, 3, partitioner=numbers)
    parts = LocalEngine().run(load, str(tmp_path), 1)
    w, u = spread_nodes(parts, exact.w), spread_edges(parts, problem, exact.u)
    polisher = GatheredCoarsening(parts, 1e-8, CoarseSettings(safe_slacks=(1e-3,)))
    groups = polisher._groups(polisher._slack(u))
    labels = joined_nodes(parts, groups.labels)
    assert labels[19] > labels[20]
    found = polisher.polish(w, u, np.inf, np.inf, 1.0, 0.0)
    gap, _ = ShardedBounds(parts).gap(found.w, found.conserved)
    assert gap.total <= 1e-6 * exact.value
    assert problem.value(joined_nodes(parts, found.w)) <= exact.value * (1.0 + 1e-6)


def test_groups_have_one_number_in_all_shards(tmp_path):
    problem = clustered(seed=3)
    exact = problem.solve(rtol=1e-10)
    parts = parts_of(problem, tmp_path, 5)
    polisher = GatheredCoarsening(parts, 1e-8)
    groups = polisher._groups(polisher._slack(spread_edges(parts, problem, exact.u)))
    labels = joined_nodes(parts, groups.labels)
    assert groups.size == len(np.unique(labels)) == int(labels.max()) + 1
    # Nodes of one group share their parameters, also across shards.
    for k in range(groups.size):
        assert np.ptp(exact.w[labels == k], axis=0).max() <= 1e-4
    given = spread_nodes(parts, labels)
    for mine, all_, part, between in zip(given, groups.labels, parts, groups.between, strict=True):
        np.testing.assert_array_equal(mine, all_)
        pairs, capacities = _edges_of(part, all_, between)
        some = between & part.counted
        assert capacities.sum() == pytest.approx(part.problem.capacities[some].sum())
        assert np.all(pairs[:, 0] < pairs[:, 1])


def test_what_costs_more_than_is_allowed_is_not_done(tmp_path):
    parts = parts_of(clustered(), tmp_path, 4)
    polisher = GatheredCoarsening(parts, 1e-8)
    zeros = parts.node_zeros(), parts.edge_zeros()
    assert polisher.polish(*zeros, 10.0, np.inf, 1.0, 0.0) is None
    # All nodes are one group, or one in each component: nothing is known of them yet.
    assert polisher.polish(*zeros, np.inf, 0.0, 1.0, 0.0) is None


@pytest.mark.parametrize(
    ("name", "fits"), [("l2", True), ("squared", False), ("p-norm", False), ("absolute", False)]
)
def test_problems_of_groups_are_known_for_some(name, fits, tmp_path):
    assert GatheredCoarsening.fits(parts_of(CASES[name], tmp_path, 4)) == fits
