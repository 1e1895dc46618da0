"""A local loss that the user writes with CVXPY."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import cvxpy as cp
import numpy as np

from gtvcvx._conic import conjugate_model
from gtvcvx._cvxpy_function import Build, CvxpyFunction
from gtvcvx.losses._base import BatchedLoss, FloatArray, IntArray, Loss

T = TypeVar("T")


class CvxpyLoss(Loss):
    """Any convex loss that CVXPY can express, with constraints: ``L(w) = build(w)``.

    It works wherever other losses do: in the primal and the dual CVXPY model, in the iterative
    solver and in the bounds. ``verify.certify`` answers UNPROVED, as the exact kernel has no rule
    for it, and `GTVProblem.save` refuses it, as a Python callable cannot be written down.

    Parameters
    ----------
    build : callable
        ``build(w)`` for a CVXPY variable (or another affine expression) w of shape (d,) returns a
        convex scalar expression, or a pair ``(expression, [constraints])``. Other CVXPY variables
        in them are minimized over. It is called several times and must not change.
    dim : int, optional
        Dimension d. Default: that of the problem's other losses; one loss at least must have one.

    Raises
    ------
    cvxpy.DCPError
        Not convex by CVXPY's rules: here if ``dim`` is given, else when the problem is made.
    TypeError, ValueError
        ``build`` is not callable, fails, or returns something else; ``dim`` is not a positive
        integer.

    Notes
    -----
    A proximal point, the heart of the iterative solver, is a small cone program. It is brought
    into conic form once and solved by one warm Clarabel object: 0.02 to 0.5 ms for each node and
    iteration, where going through CVXPY would take 1 to 5 ms and the built-in losses take
    nanoseconds. Losses of the library are therefore to be preferred where they fit.

    Conjugates are upper bounds from conic duality: objective of a dual point, widened by what its
    residuals may cost. They are good for relative gaps of about 1e-8. The loss must be bounded
    below, each loss by itself: otherwise the zero flow has no dual value, and ValueError is
    raised by `GTVProblem.solve` (the CVXPY models still work).

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> X, y = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([1.0, 0.0])
    >>> loss = CvxpyLoss(lambda w: (cp.sum(cp.huber(X @ w - y)), [w >= 0, cp.sum(w) == 1]), dim=2)
    >>> np.round(loss.prox([0.0, 0.0], 1.0), 6)
    array([0.705882, 0.294118])
    """

    def __init__(self, build: Build, dim: int | None = None) -> None:
        if not callable(build):
            raise TypeError(f"build: a callable is expected, got {type(build).__name__}")
        if dim is not None and (
            isinstance(dim, bool) or not isinstance(dim, (int, np.integer)) or dim < 1
        ):
            raise ValueError(f"dim: a positive integer is expected, got {dim!r}")
        self._build = build
        self.dim = None if dim is None else int(dim)
        # One for each dimension that the loss has met, shared by all nodes that have the loss.
        self._functions: dict[int, CvxpyFunction] = {}
        self._node: str | None = None
        if self.dim is not None:
            self.function(self.dim)

    def function(self, dim: int) -> CvxpyFunction:
        """Return L in dimension dim, checked."""
        if dim not in self._functions:
            self._functions[dim] = CvxpyFunction(self._build, dim)
        return self._functions[dim]

    def placed(self, node: str, dim: int) -> CvxpyLoss:
        """Return the loss as it stands at a node, by whose name errors call it; checks it."""
        placed = copy.copy(self)
        placed._node = node
        _named(node, self.function, dim)
        return placed

    @classmethod
    def batch(cls, losses: Sequence[CvxpyLoss], dim: int) -> BatchedCvxpy:
        """Join losses; each keeps its own cone program."""
        functions = [loss.function(dim) for loss in losses]
        return BatchedCvxpy(functions, [loss._node for loss in losses])

    def __repr__(self) -> str:
        name = getattr(self._build, "__qualname__", type(self._build).__name__)
        return f"CvxpyLoss({name})"


def _named(node: str | None, compute: Callable[..., T], *arguments: Any) -> T:
    """Compute, with the node's name in front of the message of an error."""
    try:
        return compute(*arguments)
    except (cp.DCPError, cp.SolverError, TypeError, ValueError) as error:
        if node is None:
            raise
        raise type(error)(f"losses: node {node}: {error}") from error


