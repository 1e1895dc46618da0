"""Large documents about partitions: the witnesses of `verify.kernel.partitions`, as arrays.

Section 9 of SCHEMA.md. What is read here is handed to the checks of JSON documents, cluster by
cluster, as the lists of witness numbers that they expect. Standard library only; loaded only for
such documents.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, chain
from typing import Any, NamedTuple

from verify.kernel import partitions, work
from verify.kernel.constants import QUADRATIC
from verify.kernel.data import keys, term_arrays
from verify.kernel.large import layout
from verify.kernel.large.archive import Archive
from verify.kernel.large.content import Content, check_hash, numbers_of
from verify.kernel.large.layout import FLOAT64, UINT32, Field, Head, TableHead, head_of, table_of
from verify.kernel.large.tables import Table
from verify.kernel.numbers import Number, as_list
from verify.kernel.partitions import Answer
from verify.kernel.verdict import malformed

#: Steps that stand for the objects made of an entry, eight bytes each: of a node (two dictionaries,
#: two constants, a demand), of an edge (its ends, twice), of a node in a set, of a data row; and of
#: a witness, and a set, by themselves.
_NODE, _EDGE, _MEMBER, _ROW, _WITNESS, _SET = 100, 40, 24, 32, 300, 24


class Sizes(NamedTuple):
    """How many entries of each array are about one cluster."""

    nodes: int
    flow: int
    sets: tuple[int, ...]
    left_out: int
    directions: int | None
    local: int | None

    @property
    def in_sets(self) -> int:
        """Entries of `sets`."""
        return sum(self.sets)


class Manifest(NamedTuple):
    """A manifest, read: the small parts of the witnesses, and what the arrays must be."""

    sha256: object
    claim: object
    head: Head
    clusters: list[dict[str, Any]]
    sizes: list[Sizes]
    tables: dict[str, TableHead]
    indices: dict[str, Field]

    def names(self) -> dict[str, int]:
        """Return the size of every member behind the manifest, in their order; -1: any size."""
        out = layout.names_of(self.head)
        for name in ("cluster", "sets", "left_out"):
            out[name] = self.indices[name].size
        for name, table in self.tables.items():
            if f"{name}/count" in self.indices:
                out[f"{name}/count"] = self.indices[f"{name}/count"].size
            out |= {field.name: field.size for field in table.fields()}
        return out


def check_partition(archive: Archive, parsed: Mapping[str, Any], data: object) -> Answer:
    """Check a large document about a partition, whose manifest has been parsed.

    Raises
    ------
    Verdict
        The answer, where it is found before the witnesses are looked at.
    """
    manifest = manifest_of(parsed)
    archive.expect(manifest.names())
    content = Content(archive)
    content.read_data(manifest.head)
    for table in manifest.tables.values():
        content.read_table(table)
    lists = {name: _indices(content, field) for name, field in manifest.indices.items()}
    witnesses = list(_witnesses(content, manifest, lists))
    check_hash(manifest.head, content, manifest.sha256, data)
    return partitions.check_witnesses(manifest.claim, _data(content, manifest.head), witnesses)


def manifest_of(value: Mapping[str, Any]) -> Manifest:
    """Return a manifest as it should be; what is left of the witnesses is read with them."""
    tables = ("beta", "delta", "flow", "directions", "local")
    doc = keys(
        value, {"schema", "sha256", "claim", "data", "clusters", *tables}, {"producer"}, "manifest"
    )
    head = head_of(doc["data"])
    clusters = as_list(doc["clusters"], None, "clusters")
    sizes = [_sizes(entry, f"clusters[{k}]") for k, entry in enumerate(clusters)]
    nodes = sum(s.nodes for s in sizes)
    shapes = {
        "beta": (nodes, 1),
        "delta": (nodes, 1),
        "flow": (sum(s.flow for s in sizes), 1),
        "directions": (sum(s.directions or 0 for s in sizes), head.d),
        "local": (sum(s.local or 0 for s in sizes), head.d),
    }
    read = {name: table_of(doc[name], name, *shape) for name, shape in shapes.items()}
    if any(not v.words or v.exponent for v in read["flow"].layers):
        raise malformed("flow: layers must be integers with exponent 0")
    counts = {
        "cluster": nodes,
        "sets": sum(s.in_sets for s in sizes),
        "left_out": sum(s.left_out for s in sizes),
        "directions/count": sum(s.nodes for s in sizes if s.directions is not None),
        "local/count": sum(s.nodes for s in sizes if s.local is not None),
    }
    indices = {name: Field(name, count, 1, UINT32) for name, count in counts.items()}
    return Manifest(doc["sha256"], doc["claim"], head, clusters, sizes, read, indices)


def _sizes(entry: object, name: str) -> Sizes:
    if not isinstance(entry, Mapping) or "cluster" not in entry or {"beta", "delta"} & set(entry):
        raise malformed(f"{name} must be an object with `cluster`, without `beta` and `delta`")

    def inside(key: str, part: str) -> int | None:
        found = entry.get(key, {})
        known = isinstance(found, Mapping) and part in found
        return layout.count_of(found[part], f"{name}.{key}.{part}") if known else None

    sets = as_list(entry.get("sets", ()), None, f"{name}.sets")
    return Sizes(
        layout.count_of(entry["cluster"], f"{name}.cluster"),
        layout.count_of(entry.get("flow", 0), f"{name}.flow"),
        tuple(layout.count_of(size, f"{name}.sets") for size in sets),
        layout.count_of(entry.get("left_out", 0), f"{name}.left_out"),
        inside("directions", "beta"),
        inside("roots", "local"),
    )


def _indices(content: Content, field: Field) -> array[int]:
    """Return a whole array of indices or counts."""
    work.charge(field.rows * (_NODE if field.name == "cluster" else _MEMBER))
    found = array("I")
    for piece in content.numbers(field):
        found.extend(piece)
    return found


class Later:
    """A list that is made when it is read, as those of numpy are."""

    def __init__(self, make: Callable[[], list[Any]]) -> None:
        self.tolist = make


def _witnesses(
    content: Content, manifest: Manifest, lists: Mapping[str, array[int]]
) -> Iterator[dict[str, Any]]:
    """Yield the witness of each cluster, as JSON documents have it, lists being made later."""
    rows = {name: Rows(content, table) for name, table in manifest.tables.items()}
    at = dict.fromkeys([*rows, *lists], 0)

    def indices(name: str, count: int) -> array[int]:
        at[name] += count
        return lists[name][at[name] - count : at[name]]

    def numbers(name: str, count: int) -> tuple[Rows, int, int]:
        at[name] += count
        return rows[name], at[name] - count, count

    def ragged(name: str, size: int, total: int, empty: int) -> Later:
        counts = indices(f"{name}/count", size)
        most = 1 if name == "directions" else total + empty
        if any(c > most for c in counts) or sum(c - empty for c in counts if c) != total:
            raise malformed(f"{name}/count: not the numbers of rows that the manifest states")
        source = numbers(name, total)
        return Later(lambda: list(_ragged(source, counts, empty)))

    for entry, sizes in zip(manifest.clusters, manifest.sizes, strict=True):
        work.charge(_WITNESS + _SET * len(sizes.sets))
        out = {**entry, "cluster": indices("cluster", sizes.nodes)}
        for name in ("beta", "delta"):
            out[name] = _column(*numbers(name, sizes.nodes))
        if "flow" in entry:
            out["flow"] = _whole_column(*numbers("flow", sizes.flow))
            work.charge(_EDGE * sizes.flow)
        if "sets" in entry:
            out["sets"] = [indices("sets", size) for size in sizes.sets]
        if "left_out" in entry:
            out["left_out"] = indices("left_out", sizes.left_out)
        if sizes.directions is not None:
            of_beta = ragged("directions", sizes.nodes, sizes.directions, 0)
            out["directions"] = {**entry["directions"], "beta": Vectors(of_beta)}
        if sizes.local is not None:
            of_nodes = ragged("local", sizes.nodes, sizes.local, 1)
            out["roots"] = {**entry["roots"], "local": of_nodes}
        yield out


def _column(rows: Rows, start: int, count: int) -> Later:
    return Later(lambda: list(chain.from_iterable(rows.take(start, count))))


def _whole_column(rows: Rows, start: int, count: int) -> Later:
    return Later(lambda: [x for (x,) in rows.integers(start, count)])


def _ragged(
    source: tuple[Rows, int, int], counts: Iterable[int], empty: int
) -> Iterator[list[list[Any]] | None]:
    """Yield some rows for each count, None for 0; a count is larger by `empty` than the rows."""
    rows, start, total = source
    found = rows.take(start, total)
    ends = accumulate((c - empty if c else 0) for c in counts)
    before = 0
    for count, end in zip(counts, ends, strict=True):
        yield found[before:end] if count else None
        before = end


class Vectors:
    """The only row of each list of rows, later."""

    def __init__(self, lists: Later) -> None:
        self._lists = lists

    def tolist(self) -> list[list[Any] | None]:
        """Return a row or None for each."""
        return [None if rows is None else rows[0] for rows in self._lists.tolist()]


class Rows:
    """A table of witness numbers, some rows at a time, best from the first to the last."""

    def __init__(self, content: Content, head: TableHead) -> None:
        self.table = Table(content, head)
        self._reader = self.table.reader()

    def integers(self, start: int, count: int) -> list[list[Number]]:
        """Return rows in units 2^-k of the table."""
        if not count:
            return []
        if start < self._reader.at:
            self._reader = self.table.reader()
        if start > self._reader.at:
            self._reader.take(start - self._reader.at)
        columns = self.table.with_ratios(self._reader.take(count), start)
        return list(map(list, zip(*columns, strict=True)))

    def take(self, start: int, count: int) -> list[list[str]]:
        """Return rows of witness numbers."""
        k = self.table.k
        return [[_text(x, k) for x in row] for row in self.integers(start, count)]


def _text(x: Number, k: int) -> str:
    """Write x 2^-k as a witness number."""
    if isinstance(x, int):
        return f"{x:#x}p-{k}"
    return f"{x.numerator:#x}/{x.denominator << k:#x}"


class Pairs:
    """Edges as pairs of nodes, without a list of them."""

    def __init__(self, heads: array[int], tails: array[int]) -> None:
        self._ends = heads, tails

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(*self._ends, strict=True)


def _data(content: Content, head: Head) -> dict[str, Any]:
    """Return what the checks read of canonical data; real numbers are doubles here."""
    fields = {field.name: field for field in head.fields()}
    work.charge(_EDGE * head.m)
    heads, tails, weights = (_all(content, fields[key]) for key in ("head", "tail", "weights"))
    terms = []
    for term in head.terms:
        work.charge(_ROW * term.rows)
        node = content.sorted_nodes[term.fields[0].name]
        plain: dict[str, Any] = {"kind": term.kind, "node": node}
        if term.kind in QUADRATIC:  # of other terms nothing but the nodes is looked at
            arrays = term_arrays(*term.form).items()
            for (key, wide), field in zip(arrays, term.fields[1:], strict=True):
                plain[key] = _rows(content, field, term.wide if wide is None else wide)
        terms.append(plain)
    small = {"n_nodes": head.n, "dim": head.d, "lam": head.plain["lam"]}
    penalty = head.plain["penalty"]
    return {**small, "penalty": penalty, "edges": Pairs(heads, tails), "weights": weights,
            "terms": terms}  # fmt: skip


def _all(content: Content, field: Field) -> array[Any]:
    """Return a whole array."""
    return numbers_of(content.stream(field.name).read(field.size), field.code)


def _rows(content: Content, field: Field, wide: bool) -> list[Any]:
    """Return the doubles of a field, as rows where its kind has rows."""
    work.charge(FLOAT64 * field.rows * field.columns)
    values, d = _all(content, field).tolist(), field.columns
    return [values[i * d : (i + 1) * d] for i in range(field.rows)] if wide else list(values)
