"""From distances to edge weights: near nodes weigh more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, is_number, real_array

Weights = str | Callable[[FloatArray], FloatArray]
Bandwidth = float | str | None
LOCAL = "local"

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
    bandwidth: Bandwidth
    floor: float

    def __post_init__(self) -> None:
        named = isinstance(self.weights, str)
        if not callable(self.weights) and not (named and self.weights in _KERNELS):
            raise ValueError(
                f"weights: one of {tuple(_KERNELS)} or a callable is expected, got {self.weights!r}"
            )
        if self.bandwidth not in (None, LOCAL):
            if not named or self.weights == "binary":
                raise ValueError("bandwidth: it has no meaning for these weights")
            if not 0 < number(self.bandwidth, "bandwidth") < np.inf:
                raise ValueError(
                    f"bandwidth: a positive finite number or {LOCAL!r} is expected, "
                    f"got {self.bandwidth!r}"
                )
        if not 0 <= number(self.floor, "floor") < 1:
            raise ValueError(f"floor: a number in [0, 1) is expected, got {self.floor!r}")

    def of(self, n: int, edges: IntArray, lengths: FloatArray, graph: Lengths) -> FloatArray:
        """Weights of edges (m, 2) between n nodes with these lengths (m,), shape (m,).

        ``graph`` has the edges that the bandwidth is taken from if it is not a number.
        """
        if callable(self.weights):
            given = real_array(self.weights(lengths.copy()), "weights")
            if given.shape != lengths.shape:
                raise ValueError(
                    f"weights: the callable should return shape {lengths.shape}, got {given.shape}"
                )
            return given
        width: Any = self.bandwidth
        if width is None:
            width = graph.median()
        elif width == LOCAL:
            # Roots apart: the product of two tiny bandwidths would be zero.
            roots = np.sqrt(graph.medians_at(n))
            width = roots[edges[:, 0]] * roots[edges[:, 1]]
        with np.errstate(under="ignore", over="ignore"):
            return np.maximum(_KERNELS[self.weights](lengths / width), self.floor)


@dataclass(frozen=True)
class Lengths:
    """Edges (m, 2) and their lengths (m,); those of length 0 do not count for the medians."""

    edges: IntArray
    lengths: FloatArray

    def median(self) -> float:
        """Median length, 1 if there is none."""
        positive = self.lengths[self.lengths > 0]
        return float(np.median(positive)) if len(positive) else 1.0

    def medians_at(self, n: int) -> FloatArray:
        """Median length of the edges at each of n nodes, that of all where there are none, (n,)."""
        kept = self.lengths > 0
        node, lengths = self.edges[kept].ravel(), np.repeat(self.lengths[kept], 2)
        lengths = lengths[np.lexsort((lengths, node))]
        count = np.bincount(node, minlength=n)
        start = np.cumsum(count) - count
        some = count > 0
        lower, upper = (start + (count - 1) // 2)[some], (start + count // 2)[some]
        found = np.full(n, self.median())
        found[some] = 0.5 * (lengths[lower] + lengths[upper])
        return found
