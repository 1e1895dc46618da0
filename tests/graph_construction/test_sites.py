"""Near neighbours of geometries, by their CRS, and the places that graphs get."""

from __future__ import annotations

import numpy as np
import pytest

shapely = pytest.importorskip("shapely", reason="shapely (extra geo)")
from _maps import DEGREES, PLANE, Frame, squares  # noqa: E402
from shapely import LineString, MultiPolygon, Point, box  # noqa: E402

from gtvcvx._geometry import read_geometries  # noqa: E402
from gtvcvx.graph_construction import (  # noqa: E402
    connect_components,
    contiguity_graph,
    knn_graph,
    radius_graph,
)

pytestmark = pytest.mark.filterwarnings("error")

RNG = np.random.default_rng(0)
PLACES = RNG.random((25, 2)) * [60.0, 20.0] + [-100.0, 50.0]
POINTS = [Point(*place) for place in PLACES]


def same(a, b):
    return np.array_equal(a.edges, b.edges) and np.allclose(a.weights, b.weights, rtol=1e-9)


def test_projected_geometries_are_as_their_coordinates():
    frame = Frame(POINTS, [f"p{k}" for k in range(25)], PLANE)
    found = knn_graph(frame, 3)
    assert same(found, knn_graph(PLACES, 3))
    assert found.nodes[:2] == ["p0", "p1"]
    np.testing.assert_array_equal(found.positions, PLACES)
    assert same(knn_graph(frame, 3, metric="cityblock"), knn_graph(PLACES, 3, metric="cityblock"))
    assert same(radius_graph(frame, 9.0), radius_graph(PLACES, 9.0))


def test_degrees_are_great_circles():
    frame = Frame(POINTS, crs=DEGREES)
    expected = knn_graph(PLACES[:, ::-1], 3, metric="haversine")
    assert not same(knn_graph(PLACES, 3), expected)
    assert same(knn_graph(frame, 3), expected)
    assert same(knn_graph(POINTS, 3, metric="haversine"), expected)
    assert same(
        radius_graph(frame, 700.0), radius_graph(PLACES[:, ::-1], 700.0, metric="haversine")
    )
    # One degree of longitude is as long in the picture as on the map, half way up.
    across = np.cos(np.radians((PLACES[:, 1].min() + PLACES[:, 1].max()) / 2))
    for graph in (expected, knn_graph(frame, 3)):
        np.testing.assert_allclose(graph.positions, PLACES * [across, 1.0])


def test_centroids_of_areas_count():
    shapes = [*squares(2, 3, 10.0), LineString([(40, 0), (50, 0)])]
    centres = [[5, 5], [15, 5], [25, 5], [5, 15], [15, 15], [25, 15], [45, 0]]
    assert same(knn_graph(Frame(shapes, crs=PLANE), 2), knn_graph(centres, 2))


def test_centroids_on_the_sphere():
    across = MultiPolygon([box(179, -17, 180, -16), box(-180, -17, -179, -16)])
    north = box(-180, 80, 180, 90).segmentize(5.0)
    small, away = box(10, 50, 10.2, 50.1), box(100, 10, 100.2, 10.1)
    shapes = read_geometries(Frame([across, north, small, away], crs=DEGREES), "X", None)
    found = shapes.centroids()
    assert abs(abs(found[0, 0]) - 180.0) < 1e-4
    assert found[0, 1] == pytest.approx(-16.5, abs=0.01)
    assert found[1, 1] == pytest.approx(90.0, abs=0.01)
    np.testing.assert_allclose(found[2:], [[10.1, 50.05], [100.1, 10.05]], atol=1e-4)


def test_without_a_crs_degrees_are_noticed():
    with pytest.warns(UserWarning, match="X: there is no CRS, and all coordinates") as seen:
        knn_graph(POINTS, 3)
    with pytest.warns(UserWarning, match="set_crs") as more:
        connect_components(contiguity_graph(squares(1, 2)), Frame(squares(1, 2)))
    assert [warning.filename for warning in [*seen, *more]] == [__file__] * 2
    assert same(knn_graph(POINTS, 3, metric="euclidean"), knn_graph(PLACES, 3))
    knn_graph([Point(0, 0), Point(500, 0)], 1)


