"""Gaps of problems in shards: valid, as small as those of one machine, the same for all workers."""

import functools
import os
from pathlib import Path

import _bounds_tasks as tasks
import numpy as np
import pytest
from _instances import far_from_solutions
from _problems import instance
from _sharded import joined_edges, joined_nodes, parts_of, spread_edges, spread_nodes

import gtvcvx as gtv
from gtvcvx.distributed import shard
from gtvcvx.distributed._bounds import ShardedBounds
from gtvcvx.distributed._conservation import ShardedConservation, ShardedFlow, largest_of
from gtvcvx.distributed._domains import ShardedDomains
from gtvcvx.distributed._groups import Groups
from gtvcvx.distributed._incumbent import ShardedIncumbent
from gtvcvx.distributed.engines import LocalEngine
from gtvcvx.duality._conservation import FlowConservation
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._terms import Known
from gtvcvx.graph import connected_components
from gtvcvx.solvers.driver import Incumbent

SINGULAR = gtv.Quadratic(np.array([[1.0, 0.5], [0.5, 0.25]]))
# Penalty, nodes (40 a shard), dimension, losses.
KINDS = {
    "l1": ("l1", 640, 1, "squared"),
    "l2": ("l2", 640, 2, "squared"),
    "linf": ("linf", 640, 2, "squared"),
    "squared": ("squared", 640, 2, "squared"),
    "singular": (SINGULAR, 640, 2, "squared"),
    "wide": ("l2", 640, 10, "squared"),
    "points": ("l1", 640, 3, "points"),
    "logistic": ("l2", 120, 2, "logistic"),
    "mixed": ("l2", 160, 2, "mixed"),
    "absolute": ("l1", 80, 1, "absolute"),
}

POLYHEDRAL = ("logistic", "mixed", "absolute")


