"""What nodes can absorb by multipliers of their own, near a point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from verify._arrays import FloatArray
from verify.certificates._coordinates import diagonal
from verify.instance._batched import eigh
from verify.instance._instance import Instance
from verify.instance._terms import NULL, pseudo_inverse


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
        Of the sum of B^T diag(ease) B per node, in the units of the instance, increasing.
    """

    def __init__(self, inst: Instance, r: list[FloatArray], w: FloatArray) -> None:
        self._inst = inst
        self.ease = [t.ease(v, w) for t, v in zip(inst.terms, r, strict=True)]
        self._diagonal: FloatArray | None = None
        if diagonal(inst.terms, inst.d):
            pairs = zip(inst.terms, self.ease, strict=True)
            own = sum((t.hessian_diagonal(e) for t, e in pairs), np.zeros((inst.n, inst.d)))
            self._diagonal = own / inst.units / inst.units
            self.eigenvalues = np.sort(self._diagonal, axis=1)
        else:
            hessian = np.zeros((inst.n, inst.d, inst.d))
            for term, ease in zip(inst.terms, self.ease, strict=True):
                hessian += term.hessian(ease)
            self.eigenvalues, self.vectors = eigh(hessian / inst.units / inst.units[:, None])

    @cached_property
    def vectors(self) -> FloatArray:
        """Eigenvectors (n, d, d): unit vectors, where coordinates are apart."""
        assert self._diagonal is not None
        order = np.argsort(self._diagonal, axis=1, kind="stable")
        return np.eye(order.shape[1])[:, order].transpose(1, 0, 2)

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
        units = self._inst.units
        shift = -self._solved(rho / units) / units
        if not np.isfinite(shift).all():
            return None
        return [e * t.push(shift) for e, t in zip(self.ease, self._inst.terms, strict=True)]
