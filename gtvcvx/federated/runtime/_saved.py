"""Runs as files: what came of them, without programs, reports and network."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, is_integer, is_number
from gtvcvx.federated.runtime._history import History
from gtvcvx.files import _storage
from verify._display import fitted, html_block, html_curve, html_facts

SCHEMA = "gtv-federated-run/1"
#: How a run can end.
STATUSES = ("finished", "diverged", "interrupted", "time_limit")
# The columns that every run has.
_ALWAYS = {"round", "value", "bytes_up", "bytes_down", "messages", "active"}


@dataclass
class SavedRun:
    """What a file says about a run; `Run.save` writes it, `SavedRun.load` reads it.

    Attributes
    ----------
    name : str
        The algorithm, as tables call it.
    algorithm : str
        The same with its parameters.
    nodes : sequence
        Labels of the clients.
    w, models, u, history, status, message, reason, rounds, seed, seconds
        As in `Run`.
    """

    name: str
    algorithm: str
    nodes: Sequence[Any]
    w: FloatArray
    models: FloatArray
    u: FloatArray | None
    history: History
    status: str
    message: str
    reason: str
    rounds: int
    seed: int
    seconds: float

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file of arrays and one JSON text, atomically."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["nodes"] = [x.item() if isinstance(x, np.generic) else x for x in self.nodes]
        data["history"] = dict(self.history)
        _storage.save(path, {"schema": SCHEMA, **data})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> SavedRun:
        """Read a run.

        Raises
        ------
        ValueError
            Naming the file: it holds no run, or is damaged.
        """
        data = _storage.load(path, SCHEMA)
        try:
            return SavedRun(**_checked(data))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: not a complete run ({error})") from error

    def __repr__(self) -> str:
        clients = f"  {len(self.nodes)} clients"
        return fitted([f"Saved run of {self.algorithm}", clients, *outcome_lines(self)])

    def _repr_html_(self) -> str:
        return run_html(f"Saved run of {self.algorithm}", self)


def outcome_lines(run: Any) -> list[str]:
    """Return what a `Run` or `SavedRun` shows of how it ended, line by line."""
    lines = [
        f"  {run.status} after {run.rounds} rounds, {run.seconds:.1f} s"
        + (f": {run.message}" if run.message else "")
    ]
    last = run.history.last()
    lines += [
        f"  {name} {last[name]:.6g}" for name in ("value", "gap", "distance", "mse") if name in last
    ]
    # A run that diverges at its start has no record.
    if "bytes_up" in last:
        lines.append(f"  {last['bytes_up']} bytes up, {last['bytes_down']} down")
    if run.reason:
        lines.append(f"  not certified: {run.reason}")
    return lines


def run_html(title: str, run: Any) -> str:
    """Return how a run ended, and how its gap fell, for a notebook."""
    history = run.history
    falling = history["gap"] > 0 if "gap" in history else np.zeros(history.n_records, bool)
    rounds, gaps = (history[c][falling].tolist() if falling.any() else [] for c in ("round", "gap"))
    return html_block(
        title,
        html_facts(("", line.strip()) for line in outcome_lines(run)),
        html_curve(
            "Logarithm of the certified gap over the rounds",
            [float(k) for k in rounds],
            [math.log10(gap) for gap in gaps],
        ),
    )


def _checked(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a run; whatever is not as `save` writes it is named."""
    found = {item.name: data[item.name] for item in fields(SavedRun)}
    for name in ("name", "algorithm", "status", "message", "reason"):
        _expect(isinstance(found[name], str), name, "a text")
    _expect(found["status"] in STATUSES, "status", f"one of {STATUSES}")
    for name in ("rounds", "seed"):
        _expect(is_integer(found[name]) and found[name] >= 0, name, "an integer >= 0")
    _expect(is_number(found["seconds"]) and found["seconds"] >= 0, "seconds", "a number >= 0")
    _expect(isinstance(found["nodes"], list) and found["nodes"], "nodes", "a list of labels")
    found["history"] = _history(found["history"])
    for name in ("w", "models"):
        _expect(_is_table(found[name], bool(found["history"])), name, "finite vectors")
    if len(found["models"]) not in (0, len(found["nodes"])):
        raise ValueError("models: one vector for each of the nodes is expected")
    _expect(found["u"] is None or _is_table(found["u"], True), "u", "a finite flow, or nothing")
    return found


def _history(columns: Any) -> History:
    _expect(isinstance(columns, dict), "history", "columns")
    lengths = set()
    for name, values in columns.items():
        fits = isinstance(values, np.ndarray) and values.ndim == 1 and np.isfinite(values).all()
        _expect(fits, f"history {name!r}", "finite numbers")
        lengths.add(len(values))
    if columns and (len(lengths) > 1 or not set(columns) >= _ALWAYS):
        raise ValueError(f"history: columns of one length, {sorted(_ALWAYS)} among them")
    return History({name: values.tolist() for name, values in columns.items()})


def _is_table(value: Any, recorded: bool) -> bool:
    """Whether these are finite vectors; a run without any record has none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return False
    return bool(np.isfinite(value).all()) and (value.ndim == 2 or not (recorded or value.size))


def _expect(fits: Any, name: str, expected: str) -> None:
    if not fits:
        raise ValueError(f"{name}: {expected} expected")
