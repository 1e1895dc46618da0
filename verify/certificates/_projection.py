"""Projection of a flow, and of limited multipliers, on what the losses of the nodes can absorb."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from verify._arrays import BoolArray, FloatArray
from verify.instance._blocks import Part
from verify.instance._instance import Instance


class Projection:
    """The affine space  N_i^T ((D^T u)_i + sum_k B_k^T q_k) = 0  for all nodes i.

    Parameters
    ----------
    inst : Instance
        The problem.
    parts : list of Part
        What its terms are sums of, without equations.
    w : ndarray, shape (n, d)
        The point, which says what multipliers are at a kink.
    active : ndarray of bool, shape (m,)
        Edges whose flow may move.
    eigen : (ndarray, ndarray of bool)
        Eigenvectors (n, d, d) of the Hessians, and (n, d) which of them span N_i.

    Attributes
    ----------
    sigma : ndarray, shape (m,)
        How freely each edge moves.
    room : list of ndarray
        Per part how freely each limited multiplier moves, zero for the others.
    limited : bool
        Whether there is any.
    """

    def __init__(
        self,
        inst: Instance,
        parts: list[Part],
        w: FloatArray,
        active: BoolArray,
        eigen: tuple[FloatArray, BoolArray],
    ) -> None:
        self.inst, self.parts = inst, parts
        matrix = inst.penalty.matrix
        self.metric = np.eye(inst.d) if matrix is None else matrix
        self.limited = any(part.function.limited.any() for part in parts)
        self.sigma, self.room = self._weights(w, active)
        self._assemble(*eigen)

    def _weights(self, w: FloatArray, active: BoolArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return how freely the projection moves each edge, (m,), and each limited multiplier.

        Capacities and widths of intervals, within bounds; less where w is not at a kink, so that
        every change of the multiplier costs its first order.
        """
        inst = self.inst
        cap = inst.cap[active]
        out = np.zeros(len(inst.cap))
        middle = float(np.median(cap)) if len(cap) else 1.0
        if len(cap):
            bound = 1e3 if inst.penalty.bounded else 1e12
            out[active] = np.clip(cap / middle, 1 / bound, bound)
        room = []
        for part in self.parts:
            f, z = part.function, part.push(w)
            width = np.where(np.isfinite(f.hi - f.lo), f.hi - f.lo, middle) / middle
            off = np.abs(f.kink_distance(z)) > 1e-6 * np.maximum(np.abs(z), np.abs(f.y))
            weight = np.clip(width, 1e-3, 1e3) * np.where(off, 1e-3, 1.0)
            room.append(np.where(f.limited & (f.lo < f.hi), weight, 0.0))
        return out, room

    def _assemble(self, vectors: FloatArray, null: BoolArray) -> None:
        """Prepare the projection's operator N^T (D^T Sigma D (x) Q + ground) N.

        It is applied factor by factor: the product has d^2 entries an edge where d is large.
        """
        inst = self.inst
        self.laplacian = sp.csr_array(
            inst.incidence.T @ sp.diags_array(self.sigma) @ inst.incidence
        )
        self.grounded = np.zeros((inst.n, inst.d, inst.d) if self.limited else (inst.n, 1, 1))
        for part, room in zip(self.parts, self.room, strict=True):
            if room.any():
                self.grounded += part.hessian(room)
        if self.limited or inst.penalty.matrix is not None:
            own = self.laplacian.diagonal()[:, None, None] * self.metric + self.grounded
            vectors = _orthonormal(vectors, null, own)
        self.basis = _basis(vectors, null)
        self.transposed = sp.csr_array(self.basis.T)
        # A column b of N lives at one node i: its diagonal entry is L_ii b^T Q b + b^T ground_i b.
        columns = self.basis.tocsc()
        node = columns.indices[columns.indptr[:-1]] // inst.d
        b = columns.data.reshape(len(node), inst.d)
        diagonal = self.laplacian.diagonal()[node] * ((b @ self.metric) * b).sum(axis=1)
        if self.limited:
            diagonal += np.einsum("cj,cjk,ck->c", b, self.grounded[node], b)
        self.inverse = 1 / np.where(diagonal > 0, diagonal, 1.0)

    def _operator(self, x: FloatArray) -> FloatArray:
        """Apply the projection's operator."""
        potential = (self.basis @ x).reshape(self.inst.n, self.inst.d)
        image = (self.laplacian @ potential) @ self.metric
        if self.limited:
            image = image + np.einsum("njk,nk->nj", self.grounded, potential)
        return np.asarray(self.transposed @ image.ravel())

    def project(
        self, u: FloatArray, q: list[FloatArray], rtol: float = 1e-8
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Return the flow closest to (u, q) that the losses can absorb, to a relative residual.

        q are multipliers per part, of which the limited entries count and may move.
        """
        inst = self.inst
        if self.basis.shape[1] == 0:
            return u, q
        total = inst.divergence(u) + pulled(self.parts, q)
        x = conjugate_gradients(self._operator, self.transposed @ total.ravel(), self.inverse, rtol)
        potential = (self.basis @ x).reshape(inst.n, inst.d)
        u = u - self.sigma[:, None] * (inst.differences(potential) @ self.metric)
        rows = zip(self.parts, self.room, q, strict=True)
        return u, [v - s * part.push(potential) if s.any() else v for part, s, v in rows]


def pulled(parts: list[Part], q: list[FloatArray]) -> FloatArray:
    """Return sum_k B_k^T q_k over the limited multipliers, (n, d)."""
    out = np.zeros((parts[0].n, parts[0].d)) if parts else np.zeros(())
    for part, v in zip(parts, q, strict=True):
        limited = part.function.limited
        if limited.any():
            out += part.pull(np.where(limited, v, 0.0))
    return out


def conjugate_gradients(
    operator: Callable[[FloatArray], FloatArray],
    rhs: FloatArray,
    inverse: FloatArray,
    rtol: float,
    limit: int = 3000,
) -> FloatArray:
    """Solve a consistent positive semidefinite system; `inverse` is the Jacobi preconditioner.

    Stops at ||residual|| <= rtol ||rhs|| in the preconditioned norm. Sums are NumPy's own: BLAS
    dot products of this length spend their time waiting for threads on a busy machine.
    """
    scale = float(np.abs(rhs).max(initial=0.0))  # squares of tiny flows must not underflow
    if scale == 0:
        return np.zeros(len(rhs))
    x, residual = np.zeros(len(rhs)), rhs / scale
    z = inverse * residual
    direction, rho = z.copy(), float((residual * z).sum())
    stop = rho * rtol * rtol
    for _ in range(limit):
        if not rho > stop:
            break
        image = operator(direction)
        curvature = float((direction * image).sum())
        if not curvature > 1e-15 * float((direction * direction / inverse).sum()):
            break  # only a direction of the null space is left
        step = rho / curvature
        x += step * direction
        residual -= step * image
        z = inverse * residual
        rho, previous = float((residual * z).sum()), rho
        direction = z + (rho / previous) * direction
    return x * scale


def _orthonormal(vectors: FloatArray, null: BoolArray, metrics: FloatArray) -> FloatArray:
    """Return bases of the spans of the null directions, orthonormal in each node's own metric.

    The preconditioner is then that of whole blocks: a data row in raw units and the edges of its
    node differ by the squares of the units, in directions of no one coordinate.
    """
    d = null.shape[1]
    chosen = vectors * null[:, None, :]
    gram = chosen.transpose(0, 2, 1) @ metrics @ chosen
    rounding = 1e-15 * d * np.trace(gram, axis1=1, axis2=2)
    kept = ~null | (rounding == 0)[:, None]
    gram += (rounding[:, None] + kept)[:, :, None] * np.eye(d)
    try:
        factor = np.linalg.cholesky(gram)
    except np.linalg.LinAlgError:  # too close to singular: a basis as good as any other
        return vectors
    return np.asarray(np.linalg.solve(factor, chosen.transpose(0, 2, 1)).transpose(0, 2, 1))


def _basis(vectors: FloatArray, null: BoolArray) -> sp.csr_array:
    """Return the null directions of all nodes as columns, (n d, q) sparse."""
    n, d, _ = vectors.shape
    node, column = np.nonzero(null)
    rows = (node[:, None] * d + np.arange(d)).ravel()
    columns = np.repeat(np.arange(len(node)), d)
    return sp.csr_array(
        (vectors[node, :, column].ravel(), (rows, columns)), shape=(n * d, len(node))
    )
