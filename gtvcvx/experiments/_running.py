"""Runs an experiment from end to end: cells, outcome, files."""

from __future__ import annotations

import time
from pathlib import Path

from gtvcvx.experiments._drawing import save_picture
from gtvcvx.experiments._experiment import Experiment
from gtvcvx.experiments._record import Record
from gtvcvx.experiments._study import Size
from gtvcvx.experiments._table import write_csv


def run_experiment(
    experiment: Experiment,
    size: Size = "default",
    *,
    reading: str | None = None,
    seeds: int | None = None,
    data: str | Path | None = None,
    out: str | Path | None = None,
    verbose: bool | None = None,
) -> Record:
    """Run an experiment, taking up the cells that an earlier run has left.

    Parameters
    ----------
    experiment : Experiment
    size : {"tiny", "default", "paper"}
        How much of the setting is run.
    reading : str, optional
        One of the experiment's readings; default the first.
    seeds : int, optional
        Repetitions; default by the size.
    data, out : path-like, optional
        Folder of the user's files; folder for finished cells.
    verbose : bool or None
        A line a cell: True always, None only on a terminal.

    Returns
    -------
    Record
    """
    start = time.process_time()
    study = experiment.study(
        size, reading=reading, seeds=seeds, data=data, out=out, verbose=verbose
    )
    outcome = experiment.run(study)
    # What cells of earlier runs took counts, and what these cells took is not counted twice.
    outside = time.process_time() - start - study.computed_seconds
    return Record.of(experiment, study, outcome, study.cpu_seconds + outside)


def write_record(record: Record, folder: str | Path, stem: str | None = None) -> list[Path]:
    """Write a run as JSON, CSV and SVG, each whole or not at all.

    Parameters
    ----------
    record : Record
    folder : path-like
        Made where it is not there.
    stem : str, optional
        Of the file names; default the name of the experiment.

    Returns
    -------
    list of pathlib.Path
        The three files.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{stem or record.name}{ending}" for ending in (".json", ".csv", ".svg")]
    record.save(paths[0])
    write_csv(record, paths[1])
    save_picture(record, paths[2])
    return paths
