"""What nodes can absorb by multipliers of their own, near a point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._coordinates import diagonal, few_rows
from verify.certificates._thin_system import ThinSystem, solved
from verify.instance._batched import eigh
from verify.instance._instance import Instance
from verify.instance._terms import NULL, pseudo_inverse

# Of what is most at the node: coordinates that nothing takes are for rows, which come first there.
LEAST = 1e-14
TINY = 1e-150  # where there is nothing at all


class NodeCurvature:
    """How easily multipliers change by little, and what that makes at each node.

    Parameters
    ----------
    inst : Instance
    r : list of ndarray
        Multipliers per term.
    w : ndarray, shape (n, d)

    Attributes
    ----------
    ease : list of ndarray
        Of each multiplier (`Term.ease`).
    eigenvalues : ndarray, shape (n, d)
        Of the sum of B^T diag(ease) B per node, in the units of the instance, increasing; where
        there are few rows in many dimensions, bounds of the least and the largest, (n, 2).
    """

    def __init__(self, inst: Instance, r: list[FloatArray], w: FloatArray) -> None:
        self._inst = inst
        self.ease = [t.ease(v, w) for t, v in zip(inst.terms, r, strict=True)]
        self._diagonal: FloatArray | None = None
        self._thin: ThinSystem | None = None
        pairs = list(zip(inst.terms, self.ease, strict=True))
        if diagonal(inst.terms, inst.d):
            own = sum((t.hessian_diagonal(e) for t, e in pairs), np.zeros((inst.n, inst.d)))
            self._diagonal = own / inst.units / inst.units
            self.eigenvalues = np.sort(self._diagonal, axis=1)
        elif few_rows(inst.terms, inst.d):
            self._thin = ThinSystem(inst.terms, inst.n, inst.d)
            # All but as many as there are rows are between those of the diagonals.
            own, whole = (
                sum((t.hessian_diagonal(e) for t, e in some), np.zeros((inst.n, inst.d)))
                for some in ([pair for pair in pairs if pair[0].x is None], pairs)
            )
            self._own, top = own, (whole / inst.units / inst.units).max(axis=1)
            least = (own / inst.units / inst.units).min(axis=1)
            self.eigenvalues = np.stack([least, top], axis=1)
            self._floor = LEAST * top[:, None] * inst.units**2
        else:
            hessian = np.zeros((inst.n, inst.d, inst.d))
            for term, ease in pairs:
                hessian += term.hessian(ease)
            self.eigenvalues, self.vectors = eigh(hessian / inst.units / inst.units[:, None])

    @cached_property
    def vectors(self) -> FloatArray:
        """Eigenvectors (n, d, d): unit vectors, where coordinates are apart."""
        assert self._diagonal is not None
        order = np.argsort(self._diagonal, axis=1, kind="stable")
        return np.eye(order.shape[1])[:, order].transpose(1, 0, 2)

    def total(self, nodes: BoolArray) -> FloatArray:
        """Return the sum over some nodes (n,) of what the eigenvalues are of, (d, d)."""
        if self._thin is not None:
            d = self._inst.d
            out = np.diag(self._own[nodes].sum(axis=0)) if nodes.any() else np.zeros((d, d))
            for term, ease in zip(self._inst.terms, self.ease, strict=True):
                if term.x is not None:
                    at = nodes[term.node]
                    out += term.x[at].T @ (ease[at, None] * term.x[at])
            return np.asarray(out / self._inst.units / self._inst.units[:, None])
        roots = self.vectors[nodes] * np.sqrt(np.maximum(self.eigenvalues[nodes], 0))[:, None]
        return np.asarray(np.einsum("nij,nkj->ik", roots, roots))

    @cached_property
    def _inverse(self) -> FloatArray:
        return pseudo_inverse(self.eigenvalues, self.vectors)

    def _solved(self, rho: FloatArray) -> FloatArray:
        """Return the pseudo-inverses times rho (n, d)."""
        if self._diagonal is None:
            return np.asarray(np.einsum("nij,nj->ni", self._inverse, rho))
        null = self._diagonal <= NULL * np.maximum(self.eigenvalues[:, -1:], 0)
        return np.where(null, 0.0, rho / np.where(null, 1.0, self._diagonal))

    def absorbed(self, rho: FloatArray) -> list[FloatArray] | None:
        """Return changes of the multipliers, per term, that take the residual rho (n, d).

        As far as they can, by a step of Newton's method; None where that overflows.
        """
        if self._thin is not None:
            return self._absorbed_by_rows(self._thin, rho)
        units = self._inst.units
        shift = -self._solved(rho / units) / units
        if not np.isfinite(shift).all():
            return None
        return [e * t.push(shift) for e, t in zip(self.ease, self._inst.terms, strict=True)]

    def _absorbed_by_rows(self, system: ThinSystem, rho: FloatArray) -> list[FloatArray] | None:
        """Do the same without matrices: coordinates take what the rows leave."""
        terms = self._inst.terms
        some = [e for t, e in zip(terms, self.ease, strict=True) if t.x is not None]
        inner = np.where(self._own > self._floor, self._own, np.maximum(self._floor, TINY))
        taken, y = solved(system.groups(), inner, np.concatenate(some), -rho)
        if not (np.isfinite(taken).all() and np.isfinite(y).all()):
            return None
        changes, shift, first = [], taken / inner, 0
        for t, e in zip(terms, self.ease, strict=True):
            if t.x is None:
                changes.append(e * t.push(shift))
            else:
                last = first + len(e)
                changes.append(y[first:last])
                first = last
        return changes
