"""From a float flow and float multipliers to a witness in arrays, exactly conserved."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates._exact_flow import NoWitness
from verify.certificates._exact_point import Absorb
from verify.certificates._forest import components
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._convert import Members
from verify.certificates.arrays._grid import Grid, rows_of, sizes_of
from verify.certificates.arrays._grid_point import GridPoint
from verify.certificates.arrays._root import Changes, GridAbsorber, ratio
from verify.instance._instance import Instance

# The float point is scaled by 1 - s before it is made exact, s one of these: what is carried along
# edges that are at their capacity then fits. It costs s times the dual value.
SHRINKS = (2.0**-44, 2.0**-36, 2.0**-28)
_ROUNDING = 2.0**-48  # of norms and capacities in floats, many times over
Layers = list[dict[str, Any]]


class GridFlow(NamedTuple):
    """A witness in arrays.

    Attributes
    ----------
    dual : dict
        As in the manifest.
    members : list of (str, ndarray)
        Its arrays.
    point : GridPoint
        The same without its sparse layers.
    """

    dual: dict[str, Any]
    members: Members
    point: GridPoint

    def floats(self) -> tuple[FloatArray, list[FloatArray]]:
        """Return (u, r) rounded to floats."""
        return self.point.floats()


def grid_flow(
    inst: Instance,
    u: FloatArray,
    r: list[FloatArray],
    w: FloatArray,
    active: BoolArray,
    absorb: Absorb | None = None,
) -> GridFlow:
    """Return an exactly feasible (u, r) next to the given floats; arguments as of `exact_flow`.

    Raises
    ------
    NoWitness
        There is none on these grids.
    """
    _, component = components(inst.edges[active], inst.n)
    bounded = inst.penalty.bounded or any(t.domain is not None for t in inst.terms)
    rows = rows_of(inst)
    for shrink in SHRINKS if bounded else (0.0,):
        smaller = u * (1 - shrink), [v * (1 - shrink) for v in r]
        grid = Grid.of(sizes_of(inst, rows, *smaller))
        point = GridPoint(inst, *smaller, w, rows, grid)
        if absorb is None:
            point.refine()
        else:
            point.refine_with(absorb)
        slack = inst.cap - inst.penalty.dual_norm(u) if inst.penalty.bounded else inst.cap
        absorber = GridAbsorber(point, slack, active, component)
        absorber.run()
        if _fits(point, absorber):
            return _written(point, absorber)
    raise NoWitness("what conservation needs does not fit into the capacities")


def _fits(point: GridPoint, absorber: GridAbsorber) -> bool:
    """Whether the flow is within the capacities, by floats with a margin."""
    return not point.inst.penalty.bounded or within(point.inst, rounded_flow(point, absorber))


def rounded_flow(point: GridPoint, absorber: GridAbsorber) -> FloatArray:
    """Return the flow (m, d) with all that was added, in floats."""
    u, _ = point.floats()
    there = absorber.parent_edge >= 0
    u[absorber.parent_edge[there]] += limbs.doubles(absorber.flow[there], point.k)
    for e, row in absorber.u.items():
        u[e] += [float(x / (1 << point.k)) for x in row]
    return u


def within(inst: Instance, u: FloatArray) -> bool:
    """Whether a flow in floats is within the capacities by a margin."""
    return bool((inst.penalty.dual_norm(u) <= inst.cap * (1 - _ROUNDING)).all())


def _written(point: GridPoint, absorber: GridAbsorber) -> GridFlow:
    """Return the layers of all tables."""
    members: Members = []
    there = np.flatnonzero((absorber.parent_edge >= 0) & absorber.flow.any(axis=(1, 2)))
    there = there[np.argsort(absorber.parent_edge[there])]
    sparse = absorber.parent_edge[there], absorber.flow[there]
    u = _layers("u", point.u, point.k_u, sparse, absorber.u, (point.k, point.k), members)
    r = []
    for t, (values, k) in enumerate(zip(point.r, point.k_r, strict=True)):
        changes, taken = absorber.r[t], absorber.taken[t]
        units = point.k, absorber.view.k_r(t)
        if k == point.k and len(taken[0]):
            values[taken[0]] += taken[1][..., 0].astype(np.int64)  # whole units: nothing is lost
            taken = taken[0][:0], taken[1][:0]
        r.append(_layers(f"r/{t}", values, k, taken, changes, units, members))
    return GridFlow({"u": u, "r": r}, members, point)


def _layers(
    name: str,
    dense: Array,
    k: int,
    sparse: tuple[Array, Array],
    changes: Changes,
    units: tuple[int, int],
    members: Members,
) -> Layers:
    """Return the layers of a table: dense, sparse and ratios, those that are not zero."""
    layers: Layers = []
    if dense.any():
        members.append((f"{name}/0", dense.astype("<i8")))
        layers.append({"type": "int", "words": 1, "exponent": k})
    rows, long = sparse
    if len(rows):
        long = trimmed(long)
        number = len(layers)
        members.append((f"{name}/{number}/rows", rows.astype("<u4")))
        members.append((f"{name}/{number}", long.astype("<u8")))
        head = {"type": "int", "words": long.shape[-1], "exponent": units[0], "rows": len(rows)}
        layers.append(head)
    if changes:
        values = [[ratio(x, units[1]) for x in row] for row in changes.values()]
        layers.append({"type": "ratio", "rows": list(changes), "values": values})
    return layers


def trimmed(long: Array) -> Array:
    """Return long integers without words that only repeat the sign."""
    while long.shape[-1] > 1:
        sign = np.where(long[..., -2] >> np.uint64(63), ~np.uint64(0), np.uint64(0))
        if (long[..., -1] != sign).any():
            break
        long = long[..., :-1]
    return long
