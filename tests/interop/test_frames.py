"""pandas data frames, out and in."""

from __future__ import annotations

import sys
from decimal import Decimal

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.interop import graph_from_frame, rows_from_frame, to_frames, to_networkx

# Data that are fitted exactly have the infimum zero.
pytestmark = pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def edges():
    return pd.DataFrame(
        {"from": list("abccde"), "to": list("bcadef"), "weight": [1, 2, 1, 0.1, 1, 1]}
    )


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((12, 2)), columns=["height", "slope"])
    frame.insert(0, "place", list("aabbccddaaee"))
    frame["y"] = frame["height"] - 2.0 * frame["slope"]
    frame.loc[[3, 7], "y"] = np.nan
    return frame


@pytest.fixture(scope="module")
def problem(edges, data):
    graph = graph_from_frame(edges)
    rows = rows_from_frame(data, graph, node="place", target="y")
    losses = gtv.SquaredLoss.from_rows(rows.X, rows.y, rows.node, graph.n_nodes)
    return gtv.GTVProblem(graph, losses, "l2", 0.1)


def test_frames_make_the_problem_of_the_same_csv_files(edges, data, problem, tmp_path, capsys):
    """The command line reads the files of these frames into the same problem."""
    from gtvcvx.cli import main

    edges.to_csv(tmp_path / "edges.csv", index=False)
    data.to_csv(tmp_path / "data.csv", index=False)
    arguments = ["--node", "place", "--target", "y", "--lam", "0.1", "--quiet"]
    files = ["--edges", str(tmp_path / "edges.csv"), "--data", str(tmp_path / "data.csv")]
    assert main(["fit", *files, *arguments, "-o", str(tmp_path / "s.npz")]) == 0
    read = gtv.GTVProblem.load(tmp_path / "s.problem.npz").to_data()
    mine = problem.to_data()
    assert read["nodes"] == mine["nodes"] == list("abcdef")
    assert np.array_equal(read["edges"], mine["edges"])
    assert np.array_equal(read["weights"], mine["weights"])
    for key in ("node", "X", "y"):
        assert np.array_equal(read["terms"][0][key], mine["terms"][0][key])


def test_rows_are_those_with_a_target(data, problem):
    rows = rows_from_frame(data, problem.graph, node="place", target="y")
    kept = data[data["y"].notna()]
    assert rows.n_skipped == 2
    assert np.array_equal(rows.X, kept[["height", "slope"]].to_numpy())
    assert np.array_equal(rows.y, kept["y"].to_numpy())
    assert [problem.graph.nodes[i] for i in rows.node] == kept["place"].tolist()
    assert rows.features == ["height", "slope"]
    one = rows_from_frame(data, problem.graph, node="place", target="y", features=["slope"])
    assert np.array_equal(one.X[:, 0], kept["slope"].to_numpy())


def test_frames_have_the_columns_of_the_networkx_graph(problem):
    solution = problem.solve(rtol=1e-8, verbose=False)
    nodes, links = to_frames(solution, problem)
    G = to_networkx(solution, problem, scalars=True)
    assert nodes.index.tolist() == list("abcdef")
    assert nodes.to_dict("index") == dict(G.nodes(data=True))
    for row in links.to_dict("records"):
        assert row == G.edges[row["head"], row["tail"]]
    assert len(links) == problem.graph.n_edges
    assert nodes["labelled"].dtype == bool
    assert not nodes.loc["f", "labelled"]
    assert np.array_equal(nodes[["w0", "w1"]].to_numpy(), solution.w)
    nodes.loc["a", "w0"] = 99.0
    assert solution.w[0, 0] != 99.0
    again = graph_from_frame(links, ends=("head", "tail"), weight="weight", nodes=list("abcdef"))
    assert np.array_equal(again.edges, problem.graph.edges)
    assert np.array_equal(again.weights, problem.graph.weights)


