"""Certificates made backwards: the optimum first, then data that make it one, with equality.

w is chosen, then a flow u in the subdifferential of the penalty at w and multipliers r in those of
the losses; what is missing in flow conservation is the slope of a point term, whose point a is
chosen last. All numbers are short, so that every a is a double. The gap is zero but for rounded
slopes of logistic, Poisson and multinomial losses, and of p-norms with powers.
"""

from __future__ import annotations

import math
import random
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction as F
from typing import Any

from _numbers import Document, double, doubles, hashed, number, numbers

Vector = list[F]
PENALTIES = ("l1", "l2", "linf", "squared", "quadratic", "singular", "pnorm1", "pnorm2", "pnorminf")
POWERS = ("pnorm1.5", "pnorm3", "pnorm1.1", "pnorm17.3")
ROWS = ("squared", "huber", "pseudohuber", "absolute", "quantile", "hinge", "logistic", "poisson")
AT_NODES = ("point", "ridge", "ridges", "l1", "l1s", "box", "simplex")
CLASSES = "multinomial"  # of an even dimension: 2 classes in 2, and 3 in 6
KINDS = ("none", *ROWS, *AT_NODES, CLASSES)
LAM = F(5, 4)  # times 3/5 and 4/5 it is dyadic: the slopes of l2
Q = {"quadratic": [[F(2), F(1)], [F(1), F(3)]], "singular": [[F(1), F(1)], [F(1), F(1)]]}


def sign(x: F) -> int:
    return (x > 0) - (x < 0)


def dot(a: Vector, b: Vector) -> F:
    return sum((x * y for x, y in zip(a, b, strict=True)), F(0))


def power(x: Decimal, s: Decimal) -> Decimal:
    """Return x^s, x > 0, to 50 digits: of exp and ln, which every library rounds correctly."""
    digits = Context(50)
    return digits.exp(digits.multiply(s, digits.ln(x)))


def slope_of_power(z: Vector, p: str) -> Vector:
    """Return a subgradient of the p-norm at z, rounded to 2^-30 so that it is one no more."""
    sizes = [Decimal(str(float(abs(x)))) for x in z if x]
    exponent = Decimal(p)
    length = power(sum(power(x, exponent) for x in sizes), 1 / exponent)
    found = []
    for x in z:
        exact = power(abs(Decimal(str(float(x)))) / length, exponent - 1) if x else Decimal(0)
        units = (exact * 2**30).to_integral_value(ROUND_DOWN)
        found.append(F(sign(x) * int(units), 2**30))
    return found


