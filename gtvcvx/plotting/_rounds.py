"""Federated runs: how far they were after how many rounds, or bytes, and who took part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.plotting._canvas import (
    FAINT,
    INK,
    as_text,
    axes_to_draw_on,
    bare,
    drawn_on_axes,
    line_style,
)

_SHOWN = {
    "gap": "certified gap",
    "value": "value of the run's problem",
    "distance": "largest distance of a node",
    "mse": "mean squared distance from the truth",
}
# Values within this factor read better without logarithms: less than two powers of ten apart.
_NEAR = 30.0
# Records up to which each of them gets a marker, as in a hundred they would be a thick line.
_MARKED = 30


class Recorded(Protocol):
    """What pictures need of a run: `gtvcvx.federated.Run` and `SavedRun` have it."""

    @property
    def name(self) -> str:
        """The algorithm."""

    @property
    def history(self) -> Mapping[str, Any]:
        """Columns of the records."""

    @property
    def status(self) -> str:
        """How it ended."""

    @property
    def nodes(self) -> Any:
        """Labels of the clients."""


Runs = Recorded | Mapping[str, Recorded]


@drawn_on_axes
def plot_rounds(runs: Any, show: str = "gap", *, over: str = "rounds", ax: Any = None) -> Any:
    """Draw how far federated runs were after each recorded round.

    Gaps, distances and errors have a logarithmic axis, where what is exactly zero stands at the
    bottom as an open triangle. The legend says which runs did not finish, and which have nothing
    of the kind: a run without a convex problem has no gap.

    Parameters
    ----------
    runs : federated.Run, federated.SavedRun, or dict of str to them
        One run, or several by the names that the legend gives them.
    show : "gap", "value", "distance" or "mse"
        The column of the history.
    over : "rounds" or "bytes"
        What the horizontal axis shows. Bytes are those that clients have sent and got so far, with
        headers; their axis is logarithmic where one run needs many times as many as another.
    {ax}
    """
    named = _named(runs)
    _expect_one_of(show, _SHOWN, "show")
    _expect_one_of(over, ("rounds", "bytes"), "over")
    there = [name for name, run in named.items() if show in run.history]
    if not there:
        raise ValueError(f"runs: there is no {show!r} in the history of {', '.join(named)}")
    ax = axes_to_draw_on(ax, (6.5, 4.0))
    at = [_places(named[name], over) for name in there]
    values = [np.asarray(named[name].history[show], dtype=np.float64) for name in there]
    ax.set_ylabel(_SHOWN[show])
    logarithmic = _set_values(ax, show, np.concatenate(values))
    for k, name in enumerate(there):
        label = _label(name, named[name].status)
        _draw(ax, at[k], values[k], {**line_style(k), "label": label}, logarithmic)
    for name in named:
        if name not in there:
            ax.plot([], [], color="none", label=f"{as_text(name)}: no {show}")
    _set_bytes(ax, at) if over == "bytes" else _set_rounds(ax)
    bare(ax)
    _explain(ax, named, float(values[0][-1]))
    return ax


@drawn_on_axes
def plot_activity(runs: Any, *, ax: Any = None) -> Any:
    """Draw how many clients took part in each recorded round of federated runs.

    Parameters
    ----------
    runs : federated.Run, federated.SavedRun, or dict of str to them
        One run, or several by the names that the legend gives them.
    {ax}
    """
    named = _named(runs)
    ax = axes_to_draw_on(ax, (6.5, 3.2))
    most = max(len(run.nodes) for run in named.values())
    for k, (name, run) in enumerate(named.items()):
        round_, active = _activity(run)
        mean = f"{active.mean():.3g} on average" if len(active) else "no round"
        label = f"{_label(name, run.status)}: {mean}"
        ax.plot(
            round_, active, label=label, drawstyle="steps-mid", linewidth=1.0,
            **line_style(k), **_marker(len(active)),
        )  # fmt: skip
    ax.axhline(most, color=FAINT, linewidth=1.0, linestyle="dotted")
    ax.set_ylim(0.0, 1.05 * most)
    ax.yaxis.get_major_locator().set_params(integer=True)
    _set_rounds(ax)
    ax.set_ylabel(f"active clients, of {most}")
    ax.set_title("clients that took part in the recorded rounds", fontsize=11)
    bare(ax)
    _legend(ax)
    return ax


def _activity(run: Recorded) -> tuple[FloatArray, FloatArray]:
    """Return rounds and active clients; nobody is asked at the start, which is round 0."""
    done = run.history["round"] > 0
    return run.history["round"][done], run.history["active"][done]


def _named(runs: Any) -> dict[str, Recorded]:
    """Return runs by name, each with at least one record."""
    given = dict(runs) if isinstance(runs, Mapping) else {getattr(runs, "name", "run"): runs}
    if not given:
        raise ValueError("runs: at least one run is expected, got none")
    for name, run in given.items():
        if not all(hasattr(run, part) for part in ("history", "status", "nodes")):
            raise TypeError(f"runs: {name}: a federated run is expected, got {type(run).__name__}")
        if "round" not in run.history:
            raise ValueError(f"runs: {name}: it has no record to draw")
    return given


def _expect_one_of(value: str, allowed: Iterable[str], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: one of {', '.join(map(repr, allowed))} expected, got {value!r}")


def _places(run: Recorded, over: str) -> FloatArray:
    history = run.history
    at = history["round"] if over == "rounds" else history["bytes_up"] + history["bytes_down"]
    return np.asarray(at, dtype=np.float64)


def _set_rounds(ax: Any) -> None:
    ax.set_xlabel("rounds")
    # A run may have one record alone.
    ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def _set_bytes(ax: Any, at: Sequence[FloatArray]) -> None:
    """Let the horizontal axis show bytes, on a logarithmic scale where runs are far apart."""
    from matplotlib.ticker import EngFormatter

    ax.set_xlabel("bytes that clients sent and got")
    ends = np.array([places[-1] for places in at])
    if not ends.any():
        # Clients without links: one place is all there is.
        ax.set_xlim(-0.5, 0.5)
        ax.set_xticks([0.0])
    elif ends.max() > _NEAR * ends[ends > 0].min():
        sent = np.concatenate(at)
        first = 10.0 ** np.floor(np.log10(sent[sent > 0].min()))
        # Linear up to there, so that zero has its place, half as wide as a power of ten; a little
        # more, because matplotlib rounds the logarithm of 1000 down to 2, and adds a mark there.
        ax.set_xscale("symlog", linthresh=first * (1.0 + 1e-6), linscale=0.5)
    ax.xaxis.set_major_formatter(EngFormatter("B"))


def _set_values(ax: Any, show: str, values: FloatArray) -> bool:
    """Choose the scale of the vertical axis; tell whether it is logarithmic."""
    positive = values[values > 0]
    wide = len(positive) == len(values) and values.max() > _NEAR * values.min()
    logarithmic = wide if show == "value" else len(positive) > 0
    if logarithmic:
        ax.set_yscale("log")
    return bool(logarithmic)


def _draw(ax: Any, at: FloatArray, values: FloatArray, style: Any, logarithmic: bool) -> None:
    """Draw one curve; on a logarithmic scale zeros stand at the bottom."""
    shown = values > 0 if logarithmic else np.ones(len(values), dtype=bool)
    ax.plot(at[shown], values[shown], **style, **_marker(int(shown.sum())))
    if not shown.all():
        ax.plot(
            at[~shown], np.full((~shown).sum(), 0.02), transform=ax.get_xaxis_transform(),
            color=style["color"], linestyle="none", marker="v", markersize=5,
            markerfacecolor="none", label="_", zorder=4,
        )  # fmt: skip
        ax.get_lines()[-1].set_gid("zero")


def _marker(records: int) -> dict[str, Any]:
    return {"marker": "o", "markersize": 3} if records <= _MARKED else {}


def _label(name: str, status: str) -> str:
    ended = "" if status == "finished" else f" ({status.replace('_', ' ')})"
    text = as_text(name)
    # matplotlib leaves out of a legend what begins with an underscore.
    return f"{' ' if text.startswith('_') else ''}{text}{ended}"


def _explain(ax: Any, named: Mapping[str, Recorded], end: float) -> None:
    """Say in a title or a legend what the curves are."""
    zeros = any(line.get_gid() == "zero" for line in ax.get_lines())
    if len(named) == 1:
        (name, run), *_ = named.items()
        after = f"after {run.history['round'][-1]} rounds"
        ax.set_title(f"{_label(name, run.status)}: {end:.3g} {after}", fontsize=11)
    if zeros:
        ax.plot(
            [], [], color=INK, linestyle="none", marker="v", markerfacecolor="none",
            markersize=5, label="exactly zero",
        )  # fmt: skip
    if zeros or len(named) > 1:
        _legend(ax)


def _legend(ax: Any) -> None:
    ax.legend(fontsize=9, framealpha=0.7)
