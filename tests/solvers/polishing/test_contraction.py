"""Polishing by contraction: exact on the right clusters, harmless on wrong ones."""

from types import SimpleNamespace

import clarabel
import numpy as np
import pytest
from _instances import PENALTIES, cases, reference

import gtvcvx as gtv
from gtvcvx.solvers.driver import missing
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._run import drive
from gtvcvx.solvers.driver._schedule import Schedule
from gtvcvx.solvers.polishing import _contraction, _policy
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.polishing._contraction import Contraction
from gtvcvx.solvers.polishing._policy import Polished, PolishedPair
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

pytestmark = pytest.mark.usefixtures("iterations_alone")

NORMS = ("l1", "l2", "linf")
# Clarabel is asked for 1e-11, and sometimes stops a little short of it.
DIGITS = 5e-9
# From this jump on, relative to the spread, a reference's parameters are different.
JUMP = 1e-5
# Rounding of a reference's value.
ULPS = 1e-13


def geometric_problem(penalty, seed=0, n=60, share=2):
    """Neighbours in the plane, some components; one row of data for every `share` nodes."""
    rng = np.random.default_rng(seed)
    graph = gtv.generators.random_geometric(n, 5.0, seed=seed)
    node = np.sort(rng.choice(n, n // share))
    X = rng.standard_normal((len(node), 2))
    y = X @ np.ones(2) + 0.3 * rng.standard_normal(len(node))
    return gtv.GTVProblem(graph, gtv.SquaredLoss.from_rows(X, y, node, n), penalty, 0.1)


def optimum(problem):
    """A reference with many digits, by CVXPY."""
    return problem.solve(solver="CLARABEL", rtol=1e-10)


def blocks(problem):
    """Coordinates in which clusters form together."""
    alone = problem.penalty.name == "l1"
    return [[j] for j in range(problem.dim)] if alone else [list(range(problem.dim))]


def fused_edges(problem, w):
    """Mask (m, blocks) of the edges over which w does not jump."""
    differences, spread = np.abs(problem.differences(w)), np.ptp(w, axis=0).max()
    return np.stack([differences[:, b].max(axis=1) <= JUMP * spread for b in blocks(problem)], 1)


def showing(problem, w, fused):
    """A point and a flow that show these clusters: equal and with flow to spare, or at capacity."""
    point, flow = w.copy(), np.zeros((problem.graph.n_edges, problem.dim))
    for k, block in enumerate(blocks(problem)):
        kept = gtv.EmpiricalGraph(problem.graph.n_nodes, problem.graph.edges[fused[:, k]])
        for part in np.unique(kept.components):
            members = np.ix_(kept.components == part, block)
            point[members] = w[members].mean(axis=0)
        flow[~fused[:, k], block[0]] = problem.capacities[~fused[:, k]]
    return point, flow


def rel_gap(problem, polished):
    """Gap of the polished point against its own flow."""
    gap, _ = problem.bounds.gap(polished.w, polished.conserved)
    return gap.total / max(1.0, abs(problem.value(polished.w)))


def proved(problem, w, u, polishes=25):
    """Polish again and again, as a run does, until the flow proves the optimum."""
    polisher = Coarsening(problem, 1e-12)
    for _ in range(polishes):
        polished = polisher.polish(w, u, np.inf)
        if rel_gap(problem, polished) <= DIGITS:
            break
        w, u = polished.w, polished.inside
    return polished


def check_proof(problem, polished, best):
    assert problem.value(polished.w) == pytest.approx(best, rel=DIGITS, abs=DIGITS)
    assert rel_gap(problem, polished) <= DIGITS
    # Boundary flows are the conic solver's, to its tolerance.
    assert (problem.penalty.dual_norm(polished.inside) <= problem.capacities * (1 + 1e-7)).all()


@pytest.mark.parametrize("case", cases(penalties=NORMS), ids=str)
def test_true_and_split_clusters_give_the_optimum_and_its_proof(case):
    """Clusters that are too small, down to single nodes, cost time alone."""
    problem = case.problem()
    best = optimum(problem)
    fused = fused_edges(problem, best.w)
    for share in (1.0, 0.5, 0.0):
        w, u = showing(problem, best.w, fused & (case.rng.random(fused.shape) < share))
        first = Coarsening(problem, 1e-12).polish(w, u, np.inf)
        assert problem.value(first.w) == pytest.approx(best.value, rel=DIGITS, abs=DIGITS)
        check_proof(problem, proved(problem, w, u), best.value)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_clusters_of_a_graph_with_components_and_unlabelled_nodes(penalty):
    for seed in range(3):
        problem = geometric_problem(penalty, seed)
        best = optimum(problem)
        w, u = showing(problem, best.w, fused_edges(problem, best.w))
        check_proof(problem, proved(problem, w, u), best.value)


@pytest.mark.parametrize("case", cases(["connected", "few-rows", "d=6"], penalties=NORMS), ids=str)
def test_wrongly_fused_nodes_are_cut_apart_again(case):
    """From a point that is the same everywhere, and from no flow at all."""
    problem = case.problem()
    w = np.ones((problem.graph.n_nodes, problem.dim))
    u = np.zeros((problem.graph.n_edges, problem.dim))
    first = Coarsening(problem, 1e-12).polish(w, u, np.inf)
    best = optimum(problem).value
    assert (first.w == first.w[0]).all()
    assert problem.value(first.w) > best + 1e-3
    assert first.overload > 1e-3
    check_proof(problem, proved(problem, w, u), best)


def test_edges_far_above_capacity_are_cut_although_the_iterate_shows_them_fused():
    """A path with two steps, shown as one cluster, then again."""
    graph = gtv.EmpiricalGraph(6, [(i, i + 1) for i in range(5)])
    a = np.repeat([[0.0, 1.0], [5.0, 2.0], [9.0, -4.0]], 2, axis=0)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(a), "l2", 0.5)
    w, u = np.zeros((6, 2)), np.zeros((5, 2))
    polisher = Coarsening(problem, 1e-12)
    assert (np.ptp(polisher.polish(w, u, np.inf).w, axis=0) == 0.0).all()
    check_proof(problem, polisher.polish(w, u, np.inf), optimum(problem).value)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_auto_converges_though_its_first_polishes_fuse_too_much(penalty, monkeypatch, tuned):
    problem, calls, true_fused = geometric_problem(penalty), [], _contraction.fused_edges

    def misled(problem, w, u, settings):
        calls.append(w)
        found = true_fused(problem, w, u, settings)
        return [np.ones_like(mask) for mask in found] if len(calls) <= 3 else found

    monkeypatch.setattr(_contraction, "fused_edges", misled)
    polish_early(tuned, credible_overload=np.inf)
    solution = problem.solve(rtol=1e-9)
    assert len(calls) > 3
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(optimum(problem).value, rel=2e-9)


def test_l1_clusters_form_in_every_coordinate_alone():
    """One step in the second coordinate, none in the first: means, and a step c / 6 less high."""
    graph = gtv.EmpiricalGraph(6, [(i, i + 1) for i in range(5)])
    a = np.column_stack([[1.0, 1.1, 0.9, 1.2, 0.8, 1.0], [0.0, 0.0, 0.0, 10.0, 10.0, 10.0]])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(a), "l1", 0.6)
    flow = np.zeros((5, 2))
    flow[2, 1] = -0.6
    polished = Coarsening(problem, 1e-12).polish(np.where(a < 5.0, 1.0, 10.0), flow, np.inf)
    np.testing.assert_array_equal(polished.w[:, 0], polished.w[0, 0])
    np.testing.assert_allclose(polished.w[:, 0], 1.0, atol=1e-9)
    np.testing.assert_allclose(polished.w[:, 1], np.repeat([0.1, 9.9], 3), atol=1e-9)
    assert polished.conserved[2, 1] == pytest.approx(-0.6, abs=1e-9)
    check_proof(problem, polished, problem.solve(rtol=1e-10).value)


