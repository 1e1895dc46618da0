"""Directions that bound the constants of Theorem 2 from their far side.

For a positive semidefinite H and any vector v, v^T H v / ||v||^2 is a lower bound of the smoothness
beta and an upper bound of the strong convexity alpha in that norm, and whoever checks it only has
to multiply. At the right v it is the constant: eigenvectors for l2, unit vectors and columns of
H^-1, sign vectors s and H^-1 s. In high dimensions this is all that can be proved of a maximum over
sign vectors, max_s s^T M s, from below: finding it is as hard as finding a maximum cut. The search
here is then local, so its sign vectors are good, not best.
"""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.partitions._rounding import TINY, Enclosure, gamma

#: Starts of the local search with random signs, besides the greedy one and the eigenvector's. Of
#: 1,000 random matrices with d = 10 the maximum was found with none of them for 97%, with 10 for
#: all; of 1,000 inverses of such, which are less even, for 85% and 99%.
RANDOM_STARTS = 10
#: Numbers in one temporary array, about 32 MB of doubles.
_CHUNK_ENTRIES = 1 << 22


def steepest(hessians: FloatArray, norm: str) -> FloatArray:
    """Return a direction (k, d) for each matrix (k, d, d), whose quotient is about its beta."""
    if norm == "l2":
        return _short(np.linalg.eigh(hessians)[1][:, :, -1])
    if norm == "l1":
        return _unit(np.diagonal(hessians, axis1=1, axis2=2).argmax(axis=1), hessians.shape[-1])
    return best_signs(hessians)


def flattest(hessians: FloatArray, inverses: FloatArray, norm: str) -> FloatArray:
    """Return a direction (k, d) for each matrix (k, d, d), whose quotient is about its alpha.

    The inverses need not be exact; for l2 they are not used.
    """
    if norm == "l2":
        return _short(np.linalg.eigh(hessians)[1][:, :, 0])
    if norm == "linf":
        top = np.diagonal(inverses, axis1=1, axis2=2).argmax(axis=1)
        return _short(inverses[np.arange(len(inverses)), top])
    return _short(np.einsum("kij,kj->ki", inverses, best_signs(inverses)))


def _unit(position: IntArray, d: int) -> FloatArray:
    return (np.arange(d) == position[:, None]).astype(np.float64)


def _short(directions: FloatArray) -> FloatArray:
    """Return integers of at most 26 bits in about these directions, short to write and to check.

    The error of a quotient at its extremum is the square of that of the direction.
    """
    largest = np.abs(directions).max(axis=1, keepdims=True)
    usable = np.isfinite(largest) & (largest > 0.0)
    scaled = np.where(usable, directions / np.where(usable, largest, 1.0), 1.0)
    return np.rint(scaled * 2.0**26)


def best_signs(matrices: FloatArray) -> FloatArray:
    """Return a sign vector s for each matrix (k, d, d), with s^T M s about as large as possible.

    Each local maximum is one under changes of one and of two signs. Where the signs of M can be
    written as s_i s_j (diagonal and nonnegative matrices among them) the greedy start is best.
    """
    k, d, _ = matrices.shape
    rows = max(1, _CHUNK_ENTRIES // (d * d))
    parts = [_best_signs(matrices[first : first + rows]) for first in range(0, k, rows)]
    return np.concatenate(parts) if parts else np.ones((0, d))


def _best_signs(m: FloatArray) -> FloatArray:
    k, d, _ = m.shape
    leading = np.linalg.eigh(m)[1][:, :, -1]
    rng = np.random.default_rng(0)  # the same problem gives the same witness
    starts = [_greedy(m), np.where(leading < 0.0, -1.0, 1.0)]
    starts += [rng.choice([-1.0, 1.0], (k, d)) for _ in range(RANDOM_STARTS)]
    best, top = np.ones((k, d)), np.full(k, -np.inf)
    for start in starts:
        signs = _climb(m, start)
        value = np.einsum("ki,kij,kj->k", signs, m, signs)
        better = value > top
        best[better], top[better] = signs[better], value[better]
    return best


def _greedy(m: FloatArray) -> FloatArray:
    """Give signs one after the other, next where those given so far weigh most."""
    k, d, _ = m.shape
    each = np.arange(k)
    signs, pull = np.zeros((k, d)), np.zeros((k, d))
    for _ in range(d):
        j = np.where(signs == 0.0, np.abs(pull), -1.0).argmax(axis=1)
        sign = np.where(pull[each, j] < 0.0, -1.0, 1.0)
        signs[each, j] = sign
        pull += sign[:, None] * m[each, j]
    return signs


def _climb(m: FloatArray, start: FloatArray) -> FloatArray:
    """Change one sign, or where that gains nothing two, as long as s^T M s grows."""
    signs = start.copy()
    image = np.einsum("kij,kj->ki", m, signs)
    diagonal = np.diagonal(m, axis1=1, axis2=2)
    least = 1e-12 * np.abs(m).sum(axis=(1, 2))  # a gain beyond rounding, so that it ends

    def change(rows: IntArray, j: IntArray) -> None:
        image[rows] -= 2.0 * signs[rows, j][:, None] * m[rows, j]
        signs[rows, j] *= -1.0

    moving = np.arange(len(m))
    while len(moving):
        gain = 4.0 * (diagonal[moving] - signs[moving] * image[moving])
        one = gain.argmax(axis=1)
        improves = gain[np.arange(len(moving)), one] > least[moving]
        change(moving[improves], one[improves])
        stuck = np.flatnonzero(~improves)
        first, second, gained = _best_pairs(m[moving[stuck]], signs[moving[stuck]], gain[stuck])
        better = gained > least[moving[stuck]]
        improves[stuck] = better
        change(moving[stuck[better]], first[better])
        change(moving[stuck[better]], second[better])
        moving = moving[improves]
    return signs


def _best_pairs(
    m: FloatArray, signs: FloatArray, gain: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the two signs of each row whose change together gains most, and what it gains."""
    k, d = signs.shape
    both = 8.0 * signs[:, :, None] * signs[:, None, :] * m
    both += gain[:, :, None] + gain[:, None, :]
    both[:, np.arange(d), np.arange(d)] = -np.inf
    pair = both.reshape(k, -1).argmax(axis=1) if k else np.zeros(0, dtype=np.int64)
    return pair // d, pair % d, both.reshape(k, d * d)[np.arange(k), pair]


def quotients(
    matrices: FloatArray, error: FloatArray, directions: FloatArray, norm: str
) -> Enclosure:
    """Enclose v^T H v / ||v||^2 for each matrix (k, d, d), known up to ``error``, and v (k, d)."""
    d = matrices.shape[-1]
    sizes = np.abs(directions)
    size = {"l1": sizes.sum(axis=1), "linf": sizes.max(axis=1)}.get(norm)
    squared = (sizes**2).sum(axis=1) if size is None else size**2
    form = np.einsum("ki,kij,kj->k", directions, matrices, directions)
    rounding = 2.0 * gamma(2 * d + 8) * np.einsum("ki,kij,kj->k", sizes, np.abs(matrices), sizes)
    radius = rounding + error * sizes.sum(axis=1) ** 2 + TINY
    slack = 4.0 * gamma(d + 4) * (np.abs(form) + radius)
    return Enclosure((form - radius - slack) / squared, (form + radius + slack) / squared)
