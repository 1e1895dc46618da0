"""Blocks B w_i of the nodes' parameters: data rows x.w_i, or w_i itself.

Everything per node is returned as an array over all n nodes, zero where there is no block.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np
import scipy.sparse as sp

from verify._arrays import BoolArray, FloatArray, IntArray
from verify._deadline import look
from verify.instance._functions import Function

WIDE = 32  # columns from which on sums go row by row


class Blocks:
    """The linear maps B of one term.

    Parameters
    ----------
    node : ndarray of int, shape (N,)
        Nodes of the blocks, nondecreasing; increasing where x is None.
    x : ndarray of shape (N, d) or None
        Data rows, each one block; None for the identity, d blocks a node.
    n, d : int
        Numbers of nodes and dimensions.

    Attributes
    ----------
    shape : tuple of int
        Of a multiplier per block, (N,) or (N, d).
    units : ndarray of shape (d,) or None
        Powers of two: where x is None the blocks are w_ij / units_j. None means ones.
    """

    def __init__(self, node: IntArray, x: FloatArray | None, n: int, d: int) -> None:
        self.node, self.n, self.d = node, n, d
        self.x = None if x is None else x.reshape(len(node), d)
        self.units: FloatArray | None = None
        self.shape = (len(node), d) if x is None else (len(node),)
        self.rows = np.bincount(node, minlength=n)

    def rescaled(self, units: FloatArray) -> Self:
        """Return the blocks as functions of w * units, `units` powers of two of shape (d,)."""
        out = copy(self)
        if self.x is None:
            out.units = units if self.units is None else self.units * units
        else:
            out.x = self.x / units
        return out

    def push(self, v: FloatArray) -> FloatArray:
        """Return B v for v (n, d)."""
        look()
        if self.x is None:
            return v[self.node] if self.units is None else v[self.node] / self.units
        return np.einsum("rj,rj->r", self.x, v[self.node])

    def pull(self, r: FloatArray) -> FloatArray:
        """Return B^T r per node, (n, d)."""
        look()
        if self.x is None:
            out = np.zeros((self.n, self.d))
            out[self.node] = r if self.units is None else r / self.units
            return out
        if self.d >= WIDE:
            ends = np.concatenate([[0], np.cumsum(self.rows)])
            sums = sp.csr_array((r, np.arange(len(r)), ends), shape=(self.n, len(r)))
            return np.asarray(sums @ self.x)
        out = np.empty((self.n, self.d))
        for j in range(self.d):
            out[:, j] = np.bincount(self.node, weights=self.x[:, j] * r, minlength=self.n)
        return out

    def pull_sizes(self, r: FloatArray) -> FloatArray:
        """Return |B|^T r per node for r >= 0, (n, d): the size of the summands of a pull."""
        if self.x is None:
            return self.pull(r)
        sizes = copy(self)
        sizes.x = np.abs(self.x)
        return sizes.pull(r)

    def hessian(self, curvature: FloatArray) -> FloatArray:
        """Return B^T diag(curvature) B per node, (n, d, d)."""
        out = np.zeros((self.n, self.d, self.d))
        if self.x is None:
            units = 1.0 if self.units is None else self.units
            out[self.node] = (curvature / units / units)[:, :, None] * np.eye(self.d)
            return out
        for m in np.unique(self.rows[self.rows > 0]):  # batched over nodes with equally many rows
            look()
            chosen = self.rows[self.node] == m
            x = self.x[chosen].reshape(-1, m, self.d)
            c = curvature[chosen].reshape(-1, m, 1)
            out[self.node[chosen][::m]] = x.transpose(0, 2, 1) @ (c * x)
        return out

    def hessian_diagonal(self, curvature: FloatArray) -> FloatArray:
        """Return the diagonals (n, d) of `hessian`, in memory of their own size."""
        if self.x is not None:
            squares = copy(self)
            squares.x = np.square(self.x)
            return squares.pull(curvature)
        out = np.zeros((self.n, self.d))
        units = 1.0 if self.units is None else self.units
        out[self.node] = curvature / units / units
        return out

    def per_node(self, values: FloatArray) -> FloatArray:
        """Return the sums (n,) of values, one per block."""
        total = values if self.x is not None else values.sum(axis=1)
        return np.asarray(np.bincount(self.node, weights=total, minlength=self.n), dtype=float)

    def norms_squared(self) -> FloatArray:
        """Return ||B||^2 of each block, in an array that broadcasts to `shape`."""
        if self.x is not None:
            return np.einsum("rj,rj->r", self.x, self.x)
        return np.ones((1, self.d)) if self.units is None else self.units[None, :] ** -2.0

    def of_nodes(self, values: FloatArray) -> FloatArray:
        """Return a value per node (n,) at each block, in an array that broadcasts to `shape`."""
        return values[self.node] if self.x is not None else values[self.node][:, None]

    def enough_for(self, sizes: FloatArray) -> FloatArray:
        """Return sizes of multipliers that can take the sizes (n, d) in any coordinate."""
        taken = self._taking(sizes, 0.0)
        return taken if self.x is None else np.asarray(taken.max(axis=1))

    def least_for(self, sizes: FloatArray) -> FloatArray:
        """Return sizes of multipliers that take the sizes (n, d) of one coordinate, and no more."""
        taken = self._taking(sizes, np.inf)
        return taken if self.x is None else np.asarray(taken.min(axis=1, initial=np.inf))

    def _taking(self, sizes: FloatArray, none: float) -> FloatArray:
        """Return sizes of multipliers that take the sizes (n, d), one for each coordinate.

        That many where a row does not have the coordinate.
        """
        own = sizes[self.node]
        if self.x is None:
            return own if self.units is None else own * self.units
        x = np.abs(self.x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(x > 0, own / x, none)

    def enough_at(self, sizes: FloatArray, w: FloatArray) -> FloatArray:
        """Return sizes of multipliers that can take the sizes (n, d) where w is not zero."""
        if self.x is None:
            return self.enough_for(sizes)
        own = np.abs(w[self.node])
        whole = np.einsum("rj,rj->r", np.abs(self.x), own)
        found = np.einsum("rj,rj->r", own, sizes[self.node]) / np.where(whole > 0, whole, 1.0)
        return np.where(whole > 0, found, self.enough_for(sizes))

    def stiffness_of(self, curvature: FloatArray) -> FloatArray:
        """Return curvatures of the blocks that make up those (n, d) of every coordinate."""
        own = curvature[self.node]
        if self.x is None:
            return own if self.units is None else own * self.units**2
        x = np.abs(self.x)
        return np.asarray((own / np.where(x > 0, x, np.inf) ** 2).max(axis=1))

    def least(self, out: FloatArray, values: FloatArray) -> None:
        """Lower `out` (n,) to the least of the values at the blocks of each node."""
        np.minimum.at(out, self.node, values if self.x is not None else values.min(axis=1))

    def largest(self, out: FloatArray, values: FloatArray) -> None:
        """Raise `out` (n,) to the largest of the values at the blocks of each node."""
        np.maximum.at(out, self.node, values if self.x is not None else values.max(axis=1))


class Part(Blocks):
    """Blocks with the function of each: a sum over blocks of h(B w).

    `equation` says that h is the constraint B w = y; then `function` is a quadratic in its place.
    """

    def __init__(self, blocks: Blocks, function: Function, equation: bool = False) -> None:
        super().__init__(blocks.node, blocks.x, blocks.n, blocks.d)
        self.function, self.equation = function, equation

    def among(self, nodes: BoolArray) -> Part:
        """Return the part of some nodes (n,), which are numbered anew."""
        rows = np.flatnonzero(nodes[self.node])
        x = None if self.x is None else self.x[rows]
        number = np.cumsum(nodes) - 1
        blocks = Blocks(number[self.node[rows]], x, int(nodes.sum()), self.d)
        out = Part(blocks, self.function.among(rows, self.shape), self.equation)
        out.units = self.units
        return out

    def value(self, w: FloatArray) -> float:
        """Return the sum at w (n, d)."""
        return float(self.function.value(self.push(w)).sum())

    def slope(self, w: FloatArray) -> FloatArray:
        """Return h'(B w), the subgradient closest to zero."""
        return self.function.slope(self.push(w))

    def curvature(self, w: FloatArray | None) -> FloatArray:
        """Return h'' at B w, typical sizes where w is None; zero at limited entries."""
        return self.function.curvature(None if w is None else self.push(w))

    def gaps(self, r: FloatArray, w: FloatArray) -> FloatArray:
        """Return h(B w) + h*(r) - <r, B w> >= 0 per node, (n,)."""
        return self.per_node(self.function.gaps(r, self.push(w)))
