"""Pictures of the gap's shares and of a solver's history."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from _instances import Case
from matplotlib.figure import Figure

import gtvcvx as gtv
import verify
from gtvcvx.plotting import plot_convergence, plot_gaps
from gtvcvx.solution import Record


@pytest.fixture(scope="module")
def problem():
    return Case("connected", "mix", "l2").problem()


@pytest.fixture(scope="module")
def solution(problem):
    """Stopped early: there is a gap at nodes and edges, and a history of several checks."""
    return problem.solve("PDHG", max_iter=40, rtol=1e-12, verbose=False)


def bars(ax):
    """Share and text of each bar, from the top."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    shares = [bar.get_x() + bar.get_width() for bar in ax.patches]
    return dict(zip(names, shares, strict=True))


def expected_bars(node, edge, labels, ends, count):
    found = {}
    for kind, shares, name in (
        ("node", node, lambda i: labels[i]),
        ("edge", edge, lambda e: f"{labels[ends[e, 0]]} - {labels[ends[e, 1]]}"),
    ):
        order = np.argsort(-shares, kind="stable")
        order = order[shares[order] > 0]
        found |= {f"{kind} {name(i)}": shares[i] for i in order[:count]}
        rest = order[count:]
        if len(rest):
            found[f"{len(rest)} other {kind}{'s' * (len(rest) > 1)}"] = shares[rest].sum()
    return found


def test_bars_are_the_largest_shares_and_the_sum_of_the_rest(problem, solution):
    assert (solution.node_gaps > 0).sum() > 3
    assert (solution.edge_gaps > 0).sum() > 3
    for count in (3, 50):
        shown = bars(plot_gaps(solution, count=count))
        expected = expected_bars(
            solution.node_gaps, solution.edge_gaps, range(7), problem.graph.edges, count
        )
        assert list(shown) == list(expected)
        assert np.allclose(list(shown.values()), list(expected.values()), rtol=1e-9)
    total = sum(shown.values())
    assert total == pytest.approx(solution.node_gaps.sum() + solution.edge_gaps.sum())


def test_bars_of_a_certificate(problem, solution):
    certificate = verify.certify(problem.to_data(), solution.w, solution.u, search=False)
    shown = bars(plot_gaps(solution, certificate=certificate))
    assert sum(shown.values()) == pytest.approx(certificate.gap, rel=1e-6)


def test_gap_of_zero_has_no_bars(solution):
    nothing = SimpleNamespace(node_gaps=np.zeros(7), edge_gaps=np.zeros(len(solution.u)))
    ax = plot_gaps(solution, certificate=nothing)
    assert [text.get_text() for text in ax.texts] == ["every share is zero"]


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "3"])
def test_bad_counts_are_refused(solution, count):
    with pytest.raises(ValueError, match="count: a positive integer"):
        plot_gaps(solution, count=count)


@pytest.fixture(scope="module")
def followed(solution):
    history = [Record(10, 0.1, 5.0, -np.inf), Record(20, 0.2, 4.0, 1.0), Record(30, 0.5, 3.0, 2.5)]
    return replace(solution, history=history, value=3.0)


def test_gap_over_iterations_and_seconds(followed):
    for over, at in (("iterations", [20, 30]), ("seconds", [0.2, 0.5])):
        ax = plot_convergence(followed, over=over)
        (line,) = ax.get_lines()
        assert line.get_xdata().tolist() == at  # an infinite gap is not drawn
        assert line.get_ydata().tolist() == [3.0, 0.5]
        assert ax.get_yscale() == "log"
        ax.figure.draw_without_rendering()


def test_bounds_are_both_drawn(followed):
    ax = plot_convergence(followed, "bounds")
    upper, lower = ax.get_lines()
    assert upper.get_ydata().tolist() == [4.0, 3.0]
    assert lower.get_ydata().tolist() == [1.0, 2.5]
    assert ax.get_ylabel() == "objective"


def test_bounds_that_agree_in_their_first_digits_are_shown_as_differences(followed):
    history = [Record(1, 0.1, 1000.5, 999.5), Record(2, 0.2, 1000.0, 999.75)]
    ax = plot_convergence(replace(followed, history=history, value=1000.0), "bounds")
    upper, lower = ax.get_lines()
    assert upper.get_ydata().tolist() == [0.5, 0.0]
    assert lower.get_ydata().tolist() == [-0.5, -0.25]
    assert ax.get_ylabel() == "objective less 1000"


def test_a_single_check_is_a_point_and_said_so(followed):
    once = replace(followed, history=[Record(7, 0.1, 2.0, 1.5)], value=2.0)
    for show, expected in (("gap", [[0.5]]), ("bounds", [[2.0], [1.5]])):
        ax = plot_convergence(once, show)
        assert ax.get_title() == "checked once, after 7 iterations: gap 0.5"
        assert [line.get_ydata().tolist() for line in ax.get_lines()] == expected
        for line in ax.get_lines():
            assert line.get_xdata().tolist() == [7]
            assert (line.get_marker(), line.get_markersize()) == ("o", 9)
        ax.figure.draw_without_rendering()


def test_gaps_that_cannot_be_drawn_are_said_in_words(followed):
    for lower, text in ((2.0, "the gap is zero"), (-np.inf, "the gap is not finite")):
        history = [Record(1, 0.1, 2.0, lower), Record(2, 0.2, 2.0, lower)]
        ax = plot_convergence(replace(followed, history=history))
        assert [t.get_text() for t in ax.texts] == [text]


def test_real_history_is_drawn_on_given_axes(problem):
    solution = problem.solve("PDHG", max_iter=1000, rtol=1e-15, verbose=False)
    left, right = Figure().subplots(1, 2)
    assert plot_convergence(solution, ax=left) is left
    assert plot_convergence(solution, "bounds", ax=right) is right
    (line,) = left.get_lines()
    assert line.get_ydata().tolist() == [record.gap for record in solution.history]
    assert len(solution.history) > 1


def test_bad_arguments_are_named(solution):
    with pytest.raises(ValueError, match="show: 'gap' or 'bounds'"):
        plot_convergence(solution, "value")
    with pytest.raises(ValueError, match="over: 'iterations' or 'seconds'"):
        plot_convergence(solution, over="days")
    with pytest.raises(ValueError, match="no history"):
        plot_convergence(replace(solution, history=[]))
    with pytest.raises(TypeError, match="solution: a Solution"):
        plot_convergence(gtv.ZeroLoss())
