"""Pictures of federated runs: what is drawn are the numbers of their histories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.plotting import plot_activity, plot_federation, plot_rounds


@pytest.fixture(scope="module")
def problem():
    """Two pairs of clients with one scalar each, and a fifth without links."""
    graph = gtv.EmpiricalGraph(5, [(0, 1), (2, 3), (1, 2)], [1.0, 1.0, 0.1])
    losses = [gtv.SquaredLoss([[1.0]], [y]) for y in (0.0, 0.2, 3.0, 3.1, 9.0)]
    return gtv.GTVProblem(graph, losses, "l1", 0.5)


@pytest.fixture(scope="module")
def run(problem):
    return fed.simulate(fed.FedADMM(), problem, 40, availability=fed.Bernoulli(0.8), record_every=2)


@pytest.fixture(scope="module")
def diverged(problem):
    """Steps of 1e9: the start is the one record."""
    run = fed.simulate(fed.FedADMM(step="printed", scale=1e9), problem, 40)
    assert (run.status, run.history.n_records) == ("diverged", 1)
    return run


def changed(run, **columns):
    history = fed.History({**{k: v.tolist() for k, v in run.history.items()}, **columns})
    return replace(run, history=history)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_one_run_over_rounds_and_bytes(run):
    ax = plot_rounds(run)
    (line,) = ax.get_lines()
    assert line.get_xdata().tolist() == list(range(0, 41, 2))
    assert line.get_ydata().tolist() == run.history["gap"].tolist()
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    assert ax.get_title() == f"FedADMM: {run.history['gap'][-1]:.3g} after 40 rounds"
    ax = plot_rounds(run, "value", over="bytes")
    (line,) = ax.get_lines()
    sent = run.history["bytes_up"] + run.history["bytes_down"]
    assert line.get_xdata().tolist() == sent.tolist()
    assert line.get_ydata().tolist() == run.history["value"].tolist()


def test_several_runs_with_their_states(run, diverged):
    bare = {name: run.history[name].tolist() for name in run.history if name != "gap"}
    without = replace(run, history=fed.History(bare))
    ax = plot_rounds({"ours": run, "too $fast": diverged, "theirs": without}, over="bytes")
    assert ax.get_xscale() == "linear"
    assert legend(ax) == ["ours", r"too \$fast (diverged)", "theirs: no gap"]
    first, second, _ = ax.get_lines()
    assert len(first.get_xdata()) == 21
    assert second.get_xdata().tolist() == [0]
    assert second.get_marker() == "o"  # a line through one point cannot be seen
    assert first.get_color() != second.get_color()


def test_bytes_of_runs_far_apart_have_a_logarithmic_axis(run):
    """Zero has its place, and the next mark is at a power of ten below all that was sent."""
    columns = {"bytes_up": [k * 2000 for k in range(21)], "bytes_down": [0] * 21}
    many = {k: [60 * x for x in v] for k, v in columns.items()}
    ax = plot_rounds({"few": changed(run, **columns), "_many": changed(run, **many)}, over="bytes")
    assert ax.get_xscale() == "symlog"
    ax.figure.draw_without_rendering()
    marks = [t.get_text() for t in ax.get_xticklabels() if 0 <= t.get_position()[0] <= 2e6]
    assert marks == ["0 B", "1 kB", "10 kB", "100 kB", "1 MB"]
    assert legend(ax) == ["few", " _many"]


def test_zeros_stand_at_the_bottom(run):
    gap = [1.0, 0.1, 0.0, 1e-3, *[-1e-17] * 17]
    ax = plot_rounds(changed(run, gap=gap))
    line, zeros, _ = ax.get_lines()
    assert line.get_ydata().tolist() == [1.0, 0.1, 1e-3]
    assert zeros.get_xdata().tolist() == [4, *range(8, 41, 2)]
    assert set(zeros.get_ydata()) == {0.02}
    assert zeros.get_transform() == ax.get_xaxis_transform()
    assert legend(ax) == ["FedADMM", "exactly zero"]
    never = plot_rounds(changed(run, gap=[0.0] * 21))
    assert never.get_yscale() == "linear"
    assert never.get_lines()[0].get_ydata().tolist() == [0.0] * 21


def test_one_client_sends_nothing():
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), [gtv.SquaredLoss([[1.0]], [2.0])])
    run = fed.simulate(fed.FedADMM(), problem, 3)
    for ax in (plot_rounds(run, over="bytes"), plot_activity(run), plot_federation(run)):
        ax.figure.draw_without_rendering()


def test_activity(run, diverged):
    ax = plot_activity({"ours": run, "fast": diverged})
    first, second, everybody = ax.get_lines()
    assert first.get_xdata().tolist() == list(range(2, 41, 2))
    assert first.get_ydata().tolist() == run.history["active"][1:].tolist()
    assert len(second.get_xdata()) == 0
    alone = plot_activity(diverged)
    alone.figure.draw_without_rendering()
    low, high = alone.get_xlim()
    assert [x for x in alone.get_xticks() if low <= x <= high] == [0]  # there are no half rounds
    assert set(everybody.get_ydata()) == {5}
    mean = run.history["active"][1:].mean()
    assert legend(ax) == [f"ours: {mean:.3g} on average", "fast (diverged): no round"]


def test_saved_runs_are_drawn_like_others(run, tmp_path):
    run.save(tmp_path / "run.npz")
    saved = fed.SavedRun.load(tmp_path / "run.npz")
    for draw in (plot_rounds, plot_activity):
        there, again = draw(run).get_lines()[0], draw(saved).get_lines()[0]
        assert np.array_equal(there.get_xydata(), again.get_xydata())


def points(ax):
    return [c for c in ax.collections if type(c) is PathCollection]


def test_federation_by_coefficient_and_by_cluster(problem, run):
    places = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [2, 2]])
    ax = plot_federation(run, 0, positions=places)
    (clients,) = points(ax)
    assert clients.get_array().tolist() == run.models[:, 0].tolist()
    assert clients.get_offsets().tolist() == places.tolist()
    assert ax.get_title() == "5 clients, 3 links"
    links = [s.tolist() for c in ax.collections if type(c) is LineCollection
             for s in c.get_segments()]  # fmt: skip
    assert links == [places[ends].tolist() for ends in problem.graph.edges]
    found = replace(run, models=np.array([[0.0], [1e-5], [3.0], [3.0], [0.0]]))
    assert legend(plot_federation(found, "cluster")) == [
        "cluster 0 (2 nodes)", "cluster 1 (2 nodes)", "cluster 2 (1 node)",
    ]  # fmt: skip


def test_federation_with_servers():
    loss = gtv.SquaredLoss([[1.0]], [1.0])
    servers = gtv.EmpiricalGraph(2, [(0, 1)])
    net = fed.Network.servers(servers, [[loss] * 3, [loss] * 2], [[0, 1, 1], [0, 0]])
    places = np.array([[0.0, 0], [2, 0], [1, 3], [5, 0], [7, 2]])
    ax = plot_federation(net, positions=places)
    *clients, hubs = points(ax)
    assert sum(len(c.get_offsets()) for c in clients) == 5
    assert hubs.get_offsets().tolist() == [[1.0, 1.0], [6.0, 1.0]]
    assert legend(ax) == ["cluster 0 (3 nodes)", "cluster 1 (2 nodes)", "servers (2)"]
    assert ax.get_title() == "5 clients, 2 servers, 6 links"


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda run: plot_rounds(run, "mse"), "runs: there is no 'mse' in the history of FedADMM"),
        (lambda run: plot_rounds(run, "loss"), "show: one of 'gap', 'value'"),
        (lambda run: plot_rounds(run, over="days"), "over: one of 'rounds', 'bytes'"),
        (lambda run: plot_rounds({}), "runs: at least one run"),
        (lambda run: plot_rounds(replace(run, history=fed.History())), "runs: FedADMM: it has no"),
        (lambda run: plot_federation(run, 1), r"by: 'cluster' or a number in 0\.\.0"),
        (lambda run: plot_federation(run.net, 0), "by: 'cluster' is expected, got 0"),
        (lambda run: plot_federation(run.net, "cluster"), "by: the network was told no clusters"),
        (lambda run: plot_federation(run, positions=np.zeros((2, 2))), "positions: shape"),
    ],
)
def test_bad_arguments_are_named(run, draw, words):
    with pytest.raises(ValueError, match=words):
        draw(run)


def test_what_is_no_run_is_refused(problem):
    with pytest.raises(TypeError, match="runs: run: a federated run is expected, got GTVProblem"):
        plot_rounds(problem)
    with pytest.raises(TypeError, match="net: a Network or a Run is expected, got GTVProblem"):
        plot_federation(problem)
