"""Areas that adjoin, against naive geometry and against libpysal."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest

shapely = pytest.importorskip("shapely", reason="shapely (extra geo)")
from _maps import DEGREES, Frame, squares  # noqa: E402
from shapely import Point, Polygon, box  # noqa: E402

import gtvcvx as gtv  # noqa: E402
from gtvcvx.graph_construction import connect_components, contiguity_graph  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")


def pairs(graph):
    return set(map(tuple, graph.edges.tolist()))


def test_squares_of_a_board():
    graph = contiguity_graph(squares(3, 4), "rook")
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 4))
    assert pairs(graph) == set(grid.edges)
    queen = contiguity_graph(squares(3, 4))
    assert len(queen.edges) == 17 + 12
    assert (queen.weights == 1.0).all()
    assert queen.nodes == list(range(12))
    assert queen.positions.tolist()[5] == [1.5, 1.5]


def test_against_every_pair():
    """Rectangles at random on a coarse grid touch in all ways, and overlap."""
    rng = np.random.default_rng(0)
    corners = rng.integers(0, 12, (40, 2))
    sides = rng.integers(1, 4, (40, 2))
    shapes = [box(*a, *(a + b)) for a, b in zip(corners, sides, strict=True)]
    found = {rule: pairs(contiguity_graph(shapes, rule)) for rule in ("queen", "rook")}
    for i in range(40):
        for j in range(i + 1, 40):
            low = np.maximum(corners[i], corners[j])
            common = np.minimum(corners[i] + sides[i], corners[j] + sides[j]) - low
            assert ((i, j) in found["queen"]) == bool((common >= 0).all())
            assert ((i, j) in found["rook"]) == bool((common >= 0).all() and (common > 0).any())


def test_borders_need_no_common_vertices():
    tall, low, high = box(0, 0, 1, 3), box(1, 0, 2, 1.3), box(1, 1.3, 2, 3)
    assert pairs(contiguity_graph([tall, low, high], "rook")) == {(0, 1), (0, 2), (1, 2)}


def test_a_corner_that_was_rounded_is_no_border():
    eps = 1e-13
    shapes = [box(0, 0, 1, 1), box(1 - eps, 1 - eps, 2, 2)]
    assert pairs(contiguity_graph(shapes, "rook")) == set()
    assert pairs(contiguity_graph(shapes)) == {(0, 1)}


def test_holes_islands_and_parts():
    land = Polygon([(0, 0), (4, 0), (4, 4), (0, 4)], [[(1, 1), (1, 3), (3, 3), (3, 1)]])
    inside, far = box(1, 1, 3, 3), shapely.MultiPolygon([box(9, 9, 10, 10), box(4, 0, 5, 1)])
    graph = contiguity_graph([land, inside, far, box(1.5, 5, 2, 6)], "rook")
    assert pairs(graph) == {(0, 1), (0, 2)}
    assert graph.degrees[3] == 0
    joined = connect_components(graph, [land, inside, far, box(1.5, 5, 2, 6)], metric="euclidean")
    assert joined.edges.tolist() == [[0, 3]]
    assert joined.graph.positions is not None


class TestLabels:
    frame = Frame(squares(1, 3), ["c", "a", "b"], code=np.array([7, 5, 6]), name=["x", None, "z"])

    def test_of_the_index_or_a_column_or_given(self):
        assert contiguity_graph(self.frame).nodes == ["c", "a", "b"]
        codes = contiguity_graph(self.frame, nodes="code").nodes
        assert codes == [7, 5, 6]
        assert {type(code) for code in codes} == {int}
        assert contiguity_graph(self.frame, nodes=["p", "q", "r"]).nodes == ["p", "q", "r"]
        assert contiguity_graph(Frame(squares(1, 2))).nodes == [0, 1]

    def test_wrong_ones_are_refused(self):
        with pytest.raises(ValueError, match="no column 'Code'; the columns are 'code', 'name', "):
            contiguity_graph(self.frame, nodes="Code")
        with pytest.raises(ValueError, match="there is no column 'Code'; the columns are none"):
            contiguity_graph(squares(1, 2), nodes="Code")
        with pytest.raises(ValueError, match="nodes: row 'a' has no label"):
            contiguity_graph(self.frame, nodes="name")
        with pytest.raises(ValueError, match="nodes: row 1 has no label"):
            contiguity_graph(squares(1, 2), nodes=[0.0, np.nan])
        with pytest.raises(ValueError, match="nodes: label 'p' occurs twice"):
            contiguity_graph(self.frame, nodes=["p", "q", "p"])
        with pytest.raises(ValueError, match="nodes: 3 labels are expected, got 2"):
            contiguity_graph(self.frame, nodes=["p", "q"])


class TestRefused:
    BOWTIE = Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])

    @pytest.mark.parametrize(
        ("shape", "problem"),
        [
            (None, "has no geometry"),
            (Polygon(), "has an empty geometry"),
            (BOWTIE, r"has an invalid geometry \(Self-intersection.*make_valid"),
            (Point(0, 0), "is no Polygon or MultiPolygon but Point"),
            (
                shapely.GeometryCollection([box(0, 0, 1, 1)]),
                "is no Polygon or MultiPolygon but GeometryCollection",
            ),
            ("POINT (0 0)", "has no geometry of shapely but str"),
        ],
    )
    def test_by_row(self, shape, problem):
        frame = Frame([box(0, 0, 1, 1), shape], ["good", "bad"])
        with pytest.raises(ValueError, match=f"^areas: row 'bad' {problem}"):
            contiguity_graph(frame)

    def test_other_arguments(self):
        with pytest.raises(ValueError, match="rule: 'queen' or 'rook' is expected, got 'bishop'"):
            contiguity_graph(squares(1, 2), "bishop")
        for given in ([], [[0.0, 1.0]], np.eye(2), {"a": box(0, 0, 1, 1)}, 3):
            with pytest.raises(TypeError, match="areas: a GeoDataFrame, a GeoSeries or a sequence"):
                contiguity_graph(given)
        with pytest.raises(ValueError, match="areas: there is no row"):
            contiguity_graph(Frame([]))
        with pytest.raises(ValueError, match="row 1 is no place in degrees"):
            contiguity_graph(Frame([box(0, 0, 1, 1), box(0, 90, 1, 91)], crs=DEGREES))

    def test_without_shapely_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "shapely", None)
        with pytest.raises(ImportError, match=r"geometries need shapely: .*\"gtvcvx\[geo\]\""):
            contiguity_graph(Frame([]))


class TestRealMaps:
    """The stand-in for frames is right only if this holds, too."""

    @pytest.fixture(
        params=["G_utm.shp", "columbus.shp", "mexicojoin.shp", "us48.shp", "virginia.shp"]
    )
    def areas(self, request):
        geopandas = pytest.importorskip("geopandas", reason="geopandas (extra geo)")
        examples = pytest.importorskip("libpysal.examples", reason="libpysal (extra bench)")
        return geopandas.read_file(examples.get_path(request.param))

    @pytest.mark.parametrize("rule", ["queen", "rook"])
    def test_as_libpysal(self, areas, rule):
        from libpysal.graph import Graph

        shuffled = areas.sample(frac=1.0, random_state=0)
        found = contiguity_graph(shuffled, rule)
        theirs = gtv.EmpiricalGraph.from_pysal(
            Graph.build_contiguity(shuffled, rook=rule == "rook")
        )
        assert found.nodes == theirs.nodes == shuffled.index.tolist()
        assert np.array_equal(found.edges, theirs.edges)
        assert contiguity_graph(areas.geometry, rule).n_edges == found.n_edges

    def test_states_as_in_the_embedded_data(self):
        geopandas = pytest.importorskip("geopandas", reason="geopandas (extra geo)")
        examples = pytest.importorskip("libpysal.examples", reason="libpysal (extra bench)")
        states = geopandas.read_file(examples.get_path("us48.shp")).sort_values("STATE_NAME")
        found = contiguity_graph(states, nodes="STATE_NAME")
        data = gtv.datasets.load_us_income()
        assert found.nodes == data.states
        assert np.array_equal(found.edges, data.edges)