@pytest.mark.parametrize("penalty", NORMS)
def test_one_cluster_is_least_squares_over_all_data(penalty):
    rng = np.random.default_rng(0)
    graph = gtv.generators.grid(3, 3)
    X, y = rng.standard_normal((9, 2, 3)), rng.standard_normal((9, 2))
    problem = gtv.GTVProblem(
        graph, gtv.SquaredLoss.stack(X, y, np.arange(9) % 2 == 0), penalty, 1e3
    )
    flow = np.zeros((graph.n_edges, 3))
    polished = Coarsening(problem, 1e-12).polish(np.zeros((9, 3)), flow, np.inf)
    expected = np.linalg.lstsq(X[::2].reshape(-1, 3), y[::2].ravel(), rcond=None)[0]
    np.testing.assert_array_equal(polished.w, np.tile(polished.w[0], (9, 1)))
    np.testing.assert_allclose(polished.w[0], expected, atol=1e-9)
    assert polished.overload == 0.0


def test_contraction_applies_to_the_norms_whose_capacities_the_kernels_know():
    for name, make in PENALTIES.items():
        graph, losses = gtv.EmpiricalGraph(2, [(0, 1)]), gtv.PointLoss.stack([[0.0], [1.0]])
        problem = gtv.GTVProblem(graph, losses, make(1))
        expected = None if name in NORMS else "the penalty 'l1', 'l2' or 'linf'"
        assert missing(problem, Contraction.requires) == expected