class Plant:
    """One instance with its optimum."""

    def __init__(
        self, kind: str, penalty: str, d: int = 2, seed: int = 0, weighted: bool = False
    ) -> None:
        self.rng = random.Random(f"{kind} {penalty} {d} {seed}")
        self.penalty, self.d, self.weighted = penalty, d, weighted
        self.n = self.rng.randint(3, 5)
        self.edges = self._graph()
        self.weights = [F(self.rng.randint(1, 6), 2) for _ in self.edges]
        self.w = self._point(kind)
        self.u = [self._flow(e) for e in range(len(self.edges))]
        self.terms: list[Document] = []
        self.r: list[Any] = []
        self.sums = self._divergence()
        if kind in ROWS:
            self._add_rows(kind)
        elif kind == CLASSES:
            self._add_class_rows()
        elif kind in AT_NODES and kind != "point":
            self._add_at_nodes(kind)
        self._absorb()

    def _graph(self) -> list[list[int]]:
        pairs = [[i, j] for i in range(self.n) for j in range(i + 1, self.n)]
        chosen = [[i, i + 1] for i in range(self.n - 1)]
        return sorted(chosen + [p for p in pairs if p not in chosen and self.rng.random() < 0.4])

    def _point(self, kind: str) -> list[Vector]:
        """Return clusters whose distances are rational: multiples of (3, 4), and all of 1-d."""
        steps = ([F(0), F(0)], [F(3, 2), F(2)], [F(3, 2), F(2)], [F(-3, 2), F(-2)], [F(3), F(4)])
        start = [F(0), F(1)]
        if kind == "simplex":  # w is not negative, and zero in a coordinate
            start = [F(2)] if self.d == 1 else [F(3, 2), F(3)]
        if self.d > 2:  # the same in every pair of coordinates, for other norms than l2
            start, steps = start * (self.d // 2), tuple(step * (self.d // 2) for step in steps)
        return [
            [a + b for a, b in zip(start, self.rng.choice(steps), strict=False)][: self.d]
            for _ in range(self.n)
        ]

    def _flow(self, e: int) -> Vector:
        """Return a subgradient of c phi at w_head - w_tail."""
        head, tail = self.edges[e]
        z = [a - b for a, b in zip(self.w[head], self.w[tail], strict=True)]
        c, name = LAM * self.weights[e], self.penalty
        if name == "squared":
            return [c * x for x in z]
        if name in Q:
            return [c * dot(row[: self.d], z) for row in Q[name][: self.d]]
        if name in ("l1", "pnorm1"):
            return [c * (sign(x) or F(self.rng.randint(-8, 8), 8)) for x in z]
        if not any(z):
            part = F(self.rng.randint(-8, 8), 8 * self.d if self.d <= 2 else 64)  # at most 1/d
            return [c * part for _ in z]
        if name in ("l2", "pnorm2"):
            length = F(math.isqrt(int(4 * dot(z, z))), 2)
            assert length**2 == dot(z, z)
            return [c * x / length for x in z]
        if name in POWERS and self.d > 1:
            return [c * x for x in slope_of_power(z, name.removeprefix("pnorm"))]
        top = max(range(self.d), key=lambda j: abs(z[j]))
        return [c * sign(x) if j == top else F(0) for j, x in enumerate(z)]

    def _divergence(self) -> list[Vector]:
        sums = [[F(0)] * self.d for _ in range(self.n)]
        for (head, tail), u in zip(self.edges, self.u, strict=True):
            for j, x in enumerate(u):
                sums[head][j] += x
                sums[tail][j] -= x
        return sums

    def _add_rows(self, kind: str) -> None:
        term: Document = {"kind": kind, "node": [], "X": [], "y": []}
        slopes: list[F] = []
        for i in sorted(self.rng.sample(range(self.n), 2)):
            m = self.rng.choice((1, 2, 3, 4))
            # Thirds are no doubles: three rows are the same row, whose slopes add up to one.
            drawn = [self._row(kind, i) for _ in range(1 if m == 3 else m)]
            for x, others, slope in drawn * (3 if m == 3 else 1):
                if self.weighted:  # in the place of 1/m, and not one over anything
                    weight = self.rng.choice((F(3, 8), F(1), F(5, 2)))
                    term.setdefault("weight", []).append(double(weight))
                    slope *= weight * m
                term["node"].append(i)
                term["X"].append(doubles(x))
                for key, value in others.items():
                    term.setdefault(key, []).append(double(value))
                slopes.append(slope / m)
                self._add(i, [a * slope / m for a in x])
        self.terms.append(term)
        self.r.append(slopes)

    def _add_class_rows(self) -> None:
        K = 2 if self.d == 2 else 3
        term: Document = {"kind": CLASSES, "node": [], "X": [], "y": []}
        others: list[Vector] = []
        for i in sorted(self.rng.sample(range(self.n), 2)):
            m = self.rng.choice((1, 2, 3, 4))
            drawn = [self._class_row(i, K) for _ in range(1 if m == 3 else m)]
            for x, y, p in drawn * (3 if m == 3 else 1):
                c = F(1, m)
                if self.weighted:  # in the place of 1/m, as of other rows
                    c = F(self.rng.randint(1, 24), 8)
                    term.setdefault("weight", []).append(double(c))
                term["node"].append(i)
                term["X"].append(doubles(x))
                term["y"].append(double(y))
                others.append([c * v for k, v in enumerate(p) if k != y])
                slopes = [c * (v - (k == y)) for k, v in enumerate(p)]
                self._add(i, [a * s for a in x for s in slopes])
        self.terms.append(term)
        self.r.append(others)

    def _class_row(self, i: int, K: int) -> tuple[Vector, int, Vector]:
        """Return x, a class, and the chances of all classes, rounded, which add up to one."""
        x = [F(self.rng.randint(-4, 4), 4) for _ in range(self.d // K)]
        weights = [math.exp(dot(x, self.w[i][k::K])) for k in range(K)]
        y = self.rng.randrange(K)
        p = [F(round(2**24 * v / sum(weights)), 2**24) for v in weights]
        p[y] = 1 - sum(v for k, v in enumerate(p) if k != y)
        return x, y, p

    def _row(self, kind: str, i: int) -> tuple[Vector, dict[str, F], F]:
        """Return x, what stands beside it, and a slope of the summand at x.w_i."""
        pick = self.rng.choice
        x = [F(self.rng.randint(-4, 4), 4) for _ in range(self.d)]
        z = dot(x, self.w[i])
        t = F(self.rng.randint(-8, 8), 4)  # z - y
        if kind == "squared":
            return x, {"y": z - t}, 2 * t
        if kind == "huber":
            delta = pick((F(1, 2), F(1)))
            slope = 2 * t if abs(t) <= delta else 2 * delta * sign(t)
            return x, {"y": z - t, "delta": delta}, slope
        if kind == "pseudohuber":  # 15^2 + 20^2 = 25^2
            t = pick((F(20, 8), F(-20, 8), F(0)))
            return x, {"y": z - t, "delta": F(15, 8)}, F(12, 8) * sign(t)
        if kind == "absolute":
            return x, {"y": z - t}, F(sign(t)) if t else F(self.rng.randint(-4, 4), 4)
        if kind == "quantile":
            q = pick((F(1, 4), F(1, 2), F(5, 8)))
            between = pick((-q, F(0), 1 - q))
            return x, {"y": z - t, "level": q}, between if t == 0 else 1 - q if t > 0 else -q
        if kind == "hinge":
            y = F(pick((-1, 1)))
            between = pick((F(0), F(-1, 2), F(-1)))
            return x, {"y": y}, y * (between if y * z == 1 else 0 if y * z > 1 else -1)
        if kind == "logistic":
            y = F(pick((0, 1)))
            return x, {"y": y}, F(round(2**24 / (1 + math.exp(-z))), 2**24) - y
        y = F(self.rng.randint(0, 3))
        return x, {"y": y}, F(round(2**24 * math.exp(z)), 2**24) - y

    def _add_at_nodes(self, kind: str) -> None:
        node = sorted(self.rng.sample(range(self.n), 2))
        name = {"ridges": "ridge", "l1s": "l1"}.get(kind, kind)
        term: Document = {"kind": name, "node": node}
        slopes = []
        for i in node:
            others, slope = self._entry(kind, self.w[i])
            for key, value in others.items():
                term.setdefault(key, []).append(doubles(value))
            slopes.append(slope)
            self._add(i, slope)
        self.terms.append(term)
        self.r.append(slopes)

    def _entry(self, kind: str, w: Vector) -> tuple[dict[str, Any], Vector]:
        """Return the numbers of a term at a node, and a slope at w."""
        eighths = [F(self.rng.randint(0, 8), 8) for _ in w]
        if kind == "ridge":
            return {"mu": F(3, 4)}, [F(3, 4) * x for x in w]
        if kind == "ridges":  # the first coordinate is left out
            mu = [F(0), F(3, 2)][: self.d] if self.d > 1 else [F(3, 2)]
            return {"mu": mu}, [a * x for a, x in zip(mu, w, strict=True)]
        if kind == "l1":
            return {"kappa": F(1, 2)}, [F(sign(x) or F(1, 2)) / 2 for x in w]
        if kind == "l1s":
            kappa = [*eighths[:-1], F(1, 4)]
            return {"kappa": kappa}, [a * (sign(x) or 1) for a, x in zip(kappa, w, strict=True)]
        if kind == "box":  # the last coordinate is at its upper bound, the first has no lower one
            lower = ["-inf", *(x - 1 for x in w[1:])]
            upper = [*(x + e for x, e in zip(w[:-1], eighths, strict=False)), w[-1]]
            slope = [*(F(1, 8) * (e == 0) for e in eighths[:-1]), F(3, 8)]
            return {"lower": lower, "upper": upper}, slope
        shifted = [F(3, 4) if x > 0 else F(1, 4) for x in w]
        return {"total": sum(w, F(0))}, shifted

    def _add(self, i: int, r: Vector) -> None:
        for j, x in enumerate(r):
            self.sums[i][j] += x

    def _absorb(self) -> None:
        """Give every node a point term with 2 c (w_i - a_i) minus what the others add up to."""
        weights = [F(1)] * self.n
        if self.weighted:
            weights = [self.rng.choice((F(1, 4), F(2), F(8))) for _ in range(self.n)]
        a = [
            [x + s / (2 * c) for x, s in zip(w, row, strict=True)]
            for w, row, c in zip(self.w, self.sums, weights, strict=True)
        ]
        term = {"kind": "point", "node": list(range(self.n)), "a": doubles(a)}
        self.terms.append(term | ({"weight": doubles(weights)} if self.weighted else {}))
        self.r.append([[-s for s in row] for row in self.sums])

    def data(self) -> Document:
        penalty: Document = {"kind": self.penalty}
        if self.penalty in Q:
            rows = [row[: self.d] for row in Q[self.penalty][: self.d]]
            penalty = {"kind": "quadratic", "Q": doubles(rows)}
        elif self.penalty.startswith("pnorm"):
            p = self.penalty.removeprefix("pnorm")
            penalty = {"kind": "pnorm", "p": p if p == "inf" else float(p).hex()}
        return {
            "schema": "gtv-problem/1",
            "n_nodes": self.n,
            "dim": self.d,
            "edges": self.edges,
            "weights": doubles(self.weights),
            "lam": double(LAM),
            "penalty": penalty,
            "terms": self.terms,
        }

    def document(self) -> Document:
        dual: Document = {"u": numbers(self.u), "r": numbers(self.r)}
        if self.penalty in Q:
            dual["quadratic"] = self._quadratic()
        return hashed(
            {
                "schema": "gtv-certificate/1",
                "data": self.data(),
                "claim": {"rtol": number(F(1, 10**6)), "upper": None, "lower": None},
                "w": numbers(self.w),
                "dual": dual,
            }
        )

    def _quadratic(self) -> Document:
        """Return x = c z with Q x = u, and what proves that Q is positive semidefinite."""
        x = []
        for (head, tail), weight in zip(self.edges, self.weights, strict=True):
            z = [a - b for a, b in zip(self.w[head], self.w[tail], strict=True)]
            x.append([LAM * weight * v for v in z])
        one = self.d == 1
        root = [[F(1, 2)] * self.d] if self.penalty == "quadratic" else []
        null_space = [] if one or self.penalty == "quadratic" else [[F(1), F(-1)]]
        return {"root": numbers(root), "null_space": numbers(null_space), "x": numbers(x)}
