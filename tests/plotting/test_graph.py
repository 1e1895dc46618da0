"""Pictures of a graph with a solution on it: what is drawn are the solution's numbers."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from _instances import Case
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import gtvcvx as gtv
import verify
from gtvcvx.plotting import _network, plot_graph, save_figure
from gtvcvx.plotting._canvas import (
    INK,
    OTHER,
    STRONG,
    cluster_styles,
    luminance,
    shared_colours,
    text_on,
)
from gtvcvx.plotting._layout import SMALL, _by_pivots, layout


@pytest.fixture(scope="module")
def problem():
    """Three planted clusters, two coefficients, a fifth of the nodes without data."""
    rng = np.random.default_rng(0)
    graph = gtv.generators.sbm([10, 8, 6], 0.6, 0.03, seed=1)
    truth = np.repeat([[2.0, 2.0], [-2.0, 2.0], [0.0, -2.0]], [10, 8, 6], axis=0)
    X = rng.standard_normal((24, 5, 2))
    y = np.einsum("nrd,nd->nr", X, truth) + 0.1 * rng.standard_normal((24, 5))
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y, rng.random(24) < 0.8), "l2", 0.3)


@pytest.fixture(scope="module")
def solution(problem):
    return problem.solve(rtol=1e-8, verbose=False)


def parts(ax, kind):
    return [c for c in ax.collections if type(c) is kind and len(c.get_paths())]


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def drawn_edges(ax):
    """Width and colour of every edge, by its two places."""
    found = {}
    for lines in parts(ax, LineCollection):
        for segment, width, colour in zip(
            lines.get_segments(), lines.get_linewidths(), lines.get_colors(), strict=True
        ):
            found[tuple(map(tuple, segment.tolist()))] = (width, tuple(colour))
    return found


def edges_in_order(ax, problem, places):
    found = drawn_edges(ax)
    assert len(found) == problem.graph.n_edges
    pairs = [tuple(map(tuple, places[ends].tolist())) for ends in problem.graph.edges]
    return np.array([found[p][0] for p in pairs]), [found[p][1] for p in pairs]


@pytest.fixture(scope="module")
def places():
    return np.random.default_rng(3).standard_normal((24, 2))


def test_clusters_have_one_style_each(problem, solution, places):
    ax = plot_graph(solution, problem, positions=places)
    clusters = solution.clusters()
    assert clusters.max() == 2
    style = {}
    for scatter in parts(ax, PathCollection):
        colour = tuple(scatter.get_facecolors()[0])
        for place in scatter.get_offsets().tolist():
            style[tuple(place)] = colour
    colours = [style[tuple(place)] for place in places.tolist()]
    for c in range(3):
        assert len({colours[i] for i in np.flatnonzero(clusters == c)}) == 1
    assert len(set(colours)) == 3
    sizes = np.bincount(clusters)
    for c in range(3):
        assert f"cluster {c} ({sizes[c]} nodes)" in legend(ax)


def test_nodes_are_drawn_at_the_positions_of_their_graph(problem, solution, places):
    placed = gtv.GTVProblem(problem.graph.with_positions(places), problem.losses, "l2", 0.3)

    def drawn(**positions):
        found = parts(plot_graph(solution, placed, **positions), PathCollection)
        return np.concatenate([scatter.get_offsets() for scatter in found])

    assert set(map(tuple, drawn())) == set(map(tuple, places))
    assert set(map(tuple, drawn(positions=2 * places))) == set(map(tuple, 2 * places))


def test_edges_show_flow_and_load(problem, solution, places):
    ax = plot_graph(solution, problem, positions=places)
    widths, colours = edges_in_order(ax, problem, places)
    flow = np.linalg.norm(solution.u, axis=1)
    order = np.argsort(flow)
    assert (np.diff(widths[order]) >= -1e-12).all()
    assert widths.max() == pytest.approx(3.5)
    clusters, edges = solution.clusters(), problem.graph.edges
    crossing = clusters[edges[:, 0]] != clusters[edges[:, 1]]
    assert [colour == to_rgba(STRONG) for colour in colours] == crossing.tolist()
    load = flow / (0.3 * problem.graph.weights)
    inner = np.flatnonzero(~crossing)
    brightness = np.array([sum(colours[e][:3]) for e in inner])
    assert (np.diff(brightness[np.argsort(load[inner])]) <= 1e-9).all()
    full = int((load >= 0.999).sum())
    assert {f"saturated edges ({full})", f"between clusters ({crossing.sum()})"} <= set(legend(ax))
    assert f"flow {flow.max():.3g}, the largest" in legend(ax)
    assert full >= crossing.sum() > 0


def test_coefficient_colours_nodes_and_directs_flow(problem, solution, places):
    solution.info["features"] = ["slope", "level"]
    ax = plot_graph(solution, problem, "level", positions=places)
    (scatter,) = parts(ax, PathCollection)
    assert np.array_equal(scatter.get_array(), solution.w[:, 1])
    assert np.array_equal(scatter.get_offsets(), places)
    labels = [axes.get_ylabel() for axes in ax.figure.axes]
    assert "coefficient level" in labels
    (arrows,) = [c for c in ax.collections if isinstance(c, Quiver)]
    flow, ends = solution.u[:, 1], problem.graph.edges
    shown = np.abs(flow) > 0.02 * np.abs(flow).max()
    assert arrows.N == shown.sum() > 0
    step = places[ends[shown, 0]] - places[ends[shown, 1]]
    along = np.sum(step * np.column_stack([arrows.U, arrows.V]), axis=1)
    assert (np.sign(along) == np.sign(flow[shown])).all()
    # The statement of the docstring: across jumps the flow leads to the larger coefficient.
    jump = problem.differences(solution.w)[:, 1]
    apart = np.abs(jump) > 0.1
    assert (np.sign(flow[apart]) == np.sign(jump[apart])).all()
    same = plot_graph(solution, problem, 1, positions=places)
    assert same.get_title() == ax.get_title()


def test_gap_is_that_of_the_solver_or_the_certificate(problem, solution, places):
    ax = plot_graph(solution, problem, "gap", positions=places)
    (scatter,) = parts(ax, PathCollection)
    expected = np.where(solution.node_gaps > 0, solution.node_gaps, np.nan)
    assert np.allclose(scatter.get_array().filled(np.nan), expected, equal_nan=True)
    certificate = verify.certify(problem.to_data(), solution.w, solution.u)
    ax = plot_graph(solution, problem, "gap", positions=places, certificate=certificate)
    (scatter,) = parts(ax, PathCollection)
    expected = np.where(certificate.node_gaps > 0, certificate.node_gaps, np.nan)
    assert np.allclose(scatter.get_array().filled(np.nan), expected, equal_nan=True)
    widths, colours = edges_in_order(ax, problem, places)
    shares = certificate.edge_gaps
    assert widths[shares.argmax()] == widths.max()
    assert all(colours[e] == to_rgba(OTHER) for e in np.flatnonzero(shares == 0))


def test_gap_of_zero_is_drawn_too(problem, solution, places):
    nothing = SimpleNamespace(node_gaps=np.zeros(24), edge_gaps=np.zeros(problem.graph.n_edges))
    ax = plot_graph(solution, problem, "gap", positions=places, certificate=nothing)
    ax.figure.draw_without_rendering()
    assert len(ax.figure.axes) == 1  # no colour bar


def test_axes_that_are_given_are_used(problem, solution, tmp_path):
    figure = Figure(figsize=(9, 4))
    left, right = figure.subplots(1, 2)
    assert plot_graph(solution, problem, ax=left) is left
    assert plot_graph(solution, problem, 0, ax=right) is right
    save_figure(figure, tmp_path / "both.png")
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_more_columns_of_positions_do_not_matter(problem, solution, places):
    three = np.column_stack([places, np.arange(24.0)])
    ax = plot_graph(solution, problem, 0, positions=three)
    (scatter,) = parts(ax, PathCollection)
    assert np.array_equal(scatter.get_offsets(), places)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared", "pnorm3", "quadratic"])
@pytest.mark.parametrize("family", ["isolated", "d=1"])
def test_every_penalty_and_graph_can_be_drawn(family, penalty):
    problem = Case(family, "mix", penalty).problem()
    solution = problem.solve(rtol=1e-4, verbose=False)
    for by in ("cluster", "gap", 0):
        ax = plot_graph(solution, problem, by)
        ax.figure.draw_without_rendering()
        assert any("saturated" in text for text in legend(ax)) == (
            problem.penalty.is_norm and by != "gap"
        )


def test_graph_without_edges(tmp_path):
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(1, []), gtv.PointLoss.stack([[1.0]]))
    solution = problem.solve(verbose=False)
    for by in ("cluster", "gap", 0):
        save_figure(plot_graph(solution, problem, by), tmp_path / "x.svg")


def test_names_of_nodes_are_text(tmp_path):
    labels = ["$x^2", "a_b$\\frac$", "line\nbreak", "x" * 60]
    graph = gtv.EmpiricalGraph(4, [[0, 1], [1, 2], [2, 3]], None, labels)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(4)))
    ax = plot_graph(problem.solve(verbose=False), problem)
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["\\$x^2", "a_b\\$\\frac\\$", "line break", "x" * 15 + "…"]
    save_figure(ax, tmp_path / "x.pdf")
    assert (tmp_path / "x.pdf").read_bytes().startswith(b"%PDF")


def contrast(first, second):
    """Contrast ratio of two colours, WCAG 2."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("by", ["cluster", 0, "gap"])
