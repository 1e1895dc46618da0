"""Coarser problems: the same objective on groups, flows there and back, and runs that use them."""

import time

import numpy as np
import pytest
from _instances import cases, reference

import gtvcvx as gtv
from gtvcvx.graph import connected_components
from gtvcvx.solvers.driver._schedule import Schedule
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.polishing._contraction import Candidate, Contraction
from gtvcvx.solvers.polishing._policy import Polished
from gtvcvx.solvers.polishing._quotient_graph import QuotientEdges
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

NORMS = ("l1", "l2")


def geometric_problem(penalty, n=150, seed=0, lam=0.3):
    """Four clusters in the plane, three rows of data at two nodes of five."""
    rng = np.random.default_rng(seed)
    graph = gtv.generators.random_geometric(n, 8.0, seed=seed)
    true_w = 2.0 * rng.standard_normal((4, 2))[rng.integers(4, size=n) // 2]
    data = gtv.generators.regression_data(true_w, 3, 0.3, 0.4, rng)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), penalty, lam)


def groups(problem, rng, share=0.4):
    """Random connected groups, and the joined edges between them."""
    graph = problem.graph
    alike = rng.random(graph.n_edges) < share
    labels = connected_components(graph.n_nodes, graph.edges[alike])
    return labels, QuotientEdges(problem, labels, 0, 1)


@pytest.mark.parametrize("case", cases(losses=["squared", "mix"], penalties=NORMS), ids=str)
def test_the_coarser_objective_is_the_objective_up_to_a_constant(case):
    problem = case.problem()
    labels, edges = groups(problem, case.rng)
    if not len(edges.heads):
        return
    coarse = Coarsening(problem, 1e-6).coarser(labels, edges)
    z = 3.0 * case.rng.standard_normal((5, coarse.graph.n_nodes, problem.dim))
    constant = problem.value(z[0][labels]) - coarse.value(z[0])
    for point in z:
        fine = problem.value(point[labels])
        assert coarse.value(point) + constant == pytest.approx(fine, rel=1e-9, abs=1e-9)
    # Losses that say nothing stay unlabelled: their flow is to be conserved.
    assert coarse.losses.value(np.zeros_like(z[0])).shape == (coarse.graph.n_nodes,)


def test_points_become_weighted_points():
    """Nothing of size d x d is made, and groups without data stay without."""
    rng = np.random.default_rng(4)
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    points = rng.standard_normal((3, 600))
    losses = [*(gtv.PointLoss(a) for a in points), gtv.ZeroLoss(), gtv.ZeroLoss()]
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    labels = np.array([0, 0, 1, 2, 2])
    coarse = Coarsening(problem, 1e-6).coarser(labels, QuotientEdges(problem, labels, 0, 1))
    (first, second), rest = coarse.losses.terms()[0]["a"], coarse.losses.nodes_with_loss
    np.testing.assert_allclose(first, points[:2].mean(axis=0))
    np.testing.assert_allclose(second, points[2])
    np.testing.assert_array_equal(rest, [0, 1])
    z = rng.standard_normal((2, 3, 600))
    np.testing.assert_allclose(
        coarse.value(z[0]) - coarse.value(z[1]),
        problem.value(z[0][labels]) - problem.value(z[1][labels]),
    )


@pytest.mark.parametrize("penalty", NORMS)
def test_flows_go_to_groups_and_back(penalty):
    rng = np.random.default_rng(1)
    problem = geometric_problem(penalty)
    labels, edges = groups(problem, rng)
    coarse = Coarsening(problem, 1e-6).coarser(labels, edges)
    u = rng.standard_normal((problem.graph.n_edges, 2))
    joined = edges.joined(u)
    # What a group loses is what its nodes lose together.
    lost = np.zeros((coarse.graph.n_nodes, 2))
    np.add.at(lost, labels, problem.graph.divergence @ u)
    np.testing.assert_allclose(coarse.graph.divergence @ joined, lost, atol=1e-12)
    flows = rng.standard_normal(joined.shape)
    flows *= (coarse.capacities / coarse.penalty.dual_norm(flows))[:, None]
    back = np.zeros_like(u)
    back[edges.between] = edges.split(flows)
    np.testing.assert_allclose(edges.joined(back), flows, rtol=1e-12)
    within = problem.capacities[edges.between] * (1 + 1e-12)
    assert (problem.penalty.dual_norm(back[edges.between]) <= within).all()


