"""What a manifest says of the arrays that follow it: their names, sizes and order.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from verify.kernel import numbers, work
from verify.kernel.data import CLASSES, ROWS, TERMS, WEIGHTED, canonical, keys, term_arrays
from verify.kernel.matrices import Root
from verify.kernel.numbers import as_list
from verify.kernel.verdict import Verdict, malformed, shown

SCHEMA = "gtv-certificate-arrays/1"
PARTITIONS = "gtv-connectivity-arrays/1"  # of documents about partitions
MANIFEST = "manifest.json"
#: Members of a file are bounded, and layers of a table with them.
MOST_LAYERS, MOST_WORDS, LARGEST_EXPONENT = 16, 1024, 20000
_BELOW = 1 << 32  # of a number of nodes, edges or rows, which indices of 32 bits count
UINT32, FLOAT64 = 4, 8  # bytes


class Field(NamedTuple):
    """An array of the data: numbers of `width` bytes, `columns` in a row."""

    name: str
    rows: int
    columns: int
    width: int

    @property
    def size(self) -> int:
        """Bytes."""
        return self.rows * self.columns * self.width

    @property
    def code(self) -> str:
        """What `array` calls its numbers: indices, doubles."""
        return "I" if self.width == UINT32 else "d"


class TermHead(NamedTuple):
    """A loss term: its kind, number of rows and arrays, `node` first."""

    kind: str
    rows: int
    fields: tuple[Field, ...]
    wide: bool  # the form (k x d) of mu and kappa
    weighted: bool  # whether there is an array of weights
    name: str  # of an opaque one

    @property
    def form(self) -> tuple[str, bool]:
        """What the arrays depend on."""
        return self.kind, self.weighted


class Head(NamedTuple):
    """The data without their arrays; `plain` is what is hashed."""

    n: int
    d: int
    m: int
    plain: dict[str, Any]
    terms: tuple[TermHead, ...]

    def fields(self) -> Iterator[Field]:
        """Yield all arrays but the labels, in their order."""
        yield Field("head", self.m, 1, UINT32)
        yield Field("tail", self.m, 1, UINT32)
        yield Field("weights", self.m, 1, FLOAT64)
        for term in self.terms:
            yield from term.fields


def names_of(head: Head) -> dict[str, int]:
    """Return the size of every member of the data, in their order; -1: any size."""
    found = {f.name: f.size for f in head.fields()}
    labels = {"nodes.json": -1} if "nodes" in head.plain else {}
    first = {name: found.pop(name) for name in ("head", "tail", "weights")}
    return first | labels | found


def head_of(value: object) -> Head:
    """Return the head of the problem data."""
    required = {"schema", "n_nodes", "dim", "n_edges", "lam", "penalty", "terms"}
    raw = keys(value, required, {"nodes"}, "data")
    n, d, m = (count_of(raw[key], key) for key in ("n_nodes", "dim", "n_edges"))
    if n < 1 or d < 1 or raw.get("nodes", True) is not True:
        raise malformed("data: needs n_nodes >= 1 and dim >= 1; nodes may only be true")
    terms = [_term(t, d, k) for k, t in enumerate(as_list(raw["terms"], None, "terms"))]
    # The gate of JSON documents judges what is no array.
    small = canonical(
        {
            **{key: raw[key] for key in ("schema", "n_nodes", "dim", "lam", "penalty")},
            **{"edges": [], "weights": [], "terms": [_empty(t) for t in terms]},
        }
    )
    for key in ("schema", "lam", "penalty"):
        if small[key] != raw[key]:
            raise malformed(f"data.{key}: not in canonical form")
    return Head(n, d, m, raw, tuple(terms))


def count_of(value: object, name: str) -> int:
    """Return a number of nodes, edges or rows."""
    if type(value) is not int or not 0 <= value < _BELOW:
        raise malformed(f"{name}: expected an integer in [0, {_BELOW}), got {shown(value)}")
    return value


def _term(value: object, d: int, number: int) -> TermHead:
    kind = value.get("kind") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or (kind not in TERMS and kind != "opaque"):
        raise malformed(f"terms[{number}]: unknown kind {shown(kind)}")
    if kind == CLASSES:
        raise Verdict("UNPROVED", f"no exact rule for the loss {kind!r} in arrays")
    weighted = isinstance(value, Mapping) and kind in WEIGHTED and "weighted" in value
    arrays = term_arrays(kind, weighted)
    extra = {"name"} if kind == "opaque" else {"wide"} if None in arrays.values() else set[str]()
    extra |= {"weighted"} if weighted else set()
    raw = keys(value, {"kind", "rows"} | extra, set(), f"terms[{number}]")
    if raw.get("weighted", True) is not True:
        raise malformed(f"terms[{number}].weighted may only be true")
    rows, wide = count_of(raw["rows"], "rows"), raw.get("wide", False)
    if type(wide) is not bool or (wide and not rows):
        raise malformed(f"terms[{number}].wide must be true or false, false where it has no rows")
    fields = [Field(f"terms/{number}/node", rows, 1, UINT32)]
    for key, is_wide in arrays.items():
        columns = d if (wide if is_wide is None else is_wide) else 1
        fields.append(Field(f"terms/{number}/{key}", rows, columns, FLOAT64))
    return TermHead(kind, rows, tuple(fields), wide, weighted, raw.get("name", ""))


def _empty(term: TermHead) -> dict[str, Any]:
    if term.kind == "opaque":
        return {"kind": term.kind, "node": [], "name": term.name}
    return {"kind": term.kind, "node": []} | {key: [] for key in term_arrays(*term.form)}


class Layer(NamedTuple):
    """One of the summands of a table; `rows` is None where it has all of them.

    Of a layer of type "float64" `words` is 0; of a ratio `ratios` has the numbers, in units
    2^-exponent, and there are no members.
    """

    name: str
    words: int
    exponent: int
    rows: int | None
    ratios: dict[int, list[numbers.Number]] | None = None


class TableHead(NamedTuple):
    """A table of witness numbers: the sum of its layers."""

    name: str
    rows: int
    columns: int
    layers: tuple[Layer, ...]

    def fields(self) -> Iterator[Field]:
        """Yield the arrays of all layers, in their order."""
        for layer in self.layers:
            if layer.ratios is None:
                rows = self.rows if layer.rows is None else layer.rows
                if layer.rows is not None:
                    yield Field(f"{layer.name}/rows", rows, 1, UINT32)
                yield Field(layer.name, rows, self.columns, 8 * max(1, layer.words))


def table_of(value: object, name: str, rows: int, columns: int) -> TableHead:
    """Return what the manifest says of a table of so many rows and columns."""
    layers = as_list(value, None, name)
    if len(layers) > MOST_LAYERS:
        raise malformed(f"{name}: more than {MOST_LAYERS} layers")
    read = [_layer(v, f"{name}/{k}", rows, columns) for k, v in enumerate(layers)]
    return TableHead(name, rows, columns, tuple(read))


def _layer(value: object, name: str, rows: int, columns: int) -> Layer:
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind == "ratio":
        return _ratios(keys(value, {"type", "rows", "values"}, set(), name), name, rows, columns)
    if kind not in ("float64", "int"):
        raise malformed(f"{name}: unknown type {shown(kind)}")
    extra = {"words", "exponent"} if kind == "int" else set[str]()
    raw = keys(value, {"type"} | extra, {"rows"}, name)
    words, exponent, some = raw.get("words", 0), raw.get("exponent", 0), raw.get("rows")
    if kind == "int" and not (
        (type(words) is int and 1 <= words <= MOST_WORDS)
        and (type(exponent) is int and abs(exponent) <= LARGEST_EXPONENT)
    ):
        raise malformed(f"{name}: words or exponent out of range")
    if "rows" in raw and count_of(some, f"{name}: rows") > rows:
        raise malformed(f"{name}: more rows than the table has")
    return Layer(name, words, exponent, some)


def _ratios(raw: Mapping[str, Any], name: str, rows: int, columns: int) -> Layer:
    chosen = as_list(raw["rows"], None, f"{name}.rows")
    previous = -1
    for i in chosen:
        if type(i) is not int or not previous < i < rows:
            raise malformed(f"{name}: rows must be increasing and below {rows}")
        previous = i
    if name.startswith(("w/", "better/")):  # these go where all numbers may be ratios
        values, k = numbers.table(raw["values"], len(chosen), columns, name)
    else:
        listed = as_list(raw["values"], len(chosen), name)
        values, k = [[_ratio(x) for x in as_list(row, columns, name)] for row in listed], 0
    return Layer(name, 0, k, len(chosen), dict(zip(chosen, values, strict=True)))


def _ratio(value: object) -> numbers.Number:
    """Return a witness number by itself, without regard to others."""
    if isinstance(value, str):
        work.charge(work.fraction(4 * len(value)))  # bits of a hexadecimal digit
    read = numbers._number(value)
    if isinstance(read, tuple):
        work.charge(work.fraction(work.length(read[0]) + read[1]))  # exponents are short texts
        read = read[0] * numbers.unit(read[1])
    return numbers.whole(read)


class Quadratic(NamedTuple):
    """The witness of a quadratic penalty: two matrices, rows and unit, and a table."""

    null_space: Root
    root: Root
    x: TableHead


class Manifest(NamedTuple):
    """A manifest, read.

    `quadratic` is the witness of a quadratic penalty, if there is one.
    """

    sha256: object
    claim: dict[str, Any]
    head: Head
    w: TableHead
    u: TableHead | None
    quadratic: Quadratic | None
    r: tuple[TableHead, ...]
    better: TableHead | None

    def tables(self) -> Iterator[TableHead]:
        """Yield all tables, in their order."""
        yield self.w
        if self.u is not None:
            yield self.u
        if self.quadratic is not None:
            yield self.quadratic.x
        yield from self.r
        if self.better is not None:
            yield self.better

    def names(self) -> dict[str, int]:
        """Return the size of every member behind the manifest, in their order; -1: any size."""
        return names_of(self.head) | {f.name: f.size for t in self.tables() for f in t.fields()}


def manifest_of(value: object) -> Manifest:
    """Return a manifest as it should be; all that it says is read here."""
    required = {"schema", "sha256", "claim", "data", "w"}
    doc = keys(value, required, {"dual", "better", "producer"}, "manifest")
    if doc["schema"] != SCHEMA:
        raise malformed(f"schema must be {SCHEMA!r}, got {shown(doc['schema'])}")
    head = head_of(doc["data"])
    dual: dict[str, Any] = {}
    if doc.get("dual") is not None:
        more = {"quadratic"} if head.plain["penalty"]["kind"] == "quadratic" else set[str]()
        dual = keys(doc["dual"], {"u", "r"}, more, "dual")
        as_list(dual["r"], len(head.terms), "dual.r")
    better = doc.get("better")
    return Manifest(
        doc["sha256"],
        _claim(doc["claim"]),
        head,
        table_of(doc["w"], "w", head.n, head.d),
        table_of(dual["u"], "u", head.m, head.d) if dual else None,
        _quadratic(dual["quadratic"], head) if dual.get("quadratic") is not None else None,
        tuple(_multipliers(head, t, v) for t, v in enumerate(dual["r"])) if dual else (),
        None if better is None else table_of(better, "better", head.n, head.d),
    )


def _quadratic(value: object, head: Head) -> Quadratic:
    raw = keys(value, {"root", "null_space", "x"}, set(), "dual.quadratic")
    null, root = (numbers.table(raw[key], None, head.d, key) for key in ("null_space", "root"))
    return Quadratic(null, root, table_of(raw["x"], "x", head.m, head.d))


def _multipliers(head: Head, number: int, value: object) -> TableHead:
    term = head.terms[number]
    columns = 1 if term.kind in ROWS else head.d
    return table_of(value, f"r/{number}", term.rows, columns)


def _claim(value: object) -> dict[str, Any]:
    claim = keys(value, {"rtol", "upper", "lower"}, set(), "claim")
    for name, number in claim.items():
        if number is not None or name == "rtol":
            (v,), _ = numbers.scaled([number])
            if v < 0 and name == "rtol":
                raise malformed("rtol must not be negative")
    return claim
