"""Errors on data that the fit has not seen: of its cross-validation, or of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx.cli._predict import score_of_file
from gtvcvx.cli._report import counted
from gtvcvx.cli.report._content import Content
from gtvcvx.cli.report._page import Table
from gtvcvx.cli.report._problem import Facts
from gtvcvx.cli.report._svg import Picture, new_axes, picture
from gtvcvx.plotting import plot_cross_validation

_HEIGHT = 3.2  # inches of the picture


@dataclass(frozen=True)
class HeldOut:
    """What there is to say about errors on held-out data.

    Attributes
    ----------
    headline : str
        The error in one line.
    facts : list of (str, str)
    table : Table or None
        Errors along lambda.
    pictures : list of Picture
    """

    headline: str
    facts: Facts
    table: Table | None
    pictures: list[Picture]


def held_out(content: Content, solution_path: str, data_path: str | None) -> HeldOut | None:
    """Return the errors of the file and of the cross-validation; None where there are neither."""
    found = content.solution.info.get("cross_validation")
    headlines, facts = [], []
    if data_path is not None:
        headline, more = _of_file(solution_path, data_path)
        headlines.append(headline)
        facts += more
    if found is not None:
        headline, more = _of_folds(found)
        headlines.append(headline)
        facts += more
    if not headlines:
        return None
    if found is None:
        return HeldOut(headlines[0], facts, None, [])
    caption = (
        "Mean error of held-out data with one standard error on either side. The full line is at "
        "the lambda of this solution, the dotted one at the least error."
    )
    drawn = picture(plot_cross_validation(found, ax=new_axes(_HEIGHT)), caption)
    return HeldOut(headlines[0], facts, _table(found), [drawn])


def _of_file(solution_path: str, data_path: str) -> tuple[str, Facts]:
    """Return the error on a file's rows, in a line and in detail."""
    score = score_of_file(solution_path, data_path)
    rows = int(score.pop("rows"))
    said = {name.replace("_", " "): value for name, value in score.items()}
    if "mean squared error" in said:
        said.pop("mean loss")
    facts = [("Held-out data", f"{data_path}, {counted(rows, 'row')} with a target")]
    facts += [(name.capitalize(), f"{value:.6g}") for name, value in said.items()]
    text = ", ".join(f"{name} {value:.6g}" for name, value in said.items())
    return f"{text} ({counted(rows, 'row')} held out)", facts


def _of_folds(found: Mapping[str, Any]) -> tuple[str, Facts]:
    k = int(np.argmin(np.abs(np.asarray(found["lams"]) - found["lam"])))
    error, spread = found["mean_errors"][k], found["standard_errors"][k]
    said = f"mean loss {error:.6g}, standard error {spread:.3g}"
    folds = f"{found['folds']} folds over {found['over']}"
    facts = [
        ("Cross-validation", f"{folds}, rule {found['rule']}, seed {found['seed']}"),
        ("Lambda", f"{found['lam']:.6g}, chosen of {counted(len(found['lams']), 'value')}"),
        ("Error at this lambda", said),
    ]
    return f"{said} ({folds})", facts


def _table(found: Mapping[str, Any]) -> Table:
    marks = {found["lam"]: "this solution"}
    rows = [
        [float(lam), float(mean), float(error), int(clusters), marks.get(lam, "")]
        for lam, mean, error, clusters in zip(
            np.asarray(found["lams"]).tolist(),
            found["mean_errors"],
            found["standard_errors"],
            found["n_clusters"],
            strict=True,
        )
    ]
    header = ["lambda", "mean error", "standard error", "clusters", ""]
    return Table("Errors along lambda", header, rows)
