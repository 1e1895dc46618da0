"""Decides on large documents: the same answers as for JSON, in the same order.

Section 8 of SCHEMA.md; `verify.kernel.checker` has the argument. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO

from verify.kernel import checker, work
from verify.kernel.large.archive import Archive, Stream
from verify.kernel.large.content import Content, check_hash
from verify.kernel.large.edges import Edges
from verify.kernel.large.layout import MANIFEST, PARTITIONS, Manifest, manifest_of
from verify.kernel.large.ratios import RatioBalance
from verify.kernel.large.tables import Table
from verify.kernel.large.terms import LargeTerm
from verify.kernel.losses import Table as Rows
from verify.kernel.numbers import Bounds
from verify.kernel.result import Result
from verify.kernel.verdict import Verdict, malformed

#: Steps that a byte of the manifest may cost: objects of a JSON text are some ten times as long.
_PER_BYTE = 4


def check_archive(
    file: BinaryIO,
    data: Mapping[str, Any] | None,
    rtol: Fraction,
    parsed: Callable[[bytes], Any],
) -> Result:
    """Check a large document; `parsed` reads strict JSON."""
    try:
        return _check(file, data, rtol, parsed)
    except Verdict as answer:
        return Result(answer.status, answer.reason)


def _check(file: BinaryIO, data: object, rtol: Fraction, parsed: Callable[[bytes], Any]) -> Result:
    archive = Archive(file)
    found = _manifest(archive, parsed)
    if isinstance(found, Mapping) and found.get("schema") == PARTITIONS:
        # loaded only here, so that whoever checks a certificate runs none of it
        partitions = import_module("verify.kernel.large.partitions")
        return Result(*partitions.check_partition(archive, found, data))
    manifest = manifest_of(found)
    archive.expect(manifest.names())
    content = _content(archive, manifest)
    check_hash(manifest.head, content, manifest.sha256, data)
    problem = LargeProblem(content, manifest)
    lower = None if manifest.u is None else problem.lower_bound(manifest)
    w = problem.point(Table(content, manifest.w))
    better = None
    if manifest.better is not None:
        better = partial(problem.point, Table(content, manifest.better))
    as_in_json: Any = problem  # what is asked of a `checker.Problem` there
    return checker.judged(as_in_json, w, lower, better, manifest.claim, rtol)


def _manifest(archive: Archive, parsed: Callable[[bytes], Any]) -> object:
    """Return the JSON value of the first member."""
    if list(archive.members)[:1] != [MANIFEST]:
        raise malformed(f"the first member must be {MANIFEST}")
    member = archive.members[MANIFEST]
    work.charge(_PER_BYTE * member.size)
    return parsed(Stream(archive, member).read(member.size))


def _content(archive: Archive, manifest: Manifest) -> Content:
    """Look at all arrays once: whatever is malformed is found before anything is judged."""
    content = Content(archive)
    content.read_data(manifest.head)
    for table in manifest.tables():
        content.read_table(table)
    return content


class LargeProblem:
    """A problem in a large document: its objective and the dual bound of a witness.

    Raises `Verdict` (UNPROVED) for a loss or a penalty that has no rule.
    """

    def __init__(self, content: Content, manifest: Manifest) -> None:
        self.content, head = content, manifest.head
        self.n, self.d = head.n, head.d
        self.edges = Edges(content, head)
        heads = enumerate(head.terms)
        self.terms = [LargeTerm(content, term, t, head.d) for t, term in heads]

    def point(self, table: Table) -> tuple[Rows, int]:
        """Return the rows of a point and the unit of its numbers."""
        return list(map(list, zip(*table.columns(), strict=True))), table.k

    def violation(self, w: Rows, k: int) -> str | None:
        """Return a constraint that the point with rows w_i 2^-k breaks, where P is infinite."""
        return next(filter(None, (t.violation(w, k) for t in self.terms)), None)

    def value(self, w: Rows, k: int) -> Bounds:
        """Enclose P at the point with rows w_i 2^-k, which breaks no constraint."""
        rational = work.rational_rows(w)
        work.operations(4 * self.n * self.d)
        columns = list(map(list, zip(*w, strict=True)))
        parts = [t.value(w, k, rational) for t in self.terms]
        parts.append(self.edges.value(columns, k, rational))
        return Bounds(work.total(p.lo for p in parts), work.total(p.hi for p in parts))

    def lower_bound(self, manifest: Manifest) -> Fraction:
        """Return the lower bound that (u, r) proves; `Verdict` (REFUTED) if it proves none."""
        if manifest.u is None:
            raise TypeError("there is no flow")
        u = Table(self.content, manifest.u)
        multipliers = [Table(self.content, head) for head in manifest.r]
        units = [r.k + t.k_x for r, t in zip(multipliers, self.terms, strict=True)]
        ratios = RatioBalance(max([u.k, *units]), self.d)
        bound, balance = self.edges.flow(u, ratios, manifest.quadratic)
        self._charge_balance(u, multipliers, ratios.k)
        conjugates, scale = list[Fraction](), 1 << (ratios.k - u.k)
        balance = [[x * scale for x in column] for column in balance]
        for term, r in zip(self.terms, multipliers, strict=True):
            conjugates.append(term.dual(r, balance, ratios))
        ratios.check(balance)
        if bound is None:
            raise Verdict("UNPROVED", "the dual has no `quadratic`, the witness for such a penalty")
        return -work.total([*conjugates, bound])

    def _charge_balance(self, u: Table, multipliers: list[Table], k: int) -> None:
        """Count what it takes to add up the balance of all nodes, in units 2^-k."""
        pairs = list(zip(multipliers, self.terms, strict=True))
        longest = max([u.bits + k - u.k, *(r.bits + t.bits_x + k - r.k - t.k_x for r, t in pairs)])
        work.read(self.n * self.d, longest, [], 0)
        work.operations(2 * self.d * sum(len(t.node) for t in self.terms))

    def upper_distance_squared(self, gap: Fraction) -> Fraction | None:
        """Bound ||w - w_hat||^2 by 2 gap / mu, mu the least modulus proved at a coordinate."""
        if gap < 0 or not {t.head.kind for t in self.terms} & {"point", "ridge"}:
            return None
        work.charge(20 * self.n * self.d)
        modulus: dict[int, list[Fraction]] = {}
        for term in self.terms:
            for i, row in term.lower_moduli():
                own = modulus.get(i)
                modulus[i] = row if own is None else _added(own, row)
        if len(modulus) < self.n:
            return None
        least = min(map(min, modulus.values()))
        return 2 * gap / least if least > 0 else None


def _added(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    return [x + y for x, y in zip(a, b, strict=True)]
