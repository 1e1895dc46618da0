"""Divide and conquer: the solution against CVXPY, the primal-dual method and exact certificates."""

import itertools

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx.solvers import _auto
from gtvcvx.solvers.divide import _division as _divide
from gtvcvx.solvers.divide import _network as _divide_network
from gtvcvx.solvers.divide import _scalar_division as _divide_scalar
from gtvcvx.solvers.divide._requirements import REQUIREMENTS
from gtvcvx.solvers.driver import missing
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._scalar import scalar_capacities
from gtvcvx.solvers.scalar._problems import slopes_in
from tests.solvers._kinked import kinked_loss

RTOL = 1e-9


@pytest.fixture(autouse=True)
def _no_dynamic_programming(monkeypatch):
    """Trees come up among the instances, which another method would solve."""
    monkeypatch.setattr(_auto, "FOREST", (lambda problem: "another method",))


def random_graph(rng, n, density, weights="ones"):
    pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if rng.random() < density]
    edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    sizes = {
        "ones": np.ones(len(edges)),
        "integers": rng.integers(1, 4, len(edges)).astype(float),
        "decades": 10.0 ** rng.uniform(-3, 3, len(edges)),
    }
    return gtv.EmpiricalGraph(n, edges, sizes[weights])


def random_problem(seed, weights="ones", ties=False, labelled=0.5, lam=None, dim=1):
    """Sparse graphs, so that components, isolated nodes and unlabelled ones of each come up."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 16))
    graph = random_graph(rng, n, rng.uniform(0.05, 0.5), weights)
    points = rng.integers(-2, 3, (n, dim)) if ties else rng.standard_normal((n, dim))
    known = rng.random(n) < labelled
    known[rng.integers(n)] = True
    X = np.zeros((n, dim, dim))
    X[:, range(dim), range(dim)] = 1.0 if ties else rng.uniform(0.3, 3.0, (n, dim))
    losses = gtv.SquaredLoss.stack(X, np.einsum("nij,nj->ni", X, points), known)
    lam = float(rng.choice([0.25, 0.5, 1.0]) if lam is None else lam)
    return gtv.GTVProblem(graph, losses, "l1", lam)


def solved(problem, rtol=RTOL):
    solution = problem.solve(rtol=rtol)
    assert solution.status == "optimal"
    assert solution.solver == "AUTO"
    assert solution.info["method"] == "divide and conquer"
    assert solution.rel_gap <= rtol
    return solution


def assert_agrees_with_cvxpy(problem):
    solution = solved(problem)
    reference = problem.solve(solver="CLARABEL", rtol=1e-9)
    assert solution.value <= reference.value + 1e-9 * max(1.0, abs(reference.value))
    assert solution.value == pytest.approx(reference.value, rel=1e-6, abs=1e-6)
    assert solution.gap >= solution.value - reference.value - 1e-9


@pytest.mark.parametrize("seed", range(25))
def test_random_instances_against_cvxpy(seed):
    assert_agrees_with_cvxpy(random_problem(seed))


@pytest.mark.parametrize("seed", range(100, 125))
def test_ties_against_cvxpy(seed):
    """Integer data, equal weights: cuts of equal capacity, clusters of equal value."""
    assert_agrees_with_cvxpy(random_problem(seed, "integers", ties=True))


@pytest.mark.parametrize("seed", range(200, 215))
@pytest.mark.parametrize("labelled", [0.15, 1.0])
def test_weights_over_orders_of_magnitude_against_cvxpy(seed, labelled):
    assert_agrees_with_cvxpy(random_problem(seed, "decades", labelled=labelled))


def kinked_problem(seed, weights="integers"):
    """Every node has another loss; with few digits kinks coincide."""
    rng = np.random.default_rng(seed)
    n, digits = int(rng.integers(2, 16)), int(rng.integers(0, 4))
    graph = random_graph(rng, n, rng.uniform(0.05, 0.5), weights)
    losses = [gtv.PointLoss([1.0])] + [kinked_loss(rng, digits) for _ in range(n - 1)]
    return gtv.GTVProblem(graph, losses, "l2", float(rng.choice([0.05, 0.25, 1.0, 10.0])))


@pytest.mark.parametrize("weights", ["integers", "decades"])
@pytest.mark.parametrize("seed", range(700, 720))
def test_losses_with_kinks_against_cvxpy(seed, weights):
    assert_agrees_with_cvxpy(kinked_problem(seed, weights))


@pytest.mark.parametrize("seed", range(720, 730))
def test_the_exact_kernel_certifies_pairs_of_losses_with_kinks(seed):
    problem = kinked_problem(seed)
    solution = solved(problem)
    certificate = verify.certify(problem, solution.w, solution.u, rtol=1e-9)
    assert certificate.status == "CERTIFIED"


ROWS = {
    "absolute": (gtv.AbsoluteLoss, {}),
    "quantile": (gtv.QuantileLoss, {"level": 0.2}),
    "huber": (gtv.HuberLoss, {"delta": 0.3}),
    "hinge": (gtv.HingeLoss, {}),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("lam", [1e-6, 0.02, 0.2, 1e3])
def test_tables_of_one_feature_over_components(kind, lam):
    """A thousand nodes, a third of them without data; large lambda fuses whole components."""
    rng = np.random.default_rng(31)
    n = 1_000
    graph = gtv.generators.random_geometric(n, 5.0, seed=31)
    X, y = rng.uniform(-2.0, 2.0, (n, 2, 1)), rng.standard_normal((n, 2))
    if kind == "hinge":
        y = np.sign(y)
    loss, parameters = ROWS[kind]
    losses = loss.stack(X, y, rng.random(n) < 0.67, **parameters)
    solution = solved(gtv.GTVProblem(graph, losses, "l2", lam), rtol=1e-11)
    if lam == 1e3:
        for part in np.unique(graph.components):
            assert len(np.unique(solution.w[graph.components == part])) == 1


def test_rows_of_one_feature_each_are_problems_of_their_own():
    rng = np.random.default_rng(13)
    graph = random_graph(rng, 12, 0.4)
    y = rng.standard_normal((12, 3))
    features = np.broadcast_to(np.diag([1.0, -2.0, 0.5]), (12, 3, 3))
    together = solved(gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(features, y), "l1", 0.1))
    for k in range(3):
        # The mean over three rows divides the loss of the single row by three.
        column = gtv.AbsoluteLoss.stack(features[:, k : k + 1, k : k + 1], y[:, k : k + 1])
        alone = solved(gtv.GTVProblem(graph, column, "l2", 0.3))
        np.testing.assert_allclose(together.w[:, k], alone.w[:, 0], rtol=0, atol=1e-12)
    coupled = gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(features + 0.1, y), "l1", 0.1)
    assert missing(coupled, REQUIREMENTS) is not None


def test_demands_beyond_what_edges_carry_have_more_slack_than_they_use():
    """Weak edges beside steep losses that are flat on one side: slack is cut off, too."""
    rng = np.random.default_rng(2)
    for lam in (0.1, 0.3, 0.7):
        graph = random_graph(rng, 30, 0.08)
        X, y = rng.choice([1.0, -1.0, 2.5], (30, 2, 1)), rng.choice([-1.0, 1.0], (30, 2))
        losses = gtv.HingeLoss.stack(X, y, rng.random(30) < 0.7)
        assert_agrees_with_cvxpy(gtv.GTVProblem(graph, losses, "l2", lam))


@pytest.mark.parametrize("seed", range(300, 308))
def test_coordinates_are_independent_problems(seed):
    problem = random_problem(seed, dim=3)
    assert_agrees_with_cvxpy(problem)
    together = solved(problem)
    for k in range(3):
        terms = problem.losses.terms()
        columns = gtv.SquaredLoss.from_rows(
            terms[0]["X"][k::3, k : k + 1], terms[0]["y"][k::3], terms[0]["node"][k::3]
        )
        # The mean over three rows divides the loss of the single row by three.
        alone = solved(gtv.GTVProblem(problem.graph, columns, "l1", 3.0 * problem.lam))
        np.testing.assert_allclose(together.w[:, k], alone.w[:, 0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(400, 420))
def test_the_exact_kernel_certifies_the_pair(seed):
    problem = random_problem(seed, ties=seed % 2 == 0, labelled=0.4)
    solution = solved(problem)
    certificate = verify.certify(problem, solution.w, solution.u, rtol=1e-9)
    assert certificate.status == "CERTIFIED"


@pytest.mark.parametrize("lam", [1e-200, 1e-12, 1e-4, 1e4, 1e12, 1e200])
@pytest.mark.parametrize("seed", [500, 501, 502])
def test_extreme_lambda(seed, lam):
    problem = random_problem(seed, labelled=0.6, lam=lam)
    solution = solved(problem)
    if lam > 1.0:  # consensus, to the last bit, on every component
        for part in np.unique(problem.graph.components):
            assert len(np.unique(solution.w[problem.graph.components == part])) == 1
    if lam < 1e-10:
        known = problem.losses.gradient(np.zeros((problem.graph.n_nodes, 1)))[:, 0] != 0
        minimizer = problem.losses.minimizer(problem.graph.n_nodes)
        np.testing.assert_allclose(solution.w[known], minimizer[known], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("shift", [0.0, 1e6, -1e9])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_moving_and_scaling_the_points_moves_and_scales_the_solution(shift, scale):
    rng = np.random.default_rng(7)
    graph = random_graph(rng, 30, 0.15)
    a = rng.standard_normal((30, 1))
    plain = solved(gtv.GTVProblem(graph, gtv.PointLoss.stack(a), "l1", 0.3))
    moved = solved(gtv.GTVProblem(graph, gtv.PointLoss.stack(scale * a + shift), "l1", 0.3 * scale))
    atol = 1e-12 * scale + 1e-14 * abs(shift)
    np.testing.assert_allclose(moved.w, scale * plain.w + shift, rtol=0, atol=atol)


def test_curvatures_over_twenty_orders_of_magnitude():
    rng = np.random.default_rng(11)
    graph = random_graph(rng, 40, 0.1)
    features = 10.0 ** rng.uniform(-5, 5, (40, 1, 1))
    targets = features[:, :, 0] * rng.standard_normal((40, 1))
    solved(gtv.GTVProblem(graph, gtv.SquaredLoss.stack(features, targets), "l1", 0.1))


def test_an_unlabelled_node_between_equal_capacities_takes_a_value_between():
    """The flow fills both edges of node 1: any value between those of its neighbours will do."""
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    losses = {0: gtv.PointLoss(0.0), 2: gtv.PointLoss(4.0)}
    solution = solved(gtv.GTVProblem(graph, losses, "l1", 1.0))
    assert solution.w[0, 0] == pytest.approx(0.5, abs=1e-12)
    assert solution.w[2, 0] == pytest.approx(3.5, abs=1e-12)
    assert 0.5 - 1e-12 <= solution.w[1, 0] <= 3.5 + 1e-12
    np.testing.assert_allclose(solution.u, [[-1.0], [-1.0]], rtol=1e-12)


def test_components_without_data_stay_at_zero():
    graph = gtv.EmpiricalGraph(6, [(0, 1), (2, 3)])
    losses = {0: gtv.PointLoss(5.0), 5: gtv.PointLoss(-7.0)}
    solution = solved(gtv.GTVProblem(graph, losses, "l1", 1.0))
    np.testing.assert_allclose(solution.w[:, 0], [5.0, 5.0, 0.0, 0.0, 0.0, -7.0], atol=1e-12)
    np.testing.assert_array_equal(solution.u, 0.0)


def test_no_edges_and_no_data():
    graph = gtv.EmpiricalGraph(3, [])
    solution = solved(gtv.GTVProblem(graph, gtv.PointLoss.stack([[1.0], [2.0], [-3.0]]), "l1", 1.0))
    np.testing.assert_allclose(solution.w[:, 0], [1.0, 2.0, -3.0])
    assert solution.u.shape == (0, 1)
    nothing = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), gtv.StackedLoss([], 1), "l1", 1.0)
    assert solved(nothing).value == 0.0


NORMS = ["l1", "l2", "linf", gtv.PNorm(3)]


@pytest.mark.parametrize("penalty", NORMS, ids=str)
def test_in_one_dimension_all_norms_are_the_same(penalty):
    problem = random_problem(600)
    other = gtv.GTVProblem(problem.graph, problem.losses, penalty, problem.lam)
    np.testing.assert_array_equal(solved(other).w, solved(problem).w)


@pytest.mark.usefixtures("iterations_alone")
def test_what_couples_coordinates_is_left_to_the_primal_dual_method():
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 8, 0.5)
    points = gtv.PointLoss.stack(rng.standard_normal((8, 2)))
    rows = gtv.SquaredLoss.stack(rng.standard_normal((8, 3, 2)), rng.standard_normal((8, 3)))
    refused = [(points, "l2"), (points, "squared"), (points, "linf"), (rows, "l1")]
    for losses, penalty in refused:
        problem = gtv.GTVProblem(graph, losses, penalty, 0.2)
        assert missing(problem, REQUIREMENTS) is not None
        assert problem.solve().info["method"] == "primal-dual"
    assert missing(gtv.GTVProblem(graph, points, gtv.PNorm(1), 0.2), REQUIREMENTS) is None
    overflow = gtv.PointLoss.stack(np.full((8, 1), 1e150))
    problem = gtv.GTVProblem(graph, overflow, "l1", 0.2)
    assert missing(problem, REQUIREMENTS) == "data of moderate size"


def test_orthogonal_features_are_recognized_and_their_data_exact():
    X = np.array([[1.0, 1.0], [1.0, -1.0], [2.0, 0.0], [0.0, 0.5]])
    y = np.array([1.0, 2.0, 3.0, 4.0])
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    losses = gtv.SquaredLoss.from_rows(X, y, [0, 0, 1, 2])
    problem = gtv.GTVProblem(graph, losses, "l1", 2.0)
    first, second = slopes_in(problem, 0), slopes_in(problem, 1)
    np.testing.assert_array_equal(first.q, [2.0, 8.0, 0.0])
    np.testing.assert_array_equal(second.q, [2.0, 0.0, 0.5])
    np.testing.assert_array_equal(first.b, [3.0, 12.0, 0.0])
    np.testing.assert_array_equal(second.b, [-1.0, 0.0, 4.0])
    np.testing.assert_array_equal(scalar_capacities(problem), [2.0, 2.0])


@pytest.mark.parametrize("labelled", [0.1, 1.0])
@pytest.mark.parametrize("lam", [0.05, 0.5])
def test_agreement_with_the_primal_dual_method(labelled, lam):
    rng = np.random.default_rng(8)
    graph = gtv.generators.random_geometric(400, 8.0, seed=8)
    y = np.sign(rng.standard_normal((400, 1))) + 0.3 * rng.standard_normal((400, 1))
    known = rng.random(400) < labelled
    losses = gtv.SquaredLoss.stack(np.ones((400, 1, 1)), y, known)
    problem = gtv.GTVProblem(graph, losses, "l1", lam)
    exact = solved(problem, rtol=1e-11)
    other = _auto._iterated(problem, None, Limits(rtol=1e-7, max_iter=100_000))
    assert other.status == "optimal"
    assert exact.value == pytest.approx(other.value, rel=2e-7)
    assert exact.dual_value <= other.value


def geometric_problem(n=600):
    rng = np.random.default_rng(9)
    graph = gtv.generators.random_geometric(n, 8.0, seed=9)
    losses = gtv.SquaredLoss.stack(
        np.ones((n, 1, 1)), 2.0 * rng.standard_normal((n, 1)), rng.random(n) < 0.5
    )
    return gtv.GTVProblem(graph, losses, "l1", 0.2)


def test_threads_change_nothing(monkeypatch):
    problem = geometric_problem()
    alone = solved(problem)
    monkeypatch.setattr(_divide, "_PARALLEL_NODES", 0)
    monkeypatch.setattr(_divide.nb, "get_num_threads", lambda: 3)
    shared = solved(problem)
    np.testing.assert_array_equal(shared.w, alone.w)
    np.testing.assert_array_equal(shared.u, alone.u)


def test_renumbering_changes_nothing_but_rounding(monkeypatch):
    problem = geometric_problem()
    plain = solved(problem)
    monkeypatch.setattr(_divide_network, "_ORDERING_EDGES", 0)
    skeleton = _divide_network.Skeleton(problem.graph)
    assert not np.array_equal(skeleton.nodes, np.arange(problem.graph.n_nodes))
    np.testing.assert_array_equal(skeleton.nodes[skeleton.edges], problem.graph.edges)
    np.testing.assert_allclose(solved(problem).w, plain.w, rtol=0, atol=1e-12)


def test_the_primal_dual_method_finishes_what_coarse_units_leave(monkeypatch):
    monkeypatch.setattr(_divide_scalar, "_BITS", 10)
    problem = geometric_problem(100)
    seen = []
    solution = problem.solve(rtol=1e-8, callback=lambda progress: seen.append(progress) and None)
    assert solution.status == "optimal"
    assert solution.info["method"] == "divide and conquer, primal-dual"
    assert solution.rel_gap <= 1e-8
    reference = problem.solve(solver="CLARABEL", rtol=1e-9)
    assert solution.value == pytest.approx(reference.value, rel=1e-6)
    iterations = [record.n_iter for record in solution.history]
    assert iterations == sorted(iterations) == [progress.n_iter for progress in seen]
    assert solution.n_iter == iterations[-1]
    values = [record.value for record in solution.history]
    assert values == sorted(values, reverse=True)
