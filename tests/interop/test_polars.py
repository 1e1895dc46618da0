"""polars data frames, out and in: the same as those of pandas."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.interop import graph_from_frame, rows_from_frame, to_frames

pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas")

EDGES = {"from": list("abccde"), "to": list("bcadef"), "weight": [1.0, 2.0, 1.0, 0.1, 1.0, 1.0]}


def columns():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(12).tolist()
    y[3] = y[7] = None
    return {
        "place": list("aabbccddaaee"),
        "height": rng.standard_normal(12),
        "slope": rng.integers(0, 9, 12),
        "hilly": rng.random(12) < 0.5,
        "y": y,
    }


@pytest.fixture(scope="module")
def problem():
    graph = graph_from_frame(pl.DataFrame(EDGES))
    rows = rows_from_frame(pl.DataFrame(columns()), graph, node="place", target="y")
    losses = gtv.SquaredLoss.from_rows(rows.X, rows.y, rows.node, graph.n_nodes)
    return gtv.GTVProblem(graph, losses, "l2", 0.1)


def test_graphs_are_those_of_pandas(problem):
    expected = graph_from_frame(pd.DataFrame(EDGES))
    assert list(problem.graph.nodes) == list(expected.nodes)
    assert np.array_equal(problem.graph.edges, expected.edges)
    assert np.array_equal(problem.graph.weights, expected.weights)
    numbered = graph_from_frame(pl.DataFrame({"i": [7, 8], "j": [8, 9]}))
    assert list(numbered.nodes) == [7, 8, 9]


def test_rows_are_those_of_pandas(problem):
    mine, theirs = (
        rows_from_frame(kind(columns()), problem.graph, node="place", target="y")
        for kind in (pl.DataFrame, pd.DataFrame)
    )
    for name in ("X", "y", "node"):
        assert np.array_equal(getattr(mine, name), getattr(theirs, name))
    assert mine.features == theirs.features == ["height", "slope", "hilly"]
    assert mine.n_skipped == theirs.n_skipped == 2


def test_frames_are_those_of_pandas(problem):
    solution = problem.solve()
    mine, theirs = (to_frames(solution, problem, library) for library in ("polars", "pandas"))
    assert isinstance(mine.nodes, pl.DataFrame)
    assert mine.nodes.columns == ["node", *theirs.nodes.columns]
    assert mine.nodes["node"].to_list() == theirs.nodes.index.tolist()
    assert mine.edges.columns == theirs.edges.columns.tolist()
    for name in theirs.nodes:
        assert mine.nodes[name].to_list() == theirs.nodes[name].tolist()
    for name in theirs.edges:
        assert mine.edges[name].to_list() == theirs.edges[name].tolist()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([3, 1], [3, 1]), (["b", "a"], ["b", "a"]), ([3, "a"], ["3", "a"]), ([(0, 1), 2], None)],
)
def test_labels_of_any_kind_become_one_column(labels, expected):
    graph = gtv.EmpiricalGraph(2, [[0, 1]], nodes=labels)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0]]), "l2", 0.1)
    frames = to_frames(problem.solve(), problem, "polars")
    assert frames.nodes["node"].to_list() == (expected or ["(0, 1)", "2"])
    assert frames.edges.select("head", "tail").row(0) == tuple(expected or ["(0, 1)", "2"])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"place": [None, *"abbccddaaee"]}, ValueError, ["row 0", "a node is expected"]),
        ({"place": ["z", *"abbccddaaee"]}, ValueError, ["row 0", "'z' is not in the graph"]),
        ({"place": ["a"] * 4 + [""] + ["a"] * 7}, ValueError, ["row 4", "the text is empty"]),
        ({"place": [0.5] * 12}, TypeError, ["a string or an integer", "0.5"]),
        ({"height": [1.0] * 11 + [None]}, ValueError, ["row 11", "'height'", "it is missing"]),
        ({"height": [1.0] * 11 + [np.nan]}, ValueError, ["row 11", "it is missing"]),
        ({"height": [1.0] * 5 + [np.inf] + [1.0] * 6}, ValueError, ["row 5", "finite", "inf"]),
        ({"height": ["1"] * 12}, TypeError, ["row 0", "a number is expected, got '1'"]),
        ({"height": [datetime.date(2026, 1, 1)] * 12}, TypeError, ["a number is expected"]),
        ({"y": [None] * 12}, ValueError, ["no row has a value in the target column 'y'"]),
    ],
)
def test_what_is_wrong_is_named(problem, change, error, words):
    """Rows are called by their numbers, also after those without a target were left out."""
    frame = pl.DataFrame(columns() | change)
    with pytest.raises(error) as raised:
        rows_from_frame(frame, problem.graph, node="place", target="y")
    assert all(word in str(raised.value) for word in words), raised.value


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([Decimal("0.5"), Decimal("2")]),
        pl.Series([1, 2], dtype=pl.UInt8),
        pl.Series([0.5, 2.0], dtype=pl.Float32),
    ],
)
def test_all_kinds_of_numbers_are_read(values):
    frame = pl.DataFrame({"i": ["a", "b"], "j": ["b", "c"], "A": values})
    assert graph_from_frame(frame).weights.tolist() == [float(x) for x in values]


def test_categories_are_labels():
    frame = pl.DataFrame({"i": ["a", "b"], "j": ["b", "c"]}).cast(pl.Categorical)
    assert list(graph_from_frame(frame).nodes) == ["a", "b", "c"]


def test_lazy_frames_are_to_be_collected():
    with pytest.raises(TypeError, match="got LazyFrame; collect it first"):
        graph_from_frame(pl.DataFrame(EDGES).lazy())


def test_estimators_take_polars(problem):
    """Names of features, the node column and single columns; scikit-learn knows how."""
    estimators = pytest.importorskip("gtvcvx.estimators")
    found = []
    for library in (pd, pl):
        data = library.DataFrame(columns() | {"y": np.arange(12.0)})
        X, y = data[["place", "height", "slope"]], data["y"]
        model = estimators.NetworkLinearRegression(
            graph=problem.graph, lam=0.1, node_column="place"
        )
        model.fit(X, y)
        assert model.feature_names_in_.tolist() == ["place", "height", "slope"]
        found.append(model.predict(X))
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(data[["place", "slope", "height"]])
    assert np.array_equal(*found)
