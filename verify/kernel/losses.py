"""Rules of the loss terms: value, feasibility, conjugate with its domain, and B^T r.

The tables of SCHEMA.md in exact arithmetic, or in outward enclosures where exponentials and
logarithms occur. Standard library only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from verify.kernel import numbers, work
from verify.kernel.numbers import TEN50, Bounds, Number, exactly, quotients
from verify.kernel.verdict import Verdict, false

Table = list[list[Number]]
Image = dict[int, list[Number]]
Slopes = tuple[Number, Number] | None

# A data row of these kinds is h(z) = (1/m) max over s of s (z - y) - c s^2/4, s between two slopes
# (None: any s), with c = 1 for the CURVED ones and 0 otherwise. Hence h*(r) = r y + c (m/4) r^2,
# with m r between the slopes. Arguments: y, the row's delta or level, and one, in one unit.
# (Of pseudohuber, which has a class of its own, the ends of m r alone are as here.)
SLOPES: dict[str, Callable[[Number, Number, int], Slopes]] = {
    "squared": lambda y, extra, one: None,
    "huber": lambda y, delta, one: (-2 * delta, 2 * delta),
    "absolute": lambda y, extra, one: (-one, one),
    "quantile": lambda y, level, one: (-level, one - level),
    "hinge": lambda y, extra, one: (-one, 0) if y > 0 else (0, one),
    "pseudohuber": lambda y, delta, one: (-delta, delta),
}
CURVED = ("squared", "huber")
# Roots in losses are enclosed within 2^-256, before they are divided by m.
ROOT = 256


def _upper_logistic_conjugate(p: Fraction) -> Number | None:
    if not 0 <= p <= 1:
        return None
    return numbers.x_log_x(p)[1] + numbers.x_log_x(1 - p)[1]


def _upper_poisson_conjugate(p: Fraction) -> Number | None:
    return None if p < 0 else numbers.x_log_x(p)[1] - p * TEN50


# A data row of these kinds is h(z) = (1/m) (f(z) - y z), hence h*(r) = f*(p)/m with p = m r + y.
# The rules are f(z), enclosed, and f*(p) from above, None outside its domain, in units of 10^-50.
EXPONENTIAL: dict[
    str,
    tuple[Callable[[Number], tuple[int, int]], Callable[[Fraction], Number | None]],
] = {
    "logistic": (numbers.softplus, _upper_logistic_conjugate),
    "poisson": (numbers.exponential, _upper_poisson_conjugate),
}


def sum_norm(v: Iterable[Number]) -> Number:
    """Return the sum of the absolute values."""
    return sum(-x if x < 0 else x for x in v)


def dot(a: Any, b: Any) -> Number:
    """Return the sum of the products of two sequences of equal length."""
    return sum(x * y for x, y in zip(a, b, strict=True))


def spread(values: list[Any], d: int) -> list[list[Any]]:
    """Return the entries of `mu` or `kappa` as rows, one number per coordinate."""
    work.charge(4 * len(values) * d)  # d may be anything: nothing else bounds it here
    return [v if isinstance(v, list) else [v] * d for v in values]


class Term:
    """One loss term, a sum of blocks h(B w_i)."""

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
        return []


class RowTerm(Term):
    """A loss of data points: blocks h(x.w_i), one per row, m the rows of node i in this term."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        count: dict[int, int] = defaultdict(int)
        for i in self.node:
            count[i] += 1
        self.m = [count[i] for i in self.node]
        self.x, self.k_x = numbers.table(data["X"], len(self.node), d, "X")
        extra = data.get("delta") or data.get("level") or ["0x0p+0"] * len(self.node)
        y, self.k_y = numbers.scaled([*data["y"], *extra])
        self.y, self.extra = y[: len(self.node)], y[len(self.node) :]

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the rows; logarithms have 60 digits."""
        super().charge(rational, width, sums)
        rows = len(self.node)
        work.operations(16 * rows)
        if self.kind in EXPONENTIAL:
            work.charge(800 * rows)
            work.fractions(2 * rows)

    def value(self, w: Table, k: int) -> Bounds:
        """Enclose the sum of the rows' losses."""
        images = [dot(x, w[i]) for x, i in zip(self.x, self.node, strict=True)]
        k += self.k_x
        if self.kind in EXPONENTIAL:
            return self._exponential_value(images, k)
        fine, slopes, curved = max(k, self.k_y), SLOPES[self.kind], self.kind in CURVED
        a, b, one = 1 << (fine - k), 1 << (fine - self.k_y), 1 << fine
        parts: dict[int, Number] = defaultdict(int)
        for m, z, y, extra in zip(self.m, images, self.y, self.extra, strict=True):
            t = a * z - b * y
            s, ends = 2 * t, slopes(y, b * extra, one)
            if ends is not None:
                s = min(max(s, ends[0]), ends[1]) if curved else ends[t > 0]
            parts[m] += 4 * s * t - s * s * curved
        return quotients(parts, 2 * fine + 2)

    def _exponential_value(self, images: list[Number], k: int) -> Bounds:
        lo: dict[int, Number] = defaultdict(int)
        hi: dict[int, Number] = defaultdict(int)
        f, k_y = EXPONENTIAL[self.kind][0], numbers.unit(self.k_y)
        for m, i, image, y in zip(self.m, self.node, images, self.y, strict=True):
            z = image * numbers.unit(k)
            if self.kind == "poisson" and z > numbers.LARGEST_EXPONENT:
                raise Verdict("UNPROVED", f"exp(x.w) at node {i} is too large to be enclosed")
            low, high = f(z)
            linear = y * k_y * z * TEN50
            lo[m] += low - linear
            hi[m] += high - linear
        return Bounds(quotients(lo, 0).lo / TEN50, quotients(hi, 0).hi / TEN50)

    def dual(self, witness: object, name: str) -> tuple[Fraction, Image, int]:
        """Return an upper bound of h*(r), and X_i^T r_i per node in units 2^-k with that k."""
        r, k = numbers.scaled(numbers.as_list(witness, len(self.node), name))
        self.charge(work.rational_rows([v] for v in r), 1, self.d)
        image: Image = {i: [0] * self.d for i in self.node}
        for i, v, x in zip(self.node, r, self.x, strict=True):
            total = image[i]
            for c in range(self.d):
                total[c] += x[c] * v
        return self._upper_row_conjugate(r, k, name), image, k + self.k_x

    def _upper_row_conjugate(self, r: list[Number], k: int, name: str) -> Fraction:
        if self.kind in EXPONENTIAL:
            return self._upper_exponential_conjugate(r, k, name)
        fine, slopes, curved = max(k, self.k_y), SLOPES[self.kind], self.kind in CURVED
        a, b, one = 1 << (fine - k), 1 << (fine - self.k_y), 1 << fine
        total: Number = 0
        columns = zip(self.m, r, self.y, self.extra, strict=True)
        for row, (m, v, y, extra) in enumerate(columns):
            v, ends = a * v, slopes(y, b * extra, one)
            if ends is not None and not ends[0] <= m * v <= ends[1]:
                raise self.outside(name, row)
            total += 4 * b * y * v + m * v * v * curved
        return exactly(total, 2 * fine + 2).hi

    def _upper_exponential_conjugate(self, r: list[Number], k: int, name: str) -> Fraction:
        hi: dict[int, Number] = defaultdict(int)
        f, unit, k_y = EXPONENTIAL[self.kind][1], numbers.unit(k), numbers.unit(self.k_y)
        for row, (m, v, y) in enumerate(zip(self.m, r, self.y, strict=True)):
            bound = f(m * v * unit + y * k_y)
            if bound is None:
                raise self.outside(name, row)
            hi[m] += bound
        return quotients(hi, 0).hi / TEN50


