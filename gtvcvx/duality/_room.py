"""How freely flows and multipliers change: the metric of corrections.

A flow that is moved by delta costs the dual objective about ``delta^2 / (2 W)``, with W the inverse
curvature of the conjugates beside that of a logarithmic barrier of weight mu, ``room^2 / mu``: what
is close to an end moves little, and along the sphere of a capacity more than across.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, Records
from gtvcvx._norms import row_norm_2, row_norm_p
from gtvcvx.losses.node._scalar import HUBER, KINK, LOGISTIC, POISSON, PSEUDO_HUBER, SQUARED
from gtvcvx.penalties import Penalty

# Instead of infinity, where its square is taken.
LARGE = 1e150
# Shares of capacities below that bend spheres of q-norms as this one does.
ALMOST_NONE = 1e-8


class Intervals:
    """Intervals of multipliers; an end may be infinite.

    Parameters
    ----------
    low, high : ndarray
    typical : ndarray
        Length that stands for that of an interval with an infinite end.
    """

    def __init__(self, low: FloatArray, high: FloatArray, typical: FloatArray) -> None:
        self.low, self.high = low, high
        self._bounded = np.isfinite(low) | np.isfinite(high)
        both = np.isfinite(low) & np.isfinite(high)
        self.span = np.where(both, np.where(both, high, 0.0) - np.where(both, low, 0.0), typical)

    def inside(self, b: FloatArray) -> FloatArray:
        """Return the closest multipliers inside."""
        return np.clip(b, self.low, self.high)

    def weights(
        self, b: FloatArray, curvature: FloatArray, barrier: float, least: float
    ) -> FloatArray:
        """Return the weights W of multipliers b inside.

        Curvature is that of the functions whose slopes they are: infinite at a kink. The room is
        the least share of an interval, at least.
        """
        room = np.minimum(np.minimum(b - self.low, self.high - b), self.span)
        some_end = self._bounded | np.isinf(curvature)
        room = np.where(some_end, np.maximum(room, least * self.span), LARGE)
        with np.errstate(divide="ignore", over="ignore"):
            found: FloatArray = 1.0 / (1.0 / curvature + barrier / np.square(room))
        return found


def curvatures(rows: Records, a: FloatArray) -> FloatArray:
    """Return second derivatives of row functions at slopes a (N,); infinite at kinks."""
    kind, c = rows["kind"], rows["c"]
    b = a / c
    with np.errstate(invalid="ignore"):
        turned = np.square(b / rows["delta"])
        return np.select(
            [kind == k for k in (SQUARED, HUBER, LOGISTIC, POISSON, PSEUDO_HUBER, KINK)],
            [
                2.0 * c,
                2.0 * c,
                c * np.abs(b) * np.maximum(1.0 - np.abs(b), 0.0),
                np.maximum(a + c * rows["y"], 0.0),
                c * np.maximum(1.0 - turned, 0.0) ** 1.5,
                np.inf,
            ],
        )


def edge_weights(
    penalty: Penalty, u: FloatArray, capacities: FloatArray, barrier: float, least: float
) -> FloatArray:
    """Return blocks W (m, d, d) of the flows u (m, d) inside the capacities (m,)."""
    data = penalty.to_data()
    if data["kind"] in ("squared", "quadratic"):
        stiffness = np.asarray(data.get("Q", np.eye(u.shape[1])))
        return np.asarray(capacities[:, None, None] * stiffness)
    if data["kind"] == "pnorm":
        return _oval(u, capacities, least, data["p"] / (data["p"] - 1.0)) / barrier
    return _ROOMS[data["kind"]](u, capacities, least) / barrier


def _box(u: FloatArray, capacities: FloatArray, least: float) -> FloatArray:
    """Room of the coordinates, each by itself."""
    capacity = capacities[:, None]
    out = np.zeros((*u.shape, u.shape[1]))
    _diagonal(out)[:] = np.maximum(capacity - np.abs(u), least * capacity) ** 2
    return out


def _ball(u: FloatArray, capacities: FloatArray, least: float) -> FloatArray:
    """Room along the sphere grows with the root of that across."""
    length = row_norm_2(u)
    across = np.maximum(capacities - length, least * capacities)
    along = across * capacities
    unit = u / np.maximum(length, np.finfo(np.float64).tiny)[:, None]
    out = (across**2 - along)[:, None, None] * (unit[:, :, None] * unit[:, None, :])
    _diagonal(out)[:] += along[:, None]
    return np.asarray(out)


def _oval(u: FloatArray, capacities: FloatArray, least: float, q: float) -> FloatArray:
    """Do the same for q-norms, 1 < q < inf, whose spheres bend differently in each coordinate."""
    share = np.abs(u) / capacities[:, None]
    length = row_norm_p(share, q)
    across = np.maximum(1.0 - length, least)
    # Along the sphere a coordinate bends by |share|^(q - 2): not at all, or without end, at zero.
    along = across[:, None] / (q - 1.0) * np.clip(share, ALMOST_NONE, 1.0) ** (2.0 - q)
    least_of, most_of = across**2, across ** min(2.0 / q, 1.0)
    along = np.clip(along, least_of[:, None], most_of[:, None])
    normal = np.sign(u) * share ** (q - 1.0)
    normal /= np.maximum(row_norm_2(normal), np.finfo(np.float64).tiny)[:, None]
    tangent = np.eye(u.shape[1]) - normal[:, :, None] * normal[:, None, :]
    out = np.einsum("eij,ej,ejk->eik", tangent, along, tangent)
    out += (across**2)[:, None, None] * (normal[:, :, None] * normal[:, None, :])
    return np.asarray((capacities**2)[:, None, None] * out)


def _octahedron(u: FloatArray, capacities: FloatArray, least: float) -> FloatArray:
    """Positive and negative parts and what is left are numbers >= 0 with the capacity as sum."""
    d = u.shape[1]
    left = np.maximum(capacities - np.abs(u).sum(axis=1), least * capacities)
    share = (left / (2 * d))[:, None]
    above, below = (np.maximum(part, 0.0) + share for part in (u, -u))
    squares, odd = above**2 + below**2, above**2 - below**2
    total = squares.sum(axis=1) + left**2
    out = -odd[:, :, None] * (odd / total[:, None])[:, None, :]
    _diagonal(out)[:] += squares
    return np.asarray(out)


_ROOMS = {"l1": _box, "l2": _ball, "linf": _octahedron}
#: Kinds of penalties whose flows have weights.
WEIGHTED_PENALTIES = frozenset({*_ROOMS, "pnorm", "squared", "quadratic"})


def _diagonal(blocks: FloatArray) -> FloatArray:
    """Return a view (m, d) of the diagonals of blocks (m, d, d)."""
    return np.einsum("eii->ei", blocks)