def test_names_in_nodes_are_legible(problem, solution, places, by):
    """Each has a contrast of 4.5 with the node that it is written on, as WCAG 2 wants."""
    ax = plot_graph(solution, problem, by, positions=places * 100)
    ax.figure.draw_without_rendering()  # which colours values
    below = {
        tuple(place): colour
        for scatter in parts(ax, PathCollection)
        for place, colour in zip(
            scatter.get_offsets().tolist(),
            np.broadcast_to(scatter.get_facecolors(), (len(scatter.get_offsets()), 4)),
            strict=True,
        )
    }
    assert len(ax.texts) == 24
    worst = min(contrast(text.get_color(), below[tuple(text.xy)]) for text in ax.texts)
    assert worst >= 4.5
    assert text_on(OTHER) == INK  # which a dark page turns, as it does that grey


def test_large_graphs_are_drawn_without_names_and_as_pixels(tmp_path):
    n = 4000
    points = np.random.default_rng(0).random((n, 2))
    graph = gtv.generators.geometric(points, 8)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2", 0.01)
    solution = problem.solve(rtol=1e-2, verbose=False)
    ax = plot_graph(solution, problem, positions=points)
    assert not ax.texts
    assert all(c.get_rasterized() for c in ax.collections)
    named = plot_graph(solution, problem, positions=points, names=False)
    assert not named.texts
    save_figure(ax, tmp_path / "x.svg")
    assert (tmp_path / "x.svg").stat().st_size < 3_000_000
    places = layout(n, graph.edges, solution.clusters())
    assert np.isfinite(places).all()
    apart = np.linalg.norm(places[graph.edges[:, 0]] - places[graph.edges[:, 1]], axis=1)
    assert np.median(apart) < 0.1 * np.ptp(places, axis=0).max()  # neighbours are near


