"""Documents about partitions, made from the formulas of docs/theorem2.md in rational numbers."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

from _numbers import Document, double, doubles, hashed, number, numbers

Vector = list[F]
Matrix = list[Vector]
YES, NO = "well-connected", "not well-connected"
EDGES = [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]]
WEIGHTS = [F(2), F(3, 2), F(1), F(1, 64), F(1)]
CLUSTERS = [[0, 1, 2], [3, 4]]
SCALE = 2**40


def root_above(x: F) -> F:
    """Return a rational number a little above the square root: checkers enclose roots, too."""
    return F(math.isqrt(math.ceil(x * 2**80)) + 1, 2**40) if x else x


def root_below(x: F) -> F:
    return F(max(0, math.isqrt(math.floor(x * 2**80)) - 1), 2**40)


def dual_norm(norm: str, v: Vector, above: bool) -> F:
    if norm == "l1":
        return max(map(abs, v))
    if norm == "linf":
        return sum(map(abs, v), F(0))
    return (root_above if above else root_below)(sum((x * x for x in v), F(0)))


def squared_norm(norm: str, v: Vector) -> F:
    sizes = [abs(x) for x in v]
    if norm == "l2":
        return sum((x * x for x in v), F(0))
    return (sum(sizes, F(0)) if norm == "l1" else max(sizes)) ** 2


def form(H: Matrix, v: Vector) -> F:
    return sum((v[i] * H[i][j] * v[j] for i in range(len(v)) for j in range(len(v))), F(0))


def sign_vectors(d: int) -> list[Vector]:
    return [[F(1), *map(F, s)] for s in itertools.product((1, -1), repeat=d - 1)]


def plus(A: Matrix, B: Matrix) -> Matrix:
    return [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(A, B, strict=True)]


class Partitioned:
    """Five nodes in two clusters, with point losses and, at node 1, rows that couple coordinates.

    Their gradients add up to zero at the centers unless these are `moved`.
    """

    def __init__(
        self,
        norm: str,
        d: int,
        lam: F,
        coupled: bool = True,
        moved: bool = False,
        ridge: bool = False,
    ) -> None:
        self.ridge = ridge  # at node 3, in all coordinates but the first
        self.norm, self.d, self.lam = norm, d, lam
        self.coupled, self.moved = coupled, moved
        self.x = [F(1), *[F((-1) ** j, 2) for j in range(d - 1)]]
        # Nodes 0 and 2 lie on both sides of 1, and 3 and 4 on both sides of the second center.
        side = (F(1, 4), F(0), F(-1, 4), F(1, 2), F(-1, 2))
        self.centers = [[F(1)] * d, [F(-1)] * d]
        self.a = [[self.centers[i > 2][0] + s] * d for i, s in enumerate(side)]

    def data(self) -> Document:
        y = sum(self.x, F(0)) * self.centers[0][0]
        terms: list[Document] = [{"kind": "point", "node": [0, 1, 2, 3, 4], "a": doubles(self.a)}]
        if self.coupled:
            rows = {"kind": "squared", "node": [1], "X": [doubles(self.x)], "y": [double(y)]}
            terms.append(rows)
        if self.ridge:
            terms.append({"kind": "ridge", "node": [0, 3], "mu": doubles([self.mu(0), self.mu(3)])})
        return {
            "schema": "gtv-problem/1",
            "n_nodes": 5,
            "dim": self.d,
            "edges": EDGES,
            "weights": doubles(WEIGHTS),
            "lam": double(self.lam),
            "penalty": {"kind": self.norm},
            "terms": terms,
        }

    def mu(self, i: int) -> Vector:
        """Return the moduli of a ridge at node 3: one that is there, at node 0, is zero."""
        own = F(1, 8) * (self.ridge and i == 3)
        return [own * (j > 0) for j in range(self.d)]

    def hessian(self, i: int) -> Matrix:
        diagonal = [2 + x for x in self.mu(i)]
        H = [[diagonal[j] * (j == k) for k in range(self.d)] for j in range(self.d)]
        if i == 1 and self.coupled:
            H = plus(H, [[2 * a * b for b in self.x] for a in self.x])
        return H

    def gradient(self, i: int, v: Vector) -> Vector:
        g = [2 * (x - a) + m * x for x, a, m in zip(v, self.a[i], self.mu(i), strict=True)]
        if i == 1 and self.coupled:
            slope = 2 * sum((a * (b - 1) for a, b in zip(self.x, v, strict=True)), F(0))
            g = [b + slope * a for a, b in zip(self.x, g, strict=True)]
        return g

    def total(self, nodes: list[int]) -> Matrix:
        H = self.hessian(nodes[0])
        for i in nodes[1:]:
            H = plus(H, self.hessian(i))
        return H

    def roots(self, nodes: list[int]) -> Document:
        """Return what shows the constants: H = 2 |C| I + 2 x x^T, so that a row is all of it."""
        if not (self.coupled and 1 in nodes):
            return {"total": [], "local": [None] * len(nodes)}
        x = numbers([[F(7, 5) * a for a in self.x]])  # (7/5)^2 is just below 2
        # H + R^T R is to be diagonal from above: rows (x_j, -x_k) take the coupling away.
        rows = [
            [F(7, 5) * (t == j) * self.x[k] - F(7, 5) * (t == k) * self.x[j] for t in range(self.d)]
            for j in range(self.d)
            for k in range(j)
        ]
        return {"total": x, "local": [numbers(rows) if i == 1 else None for i in nodes]}

    def margins(self, H: Matrix, rows: Matrix, sign: int) -> Vector:
        G = [
            [x + sign * sum((r[i] * r[j] for r in rows), F(0)) for j, x in enumerate(row)]
            for i, row in enumerate(H)
        ]
        return [
            G[i][i] + sign * sum((abs(x) for j, x in enumerate(row) if j != i), F(0))
            for i, row in enumerate(G)
        ]

    def alpha_below(self, nodes: list[int]) -> F:
        rows = self._rows(self.roots(nodes)["total"])
        t = self.margins(self.total(nodes), rows, -1)
        return 1 / sum((1 / x for x in t), F(0)) if self.norm == "l1" else min(t)

    def beta_above(self, i: int) -> F:
        H = self.hessian(i)
        if self.norm == "l1":
            return max(H[j][j] for j in range(self.d))
        if self.norm == "linf" and self.d <= 8:
            return max(form(H, s) for s in sign_vectors(self.d))
        rows = self._rows(self.roots([i])["local"][0] or [])
        t = self.margins(H, rows, 1)
        return max(t) if self.norm == "l2" else sum(t, F(0))

    @staticmethod
    def _rows(texts: list[list[str]]) -> Matrix:
        return [[parsed(text) for text in row] for row in texts]

    def center(self, k: int) -> Vector:
        move = F(1, 128) if self.moved else F(0)
        return [x + move for x in self.centers[k]]

    def yes(self, k: int) -> Document:
        nodes, v = CLUSTERS[k], self.center(k)
        alpha, beta = self.alpha_below(nodes), [self.beta_above(i) for i in nodes]
        gradients = [self.gradient(i, v) for i in nodes]
        rest = dual_norm(self.norm, [sum(g, F(0)) for g in zip(*gradients, strict=True)], True)
        delta = [
            dual_norm(self.norm, g, True) + b * rest / alpha
            for g, b in zip(gradients, beta, strict=True)
        ]
        witness = {
            "claim": YES,
            "cluster": nodes,
            "alpha": number(alpha),
            "beta": numbers(beta),
            "delta": numbers(delta),
            "center": numbers(v),
            "modulus": None,
            "sink": nodes[0],
            "flow": self._flow(k, self.demands(k, alpha, beta, delta)),
            "scale": SCALE,
        }
        if self.coupled:
            witness["roots"] = self.roots(nodes)
        return witness

    def demands(self, k: int, alpha: F | None, beta: Vector, delta: Vector) -> Vector:
        boundary = F(1, 64)  # of one node each: 2 and 3
        own = [boundary * (i in (2, 3)) for i in CLUSTERS[k]]
        ratio = F(0) if alpha is None else boundary / alpha
        return [o + b * ratio + x / self.lam for o, b, x in zip(own, beta, delta, strict=True)]

    def _flow(self, k: int, demands: Vector) -> list[int]:
        """Route a little more than all demands to the first node, along the edges from it."""
        out = [math.floor(x * SCALE) + 1 for x in demands[1:]]
        return [*(-x for x in out), 0][: 3 if k == 0 else 1]

    def no(self, k: int) -> Document:
        nodes, v = CLUSTERS[k], self.center(k)
        along = sign_vectors(self.d)[0] if self.norm == "linf" else [F(1)] + [F(0)] * (self.d - 1)
        beta = [form(self.hessian(i), along) / squared_norm(self.norm, along) for i in nodes]
        across = along if self.norm != "linf" else [F(1)] + [F(0)] * (self.d - 1)
        alpha = form(self.total(nodes), across) / squared_norm(self.norm, across)
        gradients = [self.gradient(i, v) for i in nodes]
        rest = dual_norm(self.norm, [sum(g, F(0)) for g in zip(*gradients, strict=True)], True)
        modulus = self.alpha_below(nodes)
        delta = [
            max(F(0), dual_norm(self.norm, g, False) - self.beta_above(i) * rest / modulus)
            for i, g in zip(nodes, gradients, strict=True)
        ]
        witness = {
            "claim": NO,
            "cluster": nodes,
            "alpha": number(alpha),
            "beta": numbers(beta),
            "delta": numbers(delta),
            "center": numbers(v),
            "modulus": number(modulus) if self.moved else None,
            "directions": {"alpha": numbers(across), "beta": [numbers(along)] * len(nodes)},
            "sets": [[nodes[0]]],
            "left_out": [nodes[0]],
        }
        if self.moved:
            witness["roots"] = self.roots(nodes)
        return witness

    def document(self, claims: list[str] | None = None) -> Document:
        claims = claims or [YES, YES]
        clusters = [self.yes(k) if c == YES else self.no(k) for k, c in enumerate(claims)]
        return hashed(
            {
                "schema": "gtv-connectivity/1",
                "data": self.data(),
                "claim": YES if claims == [YES, YES] else NO,
                "clusters": clusters,
            }
        )


def parsed(text: str) -> F:
    """Return the number of a text that `number` wrote."""
    numerator, slash, denominator = text.partition("/")
    if slash:
        return F(int(numerator, 16), int(denominator, 16))
    digits, _, exponent = text.partition("p")
    return int(digits, 16) * F(2) ** int(exponent)
