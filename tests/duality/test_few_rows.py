"""Systems with few rows by their factorization, against dense matrices and conjugate gradients."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Allowance, Unaffordable, allowing
from gtvcvx.duality._conservation import FlowConservation
from gtvcvx.duality._few_rows import FewRows, RowFactor
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._polyhedral import GroundedConservation


def two_rings(n):
    """Two components, and a node that is alone."""
    half = n // 2
    return gtv.EmpiricalGraph(
        n + 1,
        [(i, (i + 1) % half) for i in range(half)]
        + [(half + i, half + (i + 1) % (n - half)) for i in range(n - half)],
    )


@pytest.mark.parametrize("n_rows", [4, 20, 60])
def test_few_steps_solve_the_system(n_rows, monkeypatch):
    """Of fewer rows than coordinates, and of more; edges that conduct little."""
    rng, graph, d = np.random.default_rng(n_rows), two_rings(12), 30
    node, rows = rng.integers(0, 12, n_rows), rng.standard_normal((n_rows, d))
    conductance = 10.0 ** rng.uniform(-3.0, 0.0, graph.n_edges)
    ground = rng.uniform(0.1, 1.0, n_rows) / np.sum(rows**2, axis=1)
    D = graph.incidence.toarray()
    dense = np.kron(D.T @ (conductance[:, None] * D), np.eye(d))
    for q, i in enumerate(node):
        at = slice(i * d, (i + 1) * d)
        dense[at, at] += ground[q] * np.outer(rows[q], rows[q])
    b = (dense @ rng.standard_normal(dense.shape[0])).reshape(-1, d)
    steps, preconditioned = [], RowFactor._preconditioned
    monkeypatch.setattr(
        RowFactor, "_preconditioned", lambda self, r: steps.append(1) or preconditioned(self, r)
    )
    goal = 1e-12 * np.linalg.norm(b)
    x = FewRows(graph, node, rows).factor(conductance, ground).solve(b, goal)
    assert np.linalg.norm(dense @ x.ravel() - b.ravel()) <= 2.0 * goal
    assert len(steps) <= 5


def conservation_of(losses, n):
    rng = np.random.default_rng(4)
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 4)
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    return problem, GroundedConservation(graph, problem.losses, problem.penalty)


def rows_at(nodes, d, n_rows=3, seed=0):
    X = np.random.default_rng(seed).standard_normal((len(nodes), n_rows, d))
    return [gtv.LogisticLoss(x, np.arange(n_rows) % 2.0) for x in X]


def metric_of(conservation, graph):
    rng, g = np.random.default_rng(1), conservation.generators
    unit = 1.0 / np.sum(g.vectors**2, axis=1)
    return conservation.metric(rng.uniform(0.01, 1.0, graph.n_edges), unit)


def test_projections_beside_few_rows_are_those_of_conjugate_gradients():
    """In a small part of their counted work; unlabelled nodes are among them."""
    n, d = 40, 200
    problem, conservation = conservation_of(dict(enumerate(rows_at(range(35), d, 8))), n)
    metric = metric_of(conservation, problem.graph)
    assert metric.factor is not None
    rng, Q = np.random.default_rng(2), len(conservation.generators.node)
    flow = Flow(rng.standard_normal((problem.graph.n_edges, d)), rng.standard_normal(Q))
    found, spent = [], []
    for way in (metric, metric._replace(factor=None)):
        with allowing(account := Allowance()):
            found.append(conservation.project_both(flow, 1e-16, way))
        spent.append(account.spent)
    assert conservation.conserved(found[0])
    np.testing.assert_allclose(found[0].u, found[1].u, atol=1e-11)
    np.testing.assert_allclose(found[0].b, found[1].b, atol=1e-11)
    assert 30.0 * spent[0] < spent[1]
    with pytest.raises(Unaffordable), allowing(Allowance(0.5 * spent[0])):
        conservation.project_both(flow, 1e-16, metric)


@pytest.mark.parametrize("case", ["small", "squared rows", "many rows"])
def test_otherwise_nothing_is_factored(case):
    """Where matrices are as small, or products of rows larger; where losses leave no room."""
    n, d = 40, 20 if case == "small" else 200
    losses = dict(enumerate(rows_at(range(n), d, 20 if case == "many rows" else 3)))
    if case == "squared rows":
        losses[3] = gtv.SquaredLoss(np.ones((2, d)), np.ones(2))
    problem, conservation = conservation_of(losses, n)
    assert metric_of(conservation, problem.graph).factor is None


def squares_at(nodes, d, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        i: gtv.SquaredLoss(rng.standard_normal((n_rows, d)), rng.standard_normal(n_rows))
        for i in nodes
    }


def held_by_squares(d, n_rows, n=40):
    """Rows at most nodes; one is unlabelled, and two take whatever flows in."""
    losses = squares_at(range(3, n), d, n_rows)
    losses |= {1: gtv.PointLoss(np.ones(d)), 2: gtv.PointLoss(np.zeros(d))}
    graph = gtv.generators.nearest_neighbours(np.random.default_rng(4).random((n, 2)), 4)
    return gtv.GTVProblem(graph, losses, "l2", 0.1)


def by_conjugate_gradients(problem):
    conservation = FlowConservation(problem.graph, problem.losses, problem.penalty)
    conservation.__dict__["_held_by_few"] = None
    return conservation


@pytest.mark.parametrize("n_rows", [1, 8])
def test_flows_beside_few_squared_rows_are_conserved_in_a_part_of_the_work(n_rows):
    """With fewer rows than coordinates in all, and with more; near what is projected exactly."""
    problem = held_by_squares(200, n_rows)
    rng = np.random.default_rng(2)
    u = rng.standard_normal((problem.graph.n_edges, 200))
    c = rng.uniform(0.01, 1.0, problem.graph.n_edges)
    found, spent = [], []
    few = FlowConservation(problem.graph, problem.losses, problem.penalty)
    for way in (few, by_conjugate_gradients(problem)):
        for _ in range(2):  # the second time there is a factor
            with allowing(account := Allowance()):
                found.append(way.project(u, 1e-16, c))
            spent.append(account.spent)
            assert np.abs(way.residual(found[-1])).max() <= 1e-13
    assert few._held_by_few is not None
    moved = np.linalg.norm(found[2] - u)
    assert np.linalg.norm(found[0] - found[2]) <= 1e-3 * moved
    assert spent[0] < spent[2]
    assert 5.0 * spent[1] < spent[3]
    with pytest.raises(Unaffordable), allowing(Allowance(0.5 * spent[0])):
        few.project(u, 1e-16, c.copy())


def test_sweeps_and_the_projection_after_them_share_a_factor(monkeypatch):
    problem, factors = held_by_squares(200, 8), []
    factor = FewRows.factor
    monkeypatch.setattr(FewRows, "factor", lambda *given: factors.append(1) or factor(*given))
    rng = np.random.default_rng(3)
    w, u = rng.standard_normal((40, 200)), rng.standard_normal((problem.graph.n_edges, 200))
    flow = problem.bounds.repair(u, w)
    assert len(factors) == 1
    conservation = by_conjugate_gradients(problem)
    assert np.abs(conservation.residual(flow)).max() <= 1e-13
    assert (np.linalg.norm(flow, axis=1) <= problem.capacities * (1.0 + 1e-12)).all()
    assert flow.any()
    # Another point has other jumps, and another factor.
    problem.bounds.repair(u, rng.standard_normal((40, 200)))
    assert len(factors) == 2


def test_coordinates_of_their_own_are_not_held_by_rows():
    """A ridge at some coordinates is room there alone: no row tells that."""
    d = 200
    problem = held_by_squares(d, 8)
    ridge = gtv.Ridge(np.r_[0.0, np.ones(d - 1)])
    rows = squares_at(range(4, 40), d, 8) | {3: ridge}
    other = gtv.GTVProblem(problem.graph, rows, "l2", 0.1)
    conservation = FlowConservation(other.graph, other.losses, other.penalty)
    assert conservation._held_by_few is None
    rng = np.random.default_rng(5)
    u = conservation.project(rng.standard_normal((other.graph.n_edges, d)), 1e-16)
    assert np.abs(conservation.residual(u)).max() <= 1e-13


def test_a_graph_without_edges_has_nothing_to_project():
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(3, []), squares_at(range(3), 200, 4), "l2", 0.1)
    bound, flow = problem.lower_bound(np.zeros((0, 200)))
    assert flow.shape == (0, 200)
    assert bound == pytest.approx(problem.solve().value, abs=1e-9)
