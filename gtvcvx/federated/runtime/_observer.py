"""Looks at the participants' states from outside, and says how far they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, real_array
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.programs import Report
from gtvcvx.federated.transport import ClientError
from gtvcvx.solution import Solution

# A value this many times that of the start, or that at zero, means that steps are too long.
_DIVERGED = 1e6


class Observer:
    """Values, certified gaps and distances; it sees all data, as the experimenter does.

    Parameters
    ----------
    algorithm : Algorithm
    net : Network
    reference : Solution or array_like, optional
        Vectors of the problem's nodes, or of the clients, that distances are measured to.
    truth : array_like, shape (n, d), optional
        Vectors of the clients that errors are measured to.
    """

    def __init__(
        self, algorithm: Algorithm, net: Network, reference: Any = None, truth: Any = None
    ) -> None:
        self._algorithm, self._net = algorithm, net
        self.problem = algorithm.problem(net)
        self._target = self.problem if self.problem is not None else algorithm.target(net)
        self._reference = self._vectors(reference)
        self._truth = None if truth is None else real_array(truth, "truth")
        clients = (net.n_clients, net.dim)
        if self._truth is not None and self._truth.shape != clients:
            raise ValueError(f"truth: shape {clients} is expected, got {self._truth.shape}")
        self._start: float | None = None
        self._first = 0.0
        self._reports: dict[int, Report] = {}
        self.bound = -np.inf
        self.w = np.empty(0)
        self.models = np.empty(0)
        self.u: FloatArray | None = None

    def _vectors(self, reference: Solution | ArrayLike | None) -> FloatArray | None:
        if reference is None:
            return None
        given = reference.w if isinstance(reference, Solution) else reference
        w = real_array(given, "reference")
        shapes = [(self._net.n_clients, self._net.dim)]
        if self._target is not None:
            shapes.append((self._target.graph.n_nodes, self._target.dim))
        if w.shape not in shapes:
            raise ValueError(
                f"reference: a shape of {sorted(set(shapes))} is expected, got {w.shape}"
            )
        return w

    def record(self, reports: Mapping[int, Report]) -> dict[str, float] | str:
        """Return value, gap and distances; or why the states are no longer of use.

        Those who are away count with their last state. What was known before stays where the
        states are of no use.
        """
        self._reports |= reports
        for i in range(self._net.n_participants):
            if i not in self._reports:
                raise ClientError(f"{self._net.label(i)}: lost before its first state was seen")
        states = [self._reports[i] for i in range(self._net.n_participants)]
        if not all(np.isfinite(state.w).all() for state in states):
            return "a vector is no longer finite"
        if not all(state.flows is None or np.isfinite(state.flows).all() for state in states):
            return "a multiplier is no longer finite"
        with np.errstate(over="ignore", invalid="ignore"):
            w = self._algorithm.point(self._net, states)
            value = self._value(w, states)
        if self._start is None:
            self._first = value
            self._start = max(abs(value), self._scale())
        if not np.isfinite(value) or (self._start and value > _DIVERGED * self._start):
            return f"the value has grown from {self._first:.3g} to {value:.3g}"
        self.w, self.models = w, self._algorithm.models(self._net, states)
        out = {"value": value}
        if self.problem is not None:
            self._learn(states)
            out["gap"] = value - self.bound
        return out | self._distances()

    def states(self) -> list[Report]:
        """Return the last states."""
        return [self._reports[i] for i in range(self._net.n_participants)]

    def _scale(self) -> float:
        """Return the objective at zero: one that starts at its optimum may have no value at all."""
        if self._target is None:
            return 0.0
        zero = np.zeros((self._target.graph.n_nodes, self._target.dim))
        return abs(self._target.value(self._target.losses.project_domain(zero)))

    def _value(self, w: FloatArray, states: list[Report]) -> float:
        if self._target is None:
            return self._algorithm.value(self._net, states)
        return self._target.value(self._target.losses.project_domain(w))

    def _learn(self, states: list[Report]) -> None:
        """Keep the flow if its bound is the best so far."""
        assert self.problem is not None
        flow = self._algorithm.flow(self._net, self.problem, self.w, states)
        bound, repaired = self.problem.lower_bound(flow)
        if bound > self.bound or self.u is None:
            self.bound, self.u = bound, repaired

    def _distances(self) -> dict[str, float]:
        out = {}
        if self._reference is not None:
            own = self.w if self.w.shape == self._reference.shape else self.models
            out["distance"] = float(np.linalg.norm(own - self._reference, axis=1).max())
        if self._truth is not None:
            out["mse"] = float(np.sum((self.models - self._truth) ** 2) / len(self._truth))
        return out
