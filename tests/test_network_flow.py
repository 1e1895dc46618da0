"""The dual network-flow problem: strong duality, feasibility, and the signs that are promised."""

import cvxpy as cp
import numpy as np
import pytest
from _instances import NORMS, Case, cases, reference

import gtvcvx as gtv


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def solved(problem):
    """The dual network-flow problem after CVXPY has solved it."""
    network = problem.dual()
    network.cvxpy().solve(solver=cp.CLARABEL)
    assert network.cvxpy().status == cp.OPTIMAL
    return network


@pytest.mark.parametrize("case", cases(), ids=str)
def test_strong_duality_feasibility_and_signs(case):
    problem, best = case.problem(), reference(case)
    network = solved(problem)
    u, s = network.flow.value, network.injection.value
    close(network.cvxpy().value, best.value)
    # The flow is feasible and its value is the dual's by definition.
    close(s, -(problem.graph.divergence @ u))
    close(problem.dual_value(u, tol=1e-5), best.value)
    # The potentials are the primal solution: P is far from the optimum at minus the right one.
    close(problem.value(-network.conservation.dual_value), best.value)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_flow_from_the_constraint_duals_of_the_primal(case):
    problem, best = case.problem(), reference(case)
    assert best.u.shape == (problem.graph.n_edges, problem.dim)
    close(problem.dual_value(best.u, tol=1e-4), best.value)
    # -(D^T u)_i is the gradient of L_i, with this sign and not the other.
    s = -(problem.graph.divergence @ best.u)
    np.testing.assert_allclose(s, problem.losses.gradient(best.w), atol=1e-4)


@pytest.mark.parametrize("case", cases(penalties=NORMS, seeds=[1]), ids=str)
def test_flow_is_aligned_with_the_difference(case):
    """<u_e, D_e> = cap_e phi(D_e) on every edge: what (28) of [GTV] leaves out."""
    problem, best = case.problem(), reference(case)
    D = problem.differences(best.w)
    inner = np.sum(best.u * D, axis=1)
    np.testing.assert_allclose(inner, problem.capacities * problem.penalty.value(D), atol=1e-5)
    assert (problem.penalty.dual_norm(best.u) <= problem.capacities * (1 + 1e-5)).all()


class TestTwoNodes:
    """Points 0 and 10 on the line, capacity 1: w = (1/2, 19/2), value 19/2, one unit of flow."""

    problem = gtv.GTVProblem(
        gtv.EmpiricalGraph(2, [(0, 1)], [2.0]), gtv.PointLoss.stack([[0.0], [10.0]]), "l2", 0.5
    )

    def test_primal(self):
        model = self.problem.cvxpy()
        model.solve(solver=cp.CLARABEL)
        close(model.value, 9.5)
        close(model.var_dict["w"].value, [[0.5], [9.5]])
        # (D w) is negative, so the flow along the edge is too.
        close(model.constraints[0].dual_value, [[-1.0]])

    def test_dual(self):
        network = solved(self.problem)
        assert isinstance(network.cvxpy().objective, cp.Maximize)
        close(network.cvxpy().value, 9.5)
        close(network.flow.value, [[-1.0]])
        close(network.injection.value, [[1.0], [-1.0]])
        close(network.conservation.dual_value, [[-0.5], [-9.5]])

    def test_by_hand(self):
        w, u = [[0.5], [9.5]], [[-1.0]]
        assert self.problem.value(w) == 9.5
        assert self.problem.dual_value(u) == 9.5
        assert self.problem.dual_value([[1.0]]) == -10.5


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared"])
def test_on_a_tree_the_flow_is_unique(penalty):
    """Both sides of the problem then give the same flow, not only the same value."""
    rng = np.random.default_rng(5)
    graph = gtv.EmpiricalGraph(5, [(0, 1), (1, 2), (1, 3), (3, 4)], rng.uniform(0.5, 2, 4))
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((5, 2))), penalty, 0.2)
    model, network = problem.cvxpy(), solved(problem)
    model.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(network.flow.value, model.constraints[0].dual_value, atol=1e-4)
    np.testing.assert_allclose(
        -network.conservation.dual_value, model.var_dict["w"].value, atol=1e-4
    )


@pytest.mark.parametrize("family", ["unlabelled", "isolated"])
def test_unlabelled_nodes_conserve_flow(family):
    case = Case(family, "point", "l2")
    network = solved(case.problem())
    quiet = [i for i, loss in enumerate(case.losses()) if isinstance(loss, gtv.ZeroLoss)]
    assert len(quiet) >= 2
    close(network.injection.value[quiet], 0.0)


@pytest.mark.parametrize("losses", [gtv.PointLoss.stack([[1.0, 2.0]] * 3), gtv.StackedLoss([], 2)])
def test_without_edges(losses):
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(3, []), losses, "l2", 0.5)
    model, network = problem.cvxpy(), solved(problem)
    model.solve(solver=cp.CLARABEL)
    close([model.value, network.cvxpy().value], [0.0, 0.0])
    assert model.var_dict["w"].value.shape == (3, 2)
    assert network.flow.value.shape == (1, 2)
    for side in (model, network.cvxpy()):
        assert side.param_dict["lam"].value == 0.5


def test_attributes_belong_to_the_problem_that_is_returned():
    network = Case("connected", "mix", "l2").problem().dual()
    model = network.cvxpy()
    assert network.cvxpy() is model
    assert model.constraints[0] is network.conservation
    assert {variable.id for variable in model.variables()} >= {
        network.flow.id,
        network.injection.id,
    }