class BatchedCvxpy(BatchedLoss):
    """Losses by CVXPY at k nodes, worked off one after the other.

    A joint cone program of all nodes takes longer: its iterations go on until the last node has
    converged.
    """

    def __init__(self, functions: Sequence[CvxpyFunction], names: Sequence[str | None]) -> None:
        self._functions, self._names = list(functions), list(names)
        self.dim = self._functions[0].dim

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return len(self._functions)

    def _each(self, of: Callable[[CvxpyFunction, int], Any]) -> FloatArray:
        """Stack what ``of(function, i)`` gives for each node i."""
        rows = []
        for i, (function, name) in enumerate(zip(self._functions, self._names, strict=True)):
            rows.append(_named(name, of, function, i))
        return np.array(rows)

    def value(self, w: FloatArray) -> FloatArray:
        """Losses (k,), +inf where a constraint is violated by more than 1e-8 of the size of w."""
        return self._each(lambda f, i: f.value(w[i]))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Subgradients (k, d), multipliers of the cone program with w fixed."""
        return self._each(lambda f, i: f.subgradient(w[i]))

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points (k, d), by Clarabel."""
        return self._each(lambda f, i: f.prox(v[i], float(tau[i])))

    def project_domain(self, w: FloatArray) -> FloatArray:
        """Return points near w_i where L_i is finite: w_i itself, or its projection."""
        return self._each(lambda f, i: f.near(w[i]))

    @cached_property
    def _minimizer(self) -> FloatArray:
        least = self._each(lambda f, i: f.minimizer())
        return least - np.einsum("kij,kj->ki", self._projector, least)

    def minimizer(self) -> FloatArray:
        """One minimizer of each loss, without a part along null directions."""
        return self._minimizer.copy()

    def _inside(self, s: FloatArray) -> FloatArray:
        """Remove the part of s along null directions."""
        return s - np.einsum("kij,kj->ki", self._projector, s)

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Upper bounds on the conjugates; +inf farther than atol from the domain.

        The part along null directions is left out up to atol, be it infinite. What leaves the
        domain otherwise is moved back within a finite atol only: it is no matter of rounding.
        """
        inside = self._inside(s)
        away = np.linalg.norm(s - inside, axis=1)

        def bound(f: CvxpyFunction, i: int) -> float:
            if away[i] > atol[i]:
                return np.inf
            value = f.conjugate(inside[i])
            if np.isfinite(value) or not 0.0 < atol[i] < np.inf:
                return value
            nearest = f.nearest_slope(inside[i])
            close = np.linalg.norm(nearest - s[i]) <= atol[i]
            return f.conjugate(nearest) if close else np.inf

        return self._each(bound)

    def fenchel_gap(self, w: FloatArray, s: FloatArray) -> FloatArray:
        """Upper bounds ``L_i(w_i) + L_i*(s_i) - <s_i, w_i>`` on the node gaps."""
        inside = self._inside(s)
        bound = self._each(lambda f, i: f.conjugate(inside[i]))
        return np.maximum(self.value(w) + bound - np.sum(inside * w, axis=1), 0.0)

    def scale_to_feasible(self, s: FloatArray) -> float:
        """Return a theta in [0, 1] with theta s_i in the domain of L_i* for all i, the largest."""
        inside = self._inside(s)
        return 1.0 / float(self._each(lambda f, i: f.excess(inside[i])).max())

    @cached_property
    def _projector(self) -> FloatArray:
        return np.array([f.null @ f.null.T for f in self._functions])

    def null_projector(self) -> FloatArray:
        """Projectors on the directions along which L_i is constant, from its conic form.

        Raises
        ------
        ValueError
            A loss is unbounded below: no flow need be dual feasible then, not even zero.
        """
        self.minimizer()
        return self._projector

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value: what the users wrote, node by node."""
        costs, constraints = [], []
        for i, f in enumerate(self._functions):
            cost, extra = f.expression(w[i, :])
            costs.append(cost)
            constraints += extra
        return cp.sum(cp.hstack(costs)), constraints

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate: the duals of the cone programs."""
        return conjugate_model([f.form for f in self._functions], s, np.ones(self.n_nodes))

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """One opaque term: there are no data that would say what the losses are."""
        return [{"kind": "opaque", "node": np.sort(nodes), "name": "CvxpyLoss"}]