def test_named_features_name_the_columns(problem):
    solution = problem.solve(rtol=1e-6, verbose=False)
    solution.info["features"] = ["height", "gap"]
    nodes, links = to_frames(solution, problem)
    assert nodes.columns.tolist() == ["w_height", "w_gap", "cluster", "gap", "labelled"]
    assert {"flow_height", "flow_gap", "gap"} <= set(links.columns)


def test_labels_of_any_kind_stay_labels():
    graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]], None, [(0, 1), "x", 7])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(3)))
    nodes, links = to_frames(problem.solve(verbose=False), problem)
    assert nodes.index.tolist() == [(0, 1), "x", 7]
    assert links["head"].tolist() == [(0, 1), "x"]


def test_two_columns_weigh_one_and_parallel_edges_add_up():
    graph = graph_from_frame(pd.DataFrame({"i": [3, 1, 3], "j": [1, 2, 1]}))
    assert list(graph.nodes) == [3, 1, 2]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.weights.tolist() == [2.0, 1.0]
    assert all(isinstance(label, int) for label in graph.nodes)


def test_isolated_nodes_come_from_the_list_of_nodes(edges):
    graph = graph_from_frame(edges, nodes=[*"fedcba", "alone"])
    assert list(graph.nodes) == [*"fedcba", "alone"]
    assert graph.degrees[6] == 0
    with pytest.raises(ValueError, match="node 'f' is not in the graph"):
        graph_from_frame(edges, nodes=list("abcde"))


@pytest.mark.parametrize("kind", ["Int64", "category", "string", "object"])
def test_kinds_of_columns(kind, problem):
    text = kind in ("category", "string")
    labels = ["1", "2", "3"] if text else [1, 2, 3]
    frame = pd.DataFrame({"i": labels, "j": labels[1:] + labels[:1]}).astype(kind)
    graph = graph_from_frame(frame)
    assert list(graph.nodes) == labels
    values = pd.Series([1, None, 3], dtype="Int64" if kind == "Int64" else object)
    data = pd.DataFrame({"node": frame["i"], "x": [True, False, True], "y": values})
    rows = rows_from_frame(data, graph, node="node", target="y")
    assert rows.y.tolist() == [1.0, 3.0]
    assert rows.X.tolist() == [[1.0], [1.0]]
    # Labels are compared by their text, as those of CSV files are.
    other = graph_from_frame(frame.astype(str))
    again = rows_from_frame(data, other, node="node", target="y")
    assert again.node.tolist() == [0, 2]
    decimals = data.assign(x=[Decimal("0.5"), Decimal(1), Decimal(2)])
    assert rows_from_frame(decimals, graph, node="node", target="y").X[0, 0] == 0.5


def changed(frame, column, row, value):
    copy = frame.astype({column: object})
    copy.loc[row, column] = value
    return copy


@pytest.mark.parametrize(
    ("column", "value", "error", "words"),
    [
        ("from", None, ValueError, ["row 1", "'from'", "missing"]),
        ("from", "", ValueError, ["row 1", "'from'", "empty"]),
        ("to", 2.0, TypeError, ["row 1", "'to'", "2.0"]),
        ("to", True, TypeError, ["row 1", "'to'", "True"]),
        ("to", "b", ValueError, ["row 1", "node 'b' to itself"]),
        ("weight", 0.0, ValueError, ["row 1", "'weight'", "positive", "got 0"]),
        ("weight", -1.0, ValueError, ["row 1", "positive"]),
        ("weight", np.nan, ValueError, ["row 1", "'weight'", "missing"]),
        ("weight", np.inf, ValueError, ["row 1", "'weight'", "inf"]),
        ("weight", "1.5", TypeError, ["row 1", "'weight'", "'1.5'"]),
        ("weight", 1j, TypeError, ["row 1", "'weight'", "1j"]),
    ],
)
def test_bad_edges_are_named(edges, column, value, error, words):
    with pytest.raises(error) as raised:
        graph_from_frame(changed(edges, column, 1, value))
    assert all(word in str(raised.value) for word in ["edges", *words])