def test_layout_follows_the_graph():
    chain = np.array([[i, i + 1] for i in range(59)])
    places = layout(60, chain, np.zeros(60, dtype=np.int64))
    assert (np.diff(places[:, 0]) > 0).all() or (np.diff(places[:, 0]) < 0).all()
    assert np.ptp(places[:, 1]) < 0.05 * np.ptp(places[:, 0])
    again = layout(60, chain, np.zeros(60, dtype=np.int64))
    assert np.array_equal(places, again)


def test_layout_keeps_components_apart():
    ring = [[i, (i + 1) % 8] for i in range(8)]
    edges = np.array([*ring, *([i + 8, j + 8] for i, j in ring), [16, 17]])
    places = layout(21, np.sort(edges, axis=1), np.zeros(21, dtype=np.int64))
    groups = [range(8), range(8, 16), range(16, 18), [18], [19], [20]]
    boxes = [(places[list(g)].min(axis=0), places[list(g)].max(axis=0)) for g in groups]
    for k, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:k]:
            assert ((low > other_high) | (other_low > high)).any()


def test_long_graphs_are_placed_by_distances():
    """A grid is seen as one: places are as far apart as they were, turned and scaled."""
    side = 25
    assert side**2 > SMALL
    at = np.arange(side**2).reshape(side, side)
    edges = np.concatenate(
        [np.stack([at[:, :-1], at[:, 1:]], 2), np.stack([at[:-1], at[1:]], 2).swapaxes(0, 1)], 1
    ).reshape(-1, 2)
    places = layout(side**2, edges, np.zeros(side**2, dtype=np.int64))
    true = np.column_stack(np.unravel_index(at.ravel(), at.shape))
    some = np.random.default_rng(0).integers(0, side**2, (2, 500))
    lengths = [np.linalg.norm(x[some[0]] - x[some[1]], axis=1) for x in (places, true)]
    assert np.corrcoef(lengths)[0, 1] > 0.95