def losses_of(kind, n, d):
    """Return losses at some nodes; others have none."""
    rng = np.random.default_rng(3)
    if kind == "points":
        return gtv.PointLoss.stack(rng.normal(size=(n // 4, d))).completed(n)
    if kind == "absolute":
        node = rng.integers(0, n // 2, 2 * n)
        return gtv.AbsoluteLoss.from_rows(rng.normal(size=(2 * n, d)), rng.normal(size=2 * n), node)
    if kind == "logistic":
        node = rng.integers(0, n // 2, 2 * n)
        y = rng.integers(0, 2, 2 * n).astype(float)
        return gtv.LogisticLoss.from_rows(rng.normal(size=(2 * n, d)), y, node)
    if kind == "mixed":
        box = {i: gtv.SquaredLoss([[1.0, 2.0]], [i]) + gtv.Box(-1.0, 1.0) for i in range(20, n, 7)}
        return box | {
            0: gtv.PointLoss([1.0, 2.0]),
            5: gtv.HuberLoss([[1.0, 2.0], [0.5, 1.0]], [1.0, 2.0], delta=0.5),
            7: 2.0 * gtv.QuantileLoss([[1.0, 2.0]], [3.0], level=0.25) + gtv.L1(0.5),
            9: gtv.LassoLoss([[1.0, 0.0]], [3.0], 0.1),
            12: gtv.LogisticLoss([[1.0, 2.0], [-0.5, 1.0]], [1.0, 0.0]),
        }
    return None


@functools.cache
def solved(name):
    """Return a problem with several components, isolated and unlabelled nodes, and its solution."""
    penalty, n, d, losses = KINDS[name]
    base = instance(n, d, seed=len(name), losses=losses_of(losses, n, d))
    problem = gtv.GTVProblem(base.graph, base.losses, penalty, 0.3)
    return problem, problem.solve(rtol=1e-9)


@pytest.fixture(scope="module")
def sharded(tmp_path_factory):
    @functools.cache
    def of(name):
        return parts_of(solved(name)[0], tmp_path_factory.mktemp("shards"), KINDS[name][1] // 40)

    return of


def pairs(name, noises):
    """Yield pairs between the solution and noise."""
    _, solution = solved(name)
    rng = np.random.default_rng(5)
    for noise in noises:
        yield (
            solution.w + noise * rng.standard_normal(solution.w.shape),
            solution.u + noise * rng.standard_normal(solution.u.shape),
        )


@pytest.mark.parametrize("name", KINDS)
def test_gaps_are_valid_and_those_of_one_machine(name, sharded):
    problem, solution = solved(name)
    parts = sharded(name)
    bounds = ShardedBounds(parts)
    for w, u in pairs(name, (0.0, 0.3) if name in POLYHEDRAL else (0.0, 1e-5, 0.03, 1.0)):
        w = problem.losses.project_domain(w)
        point, flow = spread_nodes(parts, w), spread_edges(parts, problem, u)
        value = bounds.value(point)
        assert value == pytest.approx(problem.value(w), rel=1e-12)
        gap, found = bounds.gap(point, flow)
        assert value - gap.total <= solution.value + 1e-12 * abs(solution.value)
        alone, _ = problem.bounds.gap(w, u)
        assert gap.total <= 1.05 * alone.total + 1e-11 * abs(value)
        nodes, edges = joined_nodes(parts, gap.node), joined_edges_of_one_side(parts, gap.edge)
        assert gap.total == pytest.approx(nodes.sum() + edges + gap.rounding, rel=1e-12)
        # The whole problem agrees about the same pair.
        whole = joined_edges(parts, problem, found)
        again = problem.bounds.gap_of(w, whole)
        room = 1e-12 * abs(value)
        # It knows more of what rounding may do at its nodes, and takes coordinates one by one.
        exact = again.total - again.rounding
        assert exact - room <= gap.total
        if name not in POLYHEDRAL:  # there multipliers of the flow are known, perhaps not the best
            assert gap.total - gap.rounding == pytest.approx(exact, rel=1e-9, abs=room)
        assert gap.rounding <= 3.0 * again.rounding
        found_again = bounds.gap_of(point, found)
        assert found_again.total - found_again.rounding == pytest.approx(exact, rel=1e-9, abs=room)


def joined_edges_of_one_side(parts, rows):
    return sum(a[part.counted].sum() for a, part in zip(rows, parts, strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_repaired_flows_are_feasible_and_those_of_one_machine(name, sharded):
    problem, _ = solved(name)
    parts = sharded(name)
    bounds = ShardedBounds(parts)
    conservation = FlowConservation(problem.graph, problem.losses, problem.penalty)
    for w, u in pairs(name, (1e-5, 3.0)):
        for near in (w, None):
            point = None if near is None else spread_nodes(parts, near)
            flow = bounds.repaired(spread_edges(parts, problem, u), point)
            whole = joined_edges(parts, problem, flow.u)
            size = np.linalg.norm(whole)
            assert np.linalg.norm(conservation.residual(whole)) <= 1e-14 * size
            assert problem.penalty.scale_to_feasible(whole, problem.capacities) >= 1.0 - 1e-14
            expected = problem.bounds.repair(u, near)
            close = 1e-6 if name in POLYHEDRAL else 1e-9
            np.testing.assert_allclose(whole, expected, atol=close * max(size, 1.0))


def test_projections_are_those_of_one_machine(sharded):
    problem, _ = solved("l2")
    parts = sharded("l2")
    rng = np.random.default_rng(2)
    c = rng.uniform(0.01, 1.0, problem.graph.n_edges)
    one = FlowConservation(problem.graph, problem.losses, problem.penalty)
    all_ = ShardedConservation(parts)
    conductance = spread_edges(parts, problem, c)
    for scale in (1e-200, 1.0, 1e100):
        u = scale * rng.standard_normal((problem.graph.n_edges, 2))
        found = all_.project(spread_edges(parts, problem, u), 1e-15, conductance)
        whole = joined_edges(parts, problem, found)
        expected = one.project(u, 1e-15, c)
        np.testing.assert_allclose(whole / scale, expected / scale, atol=1e-13)
    zero = all_.project(parts.edge_zeros(), 1e-15, conductance)
    assert largest_of(parts, zero) == 0.0


def test_groups_reach_over_cuts(sharded):
    problem, _ = solved("l2")
    parts = sharded("l2")
    rng, n = np.random.default_rng(3), parts.n_nodes
    w = rng.standard_normal((n, 2))
    for share in (0.0, 0.1, 0.3, 1.0):
        some = rng.random(problem.graph.n_edges) < share
        groups = Groups(parts, spread_edges(parts, problem, some))
        labels = connected_components(n, problem.graph.edges[some])
        sizes = np.bincount(labels)
        expected = np.column_stack([np.bincount(labels, x) / sizes for x in w.T])[labels]
        found = groups.means(spread_nodes(parts, w))
        whole = joined_nodes(parts, found)
        np.testing.assert_allclose(whole, expected, atol=1e-13)
        # Constant to the last bit, over cuts, too; and fresh.
        assert len(np.unique(whole, axis=0)) == len(sizes)
        for part, rows in zip(parts, found, strict=True):
            assert whole[part.shard.nodes].tobytes() == rows.tobytes()
        least = np.full(len(sizes), np.inf)
        np.minimum.at(least, labels, w[:, 0])
        own = []
        for part, local, count in zip(parts, groups.labels, groups.counts, strict=True):
            lowest = np.full((count, 1), np.inf)
            np.minimum.at(lowest[:, 0], local[part.own], w[part.shard.nodes[part.own], 0])
            own.append(lowest)
        combined = groups.combined(own, np.minimum)
        rows = [a[local] for a, local in zip(combined, groups.labels, strict=True)]
        np.testing.assert_array_equal(joined_nodes(parts, rows)[:, 0], least[labels])


def test_margins_are_those_of_whole_components(sharded):
    problem, _ = solved("mixed")
    parts = sharded("mixed")
    domains, alone = ShardedDomains(parts), problem.bounds._domains
    rng = np.random.default_rng(4)
    u = 0.4 * problem.capacities[:, None] * rng.standard_normal((problem.graph.n_edges, 2))
    count = len(alone._generators.node)
    expected = alone._margins(Flow(u, np.zeros(count)))
    assert (expected < 0.0).any()
    assert (expected[expected < 1.0] > 0.0).any()
    none = [np.zeros(len(g.node)) for g in domains._generators]
    found = domains._margins(ShardedFlow(spread_edges(parts, problem, u), none))
    rows = [a[labels][:, None] for a, labels in zip(found, domains._groups.labels, strict=True)]
    whole = joined_nodes(parts, rows)[:, 0]
    np.testing.assert_array_equal(whole, expected[problem.graph.components])
    for k in range(len(parts)):
        one = [np.full(3, 1.0 - (p == k)) for p in range(len(parts))]
        assert domains._least(one) == 0.0


@pytest.mark.parametrize("name", ["l2", "singular", "points", "mixed"])
def test_the_incumbent_is_that_of_one_machine(name, sharded):
    problem, solution = solved(name)
    parts = sharded(name)
    incumbent, alone = ShardedIncumbent(parts), Incumbent(problem)
    assert incumbent.empty
    for one in (incumbent, alone):
        one.begin()
    assert incumbent.gap == pytest.approx(alone.gap, rel=1e-12)
    for w, u in pairs(name, (1.0, 0.03, 1e-6, 0.1)):
        incumbent.update(spread_nodes(parts, w), spread_edges(parts, problem, u))
        alone.update(w, u)
        assert incumbent.value == pytest.approx(alone.value, rel=1e-12)
        room = 1e-11 * abs(alone.value)
        assert incumbent.gap == pytest.approx(alone.gap, rel=1e-6, abs=room)
        assert incumbent.dual_value <= solution.value + room
        whole = joined_nodes(parts, incumbent.w)
        assert problem.value(whole) == pytest.approx(incumbent.value, rel=1e-12)
        np.testing.assert_allclose(whole, alone.w, atol=1e-9)
        assert incumbent.is_rounding == alone.is_rounding
    better = incumbent.value
    incumbent.update_point(spread_nodes(parts, solution.w))
    assert incumbent.value <= better
    record = incumbent.record(3, 0.5)
    found = incumbent.solution(status="optimal", n_iter=3, seconds=0.5, solver="x")
    # A record holds both values, whose difference is as fine as they are.
    assert record.gap == pytest.approx(found.gap, abs=2.0 * np.spacing(record.value))
    assert incumbent.progress(3, 0.5).rel_gap == found.rel_gap


def random_losses(rng, n, d):
    """Return losses of six kinds, and none at all at some nodes."""
    out = {0: gtv.PointLoss(np.ones(d))}
    for i in range(1, n):
        X = rng.normal(size=(rng.integers(1, 4), d))
        y = rng.normal(size=len(X))
        kinds = [
            lambda X, y: gtv.SquaredLoss(X, y),
            lambda X, y: gtv.AbsoluteLoss(X, y),
            lambda X, y: gtv.LogisticLoss(X, (y > 0.0) * 1.0),
            lambda X, y: gtv.HuberLoss(X, y, delta=0.5),
            lambda X, y: gtv.SquaredLoss(X, y) + gtv.L1(0.1),
            lambda X, y: gtv.SquaredLoss(X, y) + gtv.Box(-1.0, 1.0),
        ]
        k = rng.integers(0, len(kinds) + 3)
        if k < len(kinds):
            out[i] = kinds[k](X, y)
    return out


@pytest.mark.parametrize("seed", range(4 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))))
def test_random_problems_in_random_shards(seed, tmp_path):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 60)), int(rng.integers(1, 4))
    ends = rng.integers(0, n, (rng.integers(0, 4 * n), 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    graph = gtv.EmpiricalGraph(n, ends, 10.0 ** rng.uniform(-2.0, 2.0, len(ends)))
    penalty = ("l1", "l2", "linf", "squared")[rng.integers(0, 4)]
    lam = 10.0 ** rng.uniform(-2.0, 1.0)
    problem = gtv.GTVProblem(graph, random_losses(rng, n, d), penalty, lam)
    owners = np.unique(rng.integers(0, rng.integers(1, 8), n), return_inverse=True)[1]
    parts = parts_of(problem, tmp_path, int(owners.max()) + 1, owners)
    incumbent, alone = ShardedIncumbent(parts), Incumbent(problem)
    solution = problem.solve(rtol=1e-9)
    room = 1e-11 * max(1.0, abs(solution.value))
    for noise in (1.0, 1e-2, 0.0):
        w = solution.w + noise * rng.normal(size=solution.w.shape)
        u = solution.u + noise * rng.normal(size=solution.u.shape)
        incumbent.update(spread_nodes(parts, w), spread_edges(parts, problem, u))
        alone.update(w, u)
        assert incumbent.dual_value <= solution.value + room
        assert incumbent.value == pytest.approx(alone.value, rel=1e-6, abs=1e-6)
        assert incumbent.gap == pytest.approx(alone.gap, rel=1e-3, abs=1e-6 * max(1.0, alone.value))
        whole = joined_nodes(parts, incumbent.w), joined_edges(parts, problem, incumbent.u)
        assert problem.value(whole[0]) == pytest.approx(incumbent.value, rel=1e-12, abs=room)
        assert problem.bounds.gap_of(*whole).total <= incumbent.gap + room


@pytest.mark.parametrize("loss", [gtv.SquaredLoss, gtv.AbsoluteLoss, gtv.LogisticLoss])
def test_rounding_counts_as_much_as_on_one_machine(loss, tmp_path):
    """An intercept and a year, targets far from zero; two rows a node, so that ranks are short."""
    rng = np.random.default_rng(8)
    X = 1e3 * rng.standard_normal((12, 2, 3))
    X[:, :, 0], X[:, :, 1] = 1.0, 1985.0 + 20.0 * rng.standard_normal((12, 2))
    y = rng.integers(0, 2, (12, 2)) * 1.0
    y = y if loss is gtv.LogisticLoss else 1e9 + rng.standard_normal((12, 2))
    ends = np.column_stack([np.arange(11), np.arange(1, 12)])
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(12, ends), loss.stack(X, y), "l2", 0.1)
    solution = problem.solve(max_iter=100)
    parts = parts_of(problem, tmp_path, 4)
    bounds = ShardedBounds(parts)
    for share in (0.0, 1e-6, 1e-2):
        u = solution.u * (1.0 + share * rng.standard_normal(solution.u.shape))
        given = spread_nodes(parts, solution.w), spread_edges(parts, problem, u)
        (found, flow), alone = bounds.gap(*given), problem.bounds.gap(solution.w, u)[0]
        # Digits decide which of several flows is taken, and these round otherwise.
        same = problem.bounds.gap_of(solution.w, joined_edges(parts, problem, flow))
        assert found.rounding >= 0.5 * same.rounding > 0.0
        assert found.total <= 4.0 * alone.total


def test_how_far_solutions_may_be(tmp_path):
    """The largest of two lengths: each of them decides once, in another coordinate."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(12, 2, 2)) * [1.0, 1e-3], rng.integers(0, 2, (12, 2)) * 1.0
    graph = gtv.generators.chain(6, 1.0)
    losses = gtv.LogisticLoss.stack(X, y, labelled=np.arange(12) % 2 == 0)
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    parts = parts_of(problem, tmp_path, 4)
    bounds, alone = ShardedBounds(parts), problem.bounds
    lengths = alone._terms.reach(np.zeros((12, 2)))
    assert (lengths > 0.0).all()
    np.testing.assert_allclose(bounds._reach(parts.node_zeros()), lengths, rtol=1e-12)
    w = rng.normal(size=(12, 2)) * [100.0 * lengths[0], 1e-3 * lengths[1]]
    reach = bounds._reach(spread_nodes(parts, w))
    np.testing.assert_allclose(reach, alone._terms.reach(w), rtol=1e-12)
    assert reach[0] > lengths[0]
    assert reach[1] == pytest.approx(lengths[1], rel=1e-12)
    # A flow that is not conserved: what is missing at the nodes is nearly all.
    u = rng.normal(size=(problem.graph.n_edges, 2))
    given = spread_nodes(parts, w), spread_edges(parts, problem, u)
    known = Known(alone._terms.values(w), alone._terms.unsure(u))
    expected = alone._rounding(w, u, reach, known, near=True)
    share = 2.0 * float(np.sum(alone._conservation.missing(u, known.unsure) @ reach))
    assert bounds._rounding(*given, reach, near=True) == pytest.approx(expected, rel=1e-9)
    assert share > 0.5 * expected


@pytest.mark.parametrize("shards", [1, 4])
def test_how_far_solutions_may_be_by_component(shards, tmp_path, monkeypatch):
    """What rows of one component tell of solutions tells nothing of those of another."""
    rng = np.random.default_rng(6)
    n, d = 60, 3
    at = np.arange(n - 1)
    ends = np.column_stack([at, at + 1])[at % 7 != 3]  # pieces of 7, over cuts and inside shards
    X, y = rng.standard_normal((n, 2, d)), rng.standard_normal((n, 2))
    labelled = np.arange(n) >= 4  # a component without rows
    kinds = [gtv.AbsoluteLoss, gtv.LogisticLoss]
    losses = {
        i: kinds[i % 2](X[i], y[i] if i % 2 == 0 else y[i] > 0.0)
        for i in np.flatnonzero(labelled).tolist()
    }
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, ends), losses, "l2", 0.1)
    parts = parts_of(problem, tmp_path / "a", shards)
    assert Groups.of_graph(parts).n_shared == (3 if shards == 4 else 0)
    expected = problem.bounds._terms.alone
    assert expected.shape == (n, d)
    found = ShardedBounds(parts)._together
    np.testing.assert_allclose(found, expected.max(axis=0), rtol=1e-10)
    with monkeypatch.context() as patch:
        patch.setattr("gtvcvx.distributed._lengths.PIECE", d**2)  # one group at a time
        np.testing.assert_array_equal(ShardedBounds(parts)._together, found)
    # A component of nearly equal rows: solutions are a billion long there, which others hide.
    for narrow in (range(18, 25), range(53, 60)):  # over a cut, with others that are, and inside
        near = dict(losses)
        for i in narrow:
            near[i] = gtv.AbsoluteLoss([[1.0, 1.0, 1.0], [1.0, 1.0 + 1e-9 * (i + 1), 1.0]], y[i])
        other = gtv.GTVProblem(problem.graph, near, "l2", 0.1)
        far = ShardedBounds(parts_of(other, tmp_path / str(narrow[0]), shards))._together
        assert far[:2].min() > 1e6 > found.max()
        np.testing.assert_allclose(far, other.bounds._terms.alone.max(axis=0), rtol=1e-3)


def test_points_far_from_all_solutions_do_not_say_how_far(tmp_path):
    problem, w, u = far_from_solutions()
    parts = parts_of(problem, tmp_path, 2)
    bounds, alone = ShardedBounds(parts), problem.bounds
    expected = alone.gap_of(w, u).rounding
    given = spread_nodes(parts, w), spread_edges(parts, problem, u)
    # Level and reach are those of the whole; what parts add up to is at most twice as much.
    assert expected <= bounds.gap_of(*given).rounding <= 2.0 * expected


def test_generators_count_in_the_size_of_a_flow(tmp_path):
    parts = parts_of(solved("absolute")[0], tmp_path, 3)
    projection = ShardedDomains(parts)._projection
    ones = [np.ones(np.shape(piece.lengths)) for piece in projection._pieces]
    lengths = np.concatenate([np.atleast_1d(piece.lengths) for piece in projection._pieces])
    size = projection._size(ShardedFlow(parts.edge_zeros(), ones))
    assert np.linalg.norm(lengths) > 0.0
    assert size == pytest.approx(np.linalg.norm(lengths))


def test_the_same_bits_for_all_numbers_of_workers(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    folders = []
    for name in ("wide", "absolute"):
        folders.append(str(tmp_path / name))
        shard(solved(name)[0], folders[-1], 3, partitioner="order")
    alone, both = (LocalEngine().run(tasks.checked, folders, workers) for workers in (1, 2))
    for (numbers, one), (again, two) in zip(alone, both, strict=True):
        assert numbers.tobytes() == again.tobytes()
        assert np.isfinite(numbers).all()
        for a, b in zip(one, two, strict=True):
            assert a.tobytes() == b.tobytes()
