"""Outward rounding: enclosures [lo, hi] of real numbers computed in floating point.

Error bounds follow the standard model fl(a op b) = (a op b)(1 + e), |e| <= 2^-53, and its
consequence that a sum of k terms in any order is off by at most gamma_k = k u / (1 - k u) times the
sum of the absolute values (Higham, "Accuracy and Stability of Numerical Algorithms", chapter 3).
Eigenvalues are proved by a Cholesky factorization that runs to completion (S. M. Rump,
"Verification of positive definiteness", BIT 46, 2006), so LAPACK only supplies guesses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from verify._arrays import BoolArray, FloatArray

UNIT = 2.0**-53
#: Added where products may underflow; far above any number of denormal rounding errors.
TINY = 1e-290


@dataclass(frozen=True)
class Enclosure:
    """Entrywise bounds lo <= x <= hi of an array of real numbers."""

    lo: FloatArray
    hi: FloatArray


def gamma(k: ArrayLike) -> FloatArray:
    """gamma_k of the standard model, slightly enlarged; k below 2^50."""
    ku = np.asarray(k, dtype=np.float64) * UNIT
    return np.asarray(1.01 * ku / (1.0 - ku))


def positive_definite(matrices: FloatArray) -> BoolArray:
    """Say for which symmetric matrices (k, d, d) positive definiteness is PROVED.

    Gaussian elimination of A - c I is run in floating point, with c larger than the backward error
    of the elimination; positive pivots all along prove that A is positive definite.
    """
    work = np.array(matrices)
    d = work.shape[-1]
    diagonal = np.arange(d)
    trace = np.abs(work[:, diagonal, diagonal]).sum(axis=1)
    work[:, diagonal, diagonal] -= (4 * (d + 4) * UNIT * trace + TINY)[:, None]
    proved = np.asarray(np.isfinite(work).all(axis=(1, 2)))
    work[~proved] = np.eye(d)
    for j in range(d):
        proved &= work[:, j, j] > 0.0
        pivot = np.where(proved, work[:, j, j], 1.0)
        column = np.where(proved[:, None], work[:, j + 1 :, j], 0.0)
        work[:, j + 1 :, j + 1 :] -= (column / pivot[:, None])[:, :, None] * column[:, None, :]
    return proved


def smallest_eigenvalue(matrices: FloatArray) -> Enclosure:
    """Enclose the smallest eigenvalue of each symmetric matrix (k, d, d).

    The lower end is proved by :func:`positive_definite`, the upper end is a Rayleigh quotient.
    A diagonal matrix needs neither: its entries are its eigenvalues.
    """
    diagonals = np.diagonal(matrices, axis1=1, axis2=2)
    full = np.count_nonzero(matrices, axis=(1, 2)) > np.count_nonzero(diagonals, axis=1)
    lo = diagonals.min(axis=1)
    hi = lo.copy()
    if full.any():
        proved = _smallest_eigenvalue(matrices[full])
        lo[full], hi[full] = proved.lo, proved.hi
    return Enclosure(lo, hi)


def _smallest_eigenvalue(matrices: FloatArray) -> Enclosure:
    d = matrices.shape[-1]
    values, vectors = np.linalg.eigh(matrices)
    guess, v = values[:, 0], vectors[:, :, 0]
    size = np.abs(matrices).sum(axis=(1, 2))
    quotient = np.einsum("ki,kij,kj->k", v, matrices, v) / np.einsum("ki,ki->k", v, v)
    hi = quotient + 2.0 * gamma(d * d + 4 * d + 8) * size + TINY
    lo = np.full(len(guess), -np.inf)
    identity = np.eye(d)
    step = (8 * (d + 4) * d * UNIT) * (size + np.abs(guess)) + 4 * TINY
    for _ in range(60):
        open_ = np.flatnonzero(np.isneginf(lo))
        if not len(open_):
            break
        shift = guess[open_] - step[open_]
        proved = positive_definite(matrices[open_] - shift[:, None, None] * identity)
        # the subtraction on the diagonal rounds, by less than UNIT * (size + |shift|)
        safe = shift - 2 * UNIT * (size[open_] + np.abs(shift))
        lo[open_[proved]] = safe[proved]
        step *= 4.0
    return Enclosure(lo, hi)


def largest_eigenvalue(matrices: FloatArray) -> Enclosure:
    """Enclose the largest eigenvalue of each symmetric matrix (k, d, d)."""
    mirrored = smallest_eigenvalue(-matrices)
    return Enclosure(-mirrored.hi, -mirrored.lo)


def inverse(matrices: FloatArray, error: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Invert symmetric positive definite matrices known up to ``error``.

    Parameters
    ----------
    matrices : ndarray, shape (k, d, d)
        Floating-point matrices.
    error : ndarray, shape (k,)
        Bound on each entry of the difference to the true matrix.

    Returns
    -------
    tuple
        (k, d, d) approximate inverses R, and (k,) bounds on |H^{-1} - R| entrywise; infinite where
        nothing is proved. From H^{-1} - R = (I - R H) H^{-1}: with r = ||I - R H||_inf < 1 the
        difference is at most r / (1 - r) ||R||_inf.
    """
    d = matrices.shape[-1]
    try:
        guess = np.linalg.inv(matrices)
    except np.linalg.LinAlgError:
        guess = np.linalg.pinv(matrices, hermitian=True)
    guess = (guess + guess.transpose(0, 2, 1)) / 2.0
    absolute = np.abs(guess)
    residual = np.abs(np.eye(d) - guess @ matrices)
    residual += gamma(d + 3) * (absolute @ np.abs(matrices) + np.eye(d))
    norm = absolute.sum(axis=2).max(axis=1)
    r = residual.sum(axis=2).max(axis=1) + norm * d * error
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.where(r < 0.5, 1.01 * r / (1.0 - r) * norm + TINY, np.inf)
    return guess, bound