@pytest.mark.parametrize("penalty", NORMS)
def test_a_candidate_comes_back_with_the_flows_between_its_groups(penalty):
    rng = np.random.default_rng(2)
    problem = geometric_problem(penalty)
    labels, edges = groups(problem, rng)
    u = rng.standard_normal((problem.graph.n_edges, 2))
    z = rng.standard_normal((int(labels.max()) + 1, 2))
    flow = rng.standard_normal(edges.joined(u).shape)
    jumping = [rng.random(len(flow)) < 0.5 for _ in range(2 if penalty == "l1" else 1)]
    polisher = Coarsening(problem, 1e-6)
    back = polisher._refined(Candidate(z, flow, jumping, 3.0), u, edges.joined(u), labels, edges)
    np.testing.assert_array_equal(back.w, z[labels])
    np.testing.assert_allclose(edges.joined(back.flow), flow, atol=1e-12)
    inside = np.setdiff1d(np.arange(len(u)), edges.between)
    np.testing.assert_array_equal(back.flow[inside], u[inside])
    for mask, jumps in zip(back.jumping, jumping, strict=True):
        np.testing.assert_array_equal(mask[edges.between], jumps[edges.reduced])
        assert not mask[inside].any()


def coarsen_all(tuned, slack=0.8):
    """Let every problem be coarsened, however small, and polished early."""
    tuned(Coarsening, least_edges=1, shrinkage=0.99, safe_slacks=(slack,))
    tuned(Polished, first=100, share=1e9)
    tuned(Schedule, near=0.0)


def count_coarser(monkeypatch):
    """Return the list of all coarser problems that are made."""
    coarser, made = Coarsening.coarser, []

    def counted(self, *given):
        made.append(coarser(self, *given))
        return made[-1]

    monkeypatch.setattr(Coarsening, "coarser", counted)
    return made


@pytest.mark.parametrize("enough", [0.0, 1e-6, 1e-2, 1e3])
def test_iterations_on_a_coarser_problem_end_where_their_residual_is_enough(
    enough, monkeypatch, tuned
):
    coarsen_all(tuned)
    problem, made, runs = geometric_problem("l2"), count_coarser(monkeypatch), []
    method = PrimalDual(problem)
    method.run(300)
    run, contract = PrimalDual.run, Contraction.solve

    def counted(self, n_iter):
        run(self, n_iter)
        if self._problem is made[0]:
            runs.append(self.residual())

    contracted = []
    monkeypatch.setattr(PrimalDual, "run", counted)
    monkeypatch.setattr(
        Contraction, "solve", lambda self, *given: contracted.append(1) or contract(self, *given)
    )
    polisher = Coarsening(problem, 1e-6)
    assert polisher.polish(method.w, method.u, np.inf, np.inf, method.weight, enough) is not None
    assert all(residual > enough for residual in runs[:-1])
    if enough > 0.0:
        assert runs[-1] <= enough
        assert not contracted
    else:
        assert contracted
    assert len(runs) == {1e3: 1, 0.0: 16}.get(enough, len(runs))


@pytest.mark.parametrize(("shrinkage", "polished"), [(0.99, True), (1e-3, False)])
def test_large_problems_of_many_small_clusters_are_left_to_iterations(shrinkage, polished, tuned):
    """Where the tolerance is one that iterations reach, and the safest groups leave too much."""
    problem = geometric_problem("l2")
    method = PrimalDual(problem)
    method.run(300)

    def found(rtol):
        polisher = Coarsening(problem, rtol)
        return polisher.polish(method.w, method.u, np.inf, np.inf, method.weight) is not None

    tuned(Coarsening, least_edges=1, shrinkage=shrinkage)
    assert found(1e-6)
    tuned(Coarsening, least_edges=1, shrinkage=shrinkage, many_edges=problem.graph.n_edges)
    assert found(1e-6) == polished
    assert found(1e-7)


def test_what_is_too_dear_to_contract_is_made_coarser(monkeypatch, tuned):
    """Where the tolerance is one that iterations reach, and there are enough edges."""
    problem, made = geometric_problem("l2"), count_coarser(monkeypatch)
    method = PrimalDual(problem)
    method.run(300)

    def polished(rtol):
        return Coarsening(problem, rtol).polish(method.w, method.u, 10.0, np.inf, method.weight)

    assert polished(1e-6) is None
    tuned(Coarsening, fewest_edges=1, iteration_share=100.0)
    assert polished(1e-9) is None
    assert not made
    found = polished(1e-6)
    assert made
    assert problem.value(found.w) <= problem.value(method.w)


