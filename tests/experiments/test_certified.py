"""What is said of the last point of a curve is proved."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.experiments import certified, gap_text, proved_gap


@pytest.fixture(scope="module")
def problem():
    points = np.repeat([[0.0], [1.0], [5.0]], 4, axis=0) + np.linspace(-0.1, 0.1, 12)[:, None]
    return gtv.GTVProblem(gtv.generators.grid(3, 4), gtv.PointLoss.stack(points), lam=0.2)


def test_an_optimum_is_certified_and_another_point_has_its_gap(problem):
    solution = problem.solve(rtol=1e-9)
    assert certified(problem, solution.w) == "CERTIFIED 1e-06"
    w = solution.w + 0.01
    true = (problem.value(w) - solution.value) / problem.value(w)
    for gap in (proved_gap(problem, w), proved_gap(problem, w, solution=solution)):
        assert true - 1e-12 <= gap <= 1.001 * true + 1e-7
    assert certified(problem, w, solution=solution) == f"gap {true:.1e} (relative), proved"


def test_a_poor_flow_gives_a_larger_gap_but_a_true_one(problem):
    poor = problem.solve("PDHG", max_iter=3)
    best = problem.solve(rtol=1e-10)
    assert proved_gap(problem, best.w, solution=poor) > 1e-6
    assert proved_gap(problem, best.w, solution=best) <= 1e-9


def test_what_the_kernel_has_no_rule_for_is_not_proved():
    import cvxpy as cp

    graph = gtv.EmpiricalGraph(2, [[0, 1]])
    losses = [gtv.CvxpyLoss(lambda w, k=k: cp.sum_squares(w - k), 1) for k in (0.0, 1.0)]
    problem = gtv.GTVProblem(graph, losses)
    assert certified(problem, problem.solve().w) == "no gap was proved"


def test_of_several_seeds_the_worst_is_said():
    assert gap_text([1e-8, 1e-7]) == "CERTIFIED 1e-06, the worst of 2"
    assert gap_text([1e-8, 0.031]) == "gap 3.1e-02 (relative), proved, the worst of 2"
    assert gap_text([1e-8, np.inf]) == "no gap was proved, the worst of 2"
    assert gap_text(1e-3, 1e-2) == "CERTIFIED 1e-02"
    for bad in ([], [np.nan]):
        with pytest.raises(ValueError, match="gaps: at least one"):
            gap_text(bad)
