"""Data in raw units: a primal weight for each coordinate, and the same optima."""

import dataclasses

import numpy as np
import pytest
from _instances import Case, cases

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.solvers.driver import Limits, drive
from gtvcvx.solvers.polishing._coarsening import Coarsening
from gtvcvx.solvers.primal_dual._coordinates import (
    Coordinates,
    _resolvents,
    first_weight,
    one_weight,
)
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.primal_dual._whole import Whole

pytestmark = pytest.mark.usefixtures("iterations_alone")

PENALTIES = ("l1", "l2", "linf", "squared")


def raw_units(penalty, lam, seed=0, n=30, share=0.7):
    """Intercept, year, income and rate on a nearest-neighbour graph, some nodes without labels.

    One node is isolated and has labels.
    """
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    edges = generators.nearest_neighbours(places, 4).edges
    graph = gtv.EmpiricalGraph(n + 1, edges)
    shape = n + 1, 6
    year, income = 2000 + rng.integers(0, 20, shape), 1e4 * rng.random(shape)
    X = np.stack([np.ones(shape), year, income, rng.standard_normal(shape)], axis=2)
    cluster = np.append(places[:, 0] > 0.5, 0).astype(int)
    w = np.array([[1.0, 0.01, 1e-4, 1.0], [2.0, -0.01, 2e-4, -1.0]])[cluster]
    y = np.einsum("nmk,nk->nm", X, w) + 0.1 * rng.standard_normal(shape)
    known = np.append(rng.random(n) < share, True)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y, known), penalty, lam)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0])
def test_optima_are_those_of_a_conic_solver(penalty, lam):
    problem = raw_units(penalty, lam)
    assert Coordinates.of(problem) is not None
    expected = problem.solve(solver="CLARABEL")
    found = problem.solve()
    assert found.status == "optimal"
    assert len(found.info["primal_weight"]) == problem.dim
    bound = 1e-5 * max(1.0, abs(expected.value))
    assert found.value <= expected.value + bound
    assert found.dual_value <= expected.value + 1e-9 * max(1.0, abs(expected.value))


@pytest.mark.parametrize("lam", [1e-3, 0.1, 10.0])
def test_few_iterations_are_enough_where_one_weight_takes_thousands(lam):
    assert raw_units("l2", lam, share=1.0).solve().n_iter <= 2000


@pytest.mark.parametrize("case", cases(), ids=str)
def test_well_scaled_problems_keep_their_one_weight(case):
    problem = case.problem()
    assert Coordinates.of(problem) is None
    assert isinstance(PrimalDual(problem).weight, float)


@pytest.mark.parametrize("spread", [1e2, 1e6])
def test_columns_are_told_by_their_units(spread):
    graph = generators.chain(3, 1.0)
    X = np.random.default_rng(0).standard_normal((6, 5, 2)) * [1.0, np.sqrt(spread)]
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, X.sum(axis=2)), "l2", 0.1)
    assert (Coordinates.of(problem) is None) == (spread < 1e4)


def test_a_column_of_zeros_is_no_unit():
    X = np.random.default_rng(0).standard_normal((6, 5, 3)) * [1.0, 1e4, 0.0]
    losses = gtv.SquaredLoss.stack(X, X.sum(axis=2))
    problem = gtv.GTVProblem(generators.chain(3, 1.0), losses, "l2", 0.1)
    assert np.all(np.isfinite(Coordinates.of(problem).weights))
    assert problem.solve(atol=1e-6).status == "optimal"
    without = gtv.SquaredLoss.stack(X[:, :, [0, 2]], X[:, :, 0])
    assert Coordinates.of(gtv.GTVProblem(problem.graph, without, "l2", 0.1)) is None