@pytest.mark.parametrize(
    ("crs", "metric", "problem"),
    [
        (DEGREES, "euclidean", "metric: 'euclidean' distances of degrees mean nothing"),
        (PLANE, "haversine", "metric: 'haversine' takes degrees, but the CRS is projected"),
        (PLANE, "precomputed", "metric: one of .* is expected for geometries"),
        (None, "manhattan", "metric: one of .* is expected for geometries"),
    ],
)
def test_metrics_that_do_not_fit_are_refused(crs, metric, problem):
    with pytest.raises(ValueError, match=problem):
        knn_graph(Frame(POINTS, crs=crs), 3, metric=metric)


def test_rows_are_refused_by_label():
    with pytest.raises(ValueError, match="X: row 'b' has an empty geometry"):
        knn_graph(Frame([Point(0, 0), Point()], ["a", "b"], PLANE), 1)
    with pytest.raises(ValueError, match="X: row 1 has no geometry"):
        knn_graph([Point(0, 0), None], 1)
    with pytest.raises(ValueError, match="row 0 is no place in degrees"):
        knn_graph([Point(500000, 0), Point(0, 0)], 1, metric="haversine")


def test_components_are_joined_whatever_the_order_of_the_rows():
    shapes = [box(0, 0, 1, 1), box(1, 0, 2, 1), box(7, 0, 8, 1), box(4, 0, 5, 1)]
    graph = contiguity_graph(Frame(shapes, ["a", "b", "c", "d"], PLANE))
    order = [3, 1, 0, 2]
    shuffled = Frame([shapes[k] for k in order], ["d", "b", "a", "c"], PLANE)
    found = connect_components(graph, shuffled)
    assert found.edges.tolist() == [[1, 3], [2, 3]]
    assert np.array_equal(found.graph.positions, graph.positions)
    # A frame without labels of its own is taken in its order.
    assert connect_components(graph, Frame(shapes, None, PLANE)).edges.tolist() == [[1, 3], [2, 3]]
    with pytest.raises(ValueError, match=r"X: its labels are not those of the nodes; .* row 'a'"):
        connect_components(graph, Frame(shapes, ["b", "c", "d", "e"], PLANE))
    with pytest.raises(ValueError, match="X: one row for each of the 4 nodes is expected, got 3"):
        connect_components(graph, Frame(shapes[:3], None, PLANE))


def test_arrays_in_the_plane_are_places_others_are_not():
    X = RNG.random((6, 2))
    assert np.array_equal(knn_graph(X, 2).positions, X)
    assert np.array_equal(radius_graph(X, 0.1, connect=True).positions, X)
    assert knn_graph(RNG.random((6, 3)), 2).positions is None
    D = np.abs(X[:, :1] - X[:, 0])
    assert knn_graph(D[:2, :2], 1, metric="precomputed").positions is None


def test_real_frames():
    geopandas = pytest.importorskip("geopandas", reason="geopandas (extra geo)")
    frame = geopandas.GeoDataFrame({"id": [f"n{k}" for k in range(25)]}, geometry=POINTS, crs=4326)
    found = knn_graph(frame, 3, nodes="id")
    assert same(found, knn_graph(PLACES[:, ::-1], 3, metric="haversine"))
    assert found.nodes[0] == "n0"
    projected = frame.to_crs(3035)
    metres = np.column_stack([projected.geometry.x, projected.geometry.y])
    assert same(knn_graph(projected.set_index("id"), 3), knn_graph(metres, 3))
    assert same(knn_graph(frame.geometry, 3), found)
    with pytest.raises(AttributeError, match="geometry"):
        knn_graph(geopandas.GeoDataFrame({"id": [1, 2]}), 1)
    areas = geopandas.GeoSeries(squares(2, 2), index=list("abcd"), crs=4326)
    found = read_geometries(areas, "X", None).centroids()
    exact = areas.to_crs(6933).centroid.to_crs(4326)
    np.testing.assert_allclose(found, np.column_stack([exact.x, exact.y]), atol=1e-4)
