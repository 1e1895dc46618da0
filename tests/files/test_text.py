"""Other separators, gzipped files, Parquet, and the mistakes that are recognised by name."""

from __future__ import annotations

import gzip
import os
import sys
import threading

import pytest

from gtvcvx.files._tables import read_data, read_edges, read_labels

DATA = "state,a,y\nx,1.5,2\n\ny,0.1,4\n"


@pytest.fixture
def written(tmp_path):
    def write(content, name="in.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
        return path

    return write


def data(path):
    return read_data(path, node="state", target="y")


def same(table):
    assert table.features == ["a"]
    assert table.node == ["x", "y"]
    assert table.X.tolist() == [[1.5], [0.1]]
    assert table.y.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("separator", [",", ";", "\t", " ; "])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_separators_gzip_line_ends_and_byte_order_marks(written, separator, pack, line_end, mark):
    text = mark + DATA.replace(",", separator).replace("\n", line_end)
    table = data(written(pack(text.encode())))
    same(table)
    assert table.lines.tolist() == [2, 4]


def test_the_separator_is_what_there_is_most_of_outside_quotes(written):
    same(data(written('\n"state";"a";"y"\n"x";1.5;"2"\ny;.1;4\n')))
    table = data(written('state,"a;b;c;d",y\nx,1,2\n'))
    assert table.features == ["a;b;c;d"]
    table = data(written('state;"a,b,c,d";y\n"x;,y";1;2\n'))
    assert (table.features, table.node) == (["a,b,c,d"], ["x;,y"])
    assert read_edges(written("a;b;1\nb;c;2\n")).weights.tolist() == [1.0, 2.0]
    assert read_labels(written("node;cluster\na;1\n")) == {"a": 1}


def test_a_large_gzipped_file(written):
    """More than the buffers of any layer, and lines still counted."""
    rows = "".join(f"n{k};{k / 7!r};{k}\n" for k in range(60_000))
    table = data(written(gzip.compress(f"state;a;y\n{rows}".encode()), "big.csv.gz"))
    assert table.X[:, 0].tolist() == [k / 7 for k in range(60_000)]
    broken = f"state;a;y\n{rows}n1;1;x\n".encode()
    with pytest.raises(
        ValueError, match=r"big.csv.gz, line 60002, column 'y': 'x' is not a number"
    ):
        data(written(gzip.compress(broken), "big.csv.gz"))


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_is_read_once(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    content = gzip.compress(DATA.encode())
    writer = threading.Thread(target=lambda: path.write_bytes(content))
    writer.start()
    same(data(path))
    writer.join()


LONG = "".join(f"x,{k},1\n" for k in range(3000))  # longer than what is decoded at a time


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (DATA.encode("utf-16"), ["UTF-16", "UTF-8 is expected", "Excel"]),
        (DATA.encode("utf-16-le"), ["UTF-16", "UTF-8 is expected"]),
        (DATA.encode("utf-16-be"), ["UTF-16"]),
        (DATA.encode("utf-32"), ["UTF-32"]),
        ("state,a,y\nMalmö,1,2\n".encode("cp1252"), ["line 2", "0xf6", "'ö'", "iconv"]),
        (f"state,a,y\n{LONG}Malmö,1,2\n".encode("cp1252"), ["line 3002", "0xf6"]),
        (gzip.compress("state,a,y\n\nMalmö,1,2\n".encode("cp1252")), ["line 3", "'ö'"]),
        (b"PK\x03\x04\x14\x00", ["spreadsheet", "export it as CSV"]),
        (b"PAR1abc", [".parquet"]),
        (gzip.compress(DATA.encode())[:-12], ["gzip", "damaged or cut short"]),
        (b"\x1f\x8bgarbage", ["gzip", "damaged"]),
        (gzip.compress(LONG.encode())[:500], ["gzip", "damaged or cut short"]),
        (b"", ["empty"]),
        (gzip.compress(b""), ["empty"]),
        (b"state,a,y\nx,1,5,2\n", ["line 2", "3 cells", "found 4", "decimal point"]),
        (b"state,a,y\nx,1,2,\n", ["line 2", "found 4", "ends in a separator"]),
        (b"state,a,y,\nx,1,2,\n", ["line 1, column 4", "no name", "end in a separator"]),
        (b"state,a,y\nx;1;2\n", ["line 2", "found 1", "semicolons", "commas"]),
        (b"state;a;y\nx,1,2\n", ["line 2", "found 1", "by commas", "by semicolons"]),
        (b'state,a,y\nx,"1,5",2\n', ["line 2", "'a'", "'1,5' has a decimal comma", "1.5"]),
        (b"state;a;y\nx;1;-2,75e3\n", ["line 2", "'y'", "decimal comma", "-2.75e3"]),
        (b"state;a;y\nx;1.234,5;2\n", ["'a'", "'1.234,5'", "grouped"]),
        (b'state;a;y\nx;"1,234.5";2\n', ["'1,234.5'", "grouped"]),
        (b"state;a;a;y\nx;1;1;2\n", ["line 1", "'a' occurs twice"]),
    ],
)
def test_mistakes_are_named(written, content, words):
    path = written(content)
    with pytest.raises(ValueError, match=r"in.csv") as raised:
        data(path)
    for word in words:
        assert word in str(raised.value)


