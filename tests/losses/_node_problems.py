"""Random problems of one node, hostile ones among them, and their optimality conditions."""

import numpy as np
import pytest
from _catalogue_cases import DELTA, KINDS, LEVEL, targets
from _twins import alone

from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node import _conjugate as conjugates
from gtvcvx.losses.node import _minimize
from gtvcvx.losses.node._problem import COORDINATE, Node, Point, room_of
from gtvcvx.losses.node._scalar import row_curvature, row_gap, row_value

HOSTILE = {
    "ordinary": lambda X, rng: None,
    "repeated": lambda X, rng: np.copyto(X[len(X) // 2 :], X[: len(X) - len(X) // 2]),
    "collinear": lambda X, rng: np.copyto(X[:, -1], X[:, 0]),
    "zero row": lambda X, rng: np.copyto(X[0], 0.0),
    "small": lambda X, rng: np.multiply(X, 1e-5, out=X),
    "large": lambda X, rng: np.multiply(X, 20.0, out=X),
}
COORDINATES = {
    "free": {},
    "l1": {"kappa": 0.3},
    "box": {"lower": -0.1, "upper": 0.4},
    "elastic nonnegative": {"mu": 0.2, "kappa": 0.1, "lower": 0.0},
    "simplex": {"lower": 0.0, "total": 1.0},
}


_alone = alone(_minimize.minimize)


def room_for(node, more=2):
    """Room for a node, and more than it needs, as other nodes have left it."""
    m, d = node.X.shape
    room = room_of(d, m + more)
    arrays = [x for x in (*room, *room.system) if isinstance(x, np.ndarray)]
    for array in (*arrays, *(x for point in room[:3] for x in point[:3])):
        array[:] = 1 if array.dtype == np.int64 else 7.0
    return room


def minimize(node, point):
    """Minimize one node's problem, from and to the point; return the number of rounds."""
    return _alone(node, point, room_for(node))


def rows_of(kind, X, y):
    node = np.zeros(len(y), dtype=np.int64)
    term = {"kind": kind, "node": node, "X": X, "y": y}
    if kind in ("huber", "pseudohuber"):
        term["delta"] = np.full(len(y), DELTA)
    if kind == "quantile":
        term["level"] = np.full(len(y), LEVEL)
    return Parts.of([term], 1, X.shape[1]).rows


def coordinates_of(d, mu=0.0, kappa=0.0, lower=-np.inf, upper=np.inf, total=np.nan):
    c = np.zeros(d, COORDINATE)
    c["mu"], c["kappa"], c["lower"], c["upper"] = mu, kappa, lower, upper
    return c, total


def instance(seed, kind=None, exact=False):
    """A proximal problem of a random kind, size, step size and degeneracy."""
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[rng.integers(len(KINDS))]
    m, d = ((1, 1), (1, 3), (2, 2), (3, 2), (6, 3), (4, 9))[rng.integers(6)]
    X = rng.standard_normal((m, d))
    HOSTILE[[*HOSTILE][rng.integers(len(HOSTILE))]](X, rng)
    signal = X @ rng.standard_normal(d)
    interpolated = exact or rng.random() < 0.2
    y = signal if interpolated and kind in ("squared", "huber", "absolute", "quantile") else None
    rows = rows_of(kind, X, targets(kind, signal, rng) if y is None else y)
    coordinates, total = coordinates_of(d, **COORDINATES[[*COORDINATES][rng.integers(5)]])
    tau = 10.0 ** rng.uniform(-2, 3)
    q = coordinates["mu"] + 1.0 / tau
    return Node(X, rows, coordinates, q, 2.0 * rng.standard_normal(d) / tau, total)


def start(node):
    m, d = node.X.shape
    a = np.clip(np.zeros(m), node.rows["low"], node.rows["high"])
    return Point(np.zeros(d), a, np.zeros(d), np.zeros(1))


def gradient_of(node, point):
    return node.X.T @ point.a + point.t + point.nu[0] + node.q * point.z - node.p


def size_of(node, point):
    """What adds up to the gradient, rounding of the rows' slopes included."""
    images = np.abs(node.X) @ np.abs(point.z) + np.abs(node.rows["y"])
    slopes = row_curvature(node.rows, node.X @ point.z)
    parts = np.abs(node.X).T @ (np.abs(point.a) + slopes * images)
    return parts + np.abs(node.q * point.z) + np.abs(node.p) + np.abs(point.t) + abs(point.nu[0])


def assert_optimal(node, point, rtol=1e-11):
    """Optimality conditions, each multiplier a subgradient."""
    z = point.z
    np.testing.assert_array_less(np.abs(gradient_of(node, point)), rtol * size_of(node, point))
    assert (point.a >= node.rows["low"]).all()
    assert (point.a <= node.rows["high"]).all()
    rows, images = node.rows, node.X @ z
    size = np.abs(row_value(rows, images)) + np.abs(point.a) * (np.abs(images) + np.abs(rows["y"]))
    reach = rows["c"] * (np.abs(node.X) @ np.abs(z)) ** 2
    assert (row_gap(rows, images, point.a) <= 10.0 * rtol * (size + reach) + 1e-14).all()
    kinks = node.coordinates.copy()
    kinks["mu"] = kinks["linear"] = 0.0
    gaps = conjugates.coordinate_gap(kinks, z, point.t)
    assert (gaps <= 1e-12 * (1.0 + np.abs(point.t * z))).all()
    if not np.isnan(node.total):
        assert z.sum() == pytest.approx(node.total, rel=1e-13)
