"""The best point and the best flow of a run over shards so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS
from gtvcvx.distributed._bounds import ShardedBounds, ShardedGap
from gtvcvx.distributed._conservation import (
    largest_of,
)
from gtvcvx.distributed._groups import Groups
from gtvcvx.distributed._parts import Parts, Rows
from gtvcvx.solution import Record
from gtvcvx.solvers.driver import FUSED_SLACK, Against, BestPair
from verify._display import fields_text


@dataclass(frozen=True)
class ShardedProgress:
    """What a callback of a distributed run sees at every check: points stay in their shards.

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    seconds : float
        Wall-clock time since the start, compilation included.
    value, dual_value : float
        Objective of the best point so far, and the best lower bound on the optimum.
    gap, rel_gap : float
        value - dual_value, and that over max(1, abs(value)).
    """

    n_iter: int
    seconds: float
    value: float
    dual_value: float
    gap: float
    rel_gap: float

    __repr__ = fields_text


@dataclass
class ShardedSolution:
    """What a run over shards has found: the pieces of this worker, and numbers of the whole.

    See `gtvcvx.Solution`. Arrays are lists with one array a part: w (k, d) with ghosts, u (l, d),
    node_gaps (k,) that are zero at ghosts, edge_gaps (l,) that are zero where another shard counts
    the edge, slack (l,).
    """

    w: Rows
    u: Rows
    value: float
    dual_value: float
    gap: float
    status: str
    n_iter: int
    seconds: float
    solver: str
    node_gaps: Rows
    edge_gaps: Rows
    slack: Rows
    history: list[Record] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def rel_gap(self) -> float:
        """Gap relative to max(1, |value|)."""
        return self.gap / max(1.0, abs(self.value))


class ShardedIncumbent(BestPair[Rows, ShardedGap]):
    """Best point and best flow so far of a problem in shards; arrays are lists, one array a part.

    All workers call the same methods in the same order. Points that come from elsewhere are fresh,
    and flows the same on both sides of a cut.

    Parameters
    ----------
    parts : Parts

    Attributes
    ----------
    bounds : ShardedBounds
    """

    def __init__(self, parts: Parts) -> None:
        super().__init__()
        self._parts = parts
        self.bounds = ShardedBounds(parts)

    def update(
        self,
        w: Rows,
        u: Rows,
        keep_last: bool = False,
        a: FloatArray | None = None,
        enough: float = 0.0,
        exact: bool = False,
        waits: bool = False,
    ) -> None:
        """Do what `BestPair.update` does, but for a pair that has overflowed."""
        # The largest entry is NaN where one is.
        if np.isfinite(largest_of(self._parts, w, u)):
            super().update(w, u, keep_last, a, enough, exact, waits)
        else:
            self._begun()

    def _feasible(self, w: Rows) -> Rows:
        given = zip(self._parts, w, strict=True)
        out = [np.array(part.problem.losses.project_domain(rows)) for part, rows in given]
        # Ghosts have no losses, and stayed where they were.
        self._parts.refresh(out)
        return out

    def _value(self, w: Rows) -> float:
        return self.bounds.value(w)

    def _fused(self, w: Rows, flow: Rows) -> Rows:
        parts = self._parts
        if not parts.penalty.is_norm:
            return w
        below = [
            rows > FUSED_SLACK * part.problem.capacities
            for rows, part in zip(self.bounds.slack(flow), parts, strict=True)
        ]
        return Groups(parts, below).means(w)

    def _checked(
        self, w: Rows, u: Rows, as_it_is: bool, enough: float
    ) -> tuple[Rows, float, ShardedGap, Against[Rows]]:
        repaired = self.bounds.repaired(u, w)
        w, value = self._best_of(w, self._value(w), repaired.u, as_it_is)
        gap, flow = self.bounds.gap(w, u, repaired)
        return w, value, gap, Against(flow)

    def _gap_against(self, w: Rows, against: Against[Rows], enough: float = 0.0) -> ShardedGap:
        return self.bounds.gap_of(w, against.u)

    def _loose_gap(self, w: Rows) -> ShardedGap:
        return self.bounds.loose_gap(w)

    def _nothing(self) -> tuple[Rows, Rows]:
        return self._parts.node_zeros(), self._parts.edge_zeros()

    def _copy(self, w: Rows) -> Rows:
        return [rows.copy() for rows in w]

    def _is_zero(self, u: Rows) -> bool:
        return not largest_of(self._parts, u) > 0.0

    def _moved_digits(self) -> float:
        moved = [rows * (1.0 + 4.0 * EPS) for rows in self.w]
        return abs(self._value(moved) - self.value)

    def progress(self, n_iter: int, seconds: float) -> ShardedProgress:
        """Return what a callback is shown."""
        pair = self.value, self.dual_value, self.gap, self.rel_gap
        return ShardedProgress(n_iter, seconds, *pair)

    def solution(self, **fields: Any) -> ShardedSolution:
        """Return the incumbent with what else is known of its run."""
        return ShardedSolution(
            w=self.w,
            u=self.u,
            value=self.value,
            dual_value=self.dual_value,
            gap=self.gap,
            node_gaps=self.parts.node,
            edge_gaps=self.parts.edge,
            slack=self.bounds.slack(self.u),
            **fields,
        )
