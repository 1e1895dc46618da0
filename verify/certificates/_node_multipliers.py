"""Multipliers of the nodes' losses from flow conservation, all nodes at once.

Where a loss has a kink at w (an absolute value at zero, a hinge at its margin, a bound that is
reached) w does not say what its multiplier is; the flow that leaves the node does. Per node

    minimize    sum_k h_k*(r_k) - <r_k, B_k w>      subject to    sum_k B_k^T r_k = s_i

is solved by an infeasible primal-dual interior point method (Wright, "Primal-Dual Interior-Point
Methods", chapter 6), with the displacement v of w as the multiplier of the equations: smooth blocks
have r = h'(B (w + v)), and every finite end of an interval has a slack and a multiplier of its own.
An anchor, eps ||v||^2/2, keeps all systems solvable: where the equations have no solution they are
missed by as little as possible. Where blocks are constraints B w = y, no v leads off them, and what
the others leave of s_i is theirs (`_equations`). Where a node has no more blocks than directions,
the equations alone say what its multipliers are: of rows that are decided for good they may be
powers of ten larger than the slopes at w, which v would follow e-fold a round.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verify._arrays import FloatArray
from verify.certificates._coordinates import column, coordinate_part, diagonal
from verify.certificates._equations import Equations
from verify.certificates._node_iterates import Iterate
from verify.certificates._node_rounds import SOLVED, Rounds
from verify.certificates._thin_rounds import in_pieces, is_thin
from verify.certificates._whitening import WhitePart, frames, row_squares, sizes
from verify.instance._blocks import Part


def node_multipliers(
    parts: list[Part],
    w: FloatArray,
    target: FloatArray,
    tolerance: float,
    expired: Callable[[], bool] = lambda: False,
) -> list[FloatArray]:
    """Return multipliers per part with sum_k B_k^T r_k = target, of least total gap at w.

    Parameters
    ----------
    parts : list of Part
    w, target : ndarray, shape (n, d)
    tolerance : float
        Complementarity products, each the gap that a multiplier may leave at one end.
    expired : callable
        Whether the time is over.
    """
    n, d = w.shape
    if diagonal(parts, d):
        apart = [coordinate_part(part) for part in parts]
        columns = node_multipliers(apart, column(w), column(target), tolerance, expired)
        return [r.reshape(part.shape) for r, part in zip(columns, parts, strict=True)]
    if is_thin(parts, d):
        return in_pieces(parts, w, target, tolerance, expired)
    images = [part.push(w) for part in parts]
    typical, gap = sizes(parts, images, target, w)
    others = [k for k, part in enumerate(parts) if not part.equation]
    squares = row_squares([parts[k] for k in others], [np.square(typical[k]) for k in others])
    equations = Equations(parts, n, d)
    frame = frames(squares, n, d, equations.along)
    blocks = [
        Iterate(parts[k], WhitePart(parts[k], frame), images[k], typical[k], gap) for k in others
    ]
    found = [np.zeros(part.shape) for part in parts]
    own = [found[k] for k in others]
    Rounds(blocks, frame, target, tolerance).run(own, expired)
    _solve_determined([parts[k] for k in others], [typical[k] for k in others], own, frame, target)
    equations.left_to(parts, found, target)
    return found


def _solve_determined(
    parts: list[Part],
    sizes: list[FloatArray],
    found: list[FloatArray],
    frame: FloatArray,
    target: FloatArray,
) -> None:
    """Replace multipliers of nodes where the equations determine them, inside their intervals.

    Target (n, d) and blocks are in frames in which the squares of the blocks, times the typical
    sizes of their multipliers, are ones where they are not zero.
    """
    number = np.zeros(len(target))
    for part in parts:
        number += part.per_node((part.function.lo < part.function.hi).astype(np.float64))
    rank = (np.abs(frame).max(axis=1) > 0).sum(axis=1)
    only = (number == rank) & (number > 0)
    if not only.any():
        return
    white = [WhitePart(part, frame) for part in parts]
    target = np.einsum("njk,nj->nk", frame, target)

    def missed(r: list[FloatArray]) -> FloatArray:
        return target - sum((p.pull(v) for p, v in zip(white, r, strict=True)), 0 * target)

    own = [np.zeros(part.shape) for part in parts]
    for _ in range(2):  # the second time for the rounding of the first
        rest = missed(own)
        triples = zip(white, sizes, own, strict=True)
        own = [r + size**2 * part.push(rest) for part, size, r in triples]
    own = [part.function.clip(r) for part, r in zip(white, own, strict=True)]
    left = np.abs(missed(own)).max(axis=1)
    solved = only & (left <= SOLVED * np.abs(target).max(axis=1))
    for part, r, v in zip(white, found, own, strict=True):
        r[...] = np.where(part.of_nodes(solved), v, r)
