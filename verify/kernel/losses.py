"""The loss terms: value, feasibility, conjugate with its domain, and B^T r.

Sums of blocks by the tables of SCHEMA.md, see `verify.kernel.rules`. Standard library only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

from verify.kernel import exponentials, numbers, work
from verify.kernel.grid_powers import ONE
from verify.kernel.numbers import Bounds, Number, by_denominator, exactly, quotients
from verify.kernel.rules import ENCLOSED, FINE, RULES
from verify.kernel.verdict import Verdict, false

Table = list[list[Number]]
Image = dict[int, list[Number]]


def dot(a: Any, b: Any) -> Number:
    """Return the sum of the products of two sequences of equal length."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def spread(values: list[Any], d: int) -> list[list[Any]]:
    """Return the entries of `mu` or `kappa` as rows, one number per coordinate."""
    work.charge(4 * len(values) * d)  # d may be anything: nothing else bounds it here
    return [v if isinstance(v, list) else [v] * d for v in values]


class Term:
    """One loss term, a sum of blocks h(B w_i)."""

    k_x = 0  # unit of B
    modulus: tuple[Table, int] = ([], 0)  # of strong convexity, a row a node where there is one

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        self.kind, self.node, self.d = data["kind"], data["node"], d
        self.size = len(self.node) * d  # entries of its blocks

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the blocks, at a point or at multipliers.

        At most so many rows of entries, or of multipliers, have rationals, at most so many each,
        and they are added to so many sums over other blocks.
        """
        rational = min(rational, len(self.node))
        work.operations(8 * self.size + 8)
        work.rows(rational, width)
        work.sums(rational * sums)

    def violation(self, w: Table, k: int) -> str | None:
        """Return where the point with rows w_i 2^-k breaks a constraint, None if nowhere."""
        return None

    def value(self, w: Table, k: int) -> Bounds:
        """Enclose the term at the point with rows w_i 2^-k, which breaks no constraint."""
        return Bounds(Fraction(0), Fraction(0))

    def dual(self, witness: object, name: str) -> tuple[Fraction, Image, int]:
        """Return an upper bound of h*(r), and B^T r per node in units 2^-k with that k."""
        r, k = numbers.table(witness, len(self.node), self.d, name)
        self.charge(work.rational_rows(r), self.d, self.d)
        return self.upper_conjugate(r, k, name), dict(zip(self.node, r, strict=True)), k

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return an upper bound of h*(r), r with rows in units 2^-k."""
        raise NotImplementedError

    def outside(self, name: str, row: int) -> Verdict:
        """Return the answer to a multiplier outside the domain of h*."""
        return false(f"{name}[{row}] is outside the domain of the {self.kind} conjugate")

    def lower_moduli(self) -> list[tuple[int, list[Fraction]]]:
        """Return (node, moduli of strong convexity per coordinate) where the kind proves some."""
        rows, k = self.modulus
        work.operations(30 * self.d * len(rows))
        pairs = zip(self.node, rows, strict=bool(rows))
        return [(i, [v * numbers.unit(k) for v in row]) for i, row in pairs]


