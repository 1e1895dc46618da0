"""Flows inside clusters: optimality, and clusters in which there is none."""

import cvxpy as cp
import numpy as np
import pytest
from _twins import clipped, random_graph

import gtvcvx as gtv
from gtvcvx.solvers.polishing import _cluster_flow
from gtvcvx.solvers.polishing._cluster_flow import cluster_flow


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def feasible_instance(rng, penalty, jumping_share=0.2, load=0.95):
    """A problem and parameters that some flow within capacity makes up for, and that flow."""
    graph, d = random_graph(rng), 2
    flow = rng.standard_normal((graph.n_edges, d))
    size = gtv.penalties.as_penalty(penalty, d).dual_norm(flow)
    flow *= (load * rng.random(graph.n_edges) ** 0.2 * graph.weights / size)[:, None]
    w = rng.standard_normal((9, d))
    # The gradient of 1/2 ||w - a||^2 per node, whatever its factor, is to be minus D^T u.
    point = gtv.PointLoss.stack(np.zeros((9, d)))
    factor = point.gradient(np.ones((9, d)))[0, 0]
    losses = gtv.PointLoss.stack(w + (graph.divergence @ flow) / factor)
    problem = gtv.GTVProblem(graph, losses, penalty, 1.0)
    np.testing.assert_allclose(problem.losses.gradient(w), -(graph.divergence @ flow), atol=1e-12)
    count = d if penalty == "l1" else 1
    jumping = [rng.random(graph.n_edges) < jumping_share for _ in range(count)]
    blocks = [[0], [1]] if penalty == "l1" else [[0, 1]]
    start = rng.standard_normal((graph.n_edges, d))
    for block, jump in zip(blocks, jumping, strict=True):
        start[np.ix_(jump, block)] = flow[np.ix_(jump, block)]
    return problem, blocks, w, start, jumping


def within(problem, u, blocks, share):
    """Whether u is inside the capacities, block by block, up to a share of them."""
    bound = (1.0 + share) * problem.capacities
    return all((np.linalg.norm(u[:, block], axis=1) <= bound).all() for block in blocks)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
@pytest.mark.parametrize("seed", range(5))
def test_the_closest_flow_is_found_within_capacity(penalty, seed):
    rng = np.random.default_rng(seed)
    problem, blocks, w, start, jumping = feasible_instance(rng, penalty)
    found = cluster_flow(problem, blocks, w, start, jumping)
    need = -problem.losses.gradient(w)
    np.testing.assert_allclose(problem.graph.divergence @ found.conserved, need, atol=1e-9)
    np.testing.assert_allclose(found.conserved, found.inside, atol=1e-9)
    assert within(problem, found.inside, blocks, 1e-12)
    assert found.overload.max() <= 1e-9
    for block, jump in zip(blocks, jumping, strict=True):
        np.testing.assert_array_equal(found.inside[np.ix_(jump, block)], start[np.ix_(jump, block)])
        # First the start is clipped; then no conserved flow is closer.
        goal = np.where(
            jump[:, None], start[:, block], clipped(start[:, block], problem.capacities)
        )
        u = cp.Variable(goal.shape)
        constraints = [problem.graph.divergence @ u == need[:, block], u[jump] == goal[jump]]
        constraints += [cp.norm(u, 2, axis=1) <= problem.capacities]
        cp.Problem(cp.Minimize(cp.sum_squares(u - goal)), constraints).solve(cp.CLARABEL)
        np.testing.assert_allclose(found.inside[:, block], u.value, atol=2e-4)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_what_may_be_missing_is_not_looked_for(penalty, rng, monkeypatch):
    problem, blocks, w, start, jumping = feasible_instance(rng, penalty)
    need = -problem.losses.gradient(w)
    total = problem.capacities.sum()
    steps, step = [], _cluster_flow._Block._step
    monkeypatch.setattr(_cluster_flow._Block, "_step", lambda self: steps.append(1) or step(self))
    taken = []
    for tolerance in (1.0, 1e-4, 1e-10):
        steps.clear()
        found = cluster_flow(problem, blocks, w, start, jumping, tolerance=tolerance)
        missing = problem.graph.divergence @ found.inside - need
        assert np.linalg.norm(missing) <= 2 * tolerance * total + 1e-12
        taken.append(len(steps))
    assert taken[0] <= taken[1] < taken[2]


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_what_may_be_missing_is_spread_unless_nobody_minds(penalty, rng):
    problem, blocks, w, start, jumping = feasible_instance(rng, penalty)
    need, left = -problem.losses.gradient(w), []
    for spread in (False, True):
        found = cluster_flow(problem, blocks, w, start, jumping, tolerance=1e-3, spread=spread)
        left.append(np.linalg.norm(problem.graph.divergence @ found.conserved - need))
        assert left[-1] <= 2e-3 * problem.capacities.sum()
        assert np.array_equal(found.conserved, found.inside) != spread
    assert left[1] <= 1e-2 * left[0]
    assert within(problem, found.inside, blocks, 1e-12)


