"""Least multipliers that give a leak: linear maps from leaks to multipliers, node by node.

Rows X and rooms g, of what rows and coordinates can take: weighted rows are large where there is
much room, and the multipliers that make up for a leak r, in units of their rooms, the least.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.losses.batched._thin import pays
from gtvcvx.losses.batched.composite._domain import buckets, well_conditioned
from gtvcvx.losses.batched.composite._parts import EPS, Parts
from gtvcvx.losses.node._segments import weighted_sizes

# Rooms below this share of what rows give the coordinate count as no less: rounding.
LEAST_ROOM = 1e-8


class LeastMultipliers:
    """Maps from leaks to multipliers of rows and of coordinates, for all nodes.

    What rows make up for is a matrix as large as the features. What coordinates make up for is the
    rest of the leak, where they have room; its sizes are told by matrices (k, d, d) where these
    are small, and otherwise from above by the rows'.

    Parameters
    ----------
    parts : Parts
    span : ndarray, shape (N,)
        Rooms of the rows, > 0.
    room : ndarray, shape (k, d)
        Rooms of the coordinates; a coordinate of no room makes up for nothing.

    Attributes
    ----------
    rows : ndarray, shape (N, d)
        What multipliers change for a unit of leak.
    short : ndarray of bool, shape (k,)
        Nodes at which there are leaks that nothing makes up for.
    """

    def __init__(self, parts: Parts, span: FloatArray, room: FloatArray) -> None:
        self._parts, self._some = parts, room > 0.0
        k, d = room.shape
        self.rows, self.short = np.zeros_like(parts.X), np.ones(k, dtype=bool)
        self._own: FloatArray | None = None
        self._any = bool(self._some.any())
        thin = pays(len(parts.X), k, d)
        if self._any and thin:
            for nodes, at in self._alike():
                weighted = span[at][:, :, None] * parts.X[at]
                inverse, self.short[nodes] = beside(weighted, room[nodes])
                self.rows[at] = span[at][:, :, None] * inverse
            return
        if self._any:
            self._own = np.zeros((k, d, d))
        for nodes, at in buckets(parts, np.arange(k)):
            stacked, given = span[at][:, :, None] * parts.X[at], room[nodes]
            m = stacked.shape[1]
            if self._own is not None:
                stacked = np.concatenate([stacked, given[:, :, None] * np.eye(d)], axis=1)
            inverse, self.short[nodes] = inverses(stacked)
            self.rows[at] = span[at][:, :, None] * inverse[:, :m]
            if self._own is not None:
                self._own[nodes] = given[:, :, None] * inverse[:, m:]

    def _alike(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Nodes with equal numbers of rows, and room for the same coordinates, and their rows."""
        kinds, kind = np.unique(self._some, axis=0, return_inverse=True)
        for number in range(len(kinds)):
            yield from buckets(self._parts, np.flatnonzero(kind.ravel() == number))

    def of_coordinates(
        self, leak: FloatArray, doubt: FloatArray, made: FloatArray, wide: FloatArray
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return changes (k, d) of the coordinates' multipliers, and how unsure they are.

        None where no coordinate has room.

        Parameters
        ----------
        leak, doubt : ndarray, shape (k, d)
            Leaks, and how unsure they are.
        made : ndarray, shape (k, d)
            What rows make up for.
        wide : ndarray, shape (N,)
            How unsure the rows' multipliers are.
        """
        if not self._any:
            return None
        if self._own is not None:
            moved = np.einsum("kij,kj->ki", self._own, leak)
            return moved, np.einsum("kij,kj->ki", np.abs(self._own), doubt)
        parts = self._parts
        loose = doubt + weighted_sizes(parts.indptr, wide, parts.X)
        return np.where(self._some, leak - made, 0.0), np.where(self._some, loose, 0.0)


def beside(rows: FloatArray, room: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the least multipliers of rows beside coordinates that take the rest.

    With the rows Y and coordinates of rooms R, the multipliers b of the rows are those of least
    ``|b|^2 + |R^-1 (r - Y^T b)|^2`` that make up for r where there is no room. By a decomposition
    Q T of Y R^-1 and the identity, one below the other and transposed: no matrix (d, d).

    Parameters
    ----------
    rows : ndarray, shape (k, m, d)
    room : ndarray, shape (k, d)
        Zero for the same coordinates at all nodes.

    Returns
    -------
    ndarray, shape (k, m, d)
        Linear maps from r to b.
    ndarray of bool, shape (k,)
        Where not everything without room is made up for.
    """
    k, m, _ = rows.shape
    out, some = np.zeros_like(rows), room[0] > 0.0
    if m == 0:
        return out, np.full(k, not some.all())
    given = rows[:, :, some]
    least = LEAST_ROOM * np.abs(given).max(axis=1)
    inverse = 1.0 / np.maximum(room[:, some], least)[:, None, :]
    units = np.broadcast_to(np.eye(m), (k, m, m))
    stacked = np.concatenate([(given * inverse).transpose(0, 2, 1), units], axis=1)
    basis = np.linalg.qr(stacked)[0]
    taken, turn = basis[:, : given.shape[2]], basis[:, given.shape[2] :]
    part = taken.transpose(0, 2, 1) * inverse
    short = np.zeros(k, dtype=bool)
    if not some.all():
        turned = turn.transpose(0, 2, 1) @ rows[:, :, ~some]
        found, short = inverses(turned)
        part -= found @ (turned.transpose(0, 2, 1) @ part)
        out[:, :, ~some] = turn @ found
    out[:, :, some] = turn @ part
    return out, short


def inverses(rows: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return the pseudo-inverses (k, m, d) of the transposes of rows (k, m, d).

    And which of the rows (k,) do not have full rank d.
    """
    k, m, d = rows.shape
    short = np.full(k, m < d)
    if min(m, d) == 0:
        return np.zeros_like(rows), short
    units = np.linalg.norm(rows, axis=1)
    units = np.where(units > 0.0, units, 1.0)
    rows = rows / units[:, None, :]
    out = np.zeros_like(rows)
    basis, upper = np.linalg.qr(rows if m >= d else rows.transpose(0, 2, 1))
    full = well_conditioned(upper)
    inverse = np.linalg.inv(upper[full])
    if m >= d:
        out[full] = basis[full] @ inverse.transpose(0, 2, 1)
    else:
        out[full] = inverse @ basis[full].transpose(0, 2, 1)
    if not full.all():
        U, sigma, V = np.linalg.svd(rows[~full], full_matrices=False)
        # Data are known to their last digits: what is smaller counts as zero.
        some = sigma > 8.0 * max(m, d) * EPS * sigma[:, :1]
        turned = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=some)
        out[~full] = (U * turned[:, None, :]) @ V
        short[~full] |= ~some.all(axis=1)
    return np.asarray(out / units[:, None, :]), short
