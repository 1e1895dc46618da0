"""Room that a flow leaves on edges below their capacities, rounded to the safe side."""

from __future__ import annotations

import numpy as np

from verify._arrays import FloatArray
from verify.partitions._rounding import gamma
from verify.partitions.constants._enclosures import dual_norm


def flow_room(
    u: FloatArray, weights: FloatArray, lam: float, norm: str
) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds of lam A_e - ||u_e||_*, and of the capacities lam A_e.

    Parameters
    ----------
    u : ndarray, shape (m, d)
        Flow.
    weights : ndarray, shape (m,)
        A_e.
    lam : float
    norm : {"l2", "l1", "linf"}
        Norm of the penalty; the flow is measured in its dual.
    """
    size = dual_norm(u, norm) * (1.0 + gamma(u.shape[1] + 8))
    capacity = np.asarray(lam * weights * (1.0 - gamma(4)))
    return capacity - size, capacity