class RuleTerm(Term):
    """Blocks of one number each, with a `Rule`: here the coordinates of w_i, with m = 1.

    Where a term has weights c, they are in the place of 1/m: integers in units 2^-k_c, one a block.
    """

    c: list[int] | None = None
    k_c = 0

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        self.rule = RULES[self.kind]
        self.least = FINE if self.kind in ENCLOSED else 0
        self.read(data)
        if "weight" in data:
            self.read_weights(data["weight"])

    def read(self, data: Mapping[str, Any]) -> None:
        """Read m, y and the further number of every block."""
        field = "a" if self.kind == "point" else "kappa"
        rows, self.k_y = numbers.table(spread(data[field], self.d), len(self.node), self.d, field)
        pair: list[list[Number]] = [list(chain.from_iterable(rows)), [0] * self.size]
        if self.kind == "point":
            self.modulus = [[2] * self.d] * len(self.node), 0
        self.y, self.extra = pair if self.kind == "point" else pair[::-1]
        self.m = [1] * self.size

    def read_weights(self, weight: Any) -> None:
        """Read c of every block."""
        found, self.k_c = numbers.scaled(weight)
        blocks = len(self.m) // max(1, len(found))
        self.c = [int(c) for c in found for _ in range(blocks)]
        if self.kind == "point":
            self.modulus = [[2 * c] * self.d for c in found], self.k_c

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the blocks; weights make numbers longer, and divide."""
        super().charge(rational, width, sums)
        if self.c is not None:
            work.operations(16 * len(self.c))
            work.divisions(2 * len(self.c))
            work.rows(min(rational, len(self.node)), width)

    def images(self, w: Table) -> list[Number]:
        """Return the numbers B w_i."""
        return list(chain.from_iterable(w[i] for i in self.node))

    def value(self, w: Table, k: int) -> Bounds:
        """Enclose the sum of the blocks' losses."""
        k += self.k_x
        fine = max(k, self.k_y, self.least)
        a, b, one = 1 << (fine - k), 1 << (fine - self.k_y), 1 << fine
        columns = zip(self.images(w), self.y, self.extra, strict=True)
        found = [self.rule.value(a * z, b * y, b * extra, one) for z, y, extra in columns]
        bounds = [x for x in found if x is not None]
        if len(bounds) < len(found):
            node = self.node[found.index(None)]
            raise Verdict("UNPROVED", f"exp(x.w) at node {node} is too large to be enclosed")
        if self.c is not None:
            least, most = (dot(self.c, (x[j] for x in bounds)) for j in (0, 1))
            k_f = 2 * fine + 2 + self.k_c
            return Bounds(exactly(least, k_f).lo, exactly(most, k_f).hi)
        lo, hi = (by_denominator((m, x[j]) for m, x in zip(self.m, bounds, strict=True))
                  for j in (0, 1))  # fmt: skip
        return Bounds(quotients(lo, 2 * fine + 2).lo, quotients(hi, 2 * fine + 2).hi)

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return an upper bound of h*(r), r with rows in units 2^-k."""
        return self.upper_sum(list(chain.from_iterable(r)), k, name)

    def upper_sum(self, r: Sequence[Number], k: int, name: str) -> Fraction:
        """Return an upper bound of h*(r), r with one number a block, in units 2^-k."""
        fine = max(k, self.k_y, self.least)
        a, b, one = 1 << (fine - k), 1 << (fine - self.k_y), 1 << fine
        if self.c is None:
            columns = zip(self.m, r, self.y, self.extra, strict=True)
            found = [
                self.rule.upper_conjugate(m * a * v, b * y, b * extra, one)
                for m, v, y, extra in columns
            ]
        else:  # p = r/c is an integer in units 2^-fine/c, in which the result is c^2 f*(p)
            a <<= self.k_c
            columns = zip(self.c, r, self.y, self.extra, strict=True)
            found = [
                self.rule.upper_conjugate(a * v, c * b * y, c * b * extra, c * one)
                for c, v, y, extra in columns
            ]
        bounds = [x for x in found if x is not None]
        if len(bounds) < len(found):
            raise self.outside(name, found.index(None) * len(self.node) // len(self.m))
        parts = by_denominator(zip(self.c or self.m, bounds, strict=True))
        return quotients(parts, 2 * fine + 2 + self.k_c).hi


class RowTerm(RuleTerm):
    """A loss of data points: blocks h(x.w_i), one per row, m the rows of node i in this term."""

    def read(self, data: Mapping[str, Any]) -> None:
        """Read the rows."""
        count = Counter(self.node)
        self.m = [count[i] for i in self.node]
        self.x, self.k_x = numbers.table(data["X"], len(self.node), self.d, "X")
        extra = data.get("delta") or data.get("level") or ["0x0p+0"] * len(self.node)
        y, self.k_y = numbers.scaled([*data["y"], *extra])
        self.y, self.extra = y[: len(self.node)], y[len(self.node) :]

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the rows."""
        super().charge(rational, width, sums)
        rows = len(self.node)
        work.operations(16 * rows)
        if self.kind in ENCLOSED:
            work.charge(800 * rows)
            work.divisions(2 * rows)
            work.operations(16 * rows)
            work.rows(4 * min(rational, rows), width)

    def images(self, w: Table) -> list[Number]:
        """Return the numbers x.w_i."""
        return [dot(x, w[i]) for x, i in zip(self.x, self.node, strict=True)]

    def dual(self, witness: object, name: str) -> tuple[Fraction, Image, int]:
        """Return an upper bound of h*(r), and X_i^T r_i per node in units 2^-k with that k."""
        r, k = numbers.scaled(numbers.as_list(witness, len(self.node), name))
        self.charge(work.rational_rows([v] for v in r), 1, 0)  # sums are counted below
        image: Image = {i: [0] * self.d for i in self.node}
        for i, v, x in zip(self.node, r, self.x, strict=True):
            total = image[i]
            for c in range(self.d):
                total[c] = work.plus(total[c], x[c] * v)
        return self.upper_sum(r, k, name), image, k + self.k_x


