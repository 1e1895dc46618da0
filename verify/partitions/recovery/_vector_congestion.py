"""Small congestion of a vector flow on large graphs, by electrical flows.

    min t   such that   D^T u = s,   ||u_e||_* <= t cap_e.

The electrical flow for conductances c_e is c_e (D y)_e with the potentials y of the Laplacian,
D^T diag(c) D y = s: the flow of least energy. It conserves, so its congestion max_e ||u_e||_* /
cap_e is an upper bound of t; and any potentials give the lower bound

    <s, y>  /  sum over e of cap_e phi((D y)_e).

Both come close to each other when the conductance of congested edges is lowered again and again,
the multiplicative weights of Christiano, Kelner, Madry, Spielman, Teng, "Electrical flows,
Laplacian systems, and faster approximation of maximum flow in undirected graphs" (2011). Each round
costs one Laplacian solve by conjugate gradients, started at the last potentials.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from verify._arrays import FloatArray, Int32Array, IntArray
from verify.partitions.constants._enclosures import dual_norm

_ROUNDS = 80
#: Weights relative to their mean stay above this: conductances must not spread too far.
_LEAST_WEIGHT = 1e-5
#: Bounds closer than this (relative) are as good as an answer.
_CLOSE = 0.01
#: A congestion this far from 1 that hardly falls any more is good enough.
_CLEAR, _STALLED, _LOOK_BACK = 1e-3, 0.003, 5
_CG_STEPS, _CG_TOL = 5000, 1e-6


@dataclass(frozen=True)
class CongestionBracket:
    """lower <= least t <= upper, and a flow (m, d) of congestion ``upper``."""

    lower: float
    upper: float
    flow: FloatArray


def electrical_congestion(
    edges: IntArray, capacity: FloatArray, supply: FloatArray, norm: str
) -> CongestionBracket:
    """Bracket the least congestion.

    Parameters
    ----------
    edges : ndarray of int, shape (m, 2)
        Edges of a graph on n nodes.
    capacity : ndarray, shape (m,)
        cap_e > 0.
    supply : ndarray, shape (n, d)
        s, adding up to zero over each connected component.
    norm : str
        Norm phi of the penalty: "l1", "l2" or "linf".

    Returns
    -------
    CongestionBracket
        The bounds hold up to rounding, and the flow conserves to about 12 digits.
    """
    m, n = len(edges), len(supply)
    rows = np.tile(np.arange(m), 2)
    signs = np.repeat([1.0, -1.0], m)
    incidence = sp.csr_array((signs, (rows, edges.T.ravel())), shape=(m, n))
    transposed = incidence.T.tocsr()
    _, component = connected_components(transposed @ incidence, directed=False)
    size = float(capacity.max(initial=0.0)) or 1.0
    weights, y = np.ones(m), np.zeros_like(supply)
    best = CongestionBracket(0.0, inf, np.zeros((m, supply.shape[1])))
    lower, uppers = 0.0, []
    for _ in range(_ROUNDS):
        conductance = (capacity / size) ** 2 / weights
        laplacian = (transposed @ sp.diags_array(conductance) @ incidence).tocsr()
        y = _solve(laplacian, supply, y, _CG_TOL)
        jump = incidence @ y
        flow = conductance[:, None] * jump
        congestion = dual_norm(flow, norm) / capacity
        upper = float(congestion.max(initial=0.0))
        below = float((capacity * _size(jump, norm)).sum())
        lower = max(lower, float((supply * y).sum()) / below if below > 0.0 else 0.0)
        if upper < best.upper:
            rest = _centered(supply - transposed @ flow, component)
            flow += conductance[:, None] * (incidence @ _solve(laplacian, rest, 0.0 * y, _CG_TOL))
            upper = float((dual_norm(flow, norm) / capacity).max(initial=0.0))
            if upper < best.upper:
                best = CongestionBracket(lower, upper, flow)
        uppers.append(best.upper)
        if upper == 0.0 or _good_enough(lower, uppers):
            break
        weights *= 1.0 + congestion / congestion.max()
        weights = np.maximum(weights / weights.mean(), _LEAST_WEIGHT)
    return CongestionBracket(min(lower, best.upper), best.upper, best.flow)


def _good_enough(lower: float, uppers: list[float]) -> bool:
    """Whether the bounds meet, or the answer is clear and the upper bound does not fall much."""
    upper = uppers[-1]
    if upper - lower <= _CLOSE * upper or lower > 1.0 + _CLEAR:
        return True
    settled = len(uppers) > _LOOK_BACK and upper > (1.0 - _STALLED) * uppers[-1 - _LOOK_BACK]
    return upper < 1.0 - _CLEAR and settled


def _size(vectors: FloatArray, norm: str) -> FloatArray:
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return np.asarray(np.linalg.norm(vectors, order, axis=1))


def _centered(values: FloatArray, component: Int32Array) -> FloatArray:
    """Take the mean over each component off: a Laplacian system has no solution otherwise."""
    totals = np.zeros((component.max() + 1, values.shape[1]))
    np.add.at(totals, component, values)
    return np.asarray(values - (totals / np.bincount(component)[:, None])[component])


def _solve(matrix: sp.csr_array, right: FloatArray, start: FloatArray, tol: float) -> FloatArray:
    """Solve with several right-hand sides by conjugate gradients, the diagonal as preconditioner.

    The matrix is a Laplacian: singular, but the right-hand sides lie in its range.
    """
    diagonal = matrix.diagonal()
    scale = 1.0 / np.where(diagonal > 0.0, diagonal, 1.0)[:, None]
    target = tol * np.sqrt((right * right).sum(axis=0))
    y = start
    rest = right - matrix @ y
    direction = step = scale * rest
    product = (rest * step).sum(axis=0)
    for _ in range(_CG_STEPS):
        active = np.sqrt((rest * rest).sum(axis=0)) > target
        if not active.any():
            break
        image = matrix @ direction
        # a column that has converged stays: going on would only amplify its rounding errors
        length = np.where(active, product / np.maximum((direction * image).sum(axis=0), 1e-300), 0)
        y = y + length * direction
        rest = rest - length * image
        step = scale * rest
        following = (rest * step).sum(axis=0)
        direction = step + following / np.maximum(product, 1e-300) * direction
        product = following
    return y
