"""Inexact local updates for Algorithm 1 of [GTV]: a few gradient steps, or what a user has.

A node's update is the proximal point ``argmin_z L_i(z) + ||z - v_i||^2 / (2 tau_i)``, and often
nobody wants to compute it exactly: local training stops early. The method still converges if the
errors are summable over the iterations ([GTV] section IV, [1]_). Whatever the updates return,
the gap of the solution is a valid one, as it is evaluated at the points that come out.

References
----------
.. [1] L. Condat, "A primal-dual splitting method for convex optimization involving Lipschitzian,
   proximable and linear composite terms", JOTA 2013, Theorem 3.1: summable errors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx.losses import StackedLoss
from gtvcvx.problem import GTVProblem

# node label, v (d,), tau, previous (d,) -> z (d,)
NodeUpdate = Callable[[Any, FloatArray, float, FloatArray], ArrayLike]

# Backtracking gives up here: the step is then far below the rounding of any point.
SMALLEST_STEP = 2.0**-60


class LocalUpdate(ABC):
    """An update of all nodes at once, for ``solve(solver="PDHG", local_update=...)``.

    Subclasses approximate the proximal points; they may use `StackedLoss.value`, `.gradient` and
    `.prox` of the losses.
    """

    @abstractmethod
    def __call__(
        self,
        losses: StackedLoss,
        v: FloatArray,
        tau: FloatArray,
        previous: FloatArray,
        iteration: int,
    ) -> FloatArray:
        """Return approximate minimizers z_i of ``L_i(z) + ||z - v_i||^2 / (2 tau_i)``.

        Parameters
        ----------
        losses : StackedLoss
            Of all n nodes.
        v : ndarray, shape (n, d)
        tau : ndarray, shape (n,)
            1 / degree of each node; 1 for nodes without neighbours, whose rows are not used.
        previous : ndarray, shape (n, d)
            The nodes' current parameters, a good point to start from.
        iteration : int
            1, 2, 3, ...

        Returns
        -------
        ndarray, shape (n, d), finite
        """


class GradientSteps(LocalUpdate):
    r"""A few gradient steps on each local problem, from the node's current parameters.

    Iteration k takes ``ceil(n_steps * k**growth)`` of them. For smooth losses each step shrinks a
    node's error by some factor rho < 1, so that the errors :math:`\rho^{c k^g}` are summable for
    every growth > 0, and the method converges to an exact solution.

    Parameters
    ----------
    n_steps : int
        Steps in the first iteration, at least 1.
    step : float or ndarray of shape (n,), optional
        Length of the steps, at most ``2 / (l_i + 1 / tau_i)`` for a gradient of L_i with Lipschitz
        constant l_i. Default: backtracking from tau_i, at each node by itself.
    growth : float
        Exponent g >= 0; 0 means a fixed number of steps, with errors that need not be summable.

    Notes
    -----
    Losses with kinks have no gradient there, and steps along a subgradient do not settle: give
    such nodes an update of their own, or use the exact one.
    """

    def __init__(
        self, n_steps: int = 5, step: ArrayLike | None = None, growth: float = 0.25
    ) -> None:
        if isinstance(n_steps, bool) or not isinstance(n_steps, (int, np.integer)) or n_steps < 1:
            raise ValueError(f"n_steps: a positive integer is expected, got {n_steps!r}")
        if not (np.isfinite(growth) and growth >= 0):
            raise ValueError(f"growth: a finite number >= 0 is expected, got {growth!r}")
        self.n_steps, self.growth = int(n_steps), float(growth)
        self.step = None if step is None else np.asarray(step, dtype=np.float64)
        if self.step is not None and not (np.isfinite(self.step) & (self.step > 0)).all():
            raise ValueError(f"step: positive finite numbers are expected, got {step!r}")

    def __repr__(self) -> str:
        return f"GradientSteps(n_steps={self.n_steps}, step={self.step}, growth={self.growth})"

    def __call__(
        self,
        losses: StackedLoss,
        v: FloatArray,
        tau: FloatArray,
        previous: FloatArray,
        iteration: int,
    ) -> FloatArray:
        """Take the steps of this iteration; see `LocalUpdate`."""
        if self.step is not None and self.step.shape not in ((), (len(v),)):
            raise ValueError(f"step: a number or shape ({len(v)},) is expected, got {self.step}")
        local = _LocalProblems(losses, v, tau)
        z = previous
        length = tau if self.step is None else np.broadcast_to(self.step, tau.shape)
        for _ in range(int(np.ceil(self.n_steps * iteration**self.growth))):
            gradient = local.gradient(z)
            if self.step is None:
                length = local.backtracked(z, gradient, length)
            z = z - length[:, None] * gradient
        return z


class _LocalProblems:
    """The functions ``L_i(z) + ||z - v_i||^2 / (2 tau_i)`` of all nodes."""

    def __init__(self, losses: StackedLoss, v: FloatArray, tau: FloatArray) -> None:
        self._losses, self._v, self._tau = losses, v, tau

    def value(self, z: FloatArray) -> FloatArray:
        distance = np.sum((z - self._v) ** 2, axis=1)
        return self._losses.value(z) + 0.5 * distance / self._tau

    def gradient(self, z: FloatArray) -> FloatArray:
        return self._losses.gradient(z) + (z - self._v) / self._tau[:, None]

    def backtracked(self, z: FloatArray, gradient: FloatArray, length: FloatArray) -> FloatArray:
        """Halve the lengths until every node decreases by half of what its slope promises.

        Every length of at most 1 / (l_i + 1 / tau_i) passes, with l_i as in `GradientSteps`.
        """
        length = length.copy()
        value, promised = self.value(z), 0.5 * np.sum(gradient**2, axis=1)
        # Close to the minimum the decrease is below the rounding of the values.
        room = 4.0 * np.finfo(np.float64).eps * np.abs(value)
        active = promised > 0.0
        while active.any():
            moved = self.value(z - length[:, None] * gradient)
            active &= ~(moved <= value - length * promised + room)
            active &= length > SMALLEST_STEP * self._tau
            length[active] *= 0.5
        return length


class _NodeUpdates(LocalUpdate):
    """Updates by callables for single nodes; the exact proximal points elsewhere."""

    def __init__(self, problem: GTVProblem, updates: Mapping[int, NodeUpdate]) -> None:
        self._nodes, self._updates = problem.graph.nodes, updates
        others = np.setdiff1d(problem.losses.nodes_with_loss, list(updates))
        # The proximal point of a node without a loss is v itself.
        self._exact = len(others) > 0

    def __call__(
        self,
        losses: StackedLoss,
        v: FloatArray,
        tau: FloatArray,
        previous: FloatArray,
        iteration: int,
    ) -> FloatArray:
        z = losses.prox(v, tau) if self._exact else v.copy()
        for i, update in self._updates.items():
            row = np.asarray(update(self._nodes[i], v[i].copy(), float(tau[i]), previous[i].copy()))
            if row.dtype.kind not in "biuf" or row.shape != v[i].shape:
                raise ValueError(
                    f"local_update: node {self._nodes[i]!r}: {v.shape[1]} real numbers are "
                    f"expected, got {row.dtype} of shape {row.shape}"
                )
            z[i] = row
        return z


def as_local_update(update: Any, problem: GTVProblem) -> LocalUpdate:
    """Bring what a user gives for `local_update` into the form of a `LocalUpdate`.

    Parameters
    ----------
    update : LocalUpdate, callable, or mapping of node label to callable
        A callable ``update(node, v, tau, previous) -> z`` is called for each node that has a loss
        other than the zero loss; those of a mapping at their nodes, while the other nodes have
        the exact update.

    Raises
    ------
    TypeError, ValueError
        Something else; a label that is not in the graph.
    """
    if isinstance(update, LocalUpdate):
        return update
    if isinstance(update, Mapping):
        for node, one in update.items():
            if node not in problem.graph.index:
                raise ValueError(f"local_update: {node!r} is not a node of the graph")
            if not callable(one):
                raise TypeError(f"local_update: node {node!r} has {one!r}, which is not callable")
        return _NodeUpdates(problem, {problem.graph.index[k]: one for k, one in update.items()})
    if not callable(update):
        raise TypeError(
            "local_update: a LocalUpdate, a callable, or a mapping of node label to callable is "
            f"expected, got {type(update).__name__}"
        )
    return _NodeUpdates(problem, {int(i): update for i in problem.losses.nodes_with_loss})
