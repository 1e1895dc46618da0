"""A local loss that the user writes with CVXPY."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from gtvcvx.conic._function import Build, CvxpyFunction
from gtvcvx.losses._loss import Loss
from gtvcvx.losses.batched._cvxpy import BatchedCvxpy, _named
from gtvcvx.losses.batched._factors import positive_factor
from verify._display import clipped


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

    Data may be in any units: a program on which Clarabel fails is solved again in units of its own,
    and in other ways; the best answer is a proximal point, but bounds are taken only of answers
    that are accurate. Where CVXPY knows that the expression is nonnegative, a solve that is
    interrupted before anything is known still has a finite gap; of many other losses, it may be
    infinite until their conic forms are made.

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
        self._factor = 1.0
        if self.dim is not None:
            self.function(self.dim)

    def function(self, dim: int) -> CvxpyFunction:
        """Return L in dimension dim, checked."""
        if dim not in self._functions:
            function = CvxpyFunction(self._build, dim)
            one = self._factor == 1.0
            self._functions[dim] = function if one else function.multiplied(self._factor)
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

    def _times(self, factor: float) -> CvxpyLoss:
        product = copy.copy(self)
        product._factor, product._functions = factor * self._factor, {}
        positive_factor(product._factor)
        if self.dim is not None:
            product.function(self.dim)
        return product

    def __repr__(self) -> str:
        name = getattr(self._build, "__qualname__", type(self._build).__name__)
        loss = f"CvxpyLoss({clipped(name)})"
        return loss if self._factor == 1.0 else f"{self._factor!r} * {loss}"