class MultinomialTerm(Term):
    """Blocks h(z) = (1/m) (ln(sum over k of exp z_k) - z_y), z = x^T W, one per row.

    Their multipliers are r = (p - e_y)/m for chances p >= 0 that add up to 1. The witness has those
    of all classes but y, p_y is what they leave of 1, so that they add up to 1 in any case.
    """

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        count = Counter(self.node)
        self.m: list[Any] = [count[i] for i in self.node]
        if "weight" in data:  # in the place of 1/m
            weight, k = numbers.scaled(data["weight"])
            self.m = [Fraction(1 << k) / c for c in weight]
        self.features = len(data["X"][0]) if data["X"] else d
        self.classes = d // self.features
        self.x, self.k_x = numbers.table(data["X"], len(self.node), self.features, "X")
        self.y = [int(float.fromhex(y)) for y in data["y"]]

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the rows."""
        super().charge(rational, width, sums)
        each = len(self.node) * self.classes
        work.charge(800 * each)
        work.divisions(2 * each)
        work.operations(32 * each)
        work.rows(4 * min(rational, len(self.node)) * self.classes, width)

    def value(self, w: Table, k: int) -> Bounds:
        """Enclose the sum of the rows' losses."""
        unit, found = 1 << (k + self.k_x), list[tuple[int, int]]()
        for x, y, i in zip(self.x, self.y, self.node, strict=True):
            z = [dot(x, w[i][c :: self.classes]) for c in range(self.classes)]
            found.append(exponentials.log_sum_exp([Fraction(v - z[y], unit) for v in z]))
        lo, hi = (by_denominator((m, v[j]) for m, v in zip(self.m, found, strict=True))
                  for j in (0, 1))  # fmt: skip
        return Bounds(quotients(lo, 0).lo / ONE, quotients(hi, 0).hi / ONE)

    def dual(self, witness: object, name: str) -> tuple[Fraction, Image, int]:
        """Return an upper bound of h*(r), and sum x r^T per node in units 2^-k with that k."""
        r, k = numbers.table(witness, len(self.node), self.classes - 1, name)
        self.charge(work.rational_rows(r), self.classes, self.d)
        image: Image = {i: [0] * self.d for i in self.node}
        for i, x, y, others in zip(self.node, self.x, self.y, r, strict=True):
            slopes, total = [*others[:y], -sum(others), *others[y:]], image[i]
            for j, v in enumerate(x):
                for c, s in enumerate(slopes, j * self.classes):
                    total[c] = work.plus(total[c], v * s)
        return self.upper_conjugate(r, k, name), image, k + self.k_x

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return an upper bound of the sum of (1/m) sum over k of p_k ln p_k."""
        found = list[tuple[int, Number]]()
        for row, (m, others) in enumerate(zip(self.m, r, strict=True)):
            p = [Fraction(m * v, 1) * numbers.unit(k) for v in others]
            p.append(1 - sum(p, Fraction(0)))
            if min(p) < 0:
                raise self.outside(name, row)
            found.append((m, sum(exponentials.x_log_x(v)[1] for v in p)))
        return quotients(by_denominator(found), 0).hi / ONE


class RidgeTerm(Term):
    """(1/2) sum over j of mu_ij w_ij^2."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        self.modulus = numbers.table(spread(data["mu"], d), len(self.node), d, "mu")
        self.mu, self.k = self.modulus

    def value(self, w: Table, k: int) -> Bounds:
        """Return half the weighted sum of the squares."""
        rows = zip(self.node, self.mu, strict=True)
        return exactly(sum(dot(row, (x * x for x in w[i])) for i, row in rows), 2 * k + self.k + 1)

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return the sum of r_j^2 / (2 mu_j); r_j = 0 is required where mu_j = 0."""
        for row, pair in enumerate(zip(r, self.mu, strict=True)):
            if any(x and not mu for x, mu in zip(*pair, strict=True)):
                raise self.outside(name, row)
        pairs = zip(chain.from_iterable(self.mu), chain.from_iterable(r), strict=True)
        squares = by_denominator((int(mu), x * x) for mu, x in pairs if mu)
        return quotients(squares, 2 * k - self.k + 1).hi


class BoxTerm(Term):
    """The constraint lower_i <= w_i <= upper_i, with infinite entries where there is none."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        ends = [[map(float.fromhex, row) for row in data[key]] for key in ("lower", "upper")]
        exact = [[[None if math.isinf(x) else Fraction(x) for x in row] for row in rows]
                 for rows in ends]  # fmt: skip
        self.ends = [list(zip(*rows, strict=True)) for rows in zip(*exact, strict=True)]

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the bounds, which are compared as rationals."""
        super().charge(rational, width, sums)
        work.divisions(4 * self.size)

    def violation(self, w: Table, k: int) -> str | None:
        """Compare with every finite entry."""
        self.charge(work.rational_rows(w[i] for i in self.node), self.d, 0)
        for i, ends in zip(self.node, self.ends, strict=True):
            for c, (x, (low, high)) in enumerate(zip(w[i], ends, strict=True)):
                v = x * numbers.unit(k)
                if (low is not None and v < low) or (high is not None and v > high):
                    return f"node {i} is outside its box in coordinate {c}"
        return None

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return the sum of max(lower_j r_j, upper_j r_j); infinite products are refused."""
        total = Fraction(0)
        for row, (v, ends) in enumerate(zip(r, self.ends, strict=True)):
            for x, (low, high) in zip(v, ends, strict=True):
                end = high if x > 0 else low
                if x and end is None:
                    raise self.outside(name, row)
                total += x * (end or 0)
        return total * numbers.unit(k)


