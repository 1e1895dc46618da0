"""The compiled sweep of alternating projections against readable NumPy twins."""

import dataclasses

import numpy as np
import pytest
from _instances import Case, cases, reference
from _twins import alone
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gtvcvx as gtv
from gtvcvx.compiled import _projections
from gtvcvx.compiled._projections import Flows, Limits
from gtvcvx.duality import _conservation
from gtvcvx.duality._conservation import FlowConservation

l1_threshold = alone(_projections.l1_threshold)
NORMS = {"l1": gtv.L1Norm(), "l2": gtv.L2Norm(), "linf": gtv.LinfNorm()}
# Families with nodes at which flow is conserved; elsewhere there is nothing to alternate with.
CONSERVED = ("isolated", "unlabelled", "few-rows", "d=1", "d=6")


def naive_threshold(z, cap):
    """The soft threshold t with ||soft(z, t)||_1 = cap, by sorting; 0 inside the ball."""
    largest = np.sort(np.abs(z))[::-1]
    return max(0.0, np.max((np.cumsum(largest) - cap) / np.arange(1, len(z) + 1)))


def naive_clip(name, z, cap):
    """Projection of one flow on its capacity: a dual ball of the penalty."""
    if name == "l1":
        return np.clip(z, -cap, cap)
    if name == "l2":
        return z if np.linalg.norm(z) <= cap else z * (cap / np.linalg.norm(z))
    return np.sign(z) * np.maximum(np.abs(z) - naive_threshold(z, cap), 0.0)


def naive_dual_norm(name, z):
    return np.linalg.norm(z, {"l1": np.inf, "l2": 2, "linf": 1}[name])


def naive_sweep(name, edges, capacities, conductance, x, relaxation, u):
    """Return u after the sweep, `on` and the largest excess, edge by edge."""
    new, on, largest = u.copy(), u.copy(), 0.0
    for e, (head, tail) in enumerate(edges):
        on[e] = u[e] + conductance[e] * (x[head] - x[tail])
        inside = naive_clip(name, on[e], capacities[e])
        new[e] = inside + relaxation * (inside - on[e])
        largest = max(largest, naive_dual_norm(name, on[e]) / capacities[e] - 1.0)
    return new, on, largest


def check_sweep(name, graph, capacities, conductance, x, relaxation, u, demand):
    """Run the compiled sweep on copies, and compare all that it writes."""
    divergence = graph.incidence.T.toarray()
    expected = naive_sweep(name, graph.edges, capacities, conductance, x, relaxation, u)
    new, on = u.copy(), np.empty_like(u)
    missing = demand - divergence @ u
    limits = Limits(int(NORMS[name].compiled_form), capacities)
    flows = Flows(new, on, missing)
    dims = (0,) * u.shape[1]
    largest = _projections.sweep(dims, graph.by_head, limits, flows, conductance, x, relaxation)
    # Rounding is relative to what was added: flows, the potential's differences, the demand.
    size = max(np.abs(u).max(), 2.0 * np.abs(x).max(), np.abs(demand).max())
    for got, wanted in zip((new, on), expected[:2], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=0.0, atol=1e-13 * size)
    np.testing.assert_allclose(largest, expected[2], rtol=1e-12, atol=1e-12)
    room = 1e-13 * size * graph.n_nodes
    np.testing.assert_allclose(missing, demand - divergence @ expected[0], rtol=0.0, atol=room)


def random_sweep(d, seed, scale=1.0):
    """A random graph, and arguments of the sweep; some flows are zero."""
    rng = np.random.default_rng(seed)
    n = 9
    edges = np.array([(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.6])
    graph = gtv.EmpiricalGraph(n, edges)
    m = graph.n_edges
    u = rng.standard_normal((m, d)) * (rng.random(m) < 0.8)[:, None]
    conductance = rng.uniform(0.01, 1.0, m)
    x, demand = rng.standard_normal((n, d)), rng.standard_normal((n, d))
    capacities = rng.uniform(0.1, 4.0, m)
    return graph, scale * capacities, conductance, scale * x, scale * u, scale * demand


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_sweep_is_its_naive_twin(name, d, scale):
    for seed in range(3):
        graph, capacities, conductance, x, u, demand = random_sweep(d, seed, scale)
        for relaxation in (0.0, 0.9):
            check_sweep(name, graph, capacities, conductance, x, relaxation, u, demand)


# Zero as often as not, and ties.
numbers = st.one_of(st.just(0.0), st.integers(-(10**6), 10**6).map(lambda k: k / 1024))


@pytest.mark.parametrize("name", NORMS)
@given(data=st.data())
def test_sweep_is_its_naive_twin_on_any_input(name, data):
    n, d = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 4))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = data.draw(st.lists(st.sampled_from(pairs), min_size=1, unique=True))
    graph = gtv.EmpiricalGraph(n, chosen)
    m = graph.n_edges
    check_sweep(
        name,
        graph,
        data.draw(hnp.arrays(float, m, elements=st.floats(1e-3, 1e3))),
        data.draw(hnp.arrays(float, m, elements=st.sampled_from([0.01, 0.3, 1.0]))),
        data.draw(hnp.arrays(float, (n, d), elements=numbers)),
        data.draw(st.sampled_from([0.0, 0.9])),
        data.draw(hnp.arrays(float, (m, d), elements=numbers)),
        data.draw(hnp.arrays(float, (n, d), elements=numbers)),
    )


