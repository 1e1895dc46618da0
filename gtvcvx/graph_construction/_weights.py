"""From distances to edge weights: near nodes weigh more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, is_number, real_array

Weights = str | Callable[[FloatArray], FloatArray]

_KERNELS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "gaussian": lambda t: np.exp(-0.5 * t**2),
    "exponential": lambda t: np.exp(-t),
    "inverse": lambda t: 1.0 / (1.0 + t),
    "binary": np.ones_like,
}


def number(value: Any, name: str) -> float:
    """Return a real number, which may be infinite or NaN; refuse anything else by name."""
    if not is_number(value):
        raise TypeError(f"{name}: a number is expected, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Weighting:
    """A kernel with its parameters, as the users of `knn_graph` and its like give them."""

    weights: Weights
    bandwidth: float | None
    floor: float

    def __post_init__(self) -> None:
        named = isinstance(self.weights, str)
        if not callable(self.weights) and not (named and self.weights in _KERNELS):
            raise ValueError(
                f"weights: one of {tuple(_KERNELS)} or a callable is expected, got {self.weights!r}"
            )
        if self.bandwidth is not None:
            if not named or self.weights == "binary":
                raise ValueError("bandwidth: it has no meaning for these weights")
            if not 0 < number(self.bandwidth, "bandwidth") < np.inf:
                raise ValueError(
                    f"bandwidth: a positive finite number is expected, got {self.bandwidth!r}"
                )
        if not 0 <= number(self.floor, "floor") < 1:
            raise ValueError(f"floor: a number in [0, 1) is expected, got {self.floor!r}")

    def of(self, lengths: FloatArray, typical: FloatArray) -> FloatArray:
        """Weights of edges with these lengths, shape (m,).

        ``typical`` holds the lengths that the bandwidth is taken from if it is not given.
        """
        if callable(self.weights):
            given = real_array(self.weights(lengths.copy()), "weights")
            if given.shape != lengths.shape:
                raise ValueError(
                    f"weights: the callable should return shape {lengths.shape}, got {given.shape}"
                )
            return given
        width = self.bandwidth
        if width is None:
            positive = typical[typical > 0]
            width = float(np.median(positive)) if len(positive) else 1.0
        with np.errstate(under="ignore", over="ignore"):
            return np.maximum(_KERNELS[self.weights](lengths / width), self.floor)
