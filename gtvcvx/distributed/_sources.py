"""Problems in files, read piece by piece: saved ones, and tables."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.lib import format as npy

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.distributed._buckets import Spool
from gtvcvx.files._csv import node_positions
from gtvcvx.files._storage import STRUCTURE, unflattened
from gtvcvx.files._tables import DataTable, positions_of, scan_data, scan_edges
from gtvcvx.losses.batched._terms import FIELDS, ROW_KINDS, Term, check_targets, fields_of
from gtvcvx.penalties import Penalty, as_penalty, penalty_from_data
from gtvcvx.problem import SCHEMA, checked_lam
from verify._display import fields_text

EDGE = np.dtype([("head", "<i8"), ("tail", "<i8"), ("weight", "<f8")])
# Bytes that are read at a time.
_PIECE_BYTES = 1 << 22


@dataclass(frozen=True)
class TermForm:
    """What the entries of a term are.

    Attributes
    ----------
    kind : str
    dtype : dtype
        ``node``, a number of the whole graph, and the term's fields.
    """

    kind: str
    dtype: np.dtype[np.void]

    def term(self, records: Records) -> Term:
        """Return entries as plain data."""
        names = self.dtype.names or ()
        return {"kind": self.kind, **{name: np.ascontiguousarray(records[name]) for name in names}}


class Source(Protocol):
    """A problem that is read piece by piece, as often as need be.

    Attributes
    ----------
    n_nodes, dim : int
    penalty : dict
        Plain data.
    lam : float
    labels : sequence or None
        Of the nodes; None where they are their numbers.
    forms : list of TermForm
    """

    n_nodes: int
    dim: int
    penalty: dict[str, Any]
    lam: float
    labels: list[Any] | None
    forms: list[TermForm]

    def edges(self) -> Iterator[Records]:
        """Give the edges, in records of the type `EDGE`; heads are the lower ends."""

    def entries(self, k: int) -> Iterator[Records]:
        """Give the entries of the k-th term."""


class ProblemFile:
    """A file that `GTVProblem.save` wrote.

    Parameters
    ----------
    path : str or path-like

    Raises
    ------
    ValueError
        Naming the file: it is of another kind, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        try:
            self._read_structure()
        except FileNotFoundError:
            raise ValueError(f"{self._path}: there is no such file") from None
        except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self._path}: not a {SCHEMA} file, or damaged ({error})") from error

    def _read_structure(self) -> None:
        with zipfile.ZipFile(self._path) as archive:
            with archive.open(f"{STRUCTURE}.npy") as member:
                text = str(npy.read_array(member, allow_pickle=False))
            names = {name.removesuffix(".npy") for name in archive.namelist()} - {STRUCTURE}
            shapes = {name: _Header(archive, name) for name in names}
        data = unflattened(json.loads(text), shapes)
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {SCHEMA!r} is expected, found {data['schema']!r}")
        self.n_nodes, self.dim, self.lam = int(data["n_nodes"]), int(data["dim"]), data["lam"]
        self.penalty, self._edges = self._small(data["penalty"]), (data["edges"], data["weights"])
        penalty_from_data(self.penalty)
        nodes: list[Any] = data["nodes"]
        self.labels = None if nodes == list(range(self.n_nodes)) else nodes
        self._terms = data["terms"]
        self.forms = [_form_of(term) for term in self._terms]

    def _small(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return a dict with its arrays, which are small, in it."""
        return {
            name: self._array(value) if isinstance(value, _Header) else value
            for name, value in data.items()
        }

    def _array(self, header: _Header) -> np.ndarray[Any, Any]:
        return np.concatenate(list(self._pieces({"rows": header}, 1 << 10)))["rows"]

    def edges(self) -> Iterator[Records]:
        """Give the edges."""
        ends, weights = self._edges
        for piece in self._pieces({"ends": ends, "weight": weights}):
            out = np.empty(len(piece), EDGE)
            out["head"], out["tail"] = piece["ends"].min(axis=1), piece["ends"].max(axis=1)
            out["weight"] = piece["weight"]
            yield out

    def entries(self, k: int) -> Iterator[Records]:
        """Give the entries of the k-th term."""
        term, form = self._terms[k], self.forms[k]
        for piece in self._pieces({name: term[name] for name in form.dtype.names or ()}):
            yield piece.astype(form.dtype)

    def _pieces(self, columns: Mapping[str, _Header], rows: int | None = None) -> Iterator[Records]:
        """Give rows of several arrays of the same length side by side."""
        dtype = np.dtype([(name, at.dtype, at.shape[1:]) for name, at in columns.items()])
        length = next(iter(columns.values())).shape[0]
        if any(at.shape[0] != length for at in columns.values()):
            raise ValueError(f"{self._path}: arrays of different lengths")
        rows = max(_PIECE_BYTES // dtype.itemsize, 1) if rows is None else rows
        with zipfile.ZipFile(self._path) as archive, ExitStack() as stack:
            members = {
                name: stack.enter_context(_opened(archive, at)) for name, at in columns.items()
            }
            for first in range(0, length, rows):
                count = min(rows, length - first)
                out = np.empty(count, dtype)
                for name, at in columns.items():
                    out[name] = _read_rows(members[name], at, count, self._path)
                yield out


class _Header:
    """An array in an archive: its type and shape, but not its numbers."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.name = f"{name}.npy"
        with archive.open(self.name) as member:
            self.shape, fortran, self.dtype = _read_header(member)
        if fortran and len(self.shape) > 1:
            raise ValueError(f"array {name!r} has its columns first")
        if self.dtype.hasobject or not self.shape:
            raise ValueError(f"array {name!r} is none of numbers in rows")

    @property
    def row_bytes(self) -> int:
        return int(self.dtype.itemsize * math.prod(self.shape[1:]))


def _read_header(member: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(member)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(member)
    return shape, fortran, dtype


def _opened(archive: zipfile.ZipFile, at: _Header) -> Any:
    member = archive.open(at.name)
    _read_header(member)
    return member


def _read_rows(member: BinaryIO, at: _Header, count: int, path: str) -> np.ndarray[Any, Any]:
    wanted = at.row_bytes * count
    data = member.read(wanted)
    if len(data) < wanted:
        raise ValueError(f"{path}: damaged, array {at.name!r} is cut short")
    return np.frombuffer(data, at.dtype).reshape(count, *at.shape[1:])


def _form_of(term: Mapping[str, Any]) -> TermForm:
    kind = term["kind"]
    if kind not in FIELDS:
        raise ValueError(f"terms: kind {kind!r} is not one of {sorted(FIELDS)}")
    fields = [(name, "<f8", term[name].shape[1:]) for name in fields_of(dict(term))]
    return TermForm(kind, np.dtype([("node", "<i8"), *fields]))


@dataclass(frozen=True)
class Tables:
    """A problem as two tables, of edges and of data points; see ``gtvcvx fit``.

    Texts, gzipped or not, with commas, semicolons or tabs. Parquet files need pandas, and are read
    whole.

    Parameters
    ----------
    edges : str or path-like
        Two node columns and an optional weight column A_e.
    data : str or path-like
        A node column, feature columns and a target column; rows without a target are left out.
        Nodes without a row are unlabelled.
    node, target : str
        Names of these columns.
    features : sequence of str, optional
        Names of the feature columns. Default: all others.
    intercept : bool
        Whether a column of ones stands before the features.
    loss : str
        "squared", "logistic" (targets 0 and 1), "poisson", "huber", "pseudohuber", "absolute",
        "quantile" or "hinge" (-1 and 1).
    delta, level : float
        Of the Huber losses, and of the quantile loss.
    penalty : str or Penalty
        See `GTVProblem`.
    lam : float
    """

    edges: str | os.PathLike[str]
    data: str | os.PathLike[str]
    node: str
    target: str
    features: Sequence[str] | None = None
    intercept: bool = False
    loss: str = "squared"
    delta: float = 1.0
    level: float = 0.5
    penalty: str | Penalty = "l2"
    lam: float = 0.1

    __repr__ = fields_text


class TableSource:
    """What `Tables` describes; texts are read once, and kept as numbers in a folder.

    Parameters
    ----------
    tables : Tables
    folder : Path
        For temporary files.

    Raises
    ------
    ValueError
        Naming file, line and column.
    """

    def __init__(self, tables: Tables, folder: Path) -> None:
        if tables.loss not in ROW_KINDS:
            raise ValueError(f"loss: one of {sorted(ROW_KINDS)} is expected, got {tables.loss!r}")
        self._tables = tables
        self._edges, self._rows = Spool(folder / "edges.bin", EDGE), self._spooled_rows(folder)
        found = scan_edges(tables.edges, self._take)
        self._shift, self.n_nodes = found.shift, len(found.labels)
        plain = found.labels == list(range(self.n_nodes))
        self.labels: list[Any] | None = None if plain else found.labels
        self.lam = checked_lam(tables.lam)
        self._read_rows(node_positions(found.labels))
        self.penalty = as_penalty(tables.penalty, self.dim).to_data()

    def _take(self, ends: IntArray, weights: FloatArray) -> None:
        out = np.empty(len(ends), EDGE)
        out["head"], out["tail"], out["weight"] = ends.min(axis=1), ends.max(axis=1), weights
        self._edges.add(out)

    def _spooled_rows(self, folder: Path) -> Spool:
        tables = self._tables
        with closing(self._scan()) as pieces:
            self.dim = len(next(pieces).features) + bool(tables.intercept)
        if not self.dim:
            raise ValueError(f"{os.fspath(tables.data)}: there is no feature column")
        parameters = [(name, "<f8") for name in ROW_KINDS[tables.loss]]
        columns = [("node", "<i8"), ("X", "<f8", (self.dim,)), ("y", "<f8"), *parameters]
        self.forms = [TermForm(tables.loss, np.dtype(columns))]
        return Spool(folder / "rows.bin", self.forms[0].dtype)

    def _scan(self) -> Generator[DataTable, None, None]:
        t = self._tables
        return scan_data(t.data, node=t.node, target=t.target, features=t.features)

    def _read_rows(self, positions: Mapping[str, int]) -> None:
        tables, n_rows = self._tables, 0
        for piece in self._scan():
            out = np.empty(len(piece.node), self.forms[0].dtype)
            out["node"] = positions_of(piece, positions)
            out["X"][:, : int(tables.intercept)] = 1.0
            out["X"][:, int(tables.intercept) :] = piece.X
            out["y"] = piece.y
            for name in ROW_KINDS[tables.loss]:
                out[name] = getattr(tables, name)
            try:
                check_targets(tables.loss, piece.y)
            except ValueError as error:
                first, last = piece.lines[[0, -1]].tolist()
                raise ValueError(f"{piece.path}, lines {first} to {last}: {error}") from None
            self._rows.add(out)
            n_rows += len(out)
        if not n_rows:
            raise ValueError(
                f"{os.fspath(tables.data)}: no row has a value in the target column "
                f"{tables.target!r}"
            )

    def edges(self) -> Iterator[Records]:
        """Give the edges."""
        for piece in self._edges.pieces():
            piece["head"] -= self._shift
            piece["tail"] -= self._shift
            yield piece

    def entries(self, k: int) -> Iterator[Records]:
        """Give the rows."""
        return self._rows.pieces()