@given(
    z=hnp.arrays(float, st.integers(1, 6), elements=numbers),
    cap=st.floats(1e-3, 1e4),
    exponent=st.sampled_from([-300, 0, 300]),
)
def test_threshold_is_its_naive_twin(z, cap, exponent):
    """A power of two scales the threshold, and changes no bit of it."""
    threshold = l1_threshold(z, cap)
    assert threshold == pytest.approx(naive_threshold(z, cap), rel=1e-12, abs=1e-12 * abs(z).max())
    scaled = l1_threshold(np.ldexp(z, exponent), float(np.ldexp(cap, exponent)))
    assert scaled == np.ldexp(threshold, exponent)


@pytest.mark.parametrize("name", NORMS)
def test_flows_at_rest_within_capacity_do_not_move(name):
    graph, _, conductance, x, u, demand = random_sweep(3, 0)
    capacities = np.full(graph.n_edges, NORMS[name].dual_norm(u).max())
    check_sweep(name, graph, capacities, conductance, 0.0 * x, 0.9, u, demand)
    _, on, excess = naive_sweep(name, graph.edges, capacities, conductance, 0.0 * x, 0.9, u)
    np.testing.assert_array_equal(on, u)
    assert excess == 0.0


def random_flow(case, problem):
    """A flow that is far above some capacities, and a point with jumps of all sizes."""
    rng = case.rng
    u = rng.standard_normal((problem.graph.n_edges, problem.dim)) * rng.choice([0.1, 1.0])
    return u, rng.standard_normal((problem.graph.n_nodes, problem.dim))


@pytest.mark.parametrize("case", cases(CONSERVED, penalties=NORMS), ids=str)
def test_compiled_alternating_projections_are_the_generic_ones(case, monkeypatch):
    """With accurate projections on conservation both ways give one flow."""
    problem = case.problem()
    u, w = random_flow(case, problem)
    project = FlowConservation.project
    accurate = dataclasses.replace(_conservation.COMPILED, accuracy=1e-13)
    monkeypatch.setattr(_conservation, "COMPILED", accurate)
    monkeypatch.setattr(
        FlowConservation,
        "project",
        lambda self, u, rtol, conductance=None: project(self, u, 1e-15, conductance),
    )
    compiled = [problem.bounds.repair(u), problem.bounds.repair(u, w)]
    monkeypatch.setattr(_projections, "CODES", ())
    generic = [problem.bounds.repair(u), problem.bounds.repair(u, w)]
    np.testing.assert_allclose(compiled, generic, atol=1e-9)


@pytest.mark.parametrize("case", cases(CONSERVED, penalties=NORMS), ids=str)
def test_inaccurate_projections_repair_about_as_well(case, monkeypatch):
    """Between noise and the optimum the bounds of both ways are hardly apart."""
    problem, ref = case.problem(), reference(case)
    for noise in (1e-1, 1e-3, 1e-6):
        u = ref.u + noise * case.rng.standard_normal(ref.u.shape)
        compiled = problem.bounds.gap(ref.w, u)[0].total
        with monkeypatch.context() as patch:
            patch.setattr(_projections, "CODES", ())
            generic = problem.bounds.gap(ref.w, u)[0].total
        room = 1e-9 * max(1.0, abs(ref.value))
        assert compiled <= 2.0 * generic + room
        assert generic <= 2.0 * compiled + room


@pytest.mark.parametrize("case", cases(CONSERVED, penalties=NORMS), ids=str)
def test_repaired_flows_are_conserved_and_within_capacity(case):
    problem = case.problem()
    u, w = random_flow(case, problem)
    conservation = FlowConservation(problem.graph, problem.losses, problem.penalty)
    for flow in (problem.bounds.repair(u), problem.bounds.repair(u, w)):
        assert np.linalg.norm(conservation.residual(flow)) <= 1e-13
        assert (problem.penalty.dual_norm(flow) <= problem.capacities * (1.0 + 1e-14)).all()


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("exponent", [-300, -40, 40, 300])
def test_a_power_of_two_changes_no_bit_of_a_repaired_flow(name, exponent):
    """Flows and capacities of any size: they are scaled to one first."""
    case = Case("few-rows", "squared", name)
    problem = case.problem()
    u, w = random_flow(case, problem)
    scaled = problem.with_lam(float(np.ldexp(problem.lam, exponent)))
    np.testing.assert_array_equal(
        scaled.bounds.repair(np.ldexp(u, exponent), w),
        np.ldexp(problem.bounds.repair(u, w), exponent),
    )


@pytest.mark.parametrize("name", NORMS)
def test_no_flow_is_repaired_to_no_flow(name):
    problem = Case("few-rows", "squared", name).problem()
    u = np.zeros((problem.graph.n_edges, problem.dim))
    np.testing.assert_array_equal(problem.bounds.repair(u), u)
