"""The experiments of [nLasso]: formulas against slow twins, rules on made-up numbers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
from _papers import module_of, tiny
from nlasso import _limits, _setting

import gtvcvx as gtv
from gtvcvx.experiments import Verdict

NAMES = ("nlasso-table-1", "nlasso-figure-2", "nlasso-figure-3")
NET = _setting.draw(3, 0.01, nodes=40)


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_have_a_verdict_and_say_what_is_proved(name):
    outcome = tiny(name)
    assert any(row.verdict is not None for row in outcome.rows)
    for panel in outcome.panels:
        for curve in panel.curves:
            assert "CERTIFIED" in curve.final or "proved" in curve.final
            if curve.kind == "optimum":
                assert "CERTIFIED" in curve.final


@pytest.mark.parametrize("summed", [False, True])
def test_algorithm_1_is_what_the_paper_prints(summed):
    """(32), (33) node by node, edge by edge."""
    net = _setting.draw(3, 0.01, nodes=40, summed=summed)
    lam, (n, m, d) = 0.05, net.data.X.shape
    w, u = np.zeros((n, d)), np.zeros((net.graph.n_edges, d))
    at = [list(net.graph.edges[:, k]) for k in (0, 1)]
    for _ in range(7):
        old = w.copy()
        for i in range(n):
            tau = 1 / net.graph.degrees[i]
            v = w[i] - tau * sum(
                sign * u[e] for sign, ends in zip((1, -1), at, strict=True)
                for e in range(len(u)) if ends[e] == i
            )  # fmt: skip
            X, y = net.data.X[i], net.data.y[i]
            share = 2 * tau * (1 if summed else 1 / m) * net.data.labelled[i]
            w[i] = np.linalg.solve(np.eye(d) + share * X.T @ X, v + share * X.T @ y)
        for e, (head, tail) in enumerate(net.graph.edges):
            step = 2 * (w[head] - w[tail]) - (old[head] - old[tail])
            u[e] = np.clip(u[e] + step / 2, -lam, lam)
    found = _setting.algorithm1(net.problem(lam), [0, 7])
    np.testing.assert_array_equal(found[0], 0)
    np.testing.assert_allclose(found[7], w, atol=1e-12)


def test_errors_are_those_of_the_paper():
    w = np.random.default_rng(0).standard_normal((40, 2))
    known = np.flatnonzero(NET.data.labelled)
    unknown = np.setdiff1d(np.arange(40), known)
    assert len(known) == 4
    expected = sum(np.sum((w[i] - NET.true_w[i]) ** 2) for i in unknown) / 40
    assert NET.error(w) == pytest.approx(expected)
    for found, nodes in zip(NET.label_errors(w), (known, unknown), strict=True):
        squares = [
            (NET.data.y[i, r] - NET.data.X[i, r] @ w[i]) ** 2 for i in nodes for r in range(5)
        ]
        assert found == pytest.approx(np.mean(squares))


@pytest.mark.parametrize("lam", [1e-3, 0.1])
@pytest.mark.parametrize("summed", [False, True])
def test_no_run_breaks_a_limit_and_the_first_steps_are_near_it(lam, summed):
    net = _setting.draw(5, 0.01, nodes=40, summed=summed)
    points = _setting.algorithm1(net.problem(lam), [1, 2, 5, 50])
    for count, w in points.items():
        assert net.error(w) >= _limits.least_error(net, lam, count) - 1e-12
        assert net.error(w) <= _limits.largest_error(net, lam, count) + 1e-12
        least = np.array(_limits.least_label_errors(net, lam, count))
        assert (net.label_errors(w) >= least - 1e-12).all()
    first = np.array(net.label_errors(points[1]))
    np.testing.assert_allclose(_limits.least_label_errors(net, lam, 1), first, rtol=0.2)


def test_limits_are_tight_for_flows_that_all_help():
    """A node that is pushed by lambda in each coordinate in every iteration is at the bound."""
    lam, count = 0.01, 30
    pushed = np.where(NET.data.labelled[:, None], 0.0, np.sign(NET.true_w) * lam * count)
    assert NET.error(pushed) == pytest.approx(float(_limits.least_error(NET, lam, count)))
    away = np.where(NET.data.labelled[:, None], 0.0, -np.sign(NET.true_w) * lam * count)
    assert NET.error(away) == pytest.approx(_limits.largest_error(NET, lam, count))


def test_table_1_verdicts_follow_the_numbers():
    table = module_of("nlasso-table-1")
    assert table.like_a_draw(4.0, [3.0, 4.0, 5.5]) is Verdict.REPRODUCED
    assert table.like_a_draw(9.0, [3.0, 4.0, 5.5]) is Verdict.NOT_REPRODUCED
    assert table.like_a_draw(4.0, [3.5]) is Verdict.REPRODUCED
    assert table.like_a_draw(4.0, [2.9]) is Verdict.NOT_REPRODUCED
    assert table.of_algorithm1(2e-6, [1e-6, 2e-6], [1.0, 1.0]) is Verdict.REPRODUCED
    assert table.of_algorithm1(2e-6, [4.0, 5.0], [1.0, 2.0]) is Verdict.CANNOT_HOLD
    assert table.of_algorithm1(2e-6, [4.0, 5.0], [1e-6, 2.0]) is Verdict.NOT_REPRODUCED
    assert table.of_solution(2e-6, [3e-7]) is Verdict.OTHER_READING
    assert table.of_solution(2e-6, [1e-7]) is Verdict.NOT_REPRODUCED
    verdicts = {row.name: row.verdict for row in tiny("nlasso-table-1").rows}
    assert verdicts["Algorithm 1, test"] is Verdict.CANNOT_HOLD


def test_figure_2_counts_iterations_until_errors_stay_small():
    arrival = module_of("nlasso-figure-2").arrival
    at, optimum = np.array([1, 10, 100]), np.array([1.0, 1.0])
    assert arrival(np.array([[9.0, 1.5, 1.2], [9.0, 1.0, 1.0]]), optimum, at) == "10"
    assert arrival(np.array([[9.0, 1.5, 1.2], [9.0, 3.0, 1.0]]), optimum, at) == "10 to 100"
    late = arrival(np.array([[9.0, 1.5, 2.2], [9.0, 3.0, 1.0]]), optimum, at)
    assert late == "over 100 for 1 of 2 seeds"
    assert arrival(np.ones((2, 3)), optimum, at) == "1"


def test_figure_3_verdicts_follow_the_numbers():
    figure = module_of("nlasso-figure-3")
    assert figure.grows([1e-6, 1e-3, 4.0, 2.0, 5.0]) is Verdict.REPRODUCED
    assert figure.grows([1.0, 1.1, 1.2, 1.3, 1.4]) is Verdict.NOT_REPRODUCED
    assert figure.grows([1.0, 99.0, 98.0, 97.0, 96.0]) is Verdict.NOT_REPRODUCED
    assert figure.grows([1.0, 1.1, 1.2, 1.3, 1.4], 2.5) is Verdict.CANNOT_HOLD
    errors = np.array([[5.0, 5.0, 5.0], [0.1, 5.0, 0.1], [0.1, 0.1, 0.1]])
    np.testing.assert_array_equal(figure.last_good(errors, [1, 2, 3]), [0, 1, 3])
    np.testing.assert_array_equal(figure.first_heavy(errors, [1, 2, 3]), [1, 2, np.inf])


def test_figure_3_counts_edges_between_the_clusters():
    graph = gtv.EmpiricalGraph(6, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (2, 3), (0, 5)])
    data = NET.data._replace(labelled=np.array([True, False, False, False, False, True]))
    net = _setting.Network(graph, data, NET.true_w[:6], False)
    # Two edges between the clusters; three at node 0, two at node 5.
    assert module_of("nlasso-figure-3").crossing(net) == 2 / 2
