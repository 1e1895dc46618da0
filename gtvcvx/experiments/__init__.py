"""Experiments that compare printed values, runs of methods and certified optima.

An `Experiment` names a table or figure and gives, for a `Study` (size, seeds, reading), an
`Outcome`: rows with a computed `Verdict`, and panels of curves. `run_experiment` runs one and takes
up what an interrupted run has left; `write_record` writes JSON, CSV and a picture (matplotlib,
extra ``plot``). The experiments of the five papers are in ``examples/papers`` of a checkout.
"""

from gtvcvx.experiments._certified import certified, gap_text, proved_gap
from gtvcvx.experiments._drawing import digest_of, draw, save_picture
from gtvcvx.experiments._experiment import Experiment
from gtvcvx.experiments._outcome import Curve, Level, Outcome, Panel, Row, Verdict
from gtvcvx.experiments._record import Record
from gtvcvx.experiments._running import run_experiment, write_record
from gtvcvx.experiments._study import Study
from gtvcvx.experiments._table import cells_of, csv_of, ends_of, text_of

__all__ = [
    "Curve",
    "Experiment",
    "Level",
    "Outcome",
    "Panel",
    "Record",
    "Row",
    "Study",
    "Verdict",
    "cells_of",
    "certified",
    "csv_of",
    "digest_of",
    "draw",
    "ends_of",
    "gap_text",
    "proved_gap",
    "run_experiment",
    "save_picture",
    "text_of",
    "write_record",
]


def __dir__() -> list[str]:
    return sorted(__all__)
