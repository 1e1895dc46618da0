"""Local updates of models that are not convex: a fixed number of gradient steps.

The objective is ``F(z) = L(z) + ||z - v||^2 / (2 tau)``, the start is v [GTV (16), (40)].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray

# The papers give no number of inner steps for (40); the notebook of the authors of [GTV] does 40.
STEPS = 40


@dataclass(frozen=True)
class ProximalObjective:
    """F, with ``value`` and ``gradient`` of L; ``value`` is +inf where numbers overflow."""

    loss: Callable[[FloatArray], float]
    slope: Callable[[FloatArray], FloatArray]
    v: FloatArray
    tau: float

    def value(self, z: FloatArray) -> float:
        """F(z), +inf where numbers overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            away = z - self.v
            value = self.loss(z) + float(away @ away) / (2 * self.tau)
        return value if np.isfinite(value) else np.inf

    def gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of F at z, the proximal term included."""
        return self.slope(z) + (z - self.v) / self.tau


def fixed_steps(objective: ProximalObjective, steps: int, step: float) -> FloatArray:
    """Do so many gradient steps of this size from v.

    Raises
    ------
    ValueError
        The step is so long that numbers overflow.
    """
    z = objective.v.copy()
    for k in range(steps):
        with np.errstate(over="ignore", invalid="ignore"):
            z -= step * objective.gradient(z)
        if not np.isfinite(objective.value(z)):
            raise ValueError(f"step: {step} is too long, F overflows at gradient step {k + 1}")
    return z


def backtracked_steps(objective: ProximalObjective, steps: int) -> FloatArray:
    """Do at most so many gradient steps from v, whose lengths are found by halving.

    A step t is taken once ``F(z - t g) <= F(z) - (t/2) ||g||^2``, which holds for every t up to one
    over the curvature of F: no step is shorter than half of that, in whatever units the data are,
    and F never increases. Where rounding of F hides what a step would gain, as with features in
    tiny units, one is taken that does not pass the lowest point on its way. The first trial is
    t = tau, exact where L is flat; later ones are twice the step before. Fewer steps are done where
    z would not move.
    """
    z, t = objective.v.copy(), objective.tau
    value = objective.value(z)
    for _ in range(steps):
        moved = _backtrack(objective, z, value, t)
        if moved is None:
            break
        z, value, t = moved
        t = min(2 * t, objective.tau)
    return z


def _backtrack(
    objective: ProximalObjective, z: FloatArray, value: float, t: float
) -> tuple[FloatArray, float, float] | None:
    """Return the next point, its value and the step, or None where no step gains anything."""
    g = objective.gradient(z)
    # In units of the largest entry: squares of large gradients overflow.
    scale = float(np.abs(g).max())
    norm = scale * float(np.linalg.norm(g / scale)) if scale else 0.0
    while True:
        with np.errstate(over="ignore"):
            trial = z - t * g
        if np.array_equal(trial, z):
            return None
        there, gain = objective.value(trial), t / 2 * norm * norm
        if gain > np.finfo(float).eps * abs(value):
            taken = there <= value - gain
        else:
            taken = there < np.inf and float(objective.gradient(trial) @ (g / scale)) >= 0
        if taken:
            return trial, there, t
        t /= 2
