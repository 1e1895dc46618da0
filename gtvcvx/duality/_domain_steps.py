"""What the repair of flows does edge by edge and generator by generator.

See `gtvcvx.duality._polyhedral`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._norms import row_norm_inf
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._settings import ANCHORING, GROUNDED, GroundedAlternation
from gtvcvx.losses import StackedLoss
from gtvcvx.penalties import Penalty


class Generators(NamedTuple):
    """Generators of all nodes."""

    node: IntArray  # (Q,)
    vectors: FloatArray | sp.csr_array  # (Q, d), see `DualDomain`
    low: FloatArray  # (Q,)
    high: FloatArray  # (Q,)
    scale: FloatArray  # (Q,)
    squares: FloatArray  # (Q,), of the lengths

    @staticmethod
    def of(losses: StackedLoss) -> Generators:
        """Collect the generators of all parts, in their order."""
        none = (np.empty(0, np.int64), *(np.empty(0) for _ in range(4)))
        fields, vectors = [none], [np.empty((0, losses.dim))]
        for at, batch in losses.parts:
            domain = batch.domain()
            if domain is not None:
                owner, own, low, high, scale, squares = domain[1:]
                squares = np.sum(own**2, axis=1) if squares is None else squares
                fields.append((at[owner], low, high, scale, squares))
                vectors.append(own)
        node, *others = (np.concatenate(arrays) for arrays in zip(*fields, strict=True))
        return Generators(node, _stacked(vectors), *others)


def _stacked(vectors: list[FloatArray | sp.csr_array]) -> FloatArray | sp.csr_array:
    if any(sp.issparse(rows) for rows in vectors):
        return sp.vstack([sp.csr_array(rows) for rows in vectors], format="csr")
    return np.concatenate(vectors)


class Limits(NamedTuple):
    """What flows and multipliers are to be inside of."""

    generators: Generators
    penalty: Penalty
    capacities: FloatArray  # (m,)


class Excess(NamedTuple):
    """How far a flow is outside of capacities and intervals that are smaller by margins."""

    inside: FloatArray  # (m, d), the closest flow inside
    change: Flow  # to it
    over: FloatArray  # (m,), relative to capacities
    beyond: FloatArray  # (Q,), relative to intervals

    @staticmethod
    def of(flow: Flow, limits: Limits, margins: Margins) -> Excess:
        """Return it for a flow with multipliers."""
        g, penalty, capacities = limits
        low, high = g.low + margins.intervals * g.scale, g.high - margins.intervals * g.scale
        inside = penalty.project_domain(flow.u, (1.0 - margins.edges) * capacities)
        change = Flow(inside - flow.u, np.clip(flow.b, low, high) - flow.b)
        return Excess(
            inside, change, row_norm_inf(change.u) / capacities, np.abs(change.b) / g.scale
        )

    @property
    def largest(self) -> float:
        """Of all."""
        return float(max(self.over.max(initial=0.0), self.beyond.max(initial=0.0)))


class Margins(NamedTuple):
    """What alternating projections aim inside by, as shares of capacities and intervals."""

    edges: FloatArray  # (m,)
    intervals: FloatArray  # (Q,)

    def hold(self, excess: Excess, close: float) -> bool:
        """Say whether half of them is kept."""
        over = excess.over <= 0.5 * self.edges + close
        beyond = excess.beyond <= 0.5 * self.intervals + close
        return bool(over.all() and beyond.all())

    def grown(self, excess: Excess, settings: GroundedAlternation) -> Margins:
        """Return larger ones where something was exceeded."""
        share, most = settings.overshoot, settings.most
        return Margins(
            np.maximum(self.edges, np.minimum(share * excess.over, most)),
            np.maximum(self.intervals, np.minimum(share * excess.beyond, most)),
        )


def next_flow(on: Flow, excess: Excess, settings: GroundedAlternation) -> Flow:
    """Return the flow that the next projection on conservation starts from: over-relaxed."""
    step, change = settings.relaxation - 1.0, excess.change
    return Flow(excess.inside + step * change.u, on.b + (1.0 + step) * change.b)


def multipliers_of(
    losses: StackedLoss, s: FloatArray, w: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Return multipliers (Q,) of all generators for injections s (n, d), and how firm they are."""
    found = [
        batch.multipliers(s[at], None if w is None else w[at])
        for at, batch in losses.parts
        if batch.domain() is not None
    ]
    b, firm = (
        [np.empty(0), *arrays] for arrays in (zip(*found, strict=True) if found else ((), ()))
    )
    return np.concatenate(b), np.concatenate(firm)


def ground_of(unit: FloatArray, jumps: FloatArray, largest: float) -> FloatArray:
    """Return how freely multipliers (Q,) change: those of large jumps (Q,) little."""
    floor = GROUNDED.jump_share * largest
    return unit * floor / (jumps + floor) if 0.0 < floor < np.inf else unit


def component_margins(
    components: IntArray,
    heads: IntArray,
    flow: Flow,
    limits: Limits,
) -> FloatArray:
    """Margin of every component to capacities and intervals; negative outside.

    Parameters
    ----------
    components : ndarray of int, shape (n,)
    heads : ndarray of int, shape (m,)
        Of the edges.
    flow : Flow
    limits : Limits
    """
    g, penalty, capacities = limits
    out = np.ones(components.max(initial=-1) + 1)
    if penalty.is_norm and len(flow.u):
        slack = 1.0 - penalty.dual_norm(flow.u) / capacities
        np.minimum.at(out, components[heads], slack)
    room = np.minimum(flow.b - g.low, g.high - flow.b) / g.scale
    np.minimum.at(out, components[g.node], room)
    return out


def anchor_share(margins: FloatArray, room: FloatArray) -> FloatArray:
    """Return how far towards an anchor of some margins (c,) components (c,) must be moved."""
    # Margins are concave: on the way they are at least what the ends' margins average to.
    outside = np.maximum(-margins, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(outside > 0.0, outside / (outside + np.maximum(room, 0.0)), 0.0)
    return np.where((room <= 0.0) & (outside <= ANCHORING.rounding), 0.0, share)
