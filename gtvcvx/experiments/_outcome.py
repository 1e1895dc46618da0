"""What an experiment found: rows beside printed values, and curves beside the optimum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, real_array
from verify._display import fields_text

NOT_GIVEN = "not given"


class Verdict(StrEnum):
    """What a run says about a printed statement.

    ``REPRODUCED``: it comes out in the setting as it is printed. ``OTHER_READING``: it comes out
    once something that the text says is read differently. ``NOT_REPRODUCED``: it does not come out
    in the settings that were tried. ``CANNOT_HOLD``: a proved bound excludes it.
    """

    REPRODUCED = "REPRODUCED"
    OTHER_READING = "REPRODUCED UNDER ANOTHER READING"
    NOT_REPRODUCED = "NOT REPRODUCED"
    CANNOT_HOLD = "CANNOT HOLD"


@dataclass(frozen=True, eq=False)
class Row:
    """One printed value or statement beside what a run gives.

    Parameters
    ----------
    name : str
        Method, or what is stated.
    printed : float or str
        The value in the paper, or its statement in other words; "not given" where the paper only
        draws a curve.
    ours : array_like or str
        The same measure, one value a seed; or words.
    optimum : array_like or str or None
        The same measure at the certified optimum, one value a seed; None needs a reason.
    verdict : Verdict or None
        Computed from the numbers; None only where nothing is printed, for a finding of ours.
    reason : str
        Why the verdict is what it is.
    """

    name: str
    printed: float | str
    ours: ArrayLike | str
    optimum: ArrayLike | str | None
    verdict: Verdict | None
    reason: str

    __repr__ = fields_text

    def __post_init__(self) -> None:
        place = f"row {self.name!r}"
        object.__setattr__(self, "printed", _printed(self.printed, place))
        object.__setattr__(self, "ours", _values(self.ours, f"{place}: ours"))
        if self.optimum is not None:
            object.__setattr__(self, "optimum", _values(self.optimum, f"{place}: optimum"))
        elif not self.reason:
            raise ValueError(f"{place}: without an optimum, a reason is expected")
        if self.verdict is not None:
            object.__setattr__(self, "verdict", Verdict(self.verdict))
        elif self.printed != NOT_GIVEN:
            raise ValueError(f"{place}: a verdict is expected where something is printed")

    @property
    def mean(self) -> float | None:
        """Mean of ours over the seeds, None for words."""
        return mean_of(self.ours)

    @property
    def deviation(self) -> float | None:
        """Standard deviation of ours over the seeds, None for words and for one seed."""
        return deviation_of(self.ours)

    @property
    def optimum_mean(self) -> float | None:
        """Mean over the seeds at the certified optimum, None where there are no numbers."""
        return mean_of(self.optimum)


def _printed(value: float | str, place: str) -> float | str:
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{place}: printed: a finite number or text is expected, got {value!r}")
    return number


def _values(values: ArrayLike | str, place: str) -> FloatArray | str:
    if isinstance(values, str):
        return values
    array = np.atleast_1d(real_array(values, place))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{place}: one value a seed is expected, got shape {array.shape}")
    if np.isnan(array).any():
        raise ValueError(f"{place}: a value is no number")
    return array


def mean_of(values: ArrayLike | str | None) -> float | None:
    """Return the mean of numbers, None for words."""
    return None if values is None or isinstance(values, str) else float(np.mean(np.asarray(values)))


def deviation_of(values: ArrayLike | str | None) -> float | None:
    """Return the standard deviation of several numbers, None for one and for words."""
    if values is None or isinstance(values, str) or np.size(np.asarray(values)) < 2:
        return None
    array = np.asarray(values, dtype=np.float64)
    return float(np.std(array, ddof=1)) if np.isfinite(array).all() else math.inf


@dataclass(frozen=True, eq=False)
class Curve:
    """A measure along an axis, for each seed; drawn as a mean with a band of one deviation.

    Parameters
    ----------
    label : str
        Its name in the legend.
    x : array_like, shape (k,)
        Places on the horizontal axis, rising.
    values : array_like, shape (seeds, k) or (k,)
        NaN where there is nothing to draw.
    final : str
        What is proved of the last point: a text of `certified`, or why there is no proof.
    kind : {"run", "optimum", "limit"}
        A run of a method, the certified optimum, or a proved limit of all runs.
    """

    label: str
    x: ArrayLike
    values: ArrayLike
    final: str = ""
    kind: Literal["run", "optimum", "limit"] = "run"

    __repr__ = fields_text

    def __post_init__(self) -> None:
        x = np.atleast_1d(real_array(self.x, f"curve {self.label!r}: x"))
        values = np.atleast_2d(real_array(self.values, f"curve {self.label!r}: values"))
        if x.ndim != 1 or values.ndim != 2 or values.shape[1] != len(x) or not values.size:
            raise ValueError(
                f"curve {self.label!r}: values of shape (seeds, {x.size}) are expected, got "
                f"{values.shape}"
            )
        if not (np.isfinite(x).all() and (np.diff(x) > 0).all()):
            raise ValueError(f"curve {self.label!r}: finite, rising x are expected")
        if self.kind not in ("run", "optimum", "limit"):
            raise ValueError(f"curve {self.label!r}: kind {self.kind!r} is not known")
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True)
class Level:
    """A horizontal line.

    Parameters
    ----------
    label : str
        Its name in the legend.
    value : float
        Where it is.
    kind : {"optimum", "limit", "printed", "other"}
        The certified optimum, a proved limit, a printed value, or something else.
    """

    label: str
    value: float
    kind: Literal["optimum", "limit", "printed", "other"] = "other"

    __repr__ = fields_text

    def __post_init__(self) -> None:
        if self.kind not in ("optimum", "limit", "printed", "other"):
            raise ValueError(f"level {self.label!r}: kind {self.kind!r} is not known")
        object.__setattr__(self, "value", float(self.value))
        if not math.isfinite(self.value):
            raise ValueError(f"level {self.label!r}: a finite value is expected, got {self.value}")


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes of a picture.

    Parameters
    ----------
    title : str
        What is shown.
    xlabel, ylabel : str
        What the axes show, with their units where they have some.
    curves : sequence of Curve
        At least one.
    levels : sequence of Level
        Horizontal lines.
    xlog, ylog : bool
        Logarithmic axes.
    ylim : (float, float), optional
        Limits of the vertical axis, as in the paper.
    xticks : mapping of float to str, optional
        Names of places on the horizontal axis, which then has these ticks alone.
    """

    title: str
    xlabel: str
    ylabel: str
    curves: Sequence[Curve]
    levels: Sequence[Level] = ()
    xlog: bool = False
    ylog: bool = False
    ylim: tuple[float, float] | None = None
    xticks: Mapping[float, str] = field(default_factory=dict)

    __repr__ = fields_text

    def __post_init__(self) -> None:
        if not (self.xlabel.strip() and self.ylabel.strip()):
            raise ValueError(f"panel {self.title!r}: both axes need a label")
        if not self.curves:
            raise ValueError(f"panel {self.title!r}: at least one curve is expected")
        object.__setattr__(self, "curves", tuple(self.curves))
        object.__setattr__(self, "levels", tuple(self.levels))


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that a run of an experiment found.

    Parameters
    ----------
    rows : sequence of Row
        At least one.
    panels : sequence of Panel
        The picture; without any, the rows are drawn.
    setting : mapping of str to str
        Symbol or name to its value, with "given" or "not given: ours is ...".
    notes : sequence of str
        What else a reader should know.
    measure : str
        What the numbers of the rows are, with their unit; the axis of a picture of rows.
    data : str
        Which data were used, where that depends on what a user has given; "" for those of the
        experiment.
    """

    rows: Sequence[Row]
    panels: Sequence[Panel]
    setting: Mapping[str, str]
    notes: Sequence[str] = ()
    measure: str = "value"
    data: str = ""

    __repr__ = fields_text

    def __post_init__(self) -> None:
        names = [row.name for row in self.rows]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"rows: at least one, each with its own name, got {names}")
        if isinstance(self.notes, str):
            raise TypeError("notes: a sequence of texts is expected, got one text")
        for name in ("rows", "panels", "notes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "setting", dict(self.setting))
