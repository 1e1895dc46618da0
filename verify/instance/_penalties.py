"""Float view of the penalties phi: value, dual norm, projection on the capacity and edge gaps.

Flows have capacity ||u_e||_* <= c_e = lam A_e for the norms ([GTV] (24)); the quadratic penalties
have no capacity and a finite conjugate instead.
"""

from __future__ import annotations

from copy import copy
from fractions import Fraction
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify.instance._roots import Semidefinite, semidefinite
from verify.kernel.powers import PowerNorm


class Penalty:
    """A penalty with a capacity: phi = ||.||_p, whose dual norm is ||.||_q, 1/p + 1/q = 1.

    `matrix` is how a flow moves most readily with a potential, (d, d); None is the identity.
    `powers` is the kernel's rule where p is neither 1 nor 2 nor infinite, else None.
    """

    bounded = True
    matrix: FloatArray | None = None
    powers: PowerNorm | None = None

    def __init__(self, p: float) -> None:
        self.p = p
        self.q = np.inf if p == 1 else (1.0 if np.isinf(p) else p / (p - 1))
        self.exact = not np.isnan(p)
        self.powers = None if p in (1, 2, np.inf) or np.isnan(p) else PowerNorm(p)

    def value(self, v: FloatArray) -> FloatArray:
        """Return phi of each row, (m,)."""
        return norms(v, self.p)

    def dual_norm(self, u: FloatArray) -> FloatArray:
        """Return the dual norm of each row, (m,)."""
        return norms(u, self.q)

    def clip(self, u: FloatArray, cap: FloatArray) -> FloatArray:
        """Return rows moved into their capacities (the projection for l1 and l2)."""
        if self.q == np.inf:
            return np.clip(u, -cap[:, None], cap[:, None])
        if self.q == 1:
            return project_l1(u, cap)
        norms = self.dual_norm(u)
        return u * np.where(norms > cap, cap / np.where(norms > cap, norms, 1.0), 1.0)[:, None]

    def rescaled(self, units: FloatArray) -> Penalty:
        """Return the penalty as a function of v * units, `units` powers of two of shape (d,)."""
        return RescaledPenalty(self, units)

    def gaps(self, u: FloatArray, v: FloatArray, cap: FloatArray) -> FloatArray:
        """Return c phi(v) - <u, v> >= 0 per row for feasible u, without cancellation."""
        if self.p == 1:
            return _times(np.abs(v), np.maximum(cap[:, None] - u * np.sign(v), 0)).sum(axis=1)
        size = self.value(v)
        if np.isinf(self.p):
            slack = np.maximum(cap - np.abs(u).sum(axis=1), 0)
            rest = np.abs(u) * (size[:, None] - np.sign(u) * v)
            return _times(size, slack) + rest.sum(axis=1)
        if self.p == 2:
            # ||v|| (c - <u, v/||v||>) = ||v|| ((c - ||u||)(c + ||u||) + ||u - c v/||v|| ||^2) / 2c,
            # divided by c before anything is squared.
            unit = v / np.where(size > 0, size, 1.0)[:, None]
            part = u / np.where(cap > 0, cap, 1.0)[:, None]
            length = np.linalg.norm(part, axis=1)
            slack = (1 - np.minimum(length, 1)) * (1 + length)
            return _times(cap, size * (slack + ((part - unit) ** 2).sum(axis=1)) / 2)
        return np.maximum(_times(cap, size) - (u * v).sum(axis=1), 0)


class QuadraticPenalty(Penalty):
    """phi(v) = (1/2) v^T Q v; Q is the identity for the squared penalty.

    `proof` is Q with its witness, None for the identity and where Q is not positive semidefinite.
    """

    bounded = False

    def __init__(self, q: FloatArray | None) -> None:
        self.matrix = q
        self.proof = None if q is None else _proof(q)
        self.exact = q is None or self.proof is not None

    def rescaled(self, units: FloatArray) -> Penalty:
        """Return the penalty as a function of v * units."""
        q = np.eye(len(units)) if self.matrix is None else self.matrix
        out = copy(self)
        out.matrix = q / units / units[:, None]
        return out

    def value(self, v: FloatArray) -> FloatArray:
        """Return phi of each row, (m,)."""
        return 0.5 * np.einsum("ej,ej->e", v, self.apply(v))

    def apply(self, v: FloatArray) -> FloatArray:
        """Return Q v for each row."""
        return v if self.matrix is None else v @ self.matrix

    def dual_norm(self, u: FloatArray) -> FloatArray:
        """Return zeros: there is no capacity."""
        return np.zeros(len(u))

    def clip(self, u: FloatArray, cap: FloatArray) -> FloatArray:
        """Return u moved into the range of Q, the domain of the conjugate."""
        if self.matrix is None or (self.proof is not None and not self.proof.null_space[0]):
            return u
        return u @ (self.matrix @ generalized_inverse(self.matrix)).T

    def gaps(self, u: FloatArray, v: FloatArray, cap: FloatArray) -> FloatArray:
        """Return (c/2) z^T Q z with Q z = u / c - Q v, u in the range of Q."""
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = u / np.where(cap > 0, cap, 1.0)[:, None]
            if self.matrix is not None:
                scaled = scaled @ generalized_inverse(self.matrix)
            return _times(cap, self.value(scaled - v))