def test_of_all_steps_the_best_one_counts(rng, monkeypatch):
    problem, blocks, w, start, jumping = feasible_instance(rng, "l2", load=1.5)
    left, step = [], _cluster_flow._Block._step

    def worse(self):
        """Take a step, but the last ones lead away."""
        found = step(self)
        if len(left) > 2:
            self._clip(self._z + 1.0)
            self._z = self._at
        left.append(self._left)
        return found

    monkeypatch.setattr(_cluster_flow._Block, "_step", worse)
    found = cluster_flow(problem, blocks, w, start, jumping)
    missing = problem.graph.divergence @ found.inside + problem.losses.gradient(w)
    assert min(left) < 0.5 * left[-1]
    assert np.linalg.norm(missing - missing.mean(axis=0)) == pytest.approx(min(left), rel=1e-6)


def test_where_there_is_no_flow_the_overloaded_edges_show_where_the_cluster_wants_to_be_cut():
    """Two cliques that want to be apart, over one edge that cannot carry it."""
    clique = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    ends = [*clique, *((i + 4, j + 4) for i, j in clique), (3, 4)]
    graph = gtv.EmpiricalGraph(8, ends)
    a = np.repeat([[0.0, 0.0], [3.0, 4.0]], 4, axis=0)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(a), "l2", 1.0)
    w = np.tile(a.mean(axis=0), (8, 1))
    none = [np.zeros(graph.n_edges, dtype=bool)]
    found = cluster_flow(problem, [[0, 1]], w, np.zeros((graph.n_edges, 2)), none)
    need = -problem.losses.gradient(w)
    np.testing.assert_allclose(
        graph.divergence @ found.conserved, need, atol=1e-2 * np.abs(need).max()
    )
    assert within(problem, found.inside, [[0, 1]], 1e-12)
    bridge = np.flatnonzero((graph.edges == [3, 4]).all(axis=1))[0]
    assert np.argmax(found.overload) == bridge
    assert found.overload[bridge] > 0.5


def test_components_that_no_flow_makes_up_for_keep_their_mean(rng):
    """No flow inside makes up the sum over a component; a node alone keeps all of it."""
    graph = gtv.EmpiricalGraph(6, [(0, 1), (1, 2), (3, 4)], [5.0, 5.0, 5.0])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((6, 1))), "l2", 1.0)
    w = np.zeros((6, 1))
    found = cluster_flow(problem, [[0]], w, np.zeros((3, 1)), [np.zeros(3, dtype=bool)])
    left = -problem.losses.gradient(w) - graph.divergence @ found.conserved
    np.testing.assert_allclose(left[:3], left[:3].mean(), atol=1e-9)
    np.testing.assert_allclose(left[3:5], left[3:5].mean(), atol=1e-9)
    assert found.overload.max() == 0.0
