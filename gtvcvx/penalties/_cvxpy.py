"""A penalty that the user writes with CVXPY."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx._norms import row_norm_2
from gtvcvx.conic._form import conjugate_model
from gtvcvx.conic._function import MARGIN, Build, CvxpyFunction
from gtvcvx.penalties._base import Penalty
from verify._display import clipped

# A flow that is moved by less than this share of it may be inside the domain.
CLOSE = 1e-5
# phi(v) and phi(-v), phi(t v) and t phi(v) must agree to so many digits.
AGREEMENT = 1e-6
_SIZES = (1e-2, 1.0, 1e2)
_TRIALS = 5


class CvxpyPenalty(Penalty):
    """Any convex, even penalty that CVXPY can express: ``phi(v) = build(v)``, phi(0) = 0.

    It works in the primal and the dual CVXPY model, in the iterative solver and in the bounds.
    ``verify.certify`` answers UNPROVED, as the exact kernel has no rule for it, and
    `GTVProblem.save` refuses it.

    Parameters
    ----------
    build : callable
        ``build(v)`` for a CVXPY variable (or another affine expression) v of shape (d,) returns a
        convex scalar expression. Other CVXPY variables in it are minimized over. It is called
        several times and must not change.
    norm : bool
        Whether phi is a norm, so that phi* is the indicator of the dual norm's unit ball: every
        solution is then constant over an edge whose flow is below its capacity.
    dim : int, optional
        The d that the penalty is made for. Default: any.

    Raises
    ------
    cvxpy.DCPError
        Not convex by CVXPY's rules: here if ``dim`` is given, else when d becomes known.
    TypeError, ValueError
        ``build`` is not callable, fails, or returns something else; phi has constraints or is
        infinite somewhere; phi(0) is not 0; phi is not even; ``norm`` is said but phi(t v) is not
        t phi(v), or is zero off the origin.

    Notes
    -----
    Why even: an edge {i, j} has no direction. Which of its ends is called head depends on how the
    nodes are numbered, and phi(w_i - w_j) must not. Evenness and homogeneity are checked at random
    points, convexity by CVXPY's rules.

    Each edge needs a small cone program in each iteration, 0.03 to 0.5 ms by Clarabel: good for
    some thousand edges, while the penalties of the library take nanoseconds an edge. Bounds are
    good for relative gaps of about 1e-8.

    Examples
    --------
    >>> import cvxpy as cp
    >>> CvxpyPenalty(lambda v: cp.norm(v) + 0.5 * cp.norm1(v), norm=True).value([[3.0, 4.0]])
    array([8.5])
    """

    name = "cvxpy"

    def __init__(self, build: Build, norm: bool = False, dim: int | None = None) -> None:
        if not callable(build):
            raise TypeError(f"build: a callable is expected, got {type(build).__name__}")
        if not isinstance(norm, (bool, np.bool_)):
            raise TypeError(f"norm: True or False is expected, got {norm!r}")
        if dim is not None and (
            isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1
        ):
            raise ValueError(f"dim: a positive integer is expected, got {dim!r}")
        self._build = build
        self.is_norm = bool(norm)
        self.dim = None if dim is None else int(dim)
        self._functions: dict[int, _EdgeFunction] = {}
        if self.dim is not None:
            self.function(self.dim)

    def function(self, dim: int) -> _EdgeFunction:
        """Return phi in dimension dim, checked."""
        if dim not in self._functions:
            self._functions[dim] = _EdgeFunction(self._build, dim, self.is_norm)
        return self._functions[dim]

    def __repr__(self) -> str:
        name = getattr(self._build, "__qualname__", type(self._build).__name__)
        return f"CvxpyPenalty({clipped(name)}, norm={self.is_norm})"

    def written(self, dim: int) -> CvxpyFunction:
        """Return phi in dimension dim."""
        return self.function(dim)

    def to_data(self) -> dict[str, Any]:
        """Return {"kind": "opaque", ...}: there are no data that would say what phi is."""
        return {"kind": "opaque", "name": "CvxpyPenalty"}

    def span_projector(self, dim: int) -> FloatArray | None:
        """Projector (d, d) on the span of dom phi*, None if it is all of R^d."""
        null = self.function(dim).null
        return np.eye(dim) - null @ null.T if null.shape[1] else None

    def _value(self, v: FloatArray) -> FloatArray:
        function = self.function(v.shape[1])
        return np.array([function.value(row) for row in v])

    def _conjugate(self, z: FloatArray, tol: float) -> FloatArray:
        if self.is_norm:
            return np.where(self._dual_norm(z) <= 1.0 + tol + 0.5 * MARGIN, 0.0, np.inf)
        function = self.function(z.shape[1])
        return np.array([max(function.conjugate(row), 0.0) for row in z / (1.0 + tol)])

    def _dual_norm(self, z: FloatArray) -> FloatArray:
        # The gauge of dom phi*, the dual ball.
        function = self.function(z.shape[1])
        return np.array([function.gauge(row) for row in z])

    def _prox(self, v: FloatArray, t: FloatArray) -> FloatArray:
        function = self.function(v.shape[1])
        rows = zip(v, t.tolist(), strict=True)
        return _stack(
            [function.prox(row, step) if step > 0.0 else row for row, step in rows], v.shape
        )

    def _prox_conjugate(self, z: FloatArray, sigma: FloatArray, cap: FloatArray) -> FloatArray:
        # Moreau: what sigma times the prox of (cap / sigma) phi at z / sigma leaves of z.
        removed = sigma[:, None] * self._prox(z / sigma[:, None], cap / sigma)
        u = z - removed
        if self.is_norm:
            # Flows inside their capacity are left alone, to the last bit.
            close = np.flatnonzero(row_norm_2(removed) <= CLOSE * row_norm_2(z))
            u[close] = self._project_domain(z[close], cap[close])
        return u

    def _project_domain(self, z: FloatArray, cap: FloatArray) -> FloatArray:
        function = self.function(z.shape[1])
        rows = zip(z, cap.tolist(), strict=True)
        return _stack([function.project(row, radius) for row, radius in rows], z.shape)

    def _fenchel_gap(self, D: FloatArray, u: FloatArray, cap: FloatArray) -> FloatArray:
        cost = self._value(D) + self._conjugate(u / cap[:, None], 0.0)
        gap: FloatArray = cap * cost - np.sum(u * D, axis=1)
        return gap

    def _scale_to_feasible(self, u: FloatArray, cap: FloatArray) -> float:
        function = self.function(u.shape[1])
        worst = max((function.outside(row) for row in u / cap[:, None]), default=1.0)
        return 1.0 if worst <= 1.0 + 0.25 * MARGIN else 1.0 / worst

    def _weighted_expression(self, V: cp.Expression, weights: FloatArray) -> cp.Expression:
        function = self.function(V.shape[1])
        edges = [function.expression(V[e, :])[0] for e in range(V.shape[0])]
        return weights @ cp.hstack(edges)

    def _dual_expression(
        self, U: cp.Expression, weights: FloatArray, lam: cp.Parameter
    ) -> tuple[cp.Expression, list[cp.Constraint]]:
        return conjugate_model([self.function(U.shape[1]).form] * len(weights), U, weights, lam)


def _stack(rows: list[FloatArray], shape: tuple[int, ...]) -> FloatArray:
    return np.array(rows).reshape(shape)


class _EdgeFunction(CvxpyFunction):
    """phi in one dimension d: its checks, and the projection on the domain of phi*."""

    def __init__(self, build: Build, dim: int, is_norm: bool) -> None:
        super().__init__(build, dim)
        self._is_norm = is_norm
        if self._constraints:
            raise ValueError(
                "build: an expression is expected; a penalty is finite, and has no constraints"
            )
        if not abs(self.value(np.zeros(self.dim))) <= AGREEMENT:
            raise ValueError(
                f"build: phi(0) = 0 is expected, got {self.value(np.zeros(self.dim)):.6g}"
            )
        rng = np.random.default_rng(0)
        for size in _SIZES * _TRIALS:
            self._check_at(size * rng.standard_normal(self.dim))
        if is_norm and self.null.shape[1]:
            raise ValueError(
                f"norm: phi is zero along {self.null[:, 0]}, so that it is not a norm; norm=False "
                "makes it an ordinary penalty"
            )

    def _check_at(self, v: FloatArray) -> None:
        value, opposite, double = self.value(v), self.value(-v), self.value(2.0 * v)
        room = AGREEMENT * max(abs(value), 1e-6)
        if not np.isfinite(value):
            raise ValueError(f"build: a penalty is finite everywhere, phi({v}) is not")
        if not abs(value - opposite) <= room:
            raise ValueError(
                f"build: phi(-v) = phi(v) is expected, as an edge has no direction; phi({v}) = "
                f"{value:.6g}, phi({-v}) = {opposite:.6g}"
            )
        if self._is_norm and not abs(double - 2.0 * value) <= 2.0 * room:
            raise ValueError(
                f"norm: phi(2 v) = 2 phi(v) is expected of a norm; phi({v}) = {value:.6g}, "
                f"phi({2.0 * v}) = {double:.6g}"
            )

    def outside(self, z: FloatArray) -> float:
        """Upper bound on the least t >= 1 with z in t dom phi*."""
        # Whether phi* is finite is a weaker test: there is a tolerance in it.
        return max(1.0, self.gauge(z)) if self._is_norm else self.excess(z)

    def project(self, z: FloatArray, radius: float) -> FloatArray:
        """Projection on radius times the closure of dom phi*."""
        beyond = self.outside(z / radius)
        if beyond == 1.0:
            return z
        x = self.nearest_slope(z / radius)
        x = radius * x / self.outside(x)
        # Close to the domain the solver's digits are too few, and shortening z leads nearer.
        nearer = np.linalg.norm(x - z) > (1.0 - 1.0 / beyond) * np.linalg.norm(z)
        return z / beyond if nearer else x
