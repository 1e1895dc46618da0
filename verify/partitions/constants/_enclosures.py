"""The constants of Theorem 2 in the penalty's own norm, rounded to the safe side.

For quadratic local losses with Hessians H_i and H = sum of the H_i over a cluster, and phi the norm
of the penalty with dual phi_*:

    phi    beta_i: ||grad L_i(v') - grad L_i(v)||_* <= beta_i ||v' - v||   alpha: strong convexity
    l2     lambda_max(H_i)                                                 lambda_min(H)
    l1     max_j (H_i)_jj                                                  1 / max_s s^T H^{-1} s
    linf   max_s s^T H_i s                                                 1 / max_j (H^{-1})_jj

with s over the sign vectors {-1, 1}^d. Beyond :data:`SIGN_DIMENSION` dimensions the maxima over s
are enclosed: from above by the sum of the absolute entries (for alpha also by lambda_min(H) / d,
the better of the two), from below by the best s that a local search finds. Spectral constants would
be unsound for l1 and linf: the theorem measures v in the penalty's norm. Each constant is returned
as an enclosure of the value of its formula.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.kernel.constants import SIGN_DIMENSION
from verify.partitions._data import NORMS
from verify.partitions._rounding import (
    TINY,
    Enclosure,
    gamma,
    inverse,
    largest_eigenvalue,
    smallest_eigenvalue,
)
from verify.partitions.constants._directions import flattest, quotients, steepest

__all__ = [
    "NORMS",
    "SIGN_DIMENSION",
    "Attained",
    "dual_norm",
    "sign_vectors",
    "smoothness",
    "strong_convexity",
]

_CHUNK = 1 << 14


@dataclass(frozen=True)
class Attained(Enclosure):
    """An enclosure one end of which is v^T H v / ||v||^2, up to rounding, where v is known.

    Attributes
    ----------
    directions : ndarray, shape (k, d), or None
        The v that prove beta >= lo or alpha <= hi; None where nothing is to be proved.
    modulus : ndarray, shape (k,), or None
        Of alpha: a lower bound that takes no inverse, not above lo.
    """

    directions: FloatArray | None = None
    modulus: FloatArray | None = None


def sign_vectors(d: int) -> IntArray:
    """All sign vectors (2^(d-1), d) with first entry +1: s and -s give the same value."""
    codes = np.arange(1 << (d - 1))[:, None] >> np.arange(d)[None, :]
    return 1 - 2 * (codes[:, ::-1] & 1).astype(np.int64) if d > 1 else np.ones((1, 1), np.int64)


def dual_norm(vectors: FloatArray, norm: str) -> FloatArray:
    """Dual norm of each row of (k, d): l2 for l2, linf for l1, l1 for linf."""
    if norm == "l2":
        return np.asarray(np.linalg.norm(vectors, axis=-1))
    if norm == "l1":
        return np.asarray(np.abs(vectors).max(axis=-1))
    return np.asarray(np.abs(vectors).sum(axis=-1))


def smoothness(hessians: FloatArray, error: FloatArray, norm: str) -> Attained:
    """Enclose beta_i for each node.

    Parameters
    ----------
    hessians : ndarray, shape (n, d, d)
        Symmetric positive semidefinite, in floating point.
    error : ndarray, shape (n,)
        Bound on the spectral norm (hence on every entry) of the rounding error in each.
    norm : str
        "l2", "l1" or "linf".
    """
    d = hessians.shape[-1]
    if norm == "l2":
        beta = _chunked(largest_eigenvalue, hessians)
        lo, hi = beta.lo - error, beta.hi + error
    elif norm == "l1":
        top = np.diagonal(hessians, axis1=1, axis2=2).max(axis=1)
        lo, hi = top - error, top + error
    else:
        top, radius = _upper_sign_form(hessians)
        lo, hi = top - radius - d * error, top + radius + d * error
    directions = np.ones((len(hessians), 1))
    if d > 1:
        directions = steepest(hessians, norm)
        lo = quotients(hessians, error, directions, norm).lo
    return Attained(np.maximum(lo, 0.0), np.maximum(hi, 0.0), directions)


def strong_convexity(hessians: FloatArray, error: FloatArray, norm: str) -> Attained:
    """Enclose alpha for each cluster; lo = 0 where strong convexity is not proved.

    Parameters are those of :func:`smoothness`, one matrix a cluster (the sum over its nodes).
    """
    d = hessians.shape[-1]
    eigen = _chunked(smallest_eigenvalue, hessians)
    spectral = Enclosure(np.maximum(eigen.lo - error, 0.0), np.maximum(eigen.hi + error, 0.0))
    if d == 1:
        return Attained(spectral.lo, spectral.hi, np.ones((len(hessians), 1)), spectral.lo)
    definite = spectral.lo > 0.0
    safe = np.where(definite[:, None, None], hessians, np.eye(d))
    inverses, radius = inverse(safe, np.where(definite, error, 0.0))
    directions = flattest(safe, inverses, norm)
    hi = quotients(hessians, error, directions, norm).hi
    if norm == "l2":
        return Attained(spectral.lo, hi, directions, spectral.lo)
    if norm == "linf":
        top = np.diagonal(inverses, axis1=1, axis2=2).max(axis=1)
        # ||v||_2 >= ||v||_inf: the spectral constant is a lower bound, useful if H is near singular
        modulus = spectral.lo
        lo = np.maximum(_below_reciprocal(top, radius), modulus)
    else:
        top, rounding = _upper_sign_form(inverses)
        modulus = spectral.lo / d * (1.0 - gamma(2))
        lo = np.maximum(_below_reciprocal(top, rounding + d * d * radius), modulus)
    lo = np.where(definite, lo * (1.0 - gamma(4)), 0.0)
    return Attained(lo, hi, directions, np.minimum(modulus, lo))


def _below_reciprocal(top: FloatArray, radius: FloatArray) -> FloatArray:
    """Bound 1 / x from below for x in top +- radius, x > 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(1.0 / ((top + radius) * (1.0 + gamma(3)) + TINY))


def _upper_sign_form(matrices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """max_s s^T M s for each matrix, and a bound on the rounding error of the result.

    Beyond `SIGN_DIMENSION` dimensions a bound from above, the sum of the absolute entries.
    """
    k, d, _ = matrices.shape
    flat = matrices.reshape(k, d * d)
    size = np.abs(flat).sum(axis=1)
    rounding = 2.0 * gamma(d * d) * size + TINY
    if d > SIGN_DIMENSION:
        return size, rounding
    s = sign_vectors(d).astype(np.float64)
    products = (s[:, :, None] * s[:, None, :]).reshape(len(s), d * d).T
    top = np.empty(k)
    for first in range(0, k, _CHUNK):
        top[first : first + _CHUNK] = (flat[first : first + _CHUNK] @ products).max(axis=1)
    return top, rounding


def _chunked(function: Callable[[FloatArray], Enclosure], matrices: FloatArray) -> Enclosure:
    """Apply an eigenvalue enclosure to blocks of matrices, to bound the temporary memory."""
    parts = [function(matrices[k : k + _CHUNK]) for k in range(0, len(matrices), _CHUNK)]
    if not parts:
        return Enclosure(np.zeros(0), np.zeros(0))
    return Enclosure(np.concatenate([p.lo for p in parts]), np.concatenate([p.hi for p in parts]))
