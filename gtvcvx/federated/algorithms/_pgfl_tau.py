"""Inter-cluster learning of [PGFL]: the parameters tau_n, and what Theorem II claims of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray, finite_array, is_number

Schedule = float | Sequence[float] | Callable[[int], float]


@dataclass(frozen=True)
class GeometricTau:
    """Falling inter-cluster learning, ``tau_n = scale factor^n`` for rounds n = 1, 2, ....

    Attributes
    ----------
    scale : float
        In [0, 1]; the paper has .4.
    factor : float
        In [0, 1]; the paper has .98.
    """

    scale: float = 0.4
    factor: float = 0.98

    def __post_init__(self) -> None:
        for name, value in (("scale", self.scale), ("factor", self.factor)):
            _share(value, name)

    def __call__(self, round_: int) -> float:
        """Return tau_n."""
        return float(self.scale * self.factor**round_)


@dataclass(frozen=True)
class ListedTau:
    """tau_1, tau_2, ... as given; the last one stays."""

    values: tuple[float, ...]

    def __call__(self, round_: int) -> float:
        """Return tau_n."""
        return self.values[min(round_, len(self.values)) - 1]


def as_schedule(tau: Schedule) -> Callable[[int], float]:
    """Return tau as a function of the round; refuse by name what is none."""
    if callable(tau):
        return tau
    values = finite_array(np.atleast_1d(np.asarray(tau)), "tau", 1)
    if not len(values):
        raise ValueError("tau: at least one number is expected, got none")
    return ListedTau(tuple(_share(float(value), "tau") for value in values))


def tau_at(schedule: Callable[[int], float], round_: int) -> float:
    """Return tau_n, checked: a user's function may give anything."""
    return _share(schedule(round_), f"tau: round {round_}")


def bound_theorem2(tau: Schedule, eta: float, rounds: int) -> FloatArray:
    r"""Bound CLAIMED by Theorem II of [PGFL] on what inter-cluster learning moves; it is FALSE.

    .. math:: \lVert w_{q,s}^{(\tau)}(n) - w_{q,s}^{(0)}(n) \rVert^2 \le
        \eta \sum_{i=1}^n \tau_i \prod_{j=i+1}^n (1 - \tau_j)
        = \eta \Bigl(1 - \prod_{j=1}^n (1 - \tau_j)\Bigr)

    with eta the largest squared distance between the pooled optima of two clusters. The proof
    bounds distances between clusters in every round by those in the limit. Iterates differ more at
    first, and the servers' own limits are not the pooled optima: measured, the left side is up to
    15 times the right one after 10 rounds, and without bound where all clusters have the same
    truth. It mostly holds after a hundred rounds. Use it as the paper's claim, not as a guarantee.

    Parameters
    ----------
    tau : float, sequence or callable
        As in `PGFL`.
    eta : float
        ``max ||w*_q - w*_r||^2``.
    rounds : int
        N >= 1.

    Returns
    -------
    ndarray, shape (N,)
        For rounds 1, ..., N.
    """
    schedule = as_schedule(tau)
    kept = [1.0 - tau_at(schedule, n) for n in range(1, rounds + 1)]
    return np.asarray(eta * (1.0 - np.cumprod(kept)))


def _share(value: float, name: str) -> float:
    if not (is_number(value) and 0.0 <= value <= 1.0):
        raise ValueError(f"{name}: a number in [0, 1] is expected, got {value!r}")
    return float(value)
