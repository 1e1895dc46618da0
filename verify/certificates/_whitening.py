"""Node problems in coordinates in which units do not matter.

Per node w_i = T_i z_i with the data rows X_i T_i orthonormal where they have rank: an intercept, a
year and an income are as good as any three directions. Multipliers are the same, and what they add
up to is T_i^T s_i in place of s_i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify._arrays import FloatArray
from verify.instance._batched import eigh, inverse_roots
from verify.instance._blocks import Part

# Eigenvalues of squares that are less than that, relative to the largest, are rounding, and take
# their scale for the moment from this number.
ROUNDED = 1e-13
TINY = 1e-140  # instead of zero, where its square is divided by
# In coordinates that are round but for that, the second time: less is rounding of the blocks.
UNSEEN = 1e-13


class WhitePart(Part):
    """A part as a function of z, per node w_i = T_i z_i.

    Parameters
    ----------
    part : Part
    frames : ndarray, shape (n, d, d)
        T_i.
    """

    def __init__(self, part: Part, frames: FloatArray) -> None:
        super().__init__(part, part.function, part.equation)
        own = frames[self.node]
        if self.x is not None:
            self.x = np.einsum("rj,rjk->rk", self.x, own)
        else:
            self.rows_of_nodes = own if part.units is None else own / part.units[:, None]

    def push(self, v: FloatArray) -> FloatArray:
        """Return B T v for v (n, d)."""
        if self.x is not None:
            return super().push(v)
        return np.einsum("kjl,kl->kj", self.rows_of_nodes, v[self.node])

    def pull(self, r: FloatArray) -> FloatArray:
        """Return T^T B^T r per node, (n, d)."""
        if self.x is not None:
            return super().pull(r)
        out = np.zeros((self.n, self.d))
        out[self.node] = np.einsum("kjl,kj->kl", self.rows_of_nodes, r)
        return out

    def hessian(self, curvature: FloatArray) -> FloatArray:
        """Return T^T B^T diag(curvature) B T per node, (n, d, d)."""
        if self.x is not None:
            return super().hessian(curvature)
        out = np.zeros((self.n, self.d, self.d))
        rows = self.rows_of_nodes
        out[self.node] = rows.transpose(0, 2, 1) @ (curvature[:, :, None] * rows)
        return out

    def norms_squared(self) -> FloatArray:
        """Return ||B T||^2 of each block."""
        if self.x is not None:
            return super().norms_squared()
        return np.einsum("kjl,kjl->kj", self.rows_of_nodes, self.rows_of_nodes)


def sizes(
    parts: list[Part], images: list[FloatArray], target: FloatArray, w: FloatArray
) -> tuple[list[FloatArray], FloatArray]:
    """Return typical sizes of the multipliers, one array for each part, and of gaps, (n,).

    The length of an interval with two ends; the slope at the image where the function is smooth,
    and what costs as much as the typical gap; elsewhere as much as all others and the target leave
    at the node.
    """
    out = [_known(part, z) for part, z in zip(parts, images, strict=True)]
    total = np.abs(target)
    for part, size in zip(parts, out, strict=True):
        total = total + part.pull_sizes(np.where(np.isfinite(size), size, 0.0))
    for equation in (True, False):  # what they leave in some coordinates is for ends to take
        reach = _floored(total)
        for k, part in enumerate(parts):
            if part.equation == equation:
                unknown = np.isinf(out[k])
                enough = part.enough_at(reach, w) if equation else part.enough_for(reach)
                out[k] = np.where(unknown, enough, out[k])
                total = total + part.pull_sizes(np.where(unknown, out[k], 0.0))
    gap = np.zeros(len(target))
    for part, z, size in zip(parts, images, out, strict=True):
        part.largest(gap, size * np.maximum(np.abs(z), np.abs(z - part.function.y)))
    gap = _floored(gap)
    for part, size in zip(parts, out, strict=True):
        if not part.equation:
            size += np.sqrt(part.function.curvature(None) * part.of_nodes(gap)) + TINY
    return out, gap


def _floored(a: FloatArray) -> FloatArray:
    """Return sizes >= 0, none of them nothing beside the others."""
    top = float(a.max(initial=0.0))
    return np.maximum(a, 1e-6 * top) if top > 0 else np.ones(a.shape)


def _known(part: Part, z: FloatArray) -> FloatArray:
    """Return the size of the multipliers at images z = B w; infinite: unknown."""
    f = part.function
    if part.equation:
        return np.full(part.shape, np.inf)
    both = np.isfinite(f.lo) & np.isfinite(f.hi)
    with np.errstate(invalid="ignore"):
        return np.where(both, f.hi - f.lo, np.where(f.limited, np.inf, np.abs(f.slope(z))))


def frames(
    squares: Callable[[FloatArray], FloatArray], n: int, d: int, start: FloatArray | None = None
) -> FloatArray:
    """Return T (n, d, d) such that T_i^T G_i T_i are ones, G_i >= 0.

    Columns of directions in which there is nothing are zero. Their range is that of the maps
    (n, d, d) to start with, by default everything.

    Parameters
    ----------
    squares : callable
        Returns T_i^T G_i T_i for T, (n, d, d), computed from what G is the square of.
    n, d : int
    """
    out = np.broadcast_to(np.eye(d), (n, d, d)) if start is None else start
    out = out / _lengths(squares(out))[:, None, :]
    for last in (False, True):  # a second time for what rounding of squares has left of the first
        values, vectors = eigh(squares(out))
        top = np.maximum(values[:, -1:], 0)
        scale = np.sqrt(np.maximum(values, ROUNDED * top + TINY))
        inverse = np.where(values > UNSEEN * top, 1 / scale, 0.0) if last else 1 / scale
        out = out @ (vectors * inverse[:, None, :])
    return out


def graded_frames(
    squares: Callable[[FloatArray], FloatArray], n: int, d: int, start: FloatArray
) -> FloatArray:
    """Return T (n, d, d) with T_i^T G_i T_i = 1 where eigenvalues are beyond the digits of doubles.

    Columns go from where G is large to where it is small, and what is added to them is only what
    comes before: so a balance has digits of its own in each of them. Between alike columns, as
    `frames` may have them in the end, it would have those of the largest.
    """
    out = start / _lengths(squares(start))[:, None, :]
    values, vectors = eigh(squares(out))
    values, vectors = values[:, ::-1], vectors[:, :, ::-1]
    top = np.maximum(values[:, :1], 0.0)
    out = out @ (vectors / np.sqrt(np.maximum(values, ROUNDED * top + TINY))[:, None, :])
    own = squares(out)
    seen = np.einsum("njj->nj", own) > UNSEEN
    out = np.where(seen[:, None, :], out / _lengths(own)[:, None, :], 0.0)
    return out @ inverse_roots(squares(out))


def _lengths(squares: FloatArray) -> FloatArray:
    """Return the roots of the diagonals, ones in place of zeros, (n, d)."""
    length = np.sqrt(np.einsum("njj->nj", squares))
    return np.where(length > 0, length, 1.0)


def row_squares(parts: list[Part], weights: list[FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """Return the squares of blocks, weighted, as functions of frames."""

    def squares(frame: FloatArray) -> FloatArray:
        pairs = zip(parts, weights, strict=True)
        return sum((WhitePart(part, frame).hessian(v) for part, v in pairs), 0 * frame)

    return squares
