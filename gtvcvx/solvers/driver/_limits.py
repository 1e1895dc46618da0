"""When a run stops, and what a callback sees of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray


@dataclass(frozen=True)
class Progress:
    """What a callback sees at every check: the incumbent and its bounds.

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    seconds : float
        Time since the start.
    w, u : ndarray, shapes (n, d) and (m, d)
        The best point and the best flow so far.
    value, dual_value : float
        P(w), and the lower bound on the optimum that u gives.
    gap, rel_gap : float
        value - dual_value, and that over max(1, abs(value)).
    """

    n_iter: int
    seconds: float
    w: FloatArray
    u: FloatArray
    value: float
    dual_value: float
    gap: float
    rel_gap: float


@dataclass
class Limits:
    """When to stop."""

    rtol: float
    max_iter: int
    time_limit: float = np.inf
    stop: str = "gap"  # "gap" | "objective" | "iterations"
    callback: Callable[[Progress], Any] | None = None
    verbose: bool | None = None
