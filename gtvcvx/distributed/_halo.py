"""Copies of rows from the shards that own them to those that need them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.distributed._shard import Shard
from gtvcvx.distributed.engines import Fabric

#: Rows (of positions) of a shard that go to another shard, or come from it.
Selection: TypeAlias = Callable[[Shard, int], IntArray]


@dataclass(frozen=True)
class Routes:
    """Which rows go where; what travels between two workers is in the order of (sender, receiver).

    Attributes
    ----------
    inside : list of (int, ndarray, int, ndarray)
        Place of the sending shard among those of this worker and its rows, and the same of the
        receiving one.
    out, into : dict of int to list of (int, ndarray)
        By worker: places of this worker's shards, and their rows.
    """

    inside: list[tuple[int, IntArray, int, IntArray]]
    out: dict[int, list[tuple[int, IntArray]]]
    into: dict[int, list[tuple[int, IntArray]]]

    @staticmethod
    def of_nodes(shards: Sequence[Shard], workers: IntArray, rank: int) -> Routes:
        """Return the routes from nodes to their ghosts."""
        return _routes(shards, workers, rank, Shard.boundary_with, Shard.ghosts_of)

    @staticmethod
    def of_edges(shards: Sequence[Shard], workers: IntArray, rank: int) -> Routes:
        """Return the routes of cut edges from where they are counted."""
        return _routes(shards, workers, rank, Shard.cut_with, Shard.cut_of)


def _routes(
    shards: Sequence[Shard], workers: IntArray, rank: int, sent: Selection, received: Selection
) -> Routes:
    place = {shard.number: at for at, shard in enumerate(shards)}
    out: dict[int, list[tuple[int, int, IntArray]]] = {}
    into: dict[int, list[tuple[int, int, IntArray]]] = {}
    inside = []
    for at, shard in enumerate(shards):
        for other in shard.neighbours:
            going, coming = sent(shard, other), received(shard, other)
            if other in place:
                far = shards[place[other]]
                inside.append((at, going, place[other], received(far, shard.number)))
                continue
            worker = int(workers[other])
            if len(going):
                out.setdefault(worker, []).append((at, other, going))
            if len(coming):
                into.setdefault(worker, []).append((other, at, coming))
    # Both ends sort by sender first: out is by place already, which goes by number.
    return Routes(
        inside,
        {w: [(at, rows) for at, _, rows in sorted(r, key=_order)] for w, r in sorted(out.items())},
        {w: [(at, rows) for _, at, rows in sorted(r, key=_order)] for w, r in sorted(into.items())},
    )


def _order(route: tuple[int, int, IntArray]) -> tuple[int, int]:
    return route[:2]


class Halo:
    """Copies rows along routes, with one exchange whatever the number of shards.

    Parameters
    ----------
    fabric : Fabric
    routes : Routes
    """

    def __init__(self, fabric: Fabric, routes: Routes) -> None:
        self._fabric, self._routes = fabric, routes
        # By the width of rows: engines remember what they are given each time.
        self._buffers: dict[int, tuple[dict[int, FloatArray], dict[int, FloatArray]]] = {}

    def _room(self, width: int) -> tuple[dict[int, FloatArray], dict[int, FloatArray]]:
        if width not in self._buffers:
            out, into = (
                {w: np.empty((sum(len(rows) for _, rows in r), width)) for w, r in routes.items()}
                for routes in (self._routes.out, self._routes.into)
            )
            self._buffers[width] = out, into
        return self._buffers[width]

    def refresh(self, arrays: Sequence[FloatArray]) -> None:
        """Copy rows of arrays (k, q), one for each shard of this worker, in place."""
        routes = self._routes
        for sender, going, receiver, coming in routes.inside:
            arrays[receiver][coming] = arrays[sender][going]
        if not (routes.out or routes.into):
            return
        out, into = self._room(arrays[0].shape[1])
        for worker, parts in routes.out.items():
            np.concatenate([arrays[at][rows] for at, rows in parts], out=out[worker])
        self._fabric.exchange(out, into)
        for worker, parts in routes.into.items():
            first = 0
            for at, rows in parts:
                arrays[at][rows] = into[worker][first : first + len(rows)]
                first += len(rows)