@pytest.mark.parametrize("penalty", NORMS)
def test_a_polished_iterate_is_the_solution_where_the_groups_are_right(penalty, monkeypatch, tuned):
    coarsen_all(tuned)
    made = count_coarser(monkeypatch)
    problem = geometric_problem(penalty)
    best = problem.solve(solver="CLARABEL", rtol=1e-9)
    method = PrimalDual(problem)
    method.run(300)
    made.clear()
    polished = Coarsening(problem, 1e-9).polish(method.w, method.u, np.inf, np.inf, method.weight)
    assert made
    assert made[0].graph.n_edges < problem.graph.n_edges
    assert problem.value(polished.w) == pytest.approx(best.value, rel=1e-8)
    gap, _ = problem.bounds.gap(polished.w, polished.conserved)
    assert gap.total <= 1e-7 * best.value


@pytest.mark.parametrize("penalty", NORMS)
@pytest.mark.parametrize("slack", [0.0, 0.8])
def test_runs_with_coarser_problems_end_at_the_optimum(penalty, slack, monkeypatch, tuned):
    """Also where nodes are grouped over every edge that is not at capacity."""
    coarsen_all(tuned, slack)
    made = count_coarser(monkeypatch)
    for case in cases(losses=["squared", "mix"], penalties=[penalty]):
        problem = case.problem()
        solution = problem.solve(rtol=1e-9)
        assert solution.status == "optimal"
        best = problem.value(reference(case).w)
        assert solution.value <= best + 2e-9 * max(1.0, abs(best))
        assert solution.dual_value <= best + 1e-12 * max(1.0, abs(best))
    for seed in range(3):
        problem = geometric_problem(penalty, seed=seed)
        solution = problem.solve(rtol=1e-9)
        assert solution.status == "optimal"
        best = problem.solve(solver="CLARABEL", rtol=1e-10)
        assert solution.value == pytest.approx(best.value, rel=3e-9)
    assert len(made) >= 3


@pytest.mark.parametrize("penalty", NORMS)
def test_one_group_is_least_squares_over_all_data(penalty, monkeypatch, tuned):
    """No edge is left."""
    coarsen_all(tuned)
    problem = geometric_problem(penalty, lam=1e4)
    w, u = np.zeros((150, 2)), np.zeros((problem.graph.n_edges, 2))
    polished = Coarsening(problem, 1e-9).polish(w, u, np.inf)
    best = problem.solve(rtol=1e-9)
    np.testing.assert_allclose(polished.w, best.w, atol=1e-6)
    assert polished.overload <= 1e-9


def test_iterations_on_coarser_problems_end_with_the_time(tuned):
    coarsen_all(tuned)
    tuned(Coarsening, iterations=10**9)
    problem = geometric_problem("l2")
    method = PrimalDual(problem)
    method.run(300)
    start = time.perf_counter()
    Coarsening(problem, 1e-9).polish(method.w, method.u, np.inf, 0.5)
    assert time.perf_counter() - start < 20.0


def test_polishes_cost_about_what_they_may(tuned):
    coarsen_all(tuned)
    problem = geometric_problem("l2")
    method = PrimalDual(problem)
    method.run(300)
    dear = Coarsening(problem, 1e-9).polish(method.w, method.u)
    cheap = Coarsening(problem, 1e-9).polish(method.w, method.u, 10.0)
    # Groups and the flow inside clusters are never left out.
    assert 0.0 < cheap.cost < dear.cost
    assert problem.value(dear.w) <= problem.value(cheap.w)


def test_ctrl_c_on_a_coarser_problem_ends_the_whole_run(monkeypatch, tuned):
    coarsen_all(tuned)
    problem = geometric_problem("l2")
    run = PrimalDual.run

    def interrupted(self, n_iter):
        if self._problem is not problem:
            raise KeyboardInterrupt
        run(self, n_iter)

    monkeypatch.setattr(PrimalDual, "run", interrupted)
    solution = problem.solve(rtol=1e-12)
    assert solution.status == "user_limit"
    assert solution.n_iter >= 100
    assert np.isfinite(solution.gap)


@pytest.mark.parametrize("penalty", NORMS)
def test_paths_over_coarser_problems(penalty, tuned):
    """As on large graphs: every value is polished early, over groups of the one before."""
    coarsen_all(tuned, slack=0.2)
    problem = geometric_problem(penalty, n=60)
    path = gtv.lambda_path(problem, np.geomspace(1.0, 0.05, 6), rtol=1e-7)
    assert path.rel_gaps.max() <= 1e-7
    for lam, solution in zip(path.lams, path, strict=True):
        best = problem.with_lam(float(lam)).solve("CLARABEL", rtol=1e-9).value
        assert solution.dual_value - 1e-8 <= best <= solution.value + 1e-8
