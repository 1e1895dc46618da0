"""Errors of held-out data along lambda, and the lambda chosen by them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gtvcvx._arrays import finite_array
from gtvcvx.plotting._canvas import INK, axes_to_draw_on, drawn_on_axes
from gtvcvx.plotting._path import lambda_axis

_ERROR, _BAND = "#4477aa", "#4477aa"
_COLUMNS = ("lams", "mean_errors", "standard_errors")
_CHOICES = {"lam_min": "dotted", "lam_1se": "dashed", "lam": "solid"}


@drawn_on_axes
def plot_cross_validation(found: Any, *, ax: Any = None) -> Any:
    """Draw the mean error of held-out data for each lambda, with one standard error on each side.

    Parameters
    ----------
    found : CrossValidation or mapping
        What `cross_validate` returns or, by the same names, ``info["cross_validation"]`` of a
        solution that ``gtvcvx fit --cv`` has written: ``lams``, ``mean_errors``, ``std_errors``
        (``standard_errors`` there), each (k,), and ``lam``, ``lam_min``, ``lam_1se``.
    {ax}
    """
    lams, mean, spread = _columns(found)
    ax = axes_to_draw_on(ax, (6.0, 4.0))
    ax.fill_between(lams, mean - spread, mean + spread, color=_BAND, alpha=0.25, linewidth=0)
    ax.errorbar(
        lams, mean, yerr=spread, color=_ERROR, marker="o", markersize=4, capsize=2, linewidth=1.2
    )
    _mark(ax, {name: float(_get(found, name)) for name in _CHOICES})
    lambda_axis(ax, lams)
    ax.set_ylabel("mean error of held-out data")
    k = int(np.argmin(np.abs(lams - float(_get(found, "lam")))))
    ax.set_title(
        f"held-out error {mean[k]:.4g} $\\pm$ {spread[k]:.2g} at $\\lambda$ = {lams[k]:.4g}",
        fontsize=11,
    )
    return ax


def _columns(found: Any) -> list[Any]:
    """Return lambda, mean errors and standard errors, (k,) each, the smallest lambda first."""
    columns = [finite_array(_get(found, name), name, 1) for name in _COLUMNS]
    if len({len(column) for column in columns}) > 1 or not len(columns[0]):
        raise ValueError("found: as many errors as values of lambda are expected, at least one")
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


def _get(found: Any, name: str) -> Any:
    for known in (name, "std_errors") if name == "standard_errors" else (name,):
        value = found.get(known) if isinstance(found, Mapping) else getattr(found, known, None)
        if value is not None:
            return value
    raise TypeError(f"found: a CrossValidation is expected; there is no {name!r}")


def _mark(ax: Any, choices: Mapping[str, float]) -> None:
    """Draw a line at each lambda that a rule chooses, one for those that agree."""
    names = {"lam_min": "least error", "lam_1se": "one standard error", "lam": "chosen"}
    for lam in sorted(set(choices.values())):
        here = [name for name, value in choices.items() if value == lam]
        ax.axvline(
            lam, color=INK, linewidth=1.0, linestyle=_CHOICES[here[-1]],
            label=", ".join(names[name] for name in here),
        )  # fmt: skip
    ax.legend(fontsize=9, framealpha=0.7)
