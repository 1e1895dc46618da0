"""What nodes can absorb by multipliers of their own, near a point."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from verify._arrays import FloatArray
from verify.instance._batched import eigh
from verify.instance._instance import Instance
from verify.instance._terms import pseudo_inverse


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
    eigenvalues, vectors : ndarray, shapes (n, d) and (n, d, d)
        Of the sum of B^T diag(ease) B per node, in the units of the instance.
    """

    def __init__(self, inst: Instance, r: list[FloatArray], w: FloatArray) -> None:
        self._inst = inst
        self.ease = [t.ease(v, w) for t, v in zip(inst.terms, r, strict=True)]
        hessian = np.zeros((inst.n, inst.d, inst.d))
        for term, ease in zip(inst.terms, self.ease, strict=True):
            hessian += term.hessian(ease)
        hessian = hessian / inst.units / inst.units[:, None]
        self.eigenvalues, self.vectors = eigh(hessian)

    @cached_property
    def _inverse(self) -> FloatArray:
        return pseudo_inverse(self.eigenvalues, self.vectors)

    def absorbed(self, rho: FloatArray) -> list[FloatArray] | None:
        """Return changes of the multipliers, per term, that take the residual rho (n, d).

        As far as they can, by a step of Newton's method; None where that overflows.
        """
        units = self._inst.units
        shift = -np.einsum("nij,nj->ni", self._inverse, rho / units) / units
        if not np.isfinite(shift).all():
            return None
        return [e * t.push(shift) for e, t in zip(self.ease, self._inst.terms, strict=True)]
