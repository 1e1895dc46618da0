"""Choropleth maps: each area has the colour of its number, whatever the order of the rows."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread

shapely = pytest.importorskip("shapely", reason="shapely (extra geo)")
from _maps import DEGREES, Frame, squares  # noqa: E402
from shapely import Point, Polygon, box  # noqa: E402

import gtvcvx as gtv  # noqa: E402
from gtvcvx.graph_construction import contiguity_graph, knn_graph  # noqa: E402
from gtvcvx.plotting import plot_graph, plot_map  # noqa: E402
from gtvcvx.plotting._canvas import ON_DARK, ON_LIGHT, OTHER, cluster_styles  # noqa: E402

LABELS = ["a", "b", "c", "d", "e", "f"]
SHAPES = squares(2, 3)


@pytest.fixture(scope="module")
def problem():
    """Two by three squares: the left column is one cluster, the others are another one."""
    graph = contiguity_graph(Frame(SHAPES, LABELS))
    values = np.array([0.0, 5.0, 5.0, 0.0, 5.0, 5.0])
    points = np.column_stack([values, np.arange(6.0)])
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l1", 0.3)


@pytest.fixture(scope="module")
def solution(problem):
    return problem.solve(verbose=False)


def pixels(ax, places):
    """Colours (k, 3) of places of the axes, as drawn."""
    figure = ax.figure
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=figure.dpi)
        file.seek(0)
        image = imread(file)
    x, y = np.rint(ax.transData.transform(places)).astype(int).T
    return image[len(image) - y, x, :3]


def centres(shapes):
    return np.array([[shape.centroid.x, shape.centroid.y] for shape in shapes])


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_values_are_at_their_places():
    values = np.array([0.0, 1.0, 2.0, 3.0, np.nan, 5.0])
    ax = plot_map(SHAPES, values, label="rate")
    found = pixels(ax, centres(SHAPES))
    expected = colormaps["viridis"](values / 5.0)[:, :3]
    expected[4] = to_rgb(OTHER)
    np.testing.assert_allclose(found, expected, atol=0.01)
    assert "rate" in [axes.get_ylabel() for axes in ax.figure.axes]
    assert legend(ax) == ["no value (1 area)"]
    assert ax.get_title() == "6 areas"


def test_coefficients_follow_the_labels(solution):
    order = [3, 0, 5, 2, 1, 4]
    frame = Frame([SHAPES[k] for k in order], [LABELS[k] for k in order])
    level = solution.w[:, 1]
    expected = colormaps["viridis"]((level - level.min()) / np.ptp(level))[:, :3]
    for given in (frame, Frame(SHAPES)):  # a frame without labels is in the order of the nodes
        found = pixels(plot_map(given, solution, 1), centres(SHAPES))
        np.testing.assert_allclose(found, expected, atol=0.01)
    solution.info["features"] = ["level", "trend"]
    labels = [axes.get_ylabel() for axes in plot_map(frame, solution, "trend").figure.axes]
    assert "coefficient trend" in labels


def test_clusters_are_coloured_outlined_and_counted(solution):
    clusters = solution.clusters()
    rounded = np.round(solution.w, 6)
    k = len(np.unique(rounded, axis=0))
    assert clusters.max() + 1 == k
    ax = plot_map(Frame(SHAPES, LABELS), solution)
    assert ax.get_title() == f"6 areas, {k} clusters"
    styles = cluster_styles(np.bincount(clusters))
    expected = [to_rgb(styles[c][0]) for c in clusters]
    np.testing.assert_allclose(pixels(ax, centres(SHAPES)), expected, atol=0.01)


def test_numbers_of_clusters():
    ax = plot_map(SHAPES, [7, 3, 3, 7, 3, 3], by="cluster")
    assert legend(ax) == ["cluster 0 (4 areas)", "cluster 1 (2 areas)"]
    (outline,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    lengths = [np.abs(np.diff(line, axis=0)).sum() for line in outline.get_segments()]
    assert sorted(lengths) == [6.0, 8.0]  # around one by two, and two by two, squares


def test_hatches_tell_clusters_of_one_colour_apart():
    shapes = squares(4, 8)
    ax = plot_map(shapes, np.arange(32) // 2, by="cluster")
    (areas,) = [c for c in ax.collections if isinstance(c, PatchCollection)]
    colours = areas.get_facecolors()[::2]
    assert [patch.get_hatch() for patch in ax.patches] == ["////"] * 6 + ["...."] * 4
    looks = [(tuple(c), "") for c in colours[:6]]
    for colour, patch in zip(colours[6:], ax.patches, strict=True):
        assert patch.get_facecolor()[3] == 0.0  # the colour below shows
        looks.append((tuple(colour), patch.get_hatch()))
    assert len(set(looks)) == 16
    extents = [patch.get_path().get_extents() for patch in ax.patches]
    assert [(extent.x0, extent.y0) for extent in extents] == [
        (2.0 * (c % 4), float(c // 4)) for c in range(6, 16)
    ]
    assert "6 more in colours (12 areas)" in legend(ax)
    assert "16 of 16 share colours" in legend(ax)


def test_names_are_legible_on_every_colour():
    """Black on light areas, white on dark ones, outlined in the other; foreign letters plain."""
    frame = Frame(SHAPES, ["a", "b", "c", "d", "e", "\N{CJK UNIFIED IDEOGRAPH-65E5}"])
    texts = plot_map(frame, np.arange(6.0), names=True).texts
    assert [text.get_color() for text in texts] == [ON_DARK] * 3 + [ON_LIGHT] * 3
    assert [bool(text.get_path_effects()) for text in texts] == [True] * 5 + [False]


def test_holes_are_not_filled_however_rings_turn():
    outer, hole = [(0, 0), (4, 0), (4, 4), (0, 4)], [(1, 1), (3, 1), (3, 3), (1, 3)]
    for a in (outer, outer[::-1]):
        for b in (hole, hole[::-1]):
            ring = shapely.MultiPolygon([Polygon(a, [b]), box(5, 0, 6, 1)])
            ax = plot_map([ring, box(5, 3, 6, 4)], [0.0, 1.0])
            found = pixels(ax, [[2.0, 2.0], [0.5, 0.5], [5.5, 0.5], [5.5, 3.5]])
            assert found[0].tolist() == [1.0, 1.0, 1.0]
            np.testing.assert_allclose(found[1], found[2])
            np.testing.assert_allclose(
                found[1:], colormaps["viridis"]([0.0, 0.0, 1.0])[:, :3], atol=0.01
            )


def test_the_graph_fits_the_map_in_degrees():
    shapes = [box(10 + c, 60 + r, 11 + c, 61 + r) for r in range(2) for c in range(2)]
    frame = Frame(shapes, crs=DEGREES)
    problem = gtv.GTVProblem(contiguity_graph(frame), gtv.PointLoss.stack(np.eye(4)), lam=0.1)
    solution = problem.solve(verbose=False)
    ax = plot_map(frame, solution, names=True)
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2", "3"]
    widths = [path.get_extents() for c in ax.collections[:1] for path in c.get_paths()]
    assert widths[0].width == pytest.approx(np.cos(np.radians(61.0)) * widths[0].height)
    drawn = plot_graph(solution, problem, ax=ax)
    assert drawn is ax
    for path, place in zip(
        [path for c in ax.collections if isinstance(c, PatchCollection) for path in c.get_paths()],
        problem.graph.positions,
        strict=True,
    ):
        assert path.contains_point(place)
    on_sphere = knn_graph(frame, 2).positions
    np.testing.assert_allclose(on_sphere, problem.graph.positions)


def test_what_does_not_fit_is_refused(problem, solution):
    for arguments, problem_text in (
        ((SHAPES, np.arange(5.0)), "shown: one number for each of the 6 areas"),
        ((SHAPES, [0.0, np.inf, 0, 0, 0, 0]), "shown: entry 1 is inf"),
        ((SHAPES, np.arange(6), 0), "by: None or 'cluster' is expected with an array, got 0"),
        ((SHAPES, solution, 2), r"by: 'cluster', a number in 0\.\.1.* got 2"),
        ((SHAPES, solution, "gap"), r"by: 'cluster', .* got 'gap'"),
        ((SHAPES[:5], solution), "areas: one row for each of the 6 nodes"),
        ((Frame(SHAPES, list("abcdeX")), solution), "areas: its labels .* there is no row 'f'"),
        (([*SHAPES[:5], Point(0, 0)], solution), "areas: row 5 is no Polygon"),
    ):
        with pytest.raises(ValueError, match=problem_text):
            plot_map(*arguments)
    with pytest.raises(TypeError, match="shown: integers are expected"):
        plot_map(SHAPES, np.arange(6.0), by="cluster")
    with pytest.raises(TypeError, match="areas: a GeoDataFrame"):
        plot_map(solution, SHAPES)
    ax = Figure().add_subplot()
    assert plot_map(SHAPES, np.full(6, np.nan), ax=ax) is ax


def test_real_frames(solution):
    geopandas = pytest.importorskip("geopandas", reason="geopandas (extra geo)")
    frame = geopandas.GeoDataFrame({"id": LABELS}, geometry=SHAPES).set_index("id")
    level = solution.w[:, 1]
    expected = colormaps["viridis"]((level - level.min()) / np.ptp(level))[:, :3]
    for given in (frame, frame.iloc[::-1], frame.geometry):
        found = pixels(plot_map(given, solution, 1), centres(SHAPES))
        np.testing.assert_allclose(found, expected, atol=0.01)
    values = plot_map(frame, frame.area * np.arange(6.0)).collections[0].get_array()
    assert values.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
