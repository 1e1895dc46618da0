"""Step sizes of gradient methods around a server, and where they are too long."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._pooling import NotPlainError, summed_loss

# Columns that differ by more in scale make gradient steps useless: a million rounds.
MOST_SPREAD = 1e3


def known_lipschitz(net: Network) -> FloatArray | None:
    """Return the Lipschitz constants l_i of the gradients, None where one is not known."""
    constants = np.array([float(getattr(m, "lipschitz", np.inf)) for m in net.models])
    return constants if np.isfinite(constants).all() else None


def step_warning(
    net: Network, steps: int, lr: float, groups: IntArray, weights: FloatArray
) -> list[str]:
    """Return what to say about steps above their bound.

    One step is a gradient step on the mean loss, and its bound 2/L, L the largest eigenvalue of the
    mean Hessian; several have the bound 2 / max l_i of each client by itself, which is smaller.
    """
    slopes = known_lipschitz(net)
    if slopes is None:
        return []
    if steps > 1:
        worst = int(np.argmax(slopes))
        what, slope = f"{net.label(worst)} by itself, 2/l_i", slopes[worst]
    else:
        means = [_mean_curvature(net, groups == q, weights) for q in range(int(groups.max()) + 1)]
        what, slope = "the mean loss, 2/L", max(means)
    if lr * slope < 2.0:
        return []
    return [f"lr: {lr:.4g} is above the bound of {what} = {2.0 / slope:.4g}: steps may diverge"]


def _mean_curvature(net: Network, members: np.ndarray, weights: FloatArray) -> float:
    """Return the Lipschitz constant of the gradient of the mean loss of some clients."""
    share = np.where(members, weights, 0.0)
    if not share.any():
        return 0.0
    share = share / share.sum()
    try:
        return summed_loss(net, share).lipschitz
    except NotPlainError:
        # From above, as each gradient has its own.
        slopes = known_lipschitz(net)
        return 0.0 if slopes is None else float(share @ slopes)


def scale_warning(net: Network, instead: str) -> list[str]:
    """Return what to say about columns of X that no length of step fits, and what to do."""
    spread = column_spread(net)
    if spread < MOST_SPREAD:
        return []
    return [
        f"the columns of X differ by {spread:.0e} in scale: gradient steps take about the "
        "square of that in rounds; standardize the columns (with scales that all clients agree "
        f"on), or {instead}"
    ]


def column_spread(net: Network) -> float:
    """Return the largest over the smallest root mean square of a column, over all clients."""
    squares = np.zeros(net.dim)
    for model in net.models:
        for term in getattr(model, "terms", ()):
            if "X" in term:
                squares += np.sum(term["X"] ** 2, axis=0)
    some = squares[squares > 0]
    return float(np.sqrt(some.max() / some.min())) if len(some) else 1.0
