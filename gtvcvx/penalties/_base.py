"""The protocol of edge penalties phi, and what all norms have in common.

A penalty acts on the rows of (m, d) arrays, one row per edge. Its convex conjugate phi* and the
prox of the scaled conjugate are what the dual update of the primal-dual method needs.

References
----------
[GTV] SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated Learning via Generalized Total
Variation Minimization": primal (16), dual (24), dual update (33).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx.conic._function import CvxpyFunction
from gtvcvx.penalties._checks import EPS, as_per_edge, as_rows, rounding_slack


class CompiledForm(IntEnum):
    """Numbers by which compiled passes know the penalties whose dual prox they inline."""

    OTHER = -1
    L2 = 0
    L1 = 1
    LINF = 2
    SQUARED = 3


class Penalty(ABC):
    """A convex, even penalty phi: R^d -> R with phi(0) = 0, batched over m edges.

    Public methods check their arguments; a subclass implements the hooks that start with ``_``.

    Attributes
    ----------
    name : str
        The name by which messages call the penalty.
    is_norm : bool
        Whether phi is a norm; then phi* is the indicator of the dual norm's unit ball.
    dim : int or None
        The d that the penalty is made for; None if it takes any.
    compiled_form : int
        Member of :class:`CompiledForm`; -1 if only ``prox_conjugate`` can do the dual update.
    """

    name: str
    is_norm: bool
    dim: int | None = None
    compiled_form: int = int(CompiledForm.OTHER)

    def value(self, v: ArrayLike) -> FloatArray:
        """Return phi(v_e): (m,), for v (m, d)."""
        return self._value(self._rows(v, "v"))

    def conjugate(self, z: ArrayLike, tol: float = 0.0) -> FloatArray:
        """Return phi*(z_e) = sup_v <z_e, v> - phi(v): (m,), inf outside the domain.

        Parameters
        ----------
        z : (m, d) array
        tol : float
            Relative violation of the domain that is still taken as inside.
        """
        if not (np.isfinite(tol) and tol >= 0.0):
            raise ValueError(f"tol must be finite and >= 0, got {tol}")
        return self._conjugate(self._rows(z, "z"), float(tol))

    def dual_norm(self, z: ArrayLike) -> FloatArray:
        """Return the dual norm of every row, (m,); TypeError if phi is not a norm."""
        if not self.is_norm:
            raise TypeError(f"the penalty {self.name!r} is not a norm: it has no dual norm")
        return self._dual_norm(self._rows(z, "z"))

    def prox(self, v: ArrayLike, t: ArrayLike) -> FloatArray:
        """Return argmin_x t_e phi(x) + ||x - v_e||^2 / 2: (m, d), for t (m,) >= 0."""
        rows = self._rows(v, "v")
        return self._prox(rows, as_per_edge(t, len(rows), "t", zero=True))

    def prox_conjugate(
        self, z: ArrayLike, sigma: ArrayLike, cap: ArrayLike, *, check: bool = True
    ) -> FloatArray:
        """Return the dual update [GTV] (33), capacity cap_e = lambda A_e.

        argmin_u cap_e phi*(u / cap_e) + ||u - z_e||^2 / (2 sigma_e), for a norm the projection
        on the dual ball of radius cap_e.

        Parameters
        ----------
        z : (m, d) array
        sigma : (m,) array or float, > 0
        cap : (m,) array or float, > 0
        check : bool
            False: the arguments are float arrays of these shapes, for callers with few edges and
            many calls; what is not finite comes out as it may.

        Returns
        -------
        (m, d) array
        """
        if not check:
            return self._prox_conjugate(np.asarray(z), np.asarray(sigma), np.asarray(cap))
        rows = self._rows(z, "z")
        sigmas = as_per_edge(sigma, len(rows), "sigma")
        return self._prox_conjugate(rows, sigmas, as_per_edge(cap, len(rows), "cap"))

    def project_domain(self, z: ArrayLike, cap: ArrayLike) -> FloatArray:
        """Return the Euclidean projection of z_e on cap_e * dom phi*: (m, d)."""
        rows = self._rows(z, "z")
        return self._project_domain(rows, as_per_edge(cap, len(rows), "cap"))

    def fenchel_gap(self, D: ArrayLike, u: ArrayLike, cap: ArrayLike) -> FloatArray:
        """Return the edge's share of the duality gap, (m,), >= 0.

        cap_e phi(D_e) + cap_e phi*(u_e / cap_e) - <u_e, D_e>, rearranged so that nearly optimal
        pairs do not cancel; inf where u_e leaves the domain by more than a few ulps.

        Parameters
        ----------
        D : (m, d) array
            Differences of the node variables over the edges, (Dw)_e.
        u : (m, d) array
            Edge flows.
        cap : (m,) array, > 0
            Capacities lambda A_e.
        """
        differences = self._rows(D, "D")
        flows = self._rows(u, "u")
        if flows.shape != differences.shape:
            raise ValueError(f"u must have the shape {differences.shape} of D, got {flows.shape}")
        with np.errstate(over="ignore"):
            gap = self._fenchel_gap(differences, flows, as_per_edge(cap, len(flows), "cap"))
        return np.maximum(gap, 0.0)

    def scale_to_feasible(self, u: ArrayLike, cap: ArrayLike) -> float:
        """Return the largest theta in [0, 1] with theta u_e in cap_e dom phi* for all e."""
        rows = self._rows(u, "u")
        return self._scale_to_feasible(rows, as_per_edge(cap, len(rows), "cap"))

    def weighted_expression(self, V: cp.Expression, weights: ArrayLike) -> cp.Expression:
        """Return sum_e weights_e phi(V_e) as a scalar convex CVXPY expression.

        Parameters
        ----------
        V : cvxpy.Expression (m, d), affine
        weights : (m,) array, > 0
        """
        m, _ = self._expression_shape(V, "V")
        A = as_per_edge(weights, m, "weights")
        return cp.Constant(0.0) if m == 0 else self._weighted_expression(V, A)

    def dual_expression(
        self, U: cp.Expression, weights: ArrayLike, lam: cp.Parameter
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        """Return sum_e lam A_e phi*(U_e / (lam A_e)) for the dual problem [GTV] (24).

        Parameters
        ----------
        U : cvxpy.Expression (m, d), affine
            Edge flows.
        weights : (m,) array, > 0
            Edge weights A_e.
        lam : cvxpy.Parameter, scalar and nonnegative

        Returns
        -------
        cost : scalar convex cvxpy.Expression
        constraints : list of cvxpy.Constraint
            The domain of phi*. Both are DPP in lam; they may hold auxiliary variables, over
            which the cost is to be minimized.
        """
        m, _ = self._expression_shape(U, "U")
        A = as_per_edge(weights, m, "weights")
        if not (isinstance(lam, cp.Parameter) and lam.is_scalar() and lam.is_nonneg()):
            raise TypeError("lam must be a scalar cvxpy.Parameter with nonneg=True or pos=True")
        return (cp.Constant(0.0), []) if m == 0 else self._dual_expression(U, A, lam)

    def span_projector(self, dim: int) -> FloatArray | None:
        """Return the orthogonal projector (d, d) on the span of dom phi*; None if it is R^d.

        Flows have no component beside it. A penalty that cannot take d raises its error here.
        """
        return None

    def written(self, dim: int) -> CvxpyFunction | None:
        """Return the function on R^dim of a penalty that is known by CVXPY's rules alone."""
        return None

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """Return the penalty as plain data, {"kind": ...}."""

    def _rows(self, a: ArrayLike, name: str) -> FloatArray:
        return as_rows(a, f"{name} of penalty {self.name!r}", self.dim)

    def _expression_shape(self, V: cp.Expression, name: str) -> tuple[int, int]:
        if V.ndim != 2 or (self.dim is not None and V.shape[1] != self.dim):
            raise ValueError(
                f"{name} of penalty {self.name!r} must have shape (m, {self.dim or 'd'}), "
                f"got {V.shape}"
            )
        return V.shape[0], V.shape[1]

    @abstractmethod
    def _value(self, v: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _conjugate(self, z: FloatArray, tol: float) -> FloatArray: ...

    def _dual_norm(self, z: FloatArray) -> FloatArray:
        raise TypeError(f"the penalty {self.name!r} is not a norm: it has no dual norm")

    @abstractmethod
    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _prox_conjugate(self, z: FloatArray, sigma: FloatArray, cap: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _project_domain(self, z: FloatArray, cap: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _fenchel_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _scale_to_feasible(self, u: FloatArray, cap: FloatArray) -> float: ...

    @abstractmethod
    def _weighted_expression(self, V: cp.Expression, weights: FloatArray) -> cp.Expression: ...

    @abstractmethod
    def _dual_expression(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> tuple[cp.Expression, list[cp.Constraint]]: ...


class Norm(Penalty):
    """A penalty that is a norm: phi* is the indicator of the dual norm's unit ball.

    A subclass gives the two norms, the projection on the dual ball, the gap of feasible flows
    and CVXPY's expressions for d >= 2; in one dimension all p-norms are |v|.
    """

    is_norm = True

    def _conjugate(self, z: FloatArray, tol: float) -> FloatArray:
        return np.where(self._dual_norm(z) <= 1.0 + tol, 0.0, np.inf)

    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray:
        # Moreau: the prox of t phi is what the projection on the dual ball of radius t leaves.
        return v - self._project_domain(v, t)

    def _prox_conjugate(self, z: FloatArray, sigma: FloatArray, cap: FloatArray) -> FloatArray:
        return self._project_domain(z, cap)

    def _project_domain(self, z: FloatArray, cap: FloatArray) -> FloatArray:
        if z.shape[1] == 1:
            return np.clip(z, -cap[:, None], cap[:, None])
        return self._project_ball(z, cap)

    def _fenchel_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        feasible = self._dual_norm(u) <= cap * (1.0 + rounding_slack(u.shape[1]))
        return np.where(feasible, self._feasible_gap(D, u, cap), np.inf)

    def _scale_to_feasible(self, u: FloatArray, cap: FloatArray) -> float:
        norms = self._dual_norm(u)
        over = np.flatnonzero(norms > cap)
        if over.size == 0:
            return 1.0
        ratios = cap[over] / norms[over]
        theta = float(ratios.min())
        if theta < np.finfo(np.float64).tiny:
            return 0.0  # a subnormal factor has too few digits to be kept inside
        tight = over[ratios <= theta * (1.0 + rounding_slack(u.shape[1]))]
        rows, radii = u[tight], cap[tight]
        back = EPS
        while back < 1.0 and bool(np.any(self._dual_norm(theta * rows) > radii)):
            # The rounding of theta * u may push an edge out again, by an ulp or two.
            theta *= 1.0 - back
            back *= 2.0
        return theta if back < 1.0 else 0.0

    def _weighted_expression(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        if V.shape[1] == 1:
            return weights @ cp.abs(cp.vec(V, order="F"))
        return self._weighted_rows(V, weights)

    def _dual_expression(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        if U.shape[1] == 1:
            flow = cp.vec(U, order="F")
            return cp.Constant(0.0), [flow <= lam * weights, -flow <= lam * weights]
        return cp.Constant(0.0), self._dual_ball(U, weights, lam)

    @abstractmethod
    def _dual_norm(self, z: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _project_ball(self, z: FloatArray, radius: FloatArray) -> FloatArray:
        """Projection on the dual ball, d >= 2."""

    @abstractmethod
    def _feasible_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        """Gap of flows inside the ball (or an ulp outside); any number elsewhere."""

    @abstractmethod
    def _weighted_rows(self, V: cp.Expression, weights: FloatArray) -> cp.Expression: ...

    @abstractmethod
    def _dual_ball(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> list[cp.Constraint]: ...
