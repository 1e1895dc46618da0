"""Reading edge, data and partition files: what is read, and how bad files are refused."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gtvcvx.files import _csv
from gtvcvx.files._tables import match_nodes, read_data, read_edges, read_labels


@pytest.fixture
def file(tmp_path):
    """Write a text to a file and return its path."""

    def write(text, encoding="utf-8"):
        path = tmp_path / "in.csv"
        path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
        return path

    return write


def refusal(path, line=None, column=None, problem=""):
    """Pattern of a message that names file, line and column."""
    text = re.escape(str(path))
    if line is not None:
        text += f", line {line}"
    if column is not None:
        text += f", column {re.escape(column)}"
    return f"^{text}: .*{problem}"


def edges_of(table):
    return [
        (table.labels[i], table.labels[j], weight)
        for (i, j), weight in zip(table.edges.tolist(), table.weights.tolist(), strict=True)
    ]


class TestEdges:
    def test_header_and_weights(self, file):
        table = read_edges(file("from,to,weight\nb,a,2\na,c,0.5\n"))
        assert table.labels == ["b", "a", "c"]
        assert edges_of(table) == [("b", "a", 2.0), ("a", "c", 0.5)]
        assert table.edges.dtype == np.int64
        assert table.weights.dtype == np.float64

    def test_no_header_no_weights(self, file):
        table = read_edges(file("3,1\n1,2\n"))
        assert table.labels == [3, 1, 2]
        assert edges_of(table) == [(3, 1, 1.0), (1, 2, 1.0)]

    def test_parallel_edges_are_kept(self, file):
        assert len(read_edges(file("0,1,1\n1,0,2\n0,1,3\n")).edges) == 3

    @pytest.mark.parametrize(
        ("text", "labels"),
        [
            ("1,2\n-3,0\n", [1, 2, -3, 0]),
            ("01,02\n02,10\n", ["01", "02", "10"]),
            ("1.0,2\n2,3\n", ["1.0", "2", "3"]),
            ("1,A7\nA7,2\n", ["1", "A7", "2"]),
            ("+1,2\n2,3\n", ["+1", "2", "3"]),
            ("1,1000000000000000000000\n1,2\n", ["1", "1000000000000000000000", "2"]),
        ],
    )
    def test_labels_are_integers_only_if_all_are(self, file, text, labels):
        table = read_edges(file(text))
        assert table.labels == labels
        assert {type(label) for label in table.labels} == {type(labels[0])}

    @pytest.mark.parametrize(
        ("text", "n_edges"),
        [
            ("source,target\nx,y\ny,z\n", 2),
            ("Node1,Node2\nx,y\n", 1),
            ("county,next\n1,2\n2,3\n", 2),
            ("i,j\n1,2\n", 1),
            ("a,b,w\nx,y,1\n", 1),
            ("x,y\ny,z\n", 2),
            ("u,v\nv,w\n", 2),
            ("from,to\nto,via\n", 2),
            ("1,x\n2,y\n", 2),
            ("x,y,1\nz,u,1\n", 2),
            ("7,8\n", 1),
        ],
    )
    def test_header_is_recognised(self, file, text, n_edges):
        assert len(read_edges(file(text)).edges) == n_edges

    def test_edge_in_the_first_row_keeps_its_weight_and_place(self, file):
        assert edges_of(read_edges(file("x,y,3\nz,x,1\n"))) == [("x", "y", 3.0), ("z", "x", 1.0)]

    @pytest.mark.parametrize("text", ["state,next_state\nx,y\ny,z\n", "x,y\nz,u\n", "x,y\n"])
    def test_first_row_that_may_be_either_is_refused(self, file, text):
        path = file(text)
        with pytest.raises(ValueError, match=refusal(path, 1, problem="make the first row")):
            read_edges(path)

    @pytest.mark.parametrize(
        "text",
        [
            "\ufefffrom,to,weight\r\na,b,1\r\nb,c,2\r\n",
            ' from , to , weight\n a ,b , 1\n\n   \n"b", "c",2 ',
        ],
    )
    def test_marks_blanks_quotes_line_ends(self, file, text):
        assert edges_of(read_edges(file(text))) == [("a", "b", 1.0), ("b", "c", 2.0)]

    def test_labels_with_commas_and_accents(self, file):
        assert read_edges(file('from,to\n"Bath, UK",Malmö\n')).labels == ["Bath, UK", "Malmö"]

    @pytest.mark.parametrize(
        ("text", "line", "column", "problem"),
        [
            ("", None, None, "the file is empty"),
            ("\n  \n", None, None, "the file is empty"),
            ("from,to\n", None, None, "no edge below the header"),
            ("from,to,weight\n", None, None, "no edge below the header"),
            ("a\nb\n", 1, None, "2 or 3 cells .* found 1"),
            ("a b 1\n", 1, None, "separated by commas are expected, found 1"),
            ("a,b,1,x\n", 1, None, "found 4"),
            ("a,b,1\nb,c\n", 2, None, "3 cells are expected, found 2"),
            ("a,b\nb,c\nc,d,1\n", 3, None, "2 cells are expected, found 3"),
            ("from,to\na,b\n\nb,c,1\n", 4, None, "found 3"),
            ("from,to,\na,b,1\n", 1, "names or first edge", "the cell is empty"),
            ("from,to\na,b\n,c\n", 3, "1 (node)", "the cell is empty"),
            ("from,to\na,b\nc, \n", 3, "2 (node)", "the cell is empty"),
            ("a,b,1\nb,c,\n", 2, "3 (weight)", "the cell is empty"),
            ("a,b,1\nb,c,x\n", 2, "3 (weight)", "'x' is not a number"),
            ("a,b,x\nb,c,1\n", 1, "3 (weight)", "'x' is not a number"),
            ("a,b,1\nb,c,1_0\n", 2, "3 (weight)", "'1_0' is not a number"),
            ("a,b,1\nb,c,\u0661\n", 2, "3 (weight)", "is not a number"),
            ("a,b,1\nb,c,nan\n", 2, "3 (weight)", "'nan' is not a finite number"),
            ("a,b,1\nb,c,-inf\n", 2, "3 (weight)", "'-inf' is not a finite number"),
            ("a,b,1\nb,c,1e999\n", 2, "3 (weight)", "'1e999' is not a finite number"),
            ("a,b,nan\nb,c,1\n", 1, "3 (weight)", "'nan' is not a finite number"),
            ("a,b,1\nb,c,0\n", 2, "3 (weight)", "a positive weight is expected, got '0'"),
            ("a,b,-2\nb,c,1\n", 1, "3 (weight)", "a positive weight is expected, got '-2'"),
            ("a,b,1\nb,c,1\nc,c,1\n", 3, None, "joins node 'c' to itself"),
            ("a,a\na,b\n", 1, None, "joins node 'a' to itself"),
            ('a,b,1\nb,"c,1\nd,e,1\n', 3, None, "not valid CSV"),
        ],
    )
    def test_refusals_name_file_line_and_column(self, file, text, line, column, problem):
        path = file(text)
        with pytest.raises(ValueError, match=refusal(path, line, column, problem)):
            read_edges(path)

    def test_missing_file_folder_and_encoding(self, tmp_path, file):
        with pytest.raises(ValueError, match=refusal(tmp_path / "no.csv", problem="no such file")):
            read_edges(tmp_path / "no.csv")
        with pytest.raises(ValueError, match=refusal(tmp_path, problem="cannot be read")):
            read_edges(tmp_path)
        path = file("from,to\nMalmö,a\n", encoding="latin-1")
        with pytest.raises(ValueError, match=refusal(path, 2, problem="not UTF-8; byte 0xf6")):
            read_edges(path)

    def test_lines_are_counted_across_chunks_and_quoted_line_breaks(self, file, monkeypatch):
        monkeypatch.setattr(_csv, "_CHUNK_ROWS", 3)
        rows = [f"{k},{k + 1},1\n" for k in range(10)]
        assert len(read_edges(file("".join(rows))).edges) == 10
        path = file("".join([*rows, "3,3,1\n"]))
        with pytest.raises(ValueError, match=refusal(path, 11)):
            read_edges(path)
        path = file('a,"b\r\nb\n",1\n\na,c,0\n')
        with pytest.raises(ValueError, match=refusal(path, 5, "3 (weight)")):
            read_edges(path)

    def test_many_edges_are_read_quickly(self, tmp_path):
        rng = np.random.default_rng(0)
        ends = rng.integers(0, 10**6, size=(200_000, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        weights = rng.random(len(ends)) + 0.1
        path = tmp_path / "big.csv"
        rows = zip(ends[:, 0].tolist(), ends[:, 1].tolist(), weights.tolist(), strict=True)
        path.write_text("".join(f"{i},{j},{a!r}\n" for i, j, a in rows))
        started = time.perf_counter()
        table = read_edges(path)
        # About 0.4 s: a million edges take a few seconds.
        assert time.perf_counter() - started < 3
        assert np.array_equal(np.array(table.labels)[table.edges], ends)
        assert np.array_equal(table.weights, weights)


class TestEdgesRoundTrip:
    word = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Z"]), min_size=1)
    label = st.one_of(st.integers(-(10**17), 10**17).map(str), word)
    edge = st.tuples(label, label, st.floats(1e-300, 1e300)).filter(lambda e: e[0] != e[1])

    @settings(max_examples=200, deadline=None, derandomize=True)
    @given(st.lists(edge, min_size=1, max_size=8))
    def test_what_was_written_is_read(self, tmp_path_factory, edges):
        path = tmp_path_factory.mktemp("csv", numbered=True) / "edges.csv"
        with path.open("w", encoding="utf-8", newline="") as handle:
            csv.writer(handle).writerows([("from", "to", "weight"), *edges])
        table = read_edges(path)
        assert [(str(i), str(j), a) for i, j, a in edges_of(table)] == edges


DATA = "state,a,y,b\nx,1,2,3\ny,-4,5.5,6e2\nx,7,8,9\n"


class TestData:
    def test_columns(self, file):
        table = read_data(file(DATA), node="state", target="y")
        assert table.node == ["x", "y", "x"]
        assert table.features == ["a", "b"]
        assert table.X.tolist() == [[1, 3], [-4, 600], [7, 9]]
        assert table.y.tolist() == [2, 5.5, 8]
        assert table.lines.tolist() == [2, 3, 4]
        assert table.n_skipped == 0
        assert table.X.flags.c_contiguous

    def test_chosen_features_in_the_order_wanted(self, file):
        text = "state,a,note,y,b\nx,1,abc,2,3\n"
        table = read_data(file(text), node="state", target="y", features=["b", "a"])
        assert table.features == ["b", "a"]
        assert table.X.tolist() == [[3, 1]]

    def test_no_feature_column(self, file):
        table = read_data(file("state,y\nx,1\ny,2\n"), node="state", target="y")
        assert table.X.shape == (2, 0)

    def test_rows_without_target_are_skipped_and_counted(self, file, monkeypatch):
        monkeypatch.setattr(_csv, "_CHUNK_ROWS", 2)
        text = "node,a,y\n1,1,\n2,2, \n2,3,4\n3,,\n4,5,6\n"
        table = read_data(file(text), node="node", target="y")
        assert table.node == [2, 4]
        assert table.X.tolist() == [[3], [5]]
        assert table.y.tolist() == [4, 6]
        assert table.lines.tolist() == [4, 6]
        assert table.n_skipped == 3

    @pytest.mark.parametrize(
        ("text", "line", "column", "problem"),
        [
            ("", None, None, "the file is empty"),
            ("state,a,y\n", None, None, "no row has a value in the target column 'y'"),
            ("state,a,y\nx,1,\n", None, None, "no row has a value in the target column 'y'"),
            (
                "county,a,y\nx,1,2\n",
                1,
                None,
                r"no column 'state' \(node\), only 'county'",
            ),
            ("state,a,z\nx,1,2\n", 1, None, r"no column 'y' \(target\)"),
            ("state,a,y,a\nx,1,2,3\n", 1, "4", "the column name 'a' occurs twice"),
            (",state,y\n0,x,2\n", 1, "1", "the column has no name"),
            ("state,a,y\nx,1,2\nx,1\n", 3, None, "3 cells are expected, found 2"),
            ("state,a,y\nx,1,2,3\n", 2, None, "3 cells are expected, found 4"),
            ("state,a,y\n,1,2\n", 2, "'state'", "the cell is empty"),
            ("state,a,y\nx,,2\n", 2, "'a'", "the cell is empty"),
            ("state,a,y\nx,one,2\n", 2, "'a'", "'one' is not a number"),
            ("state,a,y\nx,1,2\nx,NaN,2\n", 3, "'a'", "'NaN' is not a finite number"),
            ("state,a,y\nx,1,2\nx,1,inf\n", 3, "'y'", "'inf' is not a finite number"),
            ("state,a,y\nx,1,NA\n", 2, "'y'", "'NA' is not a number"),
        ],
    )
    def test_refusals_name_file_line_and_column(self, file, text, line, column, problem):
        path = file(text)
        with pytest.raises(ValueError, match=refusal(path, line, column, problem)):
            read_data(path, node="state", target="y")

    def test_missing_file(self, tmp_path):
        path = tmp_path / "no.csv"
        with pytest.raises(ValueError, match=refusal(path, problem="no such file")):
            read_data(path, node="state", target="y")

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"target": "state"}, ValueError, "target: the column 'state' is already"),
            ({"features": ["c"]}, ValueError, r"no column 'c' \(features\)"),
            ({"features": ["a", "a"]}, ValueError, "features: 'a' occurs twice"),
            ({"features": ["a", "y"]}, ValueError, "features: 'y' is the node or target"),
            ({"features": "ab"}, TypeError, "features: a list of column names"),
        ],
    )
    def test_arguments(self, file, arguments, error, message):
        with pytest.raises(error, match=message):
            read_data(file(DATA), **({"node": "state", "target": "y"} | arguments))


class TestMatchNodes:
    def test_positions(self, file):
        table = read_data(file(DATA), node="state", target="y")
        assert match_nodes(["z", "y", "x"], table).tolist() == [2, 1, 2]

    def test_labels_are_compared_by_their_text(self, file):
        table = read_data(file("state,y\n7,1\n"), node="state", target="y")
        assert table.node == [7]
        assert match_nodes(["A1", "7"], table).tolist() == [1]
        assert match_nodes(range(10), table).tolist() == [7]

    def test_unknown_node_is_refused(self, file):
        path = file(DATA)
        table = read_data(path, node="state", target="y")
        with pytest.raises(ValueError, match=refusal(path, 3, problem="node 'y' is not in")):
            match_nodes(["x", "z"], table)

    def test_leading_zeros_matter(self, file):
        path = file("state,y\n01,1\n")
        with pytest.raises(ValueError, match=refusal(path, 2, problem="node '01' is not in")):
            match_nodes([1, 2], read_data(path, node="state", target="y"))

    def test_labels_of_the_graph_with_the_same_text(self, file):
        table = read_data(file(DATA), node="state", target="y")
        with pytest.raises(ValueError, match="nodes: two labels read '1'"):
            match_nodes([1, "x", "y", "1"], table)


class TestLabels:
    def test_header_and_types(self, file):
        assert read_labels(file("node,cluster\nx,1\ny,0\n")) == {"x": 1, "y": 0}
        assert read_labels(file("state,cluster\n1,s\n2,n\n")) == {1: "s", 2: "n"}
        assert read_labels(file("1,s\n2,n\n")) == {1: "s", 2: "n"}
        assert read_labels(file("x,s\ny,n\n")) == {"x": "s", "y": "n"}

    def test_nodes_tell_the_header_and_the_order(self, file):
        nodes = ["y", "x"]
        for text in ("state,cluster\nx,1\ny,0\n", "x,1\ny,0\n"):
            assert list(read_labels(file(text), nodes).items()) == [("y", 0), ("x", 1)]
        assert read_labels(file("node,1\n3,2\n"), ["node", "3"]) == {"node": 1, "3": 2}
        assert read_labels(file("0,a\n1,b\n"), range(2)) == {0: "a", 1: "b"}

    @pytest.mark.parametrize(
        ("text", "line", "column", "problem"),
        [
            ("", None, None, "the file is empty"),
            ("node,cluster\n", None, None, "no row below the header"),
            ("x,1,2\n", 1, None, "2 cells .* found 3"),
            ("node,cluster\nx,1\ny\n", 3, None, "2 cells are expected, found 1"),
            ("node,cluster\nx,1\ny,\n", 3, "2 (cluster)", "the cell is empty"),
            ("node,cluster\nx,1\n,1\n", 3, "1 (node)", "the cell is empty"),
            ("node,cluster\nx,1\ny,1\nx,2\n", 4, None, "node 'x' is listed already on line 2"),
            ("node,cluster\nx,1\ny,1\nz,2\n", 4, None, "node 'z' is not in the graph"),
            ("node,cluster\nx,1\n", None, None, "no cluster for 1 of 2 nodes, .* 'y'"),
            ("typo,1\ny,2\n", None, None, "no cluster for 1 of 2 nodes, .* 'x'"),
        ],
    )
    def test_refusals(self, file, text, line, column, problem):
        path = file(text)
        with pytest.raises(ValueError, match=refusal(path, line, column, problem)):
            read_labels(path, ["x", "y"])


def test_readers_need_no_other_part_of_the_package():
    """The readers are pure parsing: of the package they load themselves only."""
    script = (
        "import sys, types; package = types.ModuleType('gtvcvx'); package.__path__ = sys.argv[1:];"
        "sys.modules['gtvcvx'] = package; import gtvcvx.files._tables;"
        "print(sorted(name for name in sys.modules if name.startswith('gtvcvx')))"
    )
    folder = str(Path(_csv.__file__).parents[1])
    out = subprocess.run(
        [sys.executable, "-c", script, folder], capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == str(
        [
            "gtvcvx",
            "gtvcvx._arrays",
            "gtvcvx.files",
            "gtvcvx.files._csv",
            "gtvcvx.files._edge_table",
            "gtvcvx.files._opening",
            "gtvcvx.files._partition",
            "gtvcvx.files._tables",
            "gtvcvx.files._targets",
            "gtvcvx.files._text",
        ]
    )
