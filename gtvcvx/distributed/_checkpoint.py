"""Checkpoints: all that a run has to remember, by shard, at a restart of the iteration.

There an epoch begins: averages are empty, and the divergence is made anew from the flow, so that
point, flow, primal weight and a few counters are all there is. A run that goes on from there does
what the first one would have done, to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from gtvcvx._deadline import now
from gtvcvx.distributed._bounds import ShardedGap
from gtvcvx.distributed._parts import Parts
from gtvcvx.distributed._portfolio import Iterating
from gtvcvx.distributed._slices import Slices
from gtvcvx.solution import Record
from gtvcvx.solvers.driver import Against, BestPair, Driver

KIND = "checkpoint"
# What else a driver keeps goes by the clock.
_OF_DRIVER = ("_checks", "_before")


def remembered(thing: object) -> dict[str, Any]:
    """Return the numbers among the attributes of an object."""
    found: dict[str, Any] = {}
    for name, value in vars(thing).items():
        if isinstance(value, (bool, np.bool_)):
            found[name] = bool(value)
        elif isinstance(value, (int, np.integer)):
            found[name] = int(value)
        elif isinstance(value, (float, np.floating)):
            found[name] = float(value)
    return found


class Checkpoints:
    """Writes a run's state at restarts, and puts it back.

    Parameters
    ----------
    folder : str or path-like
    parts : Parts
    run : Driver
    iterating : Iterating
    every : float
        Seconds between two of them at least.
    name : str
        Of the run, the same in all workers.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        parts: Parts,
        run: Driver,
        iterating: Iterating,
        every: float,
        name: str,
    ) -> None:
        self._slices, self._parts = Slices(folder, KIND), parts
        self._run = run
        self._method, self._polished, self._stalling = iterating
        self._every, self._name = every, name
        self._last = now()

    def at_restart(self) -> None:
        """Write one if it is time to. By the clock: it changes nothing in the run."""
        if now() - self._last >= self._every:
            self.write()
            self._last = now()

    def write(self) -> None:
        """Write one."""
        incumbent = self._run.incumbent
        generation = f"{self._name}-{self._method.n_iter}"
        slices = [
            {"x": state.x, "y": state.y, **_of(incumbent, at)}
            for at, state in enumerate(self._method.state.states)
        ]
        if self._polished is not None:
            for own, rows in zip(slices, self._polished.point or [], strict=False):
                own["polished"] = rows
        self._slices.write(self._parts, generation, self._facts(), slices)

    def _facts(self) -> dict[str, Any]:
        method, incumbent = self._method, self._run.incumbent
        facts = {
            "run": self._name,
            "lam": self._parts.lam,
            "method": remembered(method),
            "weight": method.weight,
            "schedule": remembered(method.schedule),
            "driver": {name: remembered(self._run)[name] for name in _OF_DRIVER},
            "history": [list(astuple(record)) for record in self._run.history],
            "incumbent": None if incumbent.empty else remembered(incumbent),
        }
        if not incumbent.empty:
            facts["gap"] = [incumbent.parts.rounding, incumbent.parts.parts]
        if self._polished is not None:
            facts["polished"] = remembered(self._polished)
            facts["polishing"] = remembered(self._polished.schedule)
        if self._stalling is not None:
            facts["stalling"] = self._stalling.memory()
        return facts

    def restore(self, wanted: str | None) -> bool:
        """Put back what was written last; say whether there is anything.

        Parameters
        ----------
        wanted : str, optional
            Name of the run that it must be of; None for any.

        Raises
        ------
        ValueError
            Naming the file: it is damaged, or of another problem.
        """
        index = self._slices.index()
        if index is None or (wanted is not None and index["facts"]["run"] != wanted):
            return False
        parts = self._parts
        if index["sharding"] != parts.manifest.sharding or index["facts"]["lam"] != parts.lam:
            raise ValueError(f"checkpoint: {self._slices.folder} holds one of another problem")
        facts, method = index["facts"], self._method
        slices = [self._slices.slice(index, part.number) for part in parts]
        method.state.weight = facts["weight"]
        for state, own in zip(method.state.states, slices, strict=True):
            state.x[:], state.y[:] = own["x"], own["y"]
        method.state.begin_epoch()
        vars(method).update(facts["method"])
        vars(method.schedule).update(facts["schedule"])
        vars(self._run).update(facts["driver"])
        self._run.history[:] = [Record(*record) for record in facts["history"]]
        if self._polished is not None and "polished" in facts:
            vars(self._polished).update(facts["polished"])
            vars(self._polished.schedule).update(facts["polishing"])
            if all("polished" in own for own in slices):
                self._polished.point = [own["polished"] for own in slices]
        if self._stalling is not None:
            self._stalling.recall(facts["stalling"])
        if facts["incumbent"] is not None:
            _put_back(self._run.incumbent, facts, slices)
        return True


def _of(incumbent: Any, at: int) -> dict[str, Any]:
    if incumbent.empty:
        return {}
    pair = {"w": incumbent.w[at], "u": incumbent.u[at]}
    return pair | {"node": incumbent.parts.node[at], "edge": incumbent.parts.edge[at]}


def _put_back(
    incumbent: BestPair[Any, Any], facts: Mapping[str, Any], slices: list[dict[str, Any]]
) -> None:
    node, edge, w, u = ([own[name] for own in slices] for name in ("node", "edge", "w", "u"))
    vars(incumbent).update(facts["incumbent"])
    incumbent.w, incumbent.against = w, Against(u)
    incumbent.parts = ShardedGap(node, edge, *facts["gap"])