@pytest.mark.parametrize(
    ("column", "value", "error", "words"),
    [
        ("place", None, ValueError, ["'place'", "missing"]),
        ("place", "z", ValueError, ["'place'", "node 'z' is not in the graph"]),
        ("place", 1.5, TypeError, ["'place'", "1.5"]),
        ("height", None, ValueError, ["'height'", "missing"]),
        ("slope", -np.inf, ValueError, ["'slope'", "-inf"]),
        ("slope", "NA", TypeError, ["'slope'", "'NA'"]),
        ("y", np.inf, ValueError, ["'y'", "inf"]),
        ("y", "high", TypeError, ["'y'", "'high'"]),
    ],
)
def test_bad_rows_are_named(data, problem, column, value, error, words):
    frame = changed(data, column, 5, value).set_index(pd.Index(list("ABCDEFGHIJKL")))
    with pytest.raises(error) as raised:
        rows_from_frame(frame, problem.graph, node="place", target="y")
    assert all(word in str(raised.value) for word in ["data: row 'F'", *words])


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"node": "town"}, ValueError, ["no column 'town'", "'place'"]),
        ({"target": "z"}, ValueError, ["no column 'z'"]),
        ({"target": "place"}, ValueError, ["already the node column"]),
        ({"features": "height"}, TypeError, ["list of column names"]),
        ({"features": ["height", "height"]}, ValueError, ["'height'", "twice"]),
        ({"features": ["y"]}, ValueError, ["'y'"]),
        ({"features": ["z"]}, ValueError, ["no column 'z'"]),
        ({"features": []}, ValueError, ["features"]),
        ({"data": 3}, TypeError, ["data: a DataFrame of pandas or polars", "int"]),
    ],
)
def test_bad_arguments_are_named(data, problem, arguments, error, words):
    options = {"data": data, "node": "place", "target": "y", **arguments}
    with pytest.raises(error) as raised:
        rows_from_frame(options.pop("data"), problem.graph, **options)
    assert all(word in str(raised.value) for word in words)


def test_columns_of_edges_must_be_clear(edges, data):
    with pytest.raises(ValueError, match=r"2 or 3 columns .* found 4"):
        graph_from_frame(data)
    with pytest.raises(ValueError, match="ends: two column names"):
        graph_from_frame(edges, ends="from")
    with pytest.raises(ValueError, match="weight: the two node columns are expected as well"):
        graph_from_frame(edges, weight="weight")
    with pytest.raises(ValueError, match="no column 'w'"):
        graph_from_frame(edges, ends=("from", "to"), weight="w")
    with pytest.raises(ValueError, match="2 columns 'a'"):
        graph_from_frame(pd.DataFrame([["x", "y"]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="there is no row"):
        graph_from_frame(edges.iloc[:0])
    with pytest.raises(ValueError, match="two labels read '1'"):
        graph_from_frame(pd.DataFrame({"i": [1, "1"], "j": ["a", "a"]}))


def test_no_target_at_all(data, problem):
    with pytest.raises(ValueError, match="no row has a value in the target column 'y'"):
        rows_from_frame(data.assign(y=np.nan), problem.graph, node="place", target="y")


@pytest.mark.parametrize(("library", "extra"), [("pandas", "table"), ("polars", "polars")])
def test_a_missing_library_is_named_with_its_extra(problem, monkeypatch, library, extra):
    solution = problem.solve(verbose=False)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install \"gtvcvx\[{extra}\]\""):
        to_frames(solution, problem, library)
    with pytest.raises(ValueError, match=r"library: one of .* is expected, got 'R'"):
        to_frames(solution, problem, "R")


def test_nothing_is_said_in_attrs(problem):
    """Pandas loses them in merges, groups and files: all there is to say is in columns."""
    assert all(not frame.attrs for frame in to_frames(problem.solve(verbose=False), problem))


def test_frames_of_subclasses_are_read(edges, problem):
    class Frame(pd.DataFrame):
        """As GeoDataFrame is one."""

    graph = graph_from_frame(Frame(edges))
    assert np.array_equal(graph.weights, problem.graph.weights)
