"""Float view of the loss terms: witnesses, curvature and node gaps.

A term is a sum of blocks h(B w_i).  Its witness at w is r = grad h(B w), which makes the node gap
h(B w) + h*(r) - <r, B w> vanish; each kind says how to compute that gap without cancellation.
Everything per node is returned as an array over all n nodes, zero where the term has none.
Quadratic kinds also give the witness of a rational w in rational numbers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from verify._integers import Exact, dyadic

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Term:
    """Base of all terms on nodes `node`, with dual variables of shape `shape`."""

    shape: tuple[int, ...]

    def __init__(self, node: Ints, n: int, d: int) -> None:
        self.node, self.n, self.d = node, n, d

    def value(self, w: Floats) -> float:
        """Return the sum of the losses of this term at w (n, d)."""
        raise NotImplementedError

    def witness(self, w: Floats) -> Floats:
        """Return r = grad h(B w)."""
        raise NotImplementedError

    def exact_witness(self, w: Exact) -> Exact | None:
        """Return grad h(B w) for w (n, d) of ints and Fractions, None where it is not rational."""
        return None

    def curvature(self, w: Floats | None) -> Floats:
        """Return h'' at w, per block; an upper bound over all w where w is None."""
        raise NotImplementedError

    def push(self, v: Floats) -> Floats:
        """Return B v for v (n, d)."""
        raise NotImplementedError

    def pull(self, r: Floats) -> Floats:
        """Return B^T r per node, (n, d)."""
        raise NotImplementedError

    def hessian(self, curvature: Floats) -> Floats:
        """Return B^T diag(curvature) B per node, (n, d, d)."""
        raise NotImplementedError

    def clip(self, r: Floats) -> Floats:
        """Return r moved into the domain of h*."""
        return r

    def gaps(self, r: Floats, w: Floats) -> Floats:
        """Return h(B w) + h*(r) - <r, B w> >= 0 per node, (n,)."""
        raise NotImplementedError

    def _per_node(self, values: Floats) -> Floats:
        return np.asarray(np.bincount(self.node, weights=values, minlength=self.n), dtype=float)


class RowTerm(Term):
    """Blocks h(x.w_i), one per data point; X (N, d), y (N,), m the rows of the node, per row."""

    def __init__(self, node: Ints, x: Floats, y: Floats, n: int, d: int) -> None:
        super().__init__(node, n, d)
        self.x, self.y, self.shape = x.reshape(len(node), d), y, (len(node),)
        self.rows = np.bincount(node, minlength=n)
        self.m = self.rows[node].astype(np.float64)

    def push(self, v: Floats) -> Floats:
        """Return x.v_i per row."""
        return np.einsum("rj,rj->r", self.x, v[self.node])

    def pull(self, r: Floats) -> Floats:
        """Return X_i^T r_i per node, (n, d)."""
        out = np.empty((self.n, self.d))
        for j in range(self.d):
            out[:, j] = self._per_node(self.x[:, j] * r)
        return out

    def hessian(self, curvature: Floats) -> Floats:
        """Return X_i^T diag(c_i) X_i per node, batched over nodes with equally many rows."""
        out = np.zeros((self.n, self.d, self.d))
        for m in np.unique(self.rows[self.rows > 0]):
            chosen = self.rows[self.node] == m
            x = self.x[chosen].reshape(-1, m, self.d)
            c = curvature[chosen].reshape(-1, m, 1)
            out[self.node[chosen][::m]] = x.transpose(0, 2, 1) @ (c * x)
        return out


class SquaredTerm(RowTerm):
    """(1/m)(x.w - y)^2 per row."""

    def value(self, w: Floats) -> float:
        """Return the loss at w."""
        return float((((self.push(w) - self.y) ** 2) / self.m).sum())

    def witness(self, w: Floats) -> Floats:
        """Return (2/m)(x.w - y)."""
        return 2 / self.m * (self.push(w) - self.y)

    def exact_witness(self, w: Exact) -> Exact:
        """Return (2/m)(x.w - y) without rounding."""
        x, y = _rational(self.x), _rational(self.y)
        factor = np.array([Fraction(2, int(m)) for m in self.m], dtype=object)
        return np.asarray(factor * ((x * w[self.node]).sum(axis=1) - y))

    def curvature(self, w: Floats | None) -> Floats:
        """Return 2/m."""
        return 2 / self.m

    def gaps(self, r: Floats, w: Floats) -> Floats:
        """Return the sum of (m/4)(r - grad h)^2."""
        return self._per_node(self.m / 4 * (r - self.witness(w)) ** 2)


class LogisticTerm(RowTerm):
    """(1/m)(log(1 + exp(x.w)) - y x.w) per row, y in {0, 1}."""

    def value(self, w: Floats) -> float:
        """Return the loss at w."""
        return float((np.logaddexp(0, (1 - 2 * self.y) * self.push(w)) / self.m).sum())

    def witness(self, w: Floats) -> Floats:
        """Return (sigmoid(x.w) - y)/m, computed from the side that is small."""
        return (1 - 2 * self.y) * expit((1 - 2 * self.y) * self.push(w)) / self.m

    def curvature(self, w: Floats | None) -> Floats:
        """Return p(1 - p)/m, p = sigmoid(x.w)."""
        if w is None:
            return 0.25 / self.m
        z = self.push(w)
        return expit(z) * expit(-z) / self.m

    def clip(self, r: Floats) -> Floats:
        """Return r with 0 <= m r + y <= 1."""
        return np.clip(r, -self.y / self.m, (1 - self.y) / self.m)

    def gaps(self, r: Floats, w: Floats) -> Floats:
        """Return the sum of KL(p || q)/m, p = m r + y and q = sigmoid(x.w)."""
        # With t = p or 1 - p on the side of the label, t is |m r| and never rounds to 0 or 1.
        t = np.abs(self.m * self.clip(r))
        s = expit((1 - 2 * self.y) * self.push(w))
        return self._per_node((_relative(t, s) + _relative(1 - t, 1 - s)) / self.m)


class PointTerm(Term):
    """||w_i - a_i||^2."""

    def __init__(self, node: Ints, a: Floats, n: int, d: int) -> None:
        super().__init__(node, n, d)
        self.a = a.reshape(len(node), d)
        self.shape = self.a.shape

    def value(self, w: Floats) -> float:
        """Return the loss at w."""
        return float(((w[self.node] - self.a) ** 2).sum())

    def witness(self, w: Floats) -> Floats:
        """Return 2 (w - a)."""
        return 2 * (w[self.node] - self.a)

    def exact_witness(self, w: Exact) -> Exact | None:
        """Return 2 (w - a) without rounding."""
        return np.asarray(2 * (w[self.node] - _rational(self.a)))

    def curvature(self, w: Floats | None) -> Floats:
        """Return 2 per node."""
        return np.full(len(self.node), 2.0)

    def push(self, v: Floats) -> Floats:
        """Return v at the nodes."""
        return v[self.node]

    def pull(self, r: Floats) -> Floats:
        """Return r at the nodes."""
        out = np.zeros((self.n, self.d))
        out[self.node] = r
        return out

    def hessian(self, curvature: Floats) -> Floats:
        """Return curvature times the identity at the nodes."""
        out = np.zeros((self.n, self.d, self.d))
        out[self.node] = curvature[:, None, None] * np.eye(self.d)
        return out

    def gaps(self, r: Floats, w: Floats) -> Floats:
        """Return ||r - grad h||^2 / (2 h'')."""
        squares = ((r - self.witness(w)) ** 2).sum(axis=1)
        return self._per_node(squares / (2 * self.curvature(None)))


class RidgeTerm(PointTerm):
    """(mu_i/2)||w_i||^2."""

    def __init__(self, node: Ints, mu: Floats, n: int, d: int) -> None:
        super().__init__(node, np.zeros((len(node), d)), n, d)
        self.mu = mu

    def value(self, w: Floats) -> float:
        """Return the loss at w."""
        return float((0.5 * self.mu * (w[self.node] ** 2).sum(axis=1)).sum())

    def witness(self, w: Floats) -> Floats:
        """Return mu w."""
        return self.mu[:, None] * w[self.node]

    def exact_witness(self, w: Exact) -> Exact | None:
        """Return mu w without rounding."""
        return np.asarray(_rational(self.mu)[:, None] * w[self.node])

    def curvature(self, w: Floats | None) -> Floats:
        """Return mu per node."""
        return self.mu


class L1Term(PointTerm):
    """kappa_i ||w_i||_1: an edge of capacity kappa_i to a ground node where w = 0."""

    def __init__(self, node: Ints, kappa: Floats, n: int, d: int) -> None:
        super().__init__(node, np.zeros((len(node), d)), n, d)
        self.kappa = kappa

    def value(self, w: Floats) -> float:
        """Return the loss at w."""
        return float((self.kappa * np.abs(w[self.node]).sum(axis=1)).sum())

    def witness(self, w: Floats) -> Floats:
        """Return kappa sign(w), one of the subgradients."""
        return self.kappa[:, None] * np.sign(w[self.node])

    def exact_witness(self, w: Exact) -> Exact | None:
        """Return None: where w_j = 0 it is w and the flow that decide, not w alone."""
        return None

    def curvature(self, w: Floats | None) -> Floats:
        """Return zeros: the term is piecewise linear."""
        return np.zeros(len(self.node))

    def clip(self, r: Floats) -> Floats:
        """Return r with |r_j| <= kappa."""
        return np.clip(r, -self.kappa[:, None], self.kappa[:, None])

    def gaps(self, r: Floats, w: Floats) -> Floats:
        """Return the sum of |w_j| (kappa - r_j sign(w_j))."""
        at = w[self.node]
        slack = np.maximum(self.kappa[:, None] - r * np.sign(at), 0)
        return self._per_node((np.abs(at) * slack).sum(axis=1))


def _relative(p: Floats, q: Floats) -> Floats:
    """Return p ln(p/q) - p + q >= 0 for p in [0, 1], q in (0, 1], stable where p is close to q."""
    positive = p > 0
    safe = np.where(positive, p, 1.0)
    t = np.where(positive, (q - p) / safe, 0.0)
    series = t * t * (1 / 2 - t * (1 / 3 - t * (1 / 4 - t / 5)))
    with np.errstate(divide="ignore"):
        phi = np.where(np.abs(t) < 1e-3, series, t - np.log1p(t))
    return np.maximum(np.where(positive, safe * phi, q), 0)


def _rational(a: Floats) -> Exact:
    """Return floats as the ints and Fractions that they are."""
    v, k = dyadic(a)
    return np.asarray(v * Fraction(1, 1 << k)) if k else v


NULL = 1e-10  # eigenvalues below this fraction of the node's largest count as zero


def pseudo_inverse(values: Floats, vectors: Floats) -> Floats:
    """Return the pseudo-inverses (n, d, d) of symmetric matrices given by their eigensystems."""
    null = values <= NULL * np.maximum(values[:, -1:], 0)
    inverse = np.where(null, 0.0, 1 / np.where(null, 1.0, values))
    return np.asarray((vectors * inverse[:, None, :]) @ vectors.transpose(0, 2, 1))


def term_from(field: dict[str, Any], n: int, d: int) -> Term:
    """Return the float view of one entry of `data["terms"]`."""
    node = field["node"]
    if field["kind"] == "squared":
        return SquaredTerm(node, field["X"], field["y"], n, d)
    if field["kind"] == "logistic":
        return LogisticTerm(node, field["X"], field["y"], n, d)
    if field["kind"] == "point":
        return PointTerm(node, field["a"], n, d)
    if field["kind"] == "ridge":
        return RidgeTerm(node, field["mu"], n, d)
    return L1Term(node, field["kappa"], n, d)
