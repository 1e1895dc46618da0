"""Dynamic programming on forests: against a plain twin, CVXPY, exact solutions and certificates."""

from fractions import Fraction

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx.solvers.forest import DynamicProgram, is_forest, rooted_forest
from gtvcvx.solvers.forest._forest import scalar_solution
from gtvcvx.solvers.scalar._problems import slopes_in
from tests.solvers._kinked import kinked_loss

METHOD = "dynamic programming"
SHAPES = ("chain", "moved chain", "tree", "star", "forest")


def forest_edges(rng, n, shape):
    if shape in ("chain", "moved chain"):
        edges = [(i, i + 1) for i in range(n - 1)]
    elif shape == "star":
        edges = [(0, i) for i in range(1, n)]
    else:
        share = 0.8 if shape == "forest" else 1.0
        edges = [(int(rng.integers(i)), i) for i in range(1, n) if rng.random() < share]
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return edges if shape == "chain" else rng.permutation(n)[edges]


def random_problem(seed, shape, quadratic):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    edges = forest_edges(rng, n, shape)
    graph = gtv.EmpiricalGraph(n, edges, rng.uniform(0.1, 1.1, len(edges)))
    digits = int(rng.integers(0, 4))
    losses = [kinked_loss(rng, digits) for _ in range(n)]
    if quadratic:
        losses = [
            gtv.PointLoss(np.round(rng.standard_normal(1), digits))
            if rng.random() < 0.6
            else gtv.ZeroLoss()
            for _ in range(n)
        ]
    losses[0] = gtv.PointLoss([1.0])
    return gtv.GTVProblem(graph, losses, "l2", float(rng.choice([0.01, 0.1, 0.3, 1.0, 10.0])))


def twin(problem):
    """Minimize over the points where a solution can be, one table a node: slow and plain.

    A value of the solution is where a loss has its kink, or what a cluster of the solution has in
    common; both are in the solution itself, so that the tables of the method's own values, and
    others between and beside them, can show a better choice but none that is missing.
    """
    w = problem.solve(rtol=1e-9).w[:, 0]
    grid = np.unique(np.concatenate([w, w + 1e-3, w - 1e-3, np.linspace(-3.0, 3.0, 25)]))
    n, graph = problem.graph.n_nodes, problem.graph
    table = np.array([problem.losses.value(np.full((n, 1), x)) for x in grid]).T
    forest = rooted_forest(graph)
    for p in range(n):
        if forest.parent[p] >= 0:
            c = problem.capacities[forest.edge[p]]
            cost = table[forest.node[p]][:, None] + c * np.abs(grid[:, None] - grid)
            table[forest.node[forest.parent[p]]] += cost.min(axis=0)
    return sum(table[i].min() for i in forest.node[forest.parent < 0])