def polish_early(tuned, first=40, **changes):
    """Let runs polish soon and often, whatever it costs."""
    tuned(Polished, **{"first": first, "linf_first": first, "share": 1e9, **changes})
    tuned(Schedule, near=0.0)


def count_polishes(monkeypatch):
    """Return the list to which every polish adds what it was allowed to cost."""
    polish, seen = Coarsening.polish, []

    def counted(self, w, u, allowed, *rest):
        seen.append(allowed)
        return polish(self, w, u, allowed, *rest)

    monkeypatch.setattr(Coarsening, "polish", counted)
    return seen


@pytest.mark.parametrize("penalty", NORMS)
@pytest.mark.parametrize("loss", ["squared", "mix"])
def test_polished_runs_end_where_plain_ones_do(penalty, loss, monkeypatch, tuned):
    polish_early(tuned)
    seen = count_polishes(monkeypatch)
    for case in cases(losses=[loss], penalties=[penalty]):
        problem, before = case.problem(), len(seen)
        polished = problem.solve(rtol=1e-9)
        polish_early(tuned, first=np.inf)
        count = len(seen)
        plain = problem.solve(rtol=1e-9)
        assert len(seen) == count
        polish_early(tuned)
        assert polished.status == plain.status == "optimal"
        # Only scalar problems are not left to the primal-dual method.
        assert (len(seen) > before) == (problem.dim > 1)
        size = max(1.0, abs(plain.value))
        assert abs(polished.value - plain.value) <= 2e-9 * size
        assert polished.gap >= polished.value - problem.value(reference(case).w) - ULPS * size
        assert polished.dual_value <= plain.value + ULPS * size


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_polishing_makes_a_hard_problem_easy(penalty, tuned):
    """Few labels: a polished run needs a fraction of the iterations."""
    problem = geometric_problem(penalty, n=120, share=6)
    polish_early(tuned)
    polished = problem.solve(rtol=1e-9)
    polish_early(tuned, first=np.inf)
    plain = problem.solve(rtol=1e-9)
    assert polished.status == plain.status == "optimal"
    assert polished.n_iter < plain.n_iter / 3
    assert polished.value == pytest.approx(plain.value, rel=2e-9)


def test_what_costs_too_much_is_not_polished():
    problem = geometric_problem("l2")
    w, u = showing(problem, np.zeros((60, 2)), np.zeros((problem.graph.n_edges, 1), dtype=bool))
    assert Coarsening(problem, 1e-12).polish(w, u, 0.0) is None
    assert Coarsening(problem, 1e-12).polish(w, u, np.inf) is not None


