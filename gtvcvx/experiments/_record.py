"""A finished run as plain data: what it found, and how it was run; written and read as JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.experiments._experiment import Experiment
from gtvcvx.experiments._outcome import Curve, Level, Outcome, Panel, Row
from gtvcvx.experiments._study import Study
from gtvcvx.files._atomic import atomic_write
from verify._display import fields_text

SCHEMA = "gtv-experiment/1"
# Points of a curve that are kept: more are not seen in a picture.
POINTS = 120
# Digits of the points of curves, for pictures; and of rows, beyond which machines differ.
_DIGITS = 6
_ROW_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Record:
    """An outcome with the circumstances of its run.

    Attributes
    ----------
    name, paper, item, title : str
        Of the experiment.
    size, reading : str
        Of the run.
    seeds : int
        Repetitions.
    data : str
        On which data.
    cpu_seconds : float
        CPU time of the run, that of cells of earlier runs included.
    outcome : Outcome
        Curves have at most 120 points.
    """

    name: str
    paper: str
    item: str
    title: str
    size: str
    reading: str
    seeds: int
    data: str
    cpu_seconds: float
    outcome: Outcome

    __repr__ = fields_text

    @staticmethod
    def of(
        experiment: Experiment, study: Study, outcome: Outcome, cpu_seconds: float | None = None
    ) -> Record:
        """Put together a run.

        Parameters
        ----------
        experiment : Experiment
        study : Study
            The run.
        outcome : Outcome
            What it gave.
        cpu_seconds : float, optional
            CPU time; default that of the study's cells.
        """
        return Record(
            name=experiment.name,
            paper=experiment.paper,
            item=experiment.item,
            title=experiment.title,
            size=study.size,
            reading=study.reading,
            seeds=len(study.seeds),
            data=outcome.data or experiment.data,
            cpu_seconds=study.cpu_seconds if cpu_seconds is None else cpu_seconds,
            outcome=outcome,
        )

    def to_data(self) -> dict[str, Any]:
        """Give everything as lists, texts and numbers that JSON has; long curves are thinned."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        plain["cpu_seconds"] = float(f"{self.cpu_seconds:.3g}")
        return {"schema": SCHEMA, **plain, "outcome": _outcome_data(self.outcome)}

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Record:
        """Read what `to_data` gave.

        Parameters
        ----------
        data : mapping

        Raises
        ------
        ValueError
            It is not such a record, or not a complete one.
        """
        if data.get("schema") != SCHEMA:
            raise ValueError(f"schema {SCHEMA!r} is expected, got {data.get('schema')!r}")
        try:
            own = {item.name: data[item.name] for item in fields(Record)}
            return Record(**own | {"outcome": _outcome(own["outcome"])})
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"not a complete record of an experiment ({error!r})") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all.

        Parameters
        ----------
        path : path-like
        """
        with atomic_write(path) as file:
            file.write(_json(self.to_data()) + "\n")

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Record:
        """Read a file that `save` wrote.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        ValueError
            The file is no record; it is named.
        """
        try:
            return Record.from_data(json.loads(Path(path).read_text(encoding="utf-8")))
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)}: {error}") from error


def _json(value: Any, indent: str = "") -> str:
    """Write JSON with a line for each item, but lists of plain values on one line each."""
    inner = indent + " "
    if isinstance(value, dict) and value:
        items = [
            f"{json.dumps(k, ensure_ascii=False)}: {_json(v, inner)}" for k, v in value.items()
        ]
        return "{\n" + ",\n".join(inner + item for item in items) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
        return "[\n" + ",\n".join(inner + _json(v, inner) for v in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _number(value: float, digits: int) -> float | str:
    """Return a number that JSON can hold: text where it is infinite or none."""
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    return float(f"{number:.{digits}g}")


def _numbers(values: Any, digits: int = _ROW_DIGITS) -> Any:
    """Return lists of numbers; texts and None as they are."""
    if values is None or isinstance(values, str):
        return values
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [_numbers(row, digits) for row in array]
    return [_number(x, digits) for x in array.tolist()]


def _array(values: Any) -> FloatArray:
    """Read what `_numbers` gave of an array."""
    return np.array(
        [_array(x) if isinstance(x, list) else float(x) for x in values], dtype=np.float64
    )


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    return {
        "measure": outcome.measure,
        "rows": [_row_data(row) for row in outcome.rows],
        "setting": dict(outcome.setting),
        "notes": list(outcome.notes),
        "data": outcome.data,
        "panels": [_panel_data(panel) for panel in outcome.panels],
    }


def _outcome(data: Mapping[str, Any]) -> Outcome:
    return Outcome(
        rows=[_row(row) for row in data["rows"]],
        panels=[_panel(panel) for panel in data["panels"]],
        setting=data["setting"],
        notes=data["notes"],
        measure=data["measure"],
        data=data["data"],
    )


def _row_data(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "printed": row.printed,
        "ours": _numbers(row.ours),
        "optimum": _numbers(row.optimum),
        "verdict": None if row.verdict is None else str(row.verdict),
        "reason": row.reason,
    }


def _row(data: Mapping[str, Any]) -> Row:
    own = dict(data)
    for name in ("ours", "optimum"):
        if isinstance(own[name], list):
            own[name] = _array(own[name])
    return Row(**own)


def _panel_data(panel: Panel) -> dict[str, Any]:
    return {
        "title": panel.title,
        "xlabel": panel.xlabel,
        "ylabel": panel.ylabel,
        "xlog": panel.xlog,
        "ylog": panel.ylog,
        "ylim": None if panel.ylim is None else list(panel.ylim),
        "xticks": [[float(x), label] for x, label in panel.xticks.items()],
        "levels": [
            {"label": level.label, "value": level.value, "kind": level.kind}
            for level in panel.levels
        ],
        "curves": [_curve_data(curve, panel.xlog) for curve in panel.curves],
    }


def _panel(data: Mapping[str, Any]) -> Panel:
    own = dict(data)
    own["ylim"] = None if own["ylim"] is None else tuple(own["ylim"])
    own["xticks"] = {float(x): label for x, label in own["xticks"]}
    own["levels"] = [Level(**level) for level in own["levels"]]
    own["curves"] = [_curve(curve) for curve in own["curves"]]
    return Panel(**own)


def _curve_data(curve: Curve, xlog: bool) -> dict[str, Any]:
    x, values = np.asarray(curve.x), np.asarray(curve.values)
    kept = kept_points(x, xlog)
    return {
        "label": curve.label,
        "kind": curve.kind,
        "final": curve.final,
        "x": _numbers(x[kept], _DIGITS),
        "values": _numbers(values[:, kept], _DIGITS),
    }


def _curve(data: Mapping[str, Any]) -> Curve:
    return Curve(**dict(data) | {"x": _array(data["x"]), "values": _array(data["values"])})


def kept_points(x: FloatArray, xlog: bool) -> IntArray:
    """Return which points of a curve are kept: evenly along the axis, both ends among them."""
    if len(x) <= POINTS:
        return np.arange(len(x), dtype=np.int64)
    along = np.log(x) if xlog and x[0] > 0 else x
    wanted = np.linspace(along[0], along[-1], POINTS)
    return np.unique(np.searchsorted(along, wanted)).astype(np.int64)