class PseudoHuberTerm(RowTerm):
    """Rows (1/m) delta (sqrt(delta^2 + (z - y)^2) - delta), z = x.w_i.

    Hence h*(r) = r y + (1/m) delta (delta - sqrt(delta^2 - (m r)^2)) where |m r| <= delta.
    """

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the rows, with a root of four factors in each."""
        super().charge(rational, width, sums)
        work.charge(100 * len(self.node))
        work.operations(32 * len(self.node))
        work.rows(4 * min(rational, len(self.node)), width)

    def value(self, w: Table, k: int) -> Bounds:
        """Enclose the sum of the rows' losses: the roots from both sides."""
        k += self.k_x
        fine = max(k, self.k_y)
        a, b, g = 1 << (fine - k), 1 << (fine - self.k_y), max(0, ROOT - 2 * fine)
        lo: dict[int, Number] = defaultdict(int)
        hi: dict[int, Number] = defaultdict(int)
        for m, i, x, y, extra in zip(self.m, self.node, self.x, self.y, self.extra, strict=True):
            t, delta = a * dot(x, w[i]) - b * y, b * extra
            low, high = numbers.root(delta * delta * (delta * delta + t * t), g)
            lo[m] += low - delta * delta * (1 << g)
            hi[m] += high - delta * delta * (1 << g)
        return Bounds(quotients(lo, 2 * fine + g).lo, quotients(hi, 2 * fine + g).hi)

    def _upper_row_conjugate(self, r: list[Number], k: int, name: str) -> Fraction:
        """Return an upper bound of the sum of h*(r): the roots, which are taken off, from below."""
        fine = max(k, self.k_y)
        a, b, g = 1 << (fine - k), 1 << (fine - self.k_y), max(0, ROOT - 2 * fine)
        hi: dict[int, Number] = defaultdict(int)
        columns = zip(self.m, r, self.y, self.extra, strict=True)
        for row, (m, v, y, extra) in enumerate(columns):
            p, delta = m * a * v, b * extra
            ends = SLOPES[self.kind](b * y, delta, 1 << fine)
            if ends is not None and not ends[0] <= p <= ends[1]:
                raise self.outside(name, row)
            low, _ = numbers.root(delta * delta * (delta * delta - p * p), g)
            hi[m] += (p * b * y + delta * delta) * (1 << g) - low
        return quotients(hi, 2 * fine + g).hi


