"""How a solver came to its solution: bounds and gap at every check."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx.plotting._canvas import axes_to_draw_on, bare, drawn_on_axes
from gtvcvx.solution import Solution

_UPPER, _LOWER, _GAP = "#d55e00", "#4477aa", "#17202a"
_AXES = {"iterations": ("n_iter", "iterations"), "seconds": ("seconds", "time in seconds")}


@drawn_on_axes
def plot_convergence(
    solution: Solution, show: str = "gap", *, over: str = "iterations", ax: Any = None
) -> Any:
    """Draw the history of a solution: the gap, or the two bounds that it lies between.

    Parameters
    ----------
    solution : Solution
        With at least one record in its history.
    show : "gap" or "bounds"
        "gap": value - dual value at each check, on a logarithmic scale. "bounds": the value of
        the best point so far and the best lower bound; the optimum lies in between.
    over : "iterations" or "seconds"
        What the horizontal axis shows.
    {ax}
    """
    if not isinstance(solution, Solution):
        raise TypeError(f"solution: a Solution is expected, got {type(solution).__name__}")
    if show not in ("gap", "bounds"):
        raise ValueError(f"show: 'gap' or 'bounds' is expected, got {show!r}")
    if over not in _AXES:
        raise ValueError(f"over: 'iterations' or 'seconds' is expected, got {over!r}")
    if not solution.history:
        raise ValueError("solution: it has no history to draw")
    ax = axes_to_draw_on(ax, (6.0, 4.0))
    attribute, label = _AXES[over]
    at = np.array([getattr(record, attribute) for record in solution.history], dtype=np.float64)
    upper = np.array([record.value for record in solution.history])
    lower = np.array([record.dual_value for record in solution.history])
    if show == "gap":
        _draw_gap(ax, at, upper - lower, float(solution.value))
    else:
        _draw_bounds(ax, at, upper, lower)
    if len(at) == 1:
        once = f"checked once, after {at[0]:.6g} {over}: gap {upper[0] - lower[0]:.3g}"
        ax.set_title(once, fontsize=11)
    ax.set_xlabel(label)
    bare(ax)
    return ax


def _style(at: Any) -> dict[str, Any]:
    """Return the marker of a curve: a point alone is all there is to see."""
    return {"marker": "o", "markersize": 3 if len(at) > 1 else 9}


def _draw_gap(ax: Any, at: Any, gap: Any, value: float) -> None:
    shown = np.isfinite(gap) & (gap > 0)
    ax.set_title(f"duality gap, {gap[-1]:.3g} at the end", fontsize=11)
    ax.set_ylabel("gap: value - dual value")
    if not shown.any():
        text = "the gap is zero" if np.isfinite(gap[-1]) else "the gap is not finite"
        ax.text(0.5, 0.5, text, ha="center", transform=ax.transAxes)
        return
    ax.plot(at[shown], gap[shown], color=_GAP, **_style(at[shown]))
    ax.set_yscale("log")
    size = max(1.0, abs(value))
    right = ax.secondary_yaxis("right", functions=(lambda g: g / size, lambda g: g * size))
    right.set_ylabel("relative gap: gap / max(1, |value|)")


def _draw_bounds(ax: Any, at: Any, upper: Any, lower: Any) -> None:
    ax.set_title(f"bounds on the optimum, {upper[-1]:.9g} at the end", fontsize=11)
    finite = np.isfinite(upper) & np.isfinite(lower)
    end = float(upper[-1])
    if np.ptp(np.append(upper[finite], lower[finite])) < 1e-2 * abs(end):
        # All digits of the ticks would be the same: show what differs.
        upper, lower = upper - end, lower - end
        ax.set_ylabel(f"objective less {end:.9g}")
    else:
        ax.set_ylabel("objective")
    ax.fill_between(at[finite], lower[finite], upper[finite], color="#d5d8dc", linewidth=0)
    style = _style(at[finite])
    if finite.sum() == 1:
        # One interval, which `fill_between` would not show.
        ax.vlines(at[finite], lower[finite], upper[finite], color="#d5d8dc", linewidth=6)
    ax.plot(at[finite], upper[finite], color=_UPPER, label="value of the best point", **style)
    ax.plot(
        at[finite], lower[finite], color=_LOWER, linestyle="dashed", label="best lower bound",
        **style,
    )  # fmt: skip
    ax.legend(fontsize=9)
