"""The primal problem in CVXPY: DPP in lambda, no Python loop over edges or nodes."""

import sys

import cvxpy as cp
import numpy as np
import pytest
from _instances import PENALTIES, Case, cases, reference

import gtvcvx as gtv


def model_of(problem, side):
    return problem.cvxpy() if side == "primal" else problem.dual().cvxpy()


def large(n, m, penalty, d=3):
    """Random graph of n nodes and m edges; squared, point and zero losses take turns."""
    rng = np.random.default_rng(0)
    keys = rng.choice(n * (n - 1) // 2, m, replace=False)
    head, tail = np.triu_indices(n, 1)
    graph = gtv.EmpiricalGraph(n, np.column_stack([head[keys], tail[keys]]))
    squared, points = np.arange(0, n, 3), np.arange(1, n, 3)
    rows = gtv.SquaredLoss.from_rows(
        rng.standard_normal((2 * len(squared), d)),
        rng.standard_normal(2 * len(squared)),
        np.repeat(squared, 2),
    )
    point = gtv.PointLoss.stack(rng.standard_normal((len(points), d))).parts[0][1]
    losses = gtv.StackedLoss([*rows.parts, (points, point)])
    return gtv.GTVProblem(graph, losses, PENALTIES[penalty](d), 0.1)


PHI = {
    "l1": cp.norm1,
    "l2": cp.norm2,
    "linf": cp.norm_inf,
    "squared": lambda v: 0.5 * cp.sum_squares(v),
    "pnorm3": lambda v: cp.pnorm(v, 3),
    "quadratic": lambda v: 0.5 * cp.quad_form(v, PENALTIES["quadratic"](v.size).Q, assume_PSD=True),
}


def naive_optimum(case):
    """The primal problem as one reads it, with a loop over nodes and a loop over edges."""
    graph = case.graph()
    losses = case.losses()
    w = [cp.Variable(next(x.dim for x in losses if x.dim)) for _ in losses]
    total = 0.0
    for loss, x in zip(losses, w, strict=True):
        if isinstance(loss, gtv.SquaredLoss):
            total += cp.sum_squares(loss.X @ x - loss.y) / len(loss.y)
        elif isinstance(loss, gtv.PointLoss):
            total += cp.sum_squares(x - loss.a)
    for (head, tail), weight in zip(graph.edges, graph.weights, strict=True):
        total += case.lam * weight * PHI[case.penalty](w[head] - w[tail])
    return cp.Problem(cp.Minimize(total)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("case", cases(losses=["mix"]), ids=str)
def test_optimum_of_the_model_written_with_loops(case):
    np.testing.assert_allclose(reference(case).value, naive_optimum(case), rtol=1e-6, atol=1e-7)


def size_of_tree(model):
    """Number of atoms, variables and constants in the objective and the constraints."""
    waiting, count = [model.objective.expr, *(c for k in model.constraints for c in k.args)], 0
    while waiting:
        node = waiting.pop()
        waiting += node.args
        count += 1
    return count + len(model.constraints)


def python_calls(function):
    """Number of Python functions that run: a count, where a timer would depend on the machine."""
    count = 0

    def tally(frame, event, argument):
        nonlocal count
        count += event == "call"

    previous = sys.getprofile()
    sys.setprofile(tally)
    try:
        function()
    finally:
        sys.setprofile(previous)
    return count


@pytest.mark.parametrize("side", ["primal", "dual"])
@pytest.mark.parametrize("penalty", PENALTIES)
class TestVectorized:
    def test_number_of_atoms_does_not_depend_on_the_size(self, penalty, side):
        small, big = (
            size_of_tree(model_of(large(n, m, penalty), side)) for n, m in ((6, 7), (60, 300))
        )
        assert small == big
        assert big < 100

    def test_canonicalization_has_no_loop_over_edges(self, penalty, side):
        def canonicalize(n, m):
            model = model_of(large(n, m, penalty), side)
            return python_calls(lambda: model.get_problem_data(cp.CLARABEL))

        canonicalize(20, 40)
        small, big = canonicalize(20, 40), canonicalize(2000, 12000)
        assert big - small < 100


class TestParameter:
    @pytest.mark.parametrize("side", ["primal", "dual"])
    @pytest.mark.parametrize("case", cases(families=["connected", "d=1"]), ids=str)
    def test_disciplined(self, case, side):
        model = model_of(case.problem(), side)
        assert model.is_dcp(dpp=True)
        assert model.param_dict["lam"].value == case.lam

    @pytest.mark.parametrize("side", ["primal", "dual"])
    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_solving_again_with_another_lambda(self, penalty, side):
        case = Case("connected", "mix", penalty)
        model = model_of(case.problem(), side)
        values = []
        for lam in (0.15, 0.6, 0.02):
            model.param_dict["lam"].value = lam
            model.solve(solver=cp.CLARABEL)
            values.append(model.value)
        others = [
            reference(Case("connected", "mix", penalty, lam=lam)).value for lam in (0.6, 0.02)
        ]
        np.testing.assert_allclose(values[1:], others, rtol=1e-6)
        assert values[2] < values[0] < values[1]

    @pytest.mark.parametrize("side", ["primal", "dual"])
    @pytest.mark.parametrize("penalty", PENALTIES)
    def test_canonical_form_is_reused(self, penalty, side):
        model = model_of(Case("connected", "mix", penalty).problem(), side)
        first = python_calls(lambda: model.get_problem_data(cp.CLARABEL))
        model.param_dict["lam"].value = 0.6
        second = python_calls(lambda: model.get_problem_data(cp.CLARABEL))
        assert second < 0.3 * first
