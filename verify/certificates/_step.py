"""The least change of flow and multipliers that makes up the balance of all nodes.

In a metric W it takes one sparse factorization,

    delta = -W B^T x,   (B W B^T) x = balance,   B = (D^T, B_1^T, B_2^T, ...),

of a matrix that would be lost in rounding where features have units of their own, or where hardly
any multiplier may move. So potentials are x_i = T_i y_i, with T_i such that the diagonal blocks
are ones (`_whitening`): all that is left for the factors is what edges do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from verify._arrays import BoolArray, FloatArray
from verify._filling import hubs
from verify.certificates._whitening import WhitePart, frames, row_squares
from verify.instance._blocks import Part
from verify.instance._instance import Instance

REGULARIZATION = 1e-14  # beside a diagonal of ones: their rounding, so that pivots stay positive


@dataclass(frozen=True)
class DualPoint:
    """A flow u (m, d) and multipliers r, one array for each part; or a change of them."""

    u: FloatArray
    r: list[FloatArray]

    def plus(self, change: DualPoint) -> DualPoint:
        """Return the sum."""
        r = [a + b for a, b in zip(self.r, change.r, strict=True)]
        return DualPoint(self.u + change.u, r)

    @property
    def finite(self) -> bool:
        """Whether there is neither NaN nor infinity."""
        return all(np.isfinite(v).all() for v in (self.u, *self.r))


@dataclass(frozen=True)
class Metric:
    """Weights W: blocks (m, d, d) for the flow, and one number for each multiplier."""

    u: FloatArray
    r: list[FloatArray]

    def change(self, inst: Instance, x: FloatArray, images: list[FloatArray]) -> DualPoint:
        """Return -W B^T x for potentials x (n, d), and their images in the blocks."""
        u = -np.einsum("eij,ej->ei", self.u, inst.differences(x))
        return DualPoint(u, [-weight * z for weight, z in zip(self.r, images, strict=True)])


def balance(inst: Instance, parts: list[Part], point: DualPoint) -> FloatArray:
    """Return what adds up at the nodes, (n, d): zero if the point is feasible."""
    out = inst.divergence(point.u)
    for part, r in zip(parts, point.r, strict=True):
        out += part.pull(r)
    return out


class Step:
    """The map from a balance to the least change that makes it up, in one metric.

    Parameters
    ----------
    inst : Instance
    parts : list of Part
        What the terms are sums of.
    metric : Metric

    Attributes
    ----------
    frames : ndarray, shape (n, d, d)
        T_i.

    Raises
    ------
    OverflowError
        The weights are not finite.
    """

    def __init__(self, inst: Instance, parts: list[Part], metric: Metric) -> None:
        self.inst, self.plain, self.metric = inst, parts, metric
        if not all(np.isfinite(v).all() for v in (metric.u, *metric.r)):
            raise OverflowError("the data are too large for floats")
        at_rows, at_edges = row_squares(parts, metric.r), np.zeros((inst.n, inst.d, inst.d))
        for end in inst.edges.T:
            np.add.at(at_edges, end, metric.u)
        self.frames = frames(
            lambda t: at_rows(t) + t.transpose(0, 2, 1) @ at_edges @ t, inst.n, inst.d
        )
        self.parts = [WhitePart(part, self.frames) for part in parts]
        last = np.repeat(hubs(inst.n, inst.edges), inst.d)
        self.solve = _bordered(self._matrix(), last)

    def white(self, rest: FloatArray) -> FloatArray:
        """Return T^T rest: balances in units of what may change."""
        return np.einsum("njk,nj->nk", self.frames, rest)

    def response(self, rest: FloatArray) -> DualPoint:
        """Return the least change whose balance is minus the rest (n, d), up to rounding.

        NaN where rounding has made the matrix singular.
        """
        y = self.solve(self.white(rest).ravel()).reshape(rest.shape)
        x = np.einsum("njk,nk->nj", self.frames, y)
        change = self.metric.change(self.inst, x, [part.push(y) for part in self.parts])
        return self._with_own(change, rest + balance(self.inst, self.plain, change))

    def _with_own(self, change: DualPoint, rest: FloatArray) -> DualPoint:
        """Return a change with what the multipliers of each node take of its own rest.

        Where rows may change much, a rounding error of the factors is more than edges of small
        capacity beside them can take: they make it up themselves. No rest becomes larger: in white
        coordinates it is multiplied by what edges have of the ones.
        """
        y = self.white(rest)
        pairs = zip(change.r, self.metric.r, self.parts, strict=True)
        return DualPoint(change.u, [r - weight * part.push(y) for r, weight, part in pairs])

    def _matrix(self) -> sp.csc_matrix:
        """Return T^T B W B^T T: ones, and what edges do between their ends."""
        n, d = self.frames.shape[:2]
        head, tail = self.inst.edges.T
        across = -self.frames[head].transpose(0, 2, 1) @ self.metric.u @ self.frames[tail]
        ones = np.broadcast_to((1 + REGULARIZATION) * np.eye(d), (n, d, d))
        at = np.arange(n)
        row = np.concatenate([at, head, tail])[:, None, None] * d + np.arange(d)[:, None]
        column = np.concatenate([at, tail, head])[:, None, None] * d + np.arange(d)
        values = np.concatenate([ones, across, across.transpose(0, 2, 1)])
        place = tuple(np.broadcast_to(i, values.shape).ravel() for i in (row, column))
        matrix = sp.coo_array((values.ravel(), place), shape=(n * d, n * d)).tocsc()
        matrix.eliminate_zeros()
        return sp.csc_matrix(matrix)


def _bordered(matrix: sp.csc_matrix, last: BoolArray) -> Callable[[FloatArray], FloatArray]:
    """Return the inverse of a symmetric matrix as a function; last are columns of hubs.

    These are not there for the search of an order, and what the others leave of them is dense.
    """
    if not last.any():
        return _factorized(matrix)
    inner = matrix[~last][:, ~last]
    across = matrix[~last][:, last].toarray()
    solve = _factorized(sp.csc_matrix(inner))
    reached = solve(across)
    rest = matrix[last][:, last].toarray() - across.T @ reached
    try:
        inverse = np.linalg.inv(rest)
    except np.linalg.LinAlgError:
        inverse = np.full_like(rest, np.nan)

    def solved(rhs: FloatArray) -> FloatArray:
        out = np.empty_like(rhs)
        some = solve(rhs[~last])
        out[last] = inverse @ (rhs[last] - across.T @ some)
        out[~last] = some - reached @ out[last]
        return out

    return solved


def _factorized(matrix: sp.csc_matrix) -> Callable[[FloatArray], FloatArray]:
    """Return the inverse of a symmetric matrix as a function."""
    try:
        factors = splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError:  # singular
        return lambda rhs: np.full_like(rhs, np.nan)
    return lambda rhs: np.asarray(factors.solve(rhs))
