"""Finds the experiments: every module of a folder beside this file that defines EXPERIMENT."""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from pathlib import Path

from gtvcvx.experiments import Experiment

HERE = Path(__file__).parent
_PAPERS = ("GTV", "nLasso", "FedADMM", "PGFL", "Notes")


def files() -> list[Path]:
    """Modules that may define an experiment; those that begin with an underscore are shared."""
    return sorted(path for path in HERE.glob("*/*.py") if not path.name.startswith("_"))


def experiments() -> dict[str, Experiment]:
    """Experiments by name, in the order of papers, then of their items."""
    found: dict[str, Experiment] = {}
    for path in files():
        module = import_module(f"{path.parent.name}.{path.stem}")
        experiment = getattr(module, "EXPERIMENT", None)
        if experiment is None:
            continue
        if experiment.name in found:
            raise ValueError(f"{path}: {experiment.name!r} is defined twice")
        found[experiment.name] = experiment
    return dict(sorted(found.items(), key=lambda item: _place(item[1])))


def source(experiment: Experiment) -> Path:
    """File of an experiment, relative to this folder."""
    return Path(*experiment.run.__module__.split(".")).with_suffix(".py")


def chosen(names: list[str], known: dict[str, Experiment]) -> list[Experiment]:
    """Experiments of these names; one that is not known is an error that names the nearest."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
            hint = f"the nearest is {near[0]!r}, " if near else ""
            raise ValueError(f"no experiment is called {name!r}: {hint}--list shows all")
    return [known[name] for name in names]


def _place(experiment: Experiment) -> tuple[int, bool, bool, list[tuple[int, str]]]:
    """Sort by paper; tables, figures, others; then by name with numbers as numbers."""
    parts = re.split(r"(\d+)", experiment.name)
    natural = [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    kinds = [kind not in experiment.name for kind in ("table", "figure")]
    return _PAPERS.index(experiment.paper), kinds[0], kinds[1], natural