class RescaledPenalty(Penalty):
    """A norm as a function of v * units: flows are divided by the units.

    Parameters
    ----------
    penalty : Penalty
        The penalty of v.
    units : ndarray, shape (d,)
        Powers of two, so that nothing is rounded.
    """

    def __init__(self, penalty: Penalty, units: FloatArray) -> None:
        self.penalty, self.units = penalty, units
        self.p, self.q, self.exact = penalty.p, penalty.q, penalty.exact
        self.matrix = np.diag(units**-2.0)  # capacities are round in the flow's own units

    def value(self, v: FloatArray) -> FloatArray:
        """Return phi of each row, (m,)."""
        return self.penalty.value(v / self.units)

    def dual_norm(self, u: FloatArray) -> FloatArray:
        """Return the dual norm of each row, (m,)."""
        return self.penalty.dual_norm(u * self.units)

    def clip(self, u: FloatArray, cap: FloatArray) -> FloatArray:
        """Return rows moved into their capacities."""
        return self.penalty.clip(u * self.units, cap) / self.units

    def gaps(self, u: FloatArray, v: FloatArray, cap: FloatArray) -> FloatArray:
        """Return c phi(v) - <u, v> >= 0 per row for feasible u."""
        return self.penalty.gaps(u * self.units, v / self.units, cap)


class OpaquePenalty(Penalty):
    """A penalty that cannot be written down: nothing of it can be computed here."""

    def __init__(self) -> None:
        super().__init__(np.nan)


def generalized_inverse(q: FloatArray) -> FloatArray:
    """Return a symmetric G with Q G Q = Q, for a semidefinite Q (d, d) in whatever units.

    In those of a table, Q looks singular where it is not.
    """
    length = np.sqrt(np.diag(q))
    length = np.where(length > 0, length, 1.0)
    return np.asarray(
        np.linalg.pinv(q / length / length[:, None], hermitian=True) / length / length[:, None]
    )


def _proof(q: FloatArray) -> Semidefinite | None:
    """Return Q with its witness, None if it is semidefinite in floats only; ValueError if not."""
    values = np.linalg.eigvalsh(q)
    if values[0] < -1e-9 * np.abs(values).max():
        raise ValueError(
            f"problem data: penalty.Q must be positive semidefinite, its least eigenvalue is "
            f"{values[0]:.3g}"
        )
    return semidefinite([[Fraction(x) for x in row] for row in q.tolist()])


def _times(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the product with 0 * inf = 0 (a capacity that overflows on a fused edge)."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where((a == 0) | (b == 0), 0.0, a * b)


def norms(v: FloatArray, p: float) -> FloatArray:
    """Return p-norms of rows, scaled by the largest entry so that nothing over- or underflows."""
    size = np.abs(v).max(axis=1, initial=0.0)
    scale = np.where(size > 0, size, 1.0)
    return size * np.linalg.norm(v / scale[:, None], ord=p, axis=1)


def project_l1(u: FloatArray, radius: FloatArray) -> FloatArray:
    """Return the Euclidean projection of each row on the l1 ball of its radius."""
    size = np.abs(u)
    ordered = -np.sort(-size, axis=1)
    above = np.cumsum(ordered, axis=1) - radius[:, None]
    steps = np.arange(1, u.shape[1] + 1)
    active = np.maximum((ordered * steps > above).sum(axis=1), 1)
    level = above[np.arange(len(u)), active - 1] / active
    outside = size.sum(axis=1) > radius
    shrunk = np.sign(u) * np.maximum(size - np.maximum(level, 0)[:, None], 0)
    return np.where(outside[:, None], shrunk, u)


def penalty_from(field: dict[str, Any]) -> Penalty:
    """Return the float view of `data["penalty"]`."""
    kind = field["kind"]
    if kind == "opaque":
        return OpaquePenalty()
    if kind in ("squared", "quadratic"):
        return QuadraticPenalty(field.get("Q"))
    return Penalty({"l1": 1.0, "l2": 2.0, "linf": np.inf}.get(kind) or float(field["p"]))
