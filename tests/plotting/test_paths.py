"""Pictures along lambda: path, clusterpath, dendrogram."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb

import gtvcvx as gtv
from gtvcvx.plotting import plot_clusterpath, plot_dendrogram, plot_path, save_figure
from gtvcvx.plotting._canvas import OTHER
from gtvcvx.plotting._dendrogram import _leaves, fusions


@pytest.fixture(scope="module")
def path():
    """Convex clustering of 9 points in the plane, for 12 values of lambda."""
    rng = np.random.default_rng(0)
    centres = np.repeat([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]], 3, axis=0)
    points = centres + 0.3 * rng.standard_normal((9, 2))
    ends = [(i, j) for i in range(9) for j in range(i)]
    weights = [np.exp(-0.5 * np.sum((points[i] - points[j]) ** 2)) for i, j in ends]
    graph = gtv.EmpiricalGraph(9, ends, weights)
    lams = np.geomspace(0.01, 30.0, 12)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2", 1.0)
    solved = [problem.with_lam(lam).solve(rtol=1e-8, verbose=False) for lam in lams]
    return SimpleNamespace(
        lams=lams,
        w=np.array([s.w for s in solved]),
        labels=np.array([s.clusters() for s in solved]),
        values=np.array([s.value for s in solved]),
        nodes=[f"n{i}" for i in range(9)],
    )


def lines_of(ax):
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    return lines


def test_coefficients_along_lambda(path):
    for k in (0, 1):
        segments = lines_of(plot_path(path, coefficient=k)).get_segments()
        assert len(segments) == 9
        for i, segment in enumerate(segments):
            assert np.array_equal(segment, np.column_stack([path.lams, path.w[:, i, k]]))


def test_colours_are_those_of_the_clusters_at_a_lambda(path):
    ax = plot_path(path, at=1.0)
    nearest = np.argmin(np.abs(np.log(path.lams)))
    colours = [tuple(c) for c in lines_of(ax).get_colors()]
    labels = path.labels[nearest]
    assert len(set(colours)) == len(set(labels.tolist())) == 3
    for c in range(3):
        assert len({colours[i] for i in np.flatnonzero(labels == c)}) == 1
    assert f"{path.lams[nearest]:.3g}" in ax.texts[0].get_text()


def test_number_of_clusters_and_objective(path):
    (line,) = plot_path(path, "clusters").get_lines()
    assert line.get_ydata().tolist() == [len(set(row)) for row in path.labels.tolist()]
    assert line.get_ydata()[0] == 9
    (line,) = plot_path(path, "values").get_lines()
    assert line.get_ydata().tolist() == path.values.tolist()
    assert plot_path(path, "values").get_xscale() == "log"


def test_dict_and_descending_lambda_give_the_same_picture(path):
    turned = {name: getattr(path, name)[::-1] for name in ("lams", "w", "labels", "values")}
    for first, second in zip(
        lines_of(plot_path(path)).get_segments(),
        lines_of(plot_path(turned)).get_segments(),
        strict=True,
    ):
        assert np.array_equal(first, second)


def test_clusterpath_in_the_plane(path):
    ax = plot_clusterpath(path, at=1.0)
    segments = lines_of(ax).get_segments()
    assert np.array_equal(np.array(segments), path.w.transpose(1, 0, 2))
    starts = [c for c in ax.collections if isinstance(c, PathCollection)]
    offsets = np.concatenate([np.asarray(c.get_offsets()) for c in starts])
    # The starts, and a cross at each end.
    for row in [*path.w[0], *path.w[-1]]:
        assert (np.abs(offsets - row).max(axis=1) < 1e-12).any()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coefficient 0", "coefficient 1")


def test_clusterpath_is_coloured_by_lambda(path):
    lines = lines_of(plot_clusterpath(path))
    moved = (path.w[1:] != path.w[:-1]).any(axis=2)  # (k - 1, n)
    assert len(lines.get_segments()) == moved.sum()
    assert set(lines.get_array().tolist()) <= set(path.lams[1:].tolist())


def test_clusterpath_of_many_coefficients_shows_principal_components():
    rng = np.random.default_rng(1)
    ends = rng.standard_normal((40, 5)) * [5.0, 2.0, 0.1, 0.1, 0.1]
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    w = np.stack([ends @ rotation, 0.5 * ends @ rotation])
    ax = plot_clusterpath({"lams": [1.0, 2.0], "w": w})
    shown = np.array(lines_of(ax).get_segments())  # (n, 2 lambdas, 2)
    between = np.linalg.norm(shown[:, None, 0] - shown[None, :, 0], axis=2)
    true = np.linalg.norm(ends[:, None, :2] - ends[None, :, :2], axis=2)
    assert np.abs(between - true).max() < 0.6  # the other directions have a spread of 0.1
    assert "first principal component" in ax.get_xlabel()


def test_clusterpath_of_one_coefficient_runs_over_lambda(path, tmp_path):
    flat = {"lams": path.lams, "w": path.w[:, :, :1], "labels": path.labels}
    ax = plot_clusterpath(flat, at=1.0)
    segment = lines_of(ax).get_segments()[4]
    assert np.array_equal(segment, np.column_stack([path.lams, path.w[:, 4, 0]]))
    assert ax.get_xscale() == "log"
    save_figure(ax, tmp_path / "x.png")


@pytest.mark.parametrize("shape", [(1, 5, 2), (2, 1, 3), (3, 4, 1), (2, 6, 4)])
def test_small_paths_can_be_drawn(shape):
    w = np.zeros(shape)
    lams = np.arange(1.0, shape[0] + 1)
    labels = np.zeros(shape[:2], dtype=int)
    for ax in (
        plot_path({"lams": lams, "w": w}),
        plot_clusterpath({"lams": lams, "w": w}),
        plot_dendrogram({"lams": lams, "labels": labels}),
    ):
        ax.figure.draw_without_rendering()


def fused_at(lams, labels):
    """First lambda at which two nodes are together, (n, n), found pair by pair."""
    n = labels.shape[1]
    together = np.eye(n, dtype=bool)
    at = np.where(together, 0.0, np.inf)
    for lam, row in zip(lams, labels, strict=True):
        together |= row[:, None] == row[None, :]
        for _ in range(n):
            together |= (together.astype(int) @ together.astype(int)) > 0
        at = np.where(together & np.isinf(at), lam, at)
    return at


def members_of(n, events):
    found = [{i} for i in range(n)]
    for event in events:
        found.append(set().union(*(found[part] for part in event.parts)))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_tree_agrees_with_pairs_also_where_clusters_split_again(seed):
    rng = np.random.default_rng(seed)
    n, lams = 9, np.arange(1.0, 6.0)
    labels = rng.integers(0, [9, 8, 8, 7, 5], size=(n, 5)).T
    events = fusions(lams, labels)
    at = np.where(np.eye(n, dtype=bool), 0.0, np.inf)
    members = members_of(n, events)
    for f, event in enumerate(events):
        assert len(event.parts) >= 2
        inside = np.array(sorted(members[n + f]))
        block = at[np.ix_(inside, inside)]
        at[np.ix_(inside, inside)] = np.where(np.isinf(block), event.lam, block)
    assert np.array_equal(at, fused_at(lams, labels))
    order, centre = _leaves(n, events)
    assert sorted(order) == list(range(n))
    for inside in members:  # no lines cross
        places = sorted(centre[i] for i in inside)
        assert places[-1] - places[0] == len(places) - 1


def test_dendrogram_draws_a_bar_at_each_fusion(path):
    ax = plot_dendrogram(path)
    segments = np.array(lines_of(ax).get_segments())
    level = segments[:, 0, 1] == segments[:, 1, 1]
    events = fusions(path.lams, path.labels)
    assert sorted(segments[level][:, 0, 1]) == sorted(event.lam for event in events)
    assert sum(len(event.parts) - 1 for event in events) == 9 - len(set(path.labels[-1]))
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert sorted(names) == sorted(path.nodes)
    assert [t.get_text() for t in plot_dendrogram(path, nodes=range(9)).get_xticklabels()] == [
        name[1:] for name in names
    ]


def test_cut_of_the_dendrogram_has_the_colours_of_the_clusters(path):
    ax = plot_dendrogram(path, at=1.0)
    lines = lines_of(ax)
    place = np.argmin(np.abs(np.log(path.lams)))
    bottom = ax.get_ylim()[0]
    colour = {}
    for segment, c in zip(lines.get_segments(), lines.get_colors(), strict=True):
        if segment[0, 1] == bottom:
            colour[round(float(segment[0, 0]))] = tuple(c)
    names = [label.get_text() for label in ax.get_xticklabels()]
    label_of = dict(zip(path.nodes, path.labels[place].tolist(), strict=True))
    pairs = {(label_of[name], colour[k]) for k, name in enumerate(names)}
    assert len(pairs) == len(set(label_of.values())) == 3


@pytest.mark.parametrize(
    ("heights", "scale"),
    [
        (np.arange(1.0, 10.0), "function"),  # linear
        (np.arange(1.0, 10.0) ** 2, "function"),  # square roots
        (np.geomspace(1e-3, 1.0, 9), "log"),
        ([2.0] * 9, "function"),
    ],
)
def test_no_part_of_the_tree_is_empty(heights, scale):
    """The tree fills its axes, however long the path goes on, in halves of as many fusions."""
    heights = np.asarray(heights)
    lams = np.unique([1e-6, *heights, 1e6])
    fused = np.searchsorted(np.sort(heights), lams, side="right")
    labels = np.maximum(np.arange(10)[None, :], fused[:, None])
    ax = plot_dendrogram({"lams": lams, "labels": labels})
    assert ax.get_yscale() == scale
    low, high, *places = ax.transAxes.inverted().transform(
        ax.transData.transform([(0.0, y) for y in (*ax.get_ylim(), *heights)])
    )[:, 1]
    assert (low, high) == pytest.approx((0.0, 1.0))
    if len(set(heights)) > 1:
        assert min(places) < 0.2
        assert max(places) > 0.8
        assert 0.4 < np.median(places) < 0.6
    ax.figure.draw_without_rendering()


def test_clusters_without_a_colour_are_said():
    lams, labels = [1.0, 2.0], np.stack([np.arange(40), np.arange(40) // 2])
    w = np.random.default_rng(0).standard_normal((2, 40, 2))
    data = {"lams": lams, "w": w, "labels": labels}
    for draw in (plot_path, plot_clusterpath, plot_dendrogram):
        ax = draw(data, at=2.0)
        assert ax.get_title().endswith("; 6 of 20 clusters in colours")
        colours = {tuple(c) for part in ax.collections for c in part.get_edgecolors()}
        assert len(colours) <= 9  # six, grey, ink, white
    colours = [tuple(c[:3]) for c in lines_of(plot_path(data, at=2.0)).get_colors()]
    assert colours[:28] == [to_rgb(OTHER)] * 28  # below the others


def test_large_dendrogram_is_quick_and_has_no_names():
    n = 3000
    labels = np.arange(n)[None, :] // (2 ** np.arange(12))[:, None]
    ax = plot_dendrogram({"lams": 2.0 ** np.arange(12), "labels": labels})
    assert not ax.get_xticklabels()
    assert ax.get_xlabel() == "3000 nodes"
    # A chain of fusions, one node at a time, must not be as deep as Python's recursion.
    n = sys.getrecursionlimit() + 100
    chain = np.maximum(np.arange(n)[None, :], np.arange(n)[:, None])
    events = fusions(np.arange(1.0, n + 1), chain)
    assert len(events) == n - 1
    assert sorted(_leaves(n, events)[0]) == list(range(n))


@pytest.mark.parametrize(
    ("draw", "change", "error", "words"),
    [
        (plot_path, {"w": None}, TypeError, ["path:", "lams, w", "'w'"]),
        (plot_dendrogram, {"labels": None}, TypeError, ["path:", "'labels'"]),
        (plot_clusterpath, {"lams": None}, TypeError, ["path:", "'lams'"]),
        (plot_path, {"lams": [1.0, -1.0]}, ValueError, ["lams:", "positive"]),
        (plot_path, {"lams": [1.0, np.nan]}, ValueError, ["lams:", "nan"]),
        (plot_path, {"w": np.zeros((3, 4, 2))}, ValueError, ["w:", "length 2", "(3, 4, 2)"]),
        (plot_path, {"w": np.full((2, 4, 2), np.inf)}, ValueError, ["w:", "inf"]),
        (plot_path, {"labels": np.zeros((2, 5), int)}, ValueError, ["labels:", "(2, 5)"]),
        (plot_dendrogram, {"labels": np.zeros((2, 4))}, TypeError, ["labels", "integers"]),
        (plot_dendrogram, {"nodes": ["a"]}, ValueError, ["nodes: 4 names"]),
    ],
)
def test_bad_paths_are_named(draw, change, error, words):
    data = {"lams": [1.0, 2.0], "w": np.zeros((2, 4, 2)), "labels": np.zeros((2, 4), int)} | change
    with pytest.raises(error) as raised:
        draw(data)
    assert all(word in str(raised.value) for word in words)


def test_bad_options_are_named(path):
    with pytest.raises(ValueError, match="show: one of 'coefficients', 'clusters', 'values'"):
        plot_path(path, "lambda")
    with pytest.raises(ValueError, match=r"coefficient: a number in 0\.\.1"):
        plot_path(path, coefficient=2)
    for draw in (plot_path, plot_clusterpath, plot_dendrogram):
        with pytest.raises(ValueError, match="at: a positive finite number"):
            draw(path, at=0.0)
    with pytest.raises(ValueError, match="at: the path has no labels"):
        plot_clusterpath({"lams": path.lams, "w": path.w}, at=1.0)