class SimplexTerm(Term):
    """The constraint w_i >= 0, sum over j of w_ij = total_i."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        self.total, self.k = numbers.scaled(data["total"])

    def violation(self, w: Table, k: int) -> str | None:
        """Compare with equality."""
        self.charge(work.rational_rows(w[i] for i in self.node), self.d, 0)
        for i, total in zip(self.node, self.total, strict=True):
            if min(w[i]) < 0 or sum(w[i]) * (1 << self.k) != total * (1 << k):
                return f"node {i} is not on its simplex"
        return None

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return the sum of total times the largest r_j."""
        return exactly(dot(self.total, map(max, r)), k + self.k).hi


# Kinds with terms of their own; all others are rows.
_TERMS = {
    "multinomial": MultinomialTerm,
    "point": RuleTerm,
    "l1": RuleTerm,
    "ridge": RidgeTerm,
    "box": BoxTerm,
    "simplex": SimplexTerm,
}


def term_of(data: Mapping[str, Any], d: int) -> Term:
    """Return the rules of one entry of canonical `terms`; `Verdict` (UNPROVED) if it has none."""
    if data["kind"] == "opaque":
        raise Verdict("UNPROVED", f"no exact rule for the loss {data['name']!r}")
    return _TERMS.get(data["kind"], RowTerm)(data, d)