@pytest.mark.parametrize("penalty", PENALTIES)
def test_points_and_flows_come_back_from_their_coordinates(penalty):
    problem = raw_units(penalty, 0.1)
    coordinates = Coordinates.of(problem)
    rng = np.random.default_rng(1)
    coordinates.weights = 10.0 ** rng.uniform(-4, 4, 4)
    w, u = rng.standard_normal((9, 4)), rng.standard_normal((9, 4))
    x, y = coordinates.x_of(w), coordinates.y_of(u)
    np.testing.assert_allclose(coordinates.w_of(x), w, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(coordinates.u_of(y), u, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(np.sum(x * y), np.sum(w * u), rtol=1e-12)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_the_proximal_map_is_that_of_the_losses(penalty):
    """``z = prox(v)`` has ``(z - v) / tau`` equal to minus the gradient, in x."""
    problem = raw_units(penalty, 0.1)
    coordinates = Coordinates.of(problem)
    rng = np.random.default_rng(2)
    n, tau = problem.graph.n_nodes, rng.uniform(0.1, 2.0, problem.graph.n_nodes)
    v = coordinates.x_of(rng.standard_normal((n, 4)))
    matrix, offset = coordinates.affine_prox(tau)
    z = np.einsum("kij,kj->ki", matrix, v) + offset
    # The gradient in x is S R^T times that in w, as flows are.
    gradient = coordinates.y_of(problem.losses.gradient(coordinates.w_of(z)))
    size = np.abs(coordinates.y_of(problem.losses.gradient(coordinates.w_of(v)))).max()
    np.testing.assert_allclose((z - v) / tau[:, None], -gradient, rtol=1e-5, atol=1e-7 * size)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_isolated_nodes_rest_at_their_minimizers(penalty):
    problem = raw_units(penalty, 0.1)
    method = PrimalDual(problem)
    method.run(137)
    expected = problem.losses.minimizer(problem.graph.n_nodes)[-1]
    np.testing.assert_allclose(method.w[-1], expected, rtol=1e-8)


def test_the_divergence_stays_that_of_the_flow():
    problem = raw_units("l2", 0.1)
    method = PrimalDual(problem)
    method.run(500)
    balance = method.state._nodes[:, :, 4:].sum(axis=0)
    expected = problem.graph.divergence @ method.state.y
    np.testing.assert_allclose(balance, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("penalty", PENALTIES)
def test_warm_starts_take_the_weights_along(penalty, tmp_path):
    problem = raw_units(penalty, 0.1)
    cold = problem.solve()
    cold.save(tmp_path / "solution.json")
    stored = gtv.Solution.load(tmp_path / "solution.json")
    assert stored.info["primal_weight"] == cold.info["primal_weight"]
    assert PrimalDual(problem, stored).weight == pytest.approx(cold.info["primal_weight"])
    near = problem.with_lam(0.11)
    assert near.solve(warm_start=stored).status == "optimal"
    assert problem.solve(warm_start=stored).n_iter <= 200


@pytest.mark.parametrize("weight", [2.0, [1.0, 2.0], [1.0, -1.0, 1.0, 1.0], [np.inf] * 4])
def test_weights_of_another_kind_are_not_gone_on_with(weight):
    problem = raw_units("l2", 0.1)
    solution = problem.solve(max_iter=20)
    start = dataclasses.replace(solution, info={"primal_weight": weight})
    assert PrimalDual(problem, start).weight == PrimalDual(problem).weight


def test_one_weight_of_many_is_between_them():
    assert one_weight(2.0) == 2.0
    assert one_weight([1.0, 4.0]) == pytest.approx(2.0)
    problem = Case("connected", "squared", "l2").problem()
    solution = dataclasses.replace(problem.solve(), info={"primal_weight": [1.0, 4.0]})
    assert PrimalDual(problem, solution).weight == pytest.approx(2.0)


def test_paths_go_through_raw_units():
    problem = raw_units("l2", 1.0)
    lams = np.geomspace(10.0, 1e-2, 6)
    path = gtv.lambda_path(problem, lams)
    for lam, value in zip(path.lams, path.values, strict=True):
        assert value == pytest.approx(problem.with_lam(float(lam)).solve().value, rel=1e-5)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_other_units_for_all_columns_change_nothing_else(penalty):
    """Features and lambda times a power of two, w by its inverse: the same run."""
    rng, factor = np.random.default_rng(4), 2.0**10
    graph = generators.chain(10, 1.0)
    X = rng.standard_normal((graph.n_nodes, 5, 3)) * [1.0, 1e3, 1e5]
    y = X @ [1.0, 1e-3, -1e-5] + rng.standard_normal((graph.n_nodes, 5))
    plain = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), penalty, 0.1)
    other = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(factor * X, y), penalty, factor * 0.1)
    found, expected = PrimalDual(other), PrimalDual(plain)
    found.run(200)
    expected.run(200)
    np.testing.assert_allclose(found.w * factor, expected.w, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(found.u, expected.u * factor, rtol=1e-6, atol=1e-8 * factor)
    np.testing.assert_allclose(np.array(found.weight) * factor**2, expected.weight, rtol=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_one_coordinate_has_one_weight_whatever_its_unit(penalty):
    losses = gtv.SquaredLoss.stack(np.full((10, 3, 1), 1e6), np.eye(10, 3))
    problem = gtv.GTVProblem(generators.chain(5, 1.0), losses, penalty, 0.1)
    assert isinstance(PrimalDual(problem).weight, float)


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_polishing_coarser_problems_takes_the_weights_along(penalty, tuned):
    tuned(Coarsening, least_edges=1)
    problem = raw_units(penalty, 0.1, n=60, share=1.0)
    method = PrimalDual(problem)
    method.run(800)
    polisher = Coarsening(problem, 1e-6)
    pair = polisher.polish(method.w, method.u, np.inf, np.inf, method.weight)
    assert pair is None or problem.value(pair.w) <= 1.01 * problem.value(method.w)
    assert problem.solve().status == "optimal"


def test_several_threads_do_the_same(monkeypatch):
    problem = raw_units("l2", 0.1)
    plain = PrimalDual(problem)
    plain.run(100)
    module = "gtvcvx.solvers.primal_dual._state.most_threads"
    monkeypatch.setattr(module, lambda size: 2)
    parallel = PrimalDual(problem)
    parallel.run(100)
    np.testing.assert_allclose(parallel.w, plain.w, rtol=1e-6, atol=1e-8)


def test_runs_in_parts_are_the_run_as_a_whole():
    problem = raw_units("l2", 0.1)
    whole, parts = PrimalDual(problem), PrimalDual(problem)
    whole.run(450)
    for n_iter in (100, 1, 149, 200):
        parts.run(n_iter)
    np.testing.assert_array_equal(whole.w, parts.w)
    np.testing.assert_array_equal(whole.u, parts.u)


def test_gaps_without_polishing_are_as_small_as_asked_for():
    problem = raw_units("linf", 0.01)
    solution = drive(problem, PrimalDual(problem), Limits(rtol=1e-6, max_iter=50_000), "PLAIN")
    assert solution.status == "optimal"


def test_resolvents_where_the_identity_is_lost_beside_the_rest():
    rng = np.random.default_rng(4)
    thin = rng.standard_normal((5, 2, 4))
    squares = np.einsum("nki,nkj->nij", thin, thin)
    unseen = np.linalg.svd(thin)[2][:, 2:]
    for scale in (1.0, 1e10):
        # What it does not see stays as it is.
        kept = np.einsum("nki,nij->nkj", unseen, _resolvents(scale * squares))
        np.testing.assert_allclose(kept, unseen, atol=1e-4)
    for scale in (1e13, 1e14, 1e15, 1e16, 1e17, 1e30):
        # Directions drown in rounding there, but none is made longer.
        found = _resolvents(scale * squares)
        values = np.linalg.eigvalsh(0.5 * (found + found.transpose(0, 2, 1)))
        assert values.min() >= -1e-6
        assert values.max() <= 1.0 + 1e-5
    np.testing.assert_allclose(_resolvents(np.eye(3)[None]), 0.5 * np.eye(3)[None])


def weight_of(problem):
    return first_weight(Whole.of(problem))


@pytest.mark.parametrize(("scale", "shift"), [(0.2, 0.0), (30.0, 0.0), (1.0, 1e3)])
def test_the_first_weight_has_the_units_of_parameters_over_flows(scale, shift):
    rng = np.random.default_rng(0)
    graph, points = generators.grid(4, 5), rng.standard_normal((20, 2))
    one = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2", 0.1)
    other = gtv.GTVProblem(graph, gtv.PointLoss.stack(scale * points + shift), "l2", 0.1)
    assert weight_of(other) == pytest.approx(scale * weight_of(one), rel=1e-6)
    assert weight_of(one.with_lam(0.01)) == pytest.approx(10.0 * weight_of(one))
    # Where capacities are tiny proximal maps are to keep their digits.
    assert weight_of(one.with_lam(1e-9)) == pytest.approx(5000.0)
    # Flows do not grow with capacities that none of them reaches.
    assert weight_of(one.with_lam(1e9)) == pytest.approx(weight_of(one.with_lam(1e6)))


def test_the_first_weight_is_one_where_losses_do_not_tell():
    graph, same = generators.grid(3, 3), np.ones((9, 1))
    assert weight_of(gtv.GTVProblem(graph, gtv.PointLoss.stack(same), "l2", 1.0)) == 1.0
    X = np.ones((9, 2, 1))
    kinked = [gtv.AbsoluteLoss(X[i], np.ones(2)) for i in range(9)]
    assert weight_of(gtv.GTVProblem(graph, kinked, "l2", 1.0)) == 1.0
