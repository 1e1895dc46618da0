"""Numbers that losses are multiplied by, as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, real_array


def positive_factor(value: Any) -> float:
    """Return a finite number > 0; anything else is refused by name."""
    factor = real_array(value, "factor")
    if factor.ndim:
        raise ValueError(f"factor: a number is expected, got an array of shape {factor.shape}")
    if not (np.isfinite(factor) and factor > 0.0):
        hint = "; a node without data has the loss ZeroLoss()" if factor == 0.0 else ""
        raise ValueError(f"factor: a finite number > 0 is expected, got {float(factor)}{hint}")
    return float(factor)


def node_factors(value: Any, n_nodes: int | None, n_named: int) -> FloatArray:
    """Return a number >= 0 for each node: one for all, > 0, or an array of one each.

    Parameters
    ----------
    value : array_like
    n_nodes : int or None
        Number of nodes, where it is known.
    n_named : int
        How many there are at least.
    """
    factors = real_array(value, "factor")
    if factors.ndim == 0:
        return np.full(n_named if n_nodes is None else n_nodes, positive_factor(factors))
    if factors.ndim > 1 or len(factors) != (n_nodes or max(len(factors), n_named)):
        count = f"at least {n_named}" if n_nodes is None else n_nodes
        raise ValueError(
            f"factor: a number, or one for each of {count} nodes is expected, got an array of "
            f"shape {factors.shape}"
        )
    wrong = np.flatnonzero(~(np.isfinite(factors) & (factors >= 0.0)))
    if wrong.size:
        node = int(wrong[0])
        raise ValueError(
            f"factor: a finite number >= 0 is expected at node {node}, got {factors[node]}"
        )
    return factors
