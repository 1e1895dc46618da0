"""An experiment of a paper: what it is called and how it is run."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gtvcvx.experiments._outcome import Outcome
from gtvcvx.experiments._study import Size, Study
from verify._display import fields_text

PAPERS = ("GTV", "nLasso", "FedADMM", "PGFL", "Notes")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_FEW = 2  # seeds of a tiny run: enough for a deviation


@dataclass(frozen=True)
class Experiment:
    """A table or figure of a paper.

    Parameters
    ----------
    name : str
        On the command line: lower case letters, digits and hyphens, such as "gtv-table-1".
    paper : {"GTV", "nLasso", "FedADMM", "PGFL", "Notes"}
        Abbreviation of the list of papers.
    item : str
        What it is in the paper, such as "Table I".
    title : str
        What it shows, in a few words.
    run : callable
        Gives the `Outcome` of a `Study`.
    readings : sequence of str
        Ways to read the text; the first is the text as it is printed.
    seeds, paper_seeds : int
        Repetitions by default, and in the full setting.
    data : str
        On which data: "synthetic", "8x8 digits", ...; part of every output.
    version : int
        To be raised when the cells that earlier runs have stored are no longer right.
    remark : str
        What the paper should have printed, where that is known; "" where nothing is to be said.
    """

    name: str
    paper: str
    item: str
    title: str
    run: Callable[[Study], Outcome]
    readings: tuple[str, ...] = ("paper",)
    seeds: int = 3
    paper_seeds: int = 5
    data: str = "synthetic"
    version: int = 1
    remark: str = ""

    __repr__ = fields_text

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"name: lower case words and hyphens are expected, got {self.name!r}")
        if self.paper not in PAPERS:
            raise ValueError(f"paper: one of {', '.join(PAPERS)} is expected, got {self.paper!r}")
        if not self.readings:
            raise ValueError(f"{self.name}: at least one reading is expected")
        if min(self.seeds, self.paper_seeds) < 1:
            raise ValueError(f"{self.name}: at least one seed is expected")

    @property
    def about(self) -> str:
        """The docstring of the module where it is defined."""
        module = sys.modules.get(self.run.__module__)
        return (getattr(module, "__doc__", None) or "").strip()

    def study(
        self,
        size: Size = "default",
        *,
        reading: str | None = None,
        seeds: int | None = None,
        data: str | Path | None = None,
        out: str | Path | None = None,
        verbose: bool | None = None,
    ) -> Study:
        """Prepare a run; ``experiment.run(experiment.study("tiny"))`` makes it.

        Parameters
        ----------
        size : {"tiny", "default", "paper"}
            How much of the setting is run.
        reading : str, optional
            One of ``readings``; default the first.
        seeds : int, optional
            Repetitions; default by the size, at most two for a tiny one.
        data, out : path-like, optional
            Folder of the user's files; folder for finished cells.
        verbose : bool or None
            A line a cell: True always, None only on a terminal.

        Returns
        -------
        Study

        Raises
        ------
        ValueError
            A size or reading that is not known, or fewer than one seed.
        """
        reading = self.readings[0] if reading is None else reading
        if reading not in self.readings:
            raise ValueError(
                f"reading: {self.name} has {', '.join(self.readings)}, got {reading!r}"
            )
        by_size = {"tiny": min(_FEW, self.seeds), "paper": self.paper_seeds}
        count = by_size.get(size, self.seeds) if seeds is None else seeds
        if count < 1:
            raise ValueError(f"seeds: at least one is expected, got {count}")
        return Study(
            size,
            reading=reading,
            seeds=range(count),
            data=data,
            out=out,
            name=self.name,
            version=self.version,
            verbose=verbose,
        )
