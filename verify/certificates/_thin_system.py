"""Systems of nodes in many dimensions with few rows: a diagonal, and as many unknowns as rows.

Per node the diagonal D has what single coordinates take, and Theta what rows do. With y for what
rows take of a rest e of the balance, and offsets o of theirs,

    D v + X^T y = e,   y = Theta (X v + o)

is the least-squares problem

    minimize    ||D^(-1/2) (e - X^T y)||^2 + ||Theta^(-1/2) y - Theta^(1/2) o||^2.

It is solved by an orthogonal factorization, in memory of the rows. Whatever rounding makes of y,
the coordinates take what it leaves: the balance has all its digits, where Theta is 1e18 times D.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify._deadline import look
from verify.instance._blocks import Blocks

ENTRIES = 1 << 18  # of rows that are factored between two looks
LEAST = 1e-200  # instead of zero, where something is divided by its root
DEPENDENT = 1e-14  # beside columns of length one: rows may depend on each other


class Group:
    """Nodes with equally many rows.

    Attributes
    ----------
    nodes : ndarray of int, shape (g,)
    rows : ndarray of int, shape (g, m)
        Of each, counted through all parts.
    x : ndarray, shape (g, d, m)
    """

    def __init__(self, nodes: IntArray, rows: IntArray, x: FloatArray) -> None:
        self.nodes, self.rows, self.x = nodes, rows, x


class ThinSystem:
    """The rows of some blocks, brought together.

    Parameters
    ----------
    blocks : sequence of Blocks
        Those without rows are left out.
    n, d : int
    """

    def __init__(self, blocks: Sequence[Blocks], n: int, d: int) -> None:
        self._x = [b.x for b in blocks if b.x is not None]
        node = np.concatenate([[], *(b.node for b in blocks if b.x is not None)]).astype(np.int64)
        order = np.argsort(node, kind="stable")
        count = np.bincount(node, minlength=n)
        start = np.cumsum(count) - count
        self._parts: list[tuple[IntArray, IntArray]] = []
        for m in np.unique(count[count > 0]).tolist():
            nodes = np.flatnonzero(count == m)
            size = max(ENTRIES // (m * d), 1)
            for first in range(0, len(nodes), size):
                some = nodes[first : first + size]
                self._parts.append((some, order[start[some][:, None] + np.arange(m)]))

    def groups(self) -> list[Group]:
        """Return all nodes with rows, in pieces."""
        x = np.concatenate(self._x) if len(self._x) != 1 else self._x[0]
        return [Group(nodes, rows, x[rows].transpose(0, 2, 1)) for nodes, rows in self._parts]


def solved(
    groups: Sequence[Group],
    diagonal: FloatArray,
    weights: FloatArray,
    rest: FloatArray,
    offsets: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return what coordinates take, (n, d), which is D v, and what rows do, (N,).

    Parameters
    ----------
    groups : sequence of Group
    diagonal : ndarray, shape (n, d)
        D > 0.
    weights : ndarray, shape (N,)
        Theta >= 0.
    rest : ndarray, shape (n, d)
        e.
    offsets : ndarray, shape (N,), optional
        o.
    """
    taken, y = rest.copy(), np.zeros(len(weights))
    roots = np.sqrt(np.maximum(weights, LEAST))
    for group in groups:
        look()
        scale = 1 / np.sqrt(np.maximum(diagonal[group.nodes], LEAST))
        root = roots[group.rows]
        matrix = np.concatenate([scale[:, :, None] * group.x, _diagonals(1 / root)], axis=1)
        own = 0.0 * root if offsets is None else root * offsets[group.rows]
        right = np.concatenate([scale * rest[group.nodes], own], axis=1)
        found = _least_squares(matrix, right)
        y[group.rows] = found
        taken[group.nodes] -= np.einsum("gdm,gm->gd", group.x, found)
    return taken, y


def _least_squares(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the least-squares solutions (g, m) for matrices (g, l, m) with l > m."""
    length = np.maximum(np.sqrt(np.einsum("glm,glm->gm", matrix, matrix)), LEAST)
    m = matrix.shape[2]
    scaled = np.concatenate(
        [matrix / length[:, None, :], _diagonals(np.full(length.shape, DEPENDENT))], axis=1
    )
    q, r = np.linalg.qr(scaled)
    image = np.einsum("glm,gl->gm", q[:, :-m], right)
    return np.linalg.solve(r, image[:, :, None])[:, :, 0] / length


def _diagonals(values: FloatArray) -> FloatArray:
    """Return diagonal matrices (g, m, m)."""
    return np.asarray(values[:, :, None] * np.eye(values.shape[1]))