@pytest.mark.parametrize("quadratic", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_against_cvxpy_and_a_twin(shape, quadratic):
    for seed in range(4):
        problem = random_problem(seed, shape, quadratic)
        solution = problem.solve(rtol=1e-9)
        assert solution.info["method"] == METHOD
        assert solution.status == "optimal"
        reference = problem.solve(solver="CLARABEL", rtol=1e-9).value
        assert abs(solution.value - reference) <= 1e-6 * max(1.0, abs(reference))
        assert solution.gap >= solution.value - reference - 1e-8
        assert solution.value <= twin(problem) + 1e-9


@pytest.mark.parametrize("shape", SHAPES)
def test_the_flow_is_optimal_as_it_comes(shape):
    """Without any repair: capacities are kept, reached at jumps, and flow is conserved."""
    for seed in range(20, 26):
        problem = random_problem(seed, shape, quadratic=True)
        forest = rooted_forest(problem.graph)
        w, u = scalar_solution(forest, slopes_in(problem, 0), problem.capacities)
        jumps = problem.differences(w[:, None])[:, 0]
        assert (np.abs(u) <= problem.capacities).all()
        np.testing.assert_array_equal(
            u[jumps != 0.0], (np.sign(jumps) * problem.capacities)[jumps != 0.0]
        )
        balance = problem.losses.gradient(w[:, None])[:, 0] + problem.graph.divergence @ u
        np.testing.assert_allclose(balance, 0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(40, 46))
def test_exact_solutions_and_certificates(seed):
    problem = random_problem(seed, SHAPES[seed % 5], quadratic=True)
    exact = problem.solve(solver="EXACT")
    assert exact.gap == 0.0
    assert exact.exact is not None
    np.testing.assert_allclose(problem.solve(rtol=1e-11).value, exact.value, rtol=1e-10, atol=1e-12)
    assert verify.certify(problem, exact.exact.w, exact.exact.u).status == "CERTIFIED"


def test_an_exact_chain_by_hand():
    """0 and 3 pull with 2 each; an edge of capacity 1 lets each come closer by 1/2."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [3.0]]), "l1", 1.0)
    exact = problem.solve(solver="EXACT").exact
    assert exact.w == [[Fraction(1, 2)], [Fraction(5, 2)]]
    assert exact.u == [[Fraction(-1)]]
    np.testing.assert_array_equal(problem.solve().w, [[0.5], [2.5]])


def test_several_coordinates_are_problems_of_their_own():
    rng = np.random.default_rng(3)
    graph = gtv.EmpiricalGraph(12, forest_edges(rng, 12, "tree"))
    points = rng.standard_normal((12, 3))
    whole = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l1", 0.3).solve()
    assert whole.info["method"] == METHOD
    for k in range(3):
        alone = gtv.GTVProblem(graph, gtv.PointLoss.stack(points[:, [k]]), "l2", 0.3).solve()
        np.testing.assert_array_equal(whole.w[:, [k]], alone.w)
        np.testing.assert_array_equal(whole.u[:, [k]], alone.u)


def test_rows_of_one_feature_each_are_scalar_and_others_are_not():
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    y = np.array([[1.0, 2.0], [0.0, 5.0], [4.0, 3.0]])
    alone = gtv.AbsoluteLoss.stack(np.broadcast_to(np.diag([1.0, -2.0]), (3, 2, 2)), y)
    coupled = gtv.AbsoluteLoss.stack(np.ones((3, 2, 2)), y)
    assert gtv.GTVProblem(graph, alone, "l1", 0.1).solve().info["method"] == METHOD
    assert gtv.GTVProblem(graph, alone, "l2", 0.1).solve().info["method"] != METHOD
    assert gtv.GTVProblem(graph, coupled, "l1", 0.1).solve().info["method"] != METHOD


def test_large_offsets_keep_their_digits():
    """Values are counted from the mean of each tree."""
    rng = np.random.default_rng(9)
    n = 200
    points = rng.standard_normal((n, 1))
    graph = gtv.EmpiricalGraph(n, forest_edges(rng, n, "tree"))
    forest = rooted_forest(graph)

    def solution(offset):
        problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points + offset), "l1", 0.5)
        return scalar_solution(forest, slopes_in(problem, 0), problem.capacities)

    (w, u), (far, same) = solution(0.0), solution(2.0**30)
    np.testing.assert_allclose(far - 2.0**30, w, atol=1e-6)
    np.testing.assert_allclose(same, u, atol=1e-5)


@pytest.mark.parametrize("kinked", [False, True])
def test_stopping_in_between_leaves_a_valid_gap(kinked, monkeypatch):
    problem = random_problem(60, "tree", quadratic=not kinked)
    solution = problem.solve(time_limit=1e-9)
    assert solution.status == "user_limit"
    best = problem.solve(rtol=1e-9)
    assert solution.value - solution.gap <= best.value + 1e-9

    def interrupted(self, n_iter):
        raise KeyboardInterrupt

    monkeypatch.setattr(DynamicProgram, "run", interrupted)
    solution = problem.solve()
    assert solution.status == "user_limit"
    assert solution.value - solution.gap <= best.value + 1e-9


def test_other_stopping_rules_iterate():
    problem = random_problem(3, "tree", quadratic=True)
    assert problem.solve(stop="iterations", max_iter=5).info["method"] == "primal-dual"


def test_positions_have_children_first_and_chains_end_to_end():
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        for n in (1, 2, 3, 50):
            edges = forest_edges(rng, n, shape)
            graph = gtv.EmpiricalGraph(n, edges)
            assert is_forest(graph)
            forest = rooted_forest(graph)
            assert sorted(forest.node) == list(range(n))
            below = np.flatnonzero(forest.parent >= 0)
            assert (forest.parent[below] > below).all()
            assert len(below) == len(edges)
            for p in below:
                ends = graph.edges[forest.edge[p]]
                mine, other = ends if forest.sign[p] == 1 else ends[::-1]
                assert (forest.node[p], forest.node[forest.parent[p]]) == (mine, other)
            for start, stop, chain in zip(
                [0, *forest.stops], forest.stops, forest.chain, strict=False
            ):
                own = np.arange(start, stop - 1)
                degree = np.bincount(graph.edges.ravel(), minlength=n)[forest.node[start:stop]]
                assert chain == (degree.max() <= 2)
                if chain:
                    np.testing.assert_array_equal(forest.parent[own], own + 1)


def test_cycles_are_no_forests():
    assert not is_forest(gtv.EmpiricalGraph(3, [(0, 1), (1, 2), (0, 2)]))
    assert not is_forest(gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (0, 2)]))
    assert not is_forest(gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3), (0, 3)]))


def mixed_problem(seed, quadratic, lam=0.3):
    """A tree of 150 nodes beside a cycle of 20 and nodes that are alone, all numbered anyhow."""
    rng = np.random.default_rng(seed)
    n = 180
    edges = forest_edges(rng, 150, "tree").tolist()
    edges += [(150 + i, 150 + (i + 1) % 20) for i in range(20)]
    graph = gtv.EmpiricalGraph(n, rng.permutation(n)[np.array(edges)])
    y = rng.standard_normal((n, 2))
    losses = gtv.PointLoss.stack(y[:, :1])
    if not quadratic:
        losses = gtv.HuberLoss.stack(np.ones((n, 2, 1)), y, delta=0.3)
    return gtv.GTVProblem(graph, losses, "l1", lam)


@pytest.mark.parametrize("quadratic", [True, False])
def test_trees_beside_cycles_are_split_off(quadratic):
    problem, seen = mixed_problem(5, quadratic), []

    def callback(progress):
        seen.append(progress)
        assert progress.value == pytest.approx(problem.value(progress.w), rel=1e-12)
        assert progress.u.shape == (problem.graph.n_edges, 1)

    solution = problem.solve(rtol=1e-7, callback=callback)
    assert solution.info["method"].startswith(METHOD + ", ")
    assert seen
    assert solution.status == "optimal"
    assert solution.value == pytest.approx(problem.value(solution.w), rel=1e-12)
    last = solution.history[-1]
    assert (last.value, last.dual_value) == pytest.approx((solution.value, solution.dual_value))
    assert solution.n_iter == last.n_iter + problem.dim  # the trees' steps come first
    reference = problem.solve(solver="CLARABEL", rtol=1e-9)
    assert abs(solution.value - reference.value) <= 1e-6 * reference.value
    assert solution.gap == pytest.approx(
        solution.node_gaps.sum() + solution.edge_gaps.sum(), abs=1e-6
    )
    assert problem.lower_bound(solution.u)[0] == pytest.approx(solution.dual_value, abs=1e-6)
    warm = problem.with_lam(0.2).solve(warm_start=solution)
    cold = mixed_problem(5, quadratic, 0.2).solve()
    assert warm.value == pytest.approx(cold.value, rel=2e-6)
    assert verify.certify(problem, solution.w, solution.u).status == "CERTIFIED"


def test_the_pieces_share_a_time_limit():
    problem = mixed_problem(6, quadratic=False)
    solution = problem.solve(time_limit=1e-9)
    assert solution.status == "user_limit"
    assert solution.value == pytest.approx(problem.value(solution.w), rel=1e-12)
    assert solution.value - solution.gap <= problem.solve(rtol=1e-8).value