def test_layout_of_short_graphs_is_found_by_eigenvectors():
    """Distances are all about the same; communities are seen apart."""
    graph = gtv.generators.sbm([SMALL, SMALL], 0.05, 0.001, seed=0)
    assert _by_pivots(2 * SMALL, graph.edges) is None
    first, second = np.split(layout(2 * SMALL, graph.edges, np.zeros(2 * SMALL, int)), 2)
    apart = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
    assert apart > 3.0 * max(first.std(axis=0).max(), second.std(axis=0).max())


def test_styles_of_clusters_differ_as_far_as_possible():
    few = cluster_styles(np.array([1, 5, 1]))
    assert len(set(few)) == 3
    assert OTHER not in {colour for colour, _ in few}
    many = cluster_styles(np.array([2] * 35 + [1] * 5))
    assert len(set(many[:30])) == 30
    assert set(many[30:]) == {(OTHER, "o")}
    assert cluster_styles(np.array([1] * 4 + [3] * 4))[:4] == [(OTHER, "o")] * 4


def test_many_clusters_are_summed_up_in_the_legend():
    n = 60
    graph = gtv.EmpiricalGraph(n, [[i, i + 1] for i in range(n - 1)])
    data = np.repeat(np.arange(40.0), [2] * 20 + [1] * 20)[:, None] * 100.0
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(data), "l1", 1.0)
    solution = problem.solve(verbose=False)
    assert solution.clusters().max() == 39
    texts = legend(plot_graph(solution, problem))
    assert sum(text.startswith("cluster ") for text in texts) == _network.LEGEND
    assert "10 more in colours (20 nodes)" in texts
    assert "20 more in grey (20 nodes)" in texts
    assert "20 of 40 share colours" in texts
    assert shared_colours(np.array([3] * 6)) == ""
    assert shared_colours(np.array([3] * 8)) == "4 of 8 share colours"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"by": "income"}, ValueError, ["by:", "'cluster'", "0..1"]),
        ({"by": 2}, ValueError, ["by:", "got 2"]),
        ({"by": True}, ValueError, ["by:", "True"]),
        ({"positions": np.zeros((24, 1))}, ValueError, ["positions", "(24, 2 or more)"]),
        ({"positions": np.full((24, 2), np.nan)}, ValueError, ["positions", "nan"]),
        ({"ax": 3}, TypeError, ["ax:", "int"]),
        ({"solution": 1}, TypeError, ["solution:", "int"]),
        ({"problem": 1}, TypeError, ["problem:", "int"]),
    ],
)
def test_bad_arguments_are_named(problem, solution, change, error, words):
    arguments = {"solution": solution, "problem": problem, **change}
    with pytest.raises(error) as raised:
        plot_graph(arguments.pop("solution"), arguments.pop("problem"), **arguments)
    assert all(word in str(raised.value) for word in words)


def test_certificate_of_another_problem_is_refused(problem, solution):
    wrong = SimpleNamespace(node_gaps=np.zeros(3), edge_gaps=np.zeros(3))
    with pytest.raises(ValueError, match="certificate: 24 node_gaps"):
        plot_graph(solution, problem, "gap", certificate=wrong)
    unproved = SimpleNamespace(
        node_gaps=np.full(24, np.inf), edge_gaps=np.zeros(problem.graph.n_edges)
    )
    with pytest.raises(ValueError, match="not finite"):
        plot_graph(solution, problem, "gap", certificate=unproved)


def test_solution_of_another_problem_is_refused(problem, solution):
    other = gtv.GTVProblem(gtv.EmpiricalGraph(24, [[0, 1]]), problem.losses)
    with pytest.raises(ValueError, match="solution: u"):
        plot_graph(solution, other)
    labels = [f"n{i}" for i in range(24)]
    graph = gtv.EmpiricalGraph(24, problem.graph.edges, problem.graph.weights, labels)
    with pytest.raises(ValueError, match="node labels"):
        plot_graph(solution, gtv.GTVProblem(graph, problem.losses, "l2", 0.3))
    with pytest.raises(ValueError, match=r"\.png, \.pdf, \.svg"):
        save_figure(Figure(), "x.gif")


def test_missing_matplotlib_is_named_with_its_extra(problem, solution, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install \"gtvcvx\[plot\]\""):
        plot_graph(solution, problem)