class PointTerm(Term):
    """||w_i - a_i||^2."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        self.a, self.k = numbers.table(data["a"], len(self.node), d, "a")

    def value(self, w: Table, k: int) -> Bounds:
        """Return the sum of the squares."""
        a, b = 1 << self.k, 1 << k  # w a - x b has unit k + self.k
        rows = zip(self.node, self.a, strict=True)
        parts = (a * p - b * q for i, row in rows for p, q in zip(w[i], row, strict=True))
        return exactly(sum(z * z for z in parts), 2 * (k + self.k))

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return the sum of r.a + ||r||^2/4."""
        linear = sum(dot(v, a) for v, a in zip(r, self.a, strict=True))
        return exactly(linear, k + self.k).hi + exactly(sum(dot(v, v) for v in r), 2 * k + 2).hi

    def lower_moduli(self) -> list[tuple[int, list[Fraction]]]:
        """Return 2 in every coordinate."""
        work.operations(30 * self.size)
        return [(i, [Fraction(2)] * self.d) for i in self.node]


class RidgeTerm(Term):
    """(1/2) sum over j of mu_ij w_ij^2."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        self.mu, self.k = numbers.table(spread(data["mu"], d), len(self.node), d, "mu")

    def value(self, w: Table, k: int) -> Bounds:
        """Return half the weighted sum of the squares."""
        rows = zip(self.node, self.mu, strict=True)
        return exactly(sum(dot(row, (x * x for x in w[i])) for i, row in rows), 2 * k + self.k + 1)

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return the sum of r_j^2 / (2 mu_j); r_j = 0 is required where mu_j = 0."""
        parts: dict[int, Number] = defaultdict(int)
        for row, (v, coefficients) in enumerate(zip(r, self.mu, strict=True)):
            for x, mu in zip(v, coefficients, strict=True):
                if mu:
                    parts[int(mu)] += x * x
                elif x:
                    raise self.outside(name, row)
        return quotients(parts, 2 * k - self.k + 1).hi

    def lower_moduli(self) -> list[tuple[int, list[Fraction]]]:
        """Return mu_ij."""
        work.operations(30 * self.size)
        unit = numbers.unit(self.k)
        return [(i, [v * unit for v in row]) for i, row in zip(self.node, self.mu, strict=True)]


class L1Term(Term):
    """Sum over j of kappa_ij |w_ij|."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        self.kappa, self.k = numbers.table(spread(data["kappa"], d), len(self.node), d, "kappa")

    def value(self, w: Table, k: int) -> Bounds:
        """Return the weighted sum of the absolute values."""
        rows = zip(self.node, self.kappa, strict=True)
        return exactly(sum(dot(row, map(abs, w[i])) for i, row in rows), k + self.k)

    def upper_conjugate(self, r: Table, k: int, name: str) -> Fraction:
        """Return zero; |r_j| <= kappa_j is required."""
        a, b = 1 << self.k, 1 << k
        for row, (v, kappa) in enumerate(zip(r, self.kappa, strict=True)):
            if any(not -c * b <= x * a <= c * b for x, c in zip(v, kappa, strict=True)):
                raise self.outside(name, row)
        return Fraction(0)


class BoxTerm(Term):
    """The constraint lower_i <= w_i <= upper_i, with infinite entries where there is none."""

    def __init__(self, data: Mapping[str, Any], d: int) -> None:
        super().__init__(data, d)
        lower, upper = ([[_finite(v) for v in row] for row in data[key]]
                        for key in ("lower", "upper"))  # fmt: skip
        self.ends = [list(zip(*rows, strict=True)) for rows in zip(lower, upper, strict=True)]

    def charge(self, rational: int, width: int, sums: int) -> None:
        """Count the work of one pass over the bounds, which are compared as rationals."""
        work.fractions(4 * self.size)

    def violation(self, w: Table, k: int) -> str | None:
        """Compare with every finite entry."""
        self.charge(len(self.node), self.d, 0)
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
        largest = map(max, r)
        return exactly(dot(self.total, largest), k + self.k).hi


def _finite(text: str) -> Fraction | None:
    x = float.fromhex(text)
    return None if math.isinf(x) else Fraction(x)


# Kinds with a rule of their own; all others are rows.
_TERMS = {
    "pseudohuber": PseudoHuberTerm,
    "point": PointTerm,
    "ridge": RidgeTerm,
    "l1": L1Term,
    "box": BoxTerm,
    "simplex": SimplexTerm,
}


def term_of(data: Mapping[str, Any], d: int) -> Term:
    """Return the rules of one entry of canonical `terms`; `Verdict` (UNPROVED) if it has none."""
    if data["kind"] == "opaque":
        raise Verdict("UNPROVED", f"no exact rule for the loss {data['name']!r}")
    return _TERMS.get(data["kind"], RowTerm)(data, d)