def test_a_failing_clarabel_leaves_the_plain_iterations(monkeypatch, tuned):
    problem = geometric_problem("l2")
    plain = drive(problem, PrimalDual(problem), Limits(rtol=1e-8, max_iter=20_000), "PLAIN")
    polish_early(tuned)
    seen = count_polishes(monkeypatch)

    class Failing:
        status, x, z = "NumericalError", (), ()

        def __init__(self, *arguments):
            pass

        def get_info(self):
            return SimpleNamespace(linsolver=SimpleNamespace(nnzA=0, nnzL=0))

        def solve(self):
            return self

    monkeypatch.setattr(clarabel, "DefaultSolver", Failing)
    solution = problem.solve(rtol=1e-8)
    assert seen
    assert solution.status == plain.status == "optimal"
    assert solution.value == pytest.approx(plain.value, rel=2e-8)


def check_honest(problem, solution, best):
    """An incumbent, with a gap that is finite and true."""
    assert problem.value(solution.w) == pytest.approx(solution.value, rel=1e-12)
    assert np.isfinite(solution.gap)
    assert solution.gap >= solution.value - best.value - ULPS * max(1.0, abs(best.value))
    assert solution.dual_value <= best.value + ULPS * max(1.0, abs(best.value))


def test_limits_and_ctrl_c_of_a_polished_run_return_the_incumbent(monkeypatch, tuned):
    problem = geometric_problem("l2")
    best, seen = optimum(problem), count_polishes(monkeypatch)
    polish_early(tuned)
    for max_iter in (40, 50, 51, 60, 77):
        solution = problem.solve(rtol=1e-15, max_iter=max_iter)
        assert (solution.status, solution.n_iter) == ("user_limit", max_iter)
        check_honest(problem, solution, best)
    solution = problem.solve(rtol=1e-15, time_limit=0.1)
    assert solution.status == "user_limit"
    assert solution.seconds < 2.0
    check_honest(problem, solution, best)
    polish = Coarsening.polish
    count = len(seen)

    def interrupted(self, *given):
        if len(seen) == count + 2:
            raise KeyboardInterrupt
        return polish(self, *given)

    monkeypatch.setattr(Coarsening, "polish", interrupted)
    solution = problem.solve(rtol=1e-15)
    assert len(seen) == count + 2
    assert solution.status == "user_limit"
    check_honest(problem, solution, best)


class Nonsense:
    """A polisher that is sure of itself and wrong."""

    def __init__(self, problem, size):
        self._shapes = (problem.graph.n_nodes, problem.dim), (problem.graph.n_edges, problem.dim)
        self._rng, self._size, self.calls = np.random.default_rng(0), size, 0

    def polish(self, w, u, allowed, seconds, weight, enough):
        self.calls += 1
        node, edge = self._shapes
        flow = self._size * self._rng.standard_normal(edge)
        return PolishedPair(self._size * self._rng.standard_normal(node), flow, flow, 0.0)


@pytest.mark.parametrize("penalty", NORMS)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e6])
def test_a_polisher_that_returns_nonsense_cannot_spoil_the_truth(penalty, size, tuned):
    problem = geometric_problem(penalty)
    best, polisher = optimum(problem), Nonsense(problem, size)
    polish_early(tuned)
    seen = []
    limits = Limits(rtol=1e-12, max_iter=1000, callback=lambda p: seen.append((p.value, p.gap)))
    method = Polished(problem, PrimalDual(problem), polisher)
    solution = drive(problem, method, limits, "NONSENSE")
    assert polisher.calls >= 5
    check_honest(problem, solution, best)
    for value, gap in seen:
        assert gap >= value - best.value - ULPS * abs(best.value)
    assert [v for v, _ in seen] == sorted((v for v, _ in seen), reverse=True)


def test_runs_do_the_same_every_time(monkeypatch):
    """Nothing is decided by a clock."""
    seen = count_polishes(monkeypatch)
    problem = geometric_problem("l2", seed=1, n=120)
    first = problem.solve(rtol=1e-12, max_iter=3000)
    count = len(seen)
    assert count
    assert all(0.0 < allowed <= _policy.DEFAULTS.share * 3000 for allowed in seen)
    again = geometric_problem("l2", seed=1, n=120).solve(rtol=1e-12, max_iter=3000)
    assert seen[count:] == seen[:count]
    assert again.n_iter == first.n_iter
    np.testing.assert_array_equal(again.w, first.w)
    np.testing.assert_array_equal(again.u, first.u)