def frame():
    pandas = pytest.importorskip("pandas")
    columns = {"state": ["x", "y", "z"], "a": [0.1, 1 / 3, 2.0], "y": [2, None, 4]}
    return pandas.DataFrame(columns)


def test_tables_of_parquet_are_read_like_text(tmp_path, monkeypatch):
    """What pandas reads is given as text to the last digit; missing values are empty cells."""
    table = frame().convert_dtypes()
    monkeypatch.setattr("pandas.read_parquet", lambda path, **options: table)
    found = data(tmp_path / "in.parquet")
    assert found.X[:, 0].tolist() == [0.1, 2.0]
    assert (found.node, found.lines.tolist(), found.n_skipped) == (["x", "z"], [1, 3], 1)
    table.loc[2, "state"] = None
    with pytest.raises(ValueError, match=r"in.pq, row 3, column 'state': the cell is empty"):
        data(tmp_path / "in.pq")
    with pytest.raises(ValueError, match=r"in.pq: no column 'b'"):
        read_data(tmp_path / "in.pq", node="state", target="b")


def test_names_of_parquet_are_no_nodes(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"x": ["x", "y"], "y": ["y", "z"]})
    monkeypatch.setattr("pandas.read_parquet", lambda path, **options: table)
    found = read_edges(tmp_path / "in.parquet")
    assert (found.labels, found.edges.tolist()) == (["x", "y", "z"], [[0, 1], [1, 2]])
    assert read_labels(tmp_path / "in.parquet") == {"x": "y", "y": "z"}


def test_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "in.parquet"
    frame().to_parquet(path)
    assert data(path).X[:, 0].tolist() == [0.1, 2.0]
    edges = frame().drop(columns="y").assign(a=["y", "z", "x"])
    edges.to_parquet(path)
    assert read_edges(path).edges.tolist() == [[0, 1], [1, 2], [2, 0]]
    path.write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="no Parquet file, or a damaged one"):
        data(path)


def test_parquet_without_a_reader(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    path = tmp_path / "in.parquet"

    def missing(*args, **options):
        raise ImportError("Unable to find a usable engine; tried using: 'pyarrow'.")

    monkeypatch.setattr("pandas.read_parquet", missing)
    with pytest.raises(ValueError, match=r"usable engine.*need pandas and pyarrow"):
        data(path)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ValueError, match=r"in.parquet: Parquet files need pandas.*gtvcvx\[table\]"):
        data(path)
