"""Dual points of pieces in floats: what `verify.certify` does first, node by node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.certificates._certify import LEAST_MOVE
from verify.certificates._dual_points import overflowing
from verify.certificates._repair import Repair
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._grid import Rows, rows_of
from verify.certificates.arrays._load import load_arrays
from verify.certificates.pieces._piece import Piece, Team, Whole
from verify.instance._constraints import Constraints
from verify.instance._instance import Instance
from verify.instance._integers import Exact


@dataclass
class Read:
    """A piece as an instance of its own.

    Attributes
    ----------
    piece : Piece
    inst : Instance
        Of own nodes and ghosts.
    members : dict of str to ndarray
        Its data as a file has them, but with positions for nodes.
    point : ndarray, shape (k, d)
        w, on the constraints.
    exact : ndarray of Fraction or None
        The same, where doubles miss it.
    """

    piece: Piece
    inst: Instance
    members: dict[str, Array]
    point: FloatArray
    exact: Exact | None = None

    @cached_property
    def rows(self) -> list[Rows | None]:
        """The data rows of each term."""
        return rows_of(self.inst)


@dataclass
class FloatPoint:
    """A dual point of a piece.

    Attributes
    ----------
    u, r : ndarray, shape (l, d), and list of ndarray
        Flow and multipliers.
    active : ndarray of bool, shape (l,)
        Edges that residuals may be routed along.
    """

    u: FloatArray
    r: list[FloatArray]
    active: BoolArray


class NoPieces(ValueError):
    """A problem that has no form in arrays; raised in all processes."""


def read(team: Team, whole: Whole, pieces: list[Piece], rtol: float) -> list[Read]:
    """Read and check the data of pieces, and move w onto the constraints if it is close.

    Raises
    ------
    NoPieces
        Naming the first piece whose data have no form in arrays.
    ValueError
        Naming the piece: its data are wrong.
    """
    found = [_read(whole, piece) for piece in pieces]
    given = zip(found, pieces, strict=True)
    first = -float(team.most([-np.inf if one else -piece.number for one, piece in given]))
    if np.isfinite(first):
        raise NoPieces(
            f"shard {int(first)}: these losses, this penalty or these data cannot be certified "
            "in shards; a solution that is gathered can be given to verify.certify"
        )
    out = [one for one in found if one is not None]
    constraints = [Constraints(one.inst) for one in out]
    near = max(float(rtol), LEAST_MOVE)
    pairs = zip(out, constraints, strict=True)
    far = team.most([not c.near(one.point, near) for one, c in pairs])
    if not far:
        for one, c in zip(out, constraints, strict=True):
            one.point, one.exact = c.moved(one.point)
    # Ghosts have no constraints here, and their owners may have moved them.
    team.refresh([one.point for one in out])
    return out


def _read(whole: Whole, piece: Piece) -> Read | None:
    found = load_arrays(piece.data(whole))
    if found is None or found[0].penalty.matrix is not None or not found[0].penalty.exact:
        return None
    inst, data = found
    w = np.array(piece.w, dtype=np.float64)
    if w.shape != (inst.n, inst.d) or piece.u.shape != (len(inst.edges), inst.d):
        raise ValueError(f"shard {piece.number}: w and u do not have its nodes and edges")
    return Read(piece, inst, dict(data.members), w)


def float_points(team: Team, pieces: list[Read]) -> list[FloatPoint] | None:
    """Return flows inside the capacities, and multipliers; None where floats overflow."""
    repairs = _repairs(pieces)
    if team.most([repairs is None] * len(pieces)):
        return None
    assert repairs is not None
    active = [repair.active.astype(float)[:, None] for repair in repairs]
    team.refresh_edges(active)
    out = []
    for one, repair, some in zip(pieces, repairs, active, strict=True):
        repair.active = some[:, 0] > 0
        with overflowing():
            flow = repair.given(one.piece.u)
        out.append(FloatPoint(flow.u, flow.r, repair.active))
    # In other units, which depend on the piece, the same edge may have been rounded differently.
    team.refresh_edges([point.u for point in out])
    wrong = [not all(np.isfinite(v).all() for v in (p.u, *p.r)) for p in out]
    return None if team.most(wrong) else out


def _repairs(pieces: list[Read]) -> list[Repair] | None:
    try:
        with overflowing():
            return [Repair(one.inst, one.point) for one in pieces]
    except (OverflowError, np.linalg.LinAlgError):
        return None


def inside(one: Read) -> BoolArray:
    """Return the edges (l,) with both ends in the piece."""
    own, edges = one.piece.own, one.inst.edges
    return np.asarray(own[edges].all(axis=1))


def own_nodes(one: Read) -> IntArray:
    """Return the positions of the nodes that are no ghosts."""
    return np.flatnonzero(one.piece.own)
