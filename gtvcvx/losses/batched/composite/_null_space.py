"""Directions along which losses are constant: projectors, or bases of what is beside them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray
from gtvcvx.compiled._thin import thin_images
from gtvcvx.losses.batched._base import RangeRows
from gtvcvx.losses.batched._thin import pays
from gtvcvx.losses.batched.composite._domain import bases, buckets, complement
from gtvcvx.losses.batched.composite._parts import Parts


class NullSpace(NamedTuple):
    """What is orthogonal to some rows and coordinates of k nodes.

    Attributes
    ----------
    shape : (k, d)
    matrices : ndarray, shape (k, d, d), or None
        Projectors.
    beside : RangeRows or None
        Orthonormal bases of the orthogonal complements instead. None of both: there is nothing.
    """

    shape: tuple[int, int]
    matrices: FloatArray | None
    beside: RangeRows | None

    @staticmethod
    def of(parts: Parts, rows: BoolArray, coordinates: BoolArray) -> NullSpace:
        """Return what is orthogonal to some rows (N,) and coordinates (k, d)."""
        k, d = coordinates.shape
        if coordinates.all():
            return NullSpace((k, d), None, None)
        if not coordinates.any() and pays(len(rows), k, d):
            return NullSpace((k, d), None, beside(parts, rows))
        return NullSpace((k, d), complement(parts, rows, coordinates), None)

    def apply(self, x: FloatArray) -> FloatArray:
        """Return the projections of x (k, d)."""
        if self.matrices is not None:
            return np.asarray(np.einsum("kij,kj->ki", self.matrices, x))
        out = np.zeros(self.shape)
        if self.beside is not None:
            rows, indptr = self.beside
            # Full rank is full rank: no rounding error may pass for a null direction.
            kept = np.where(np.diff(indptr) < self.shape[1], 1.0, 0.0)
            x = np.ascontiguousarray(kept[:, None] * x)
            dims = np.zeros(self.shape[1], np.int8)  # one compiled version for all
            thin_images(dims, np.ones(self.shape), rows, indptr, x, out)
        return out

    @property
    def dimensions(self) -> FloatArray:
        """Dimensions of the spaces, (k,), up to rounding."""
        if self.matrices is not None:
            return np.asarray(np.einsum("kjj->k", self.matrices))
        if self.beside is not None:
            return self.shape[1] - np.diff(self.beside.indptr).astype(np.float64)
        return np.zeros(self.shape[0])

    def projector(self) -> FloatArray | float:
        """Return the projectors (k, d, d), made where there are none; 0 where all are zero."""
        if self.matrices is not None:
            return self.matrices
        if self.beside is None:
            return 0.0
        k, d = self.shape
        out = np.empty((k, d, d))
        for j in range(d):
            out[:, :, j] = self.apply(np.broadcast_to(np.eye(d)[j], (k, d)))
        return out


def beside(parts: Parts, rows: BoolArray) -> RangeRows:
    """Return orthonormal bases of what some rows (N,) of each node span."""
    k, d = len(parts.indptr) - 1, parts.X.shape[1]
    found = np.zeros((len(rows), d))  # those of a node in the first of its places
    counts = np.zeros(k, dtype=np.int64)
    norms = np.linalg.norm(parts.X, axis=1)
    unit = parts.X / np.where(norms > 0.0, norms, 1.0)[:, None] * rows[:, None]
    for nodes, at in buckets(parts, np.arange(k)):
        for node, places, basis in zip(nodes, at, bases(unit[at]), strict=True):
            counts[node] = len(basis)
            found[places[: len(basis)]] = basis
    own = np.arange(len(rows)) - np.repeat(parts.indptr[:-1], np.diff(parts.indptr))
    kept = own < np.repeat(counts, np.diff(parts.indptr))
    return RangeRows(found[kept], np.concatenate([[0], np.cumsum(counts)]))
