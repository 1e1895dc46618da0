"""Allowances for work: counted, so that the same run gives up at the same piece."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Allowance, Unaffordable, allowing, now, seconds_until, spend
from gtvcvx.solvers.driver import Limits, Proposal, Run


def test_what_is_spent_is_counted_and_no_more_than_the_most_is_done():
    allowance = Allowance(10.0)
    with allowing(allowance):
        spend(4.0)
        spend(6.0)
        with pytest.raises(Unaffordable):
            spend(0.5)
    assert allowance.spent == 10.5
    spend(1e9)  # nobody counts outside
    assert allowance.spent == 10.5


def test_the_inner_allowance_counts_alone():
    outer, inner = Allowance(1.0), Allowance()
    with allowing(outer), allowing(inner):
        spend(5.0)
    assert (outer.spent, inner.spent) == (0.0, 5.0)


class Once:
    """Proposes a pair whose check may take so much, and hears what came of it."""

    stride, n_iter, finished = 1, 0, False

    def __init__(self, problem, most):
        self._shape = (problem.graph.n_nodes, problem.dim), (problem.graph.n_edges, problem.dim)
        self._allowance, self.heard = Allowance(most), []

    def begin(self, limits, rel_gap):
        pass

    def run(self, n_iter):
        self.n_iter += n_iter
        self.finished = True

    def due(self):
        return True

    def proposal(self, final=False):
        w, u = (np.ones(shape) for shape in self._shape)
        return Proposal(w, u, 1.0, None, self._allowance)

    def learn(self, rel_gap):
        self.heard.append(rel_gap)

    def info(self):
        return {}


@pytest.fixture(scope="module")
def logistic():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3, 2)), rng.integers(0, 2, (40, 3)).astype(float)
    graph = gtv.EmpiricalGraph(40, [(i, i + 1) for i in range(39)])
    return gtv.GTVProblem(graph, gtv.LogisticLoss.stack(X, y), "l2", 0.1)


@pytest.mark.parametrize("most", [0.0, 1e3, np.inf])
def test_a_check_that_takes_too_much_leaves_the_point_and_a_valid_gap(logistic, most):
    run, method = Run(logistic, Limits(1e-6, 10), "test"), Once(logistic, most)
    run.drive(method)
    assert not run.stopped
    solution = run.solution()
    assert method.heard == [solution.rel_gap]
    assert solution.value == pytest.approx(min(logistic.value(np.ones((40, 2))), solution.value))
    assert solution.dual_value <= logistic.solve(rtol=1e-9).value + 1e-9
    # Without an allowance the flow is repaired, and counts.
    assert bool(solution.u.any()) == (most == np.inf)
    assert method._allowance.spent > 0.0


def test_what_is_left_is_a_limit_that_solves_take():
    assert seconds_until(np.inf) is None
    assert 4.9 < seconds_until(now() + 10.0, share=0.5) <= 5.0
    assert 0.0 < seconds_until(now() - 10.0) < 0.1
