"""The experiments of examples/papers, for tests: found by name, run at the size for tests."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "papers"
if str(FOLDER) not in sys.path:
    sys.path.append(str(FOLDER))
import _catalogue  # noqa: E402


@cache
def experiments():
    """All experiments by name."""
    return _catalogue.experiments()


def module_of(name):
    """The module of an experiment, to call its functions."""
    return sys.modules[experiments()[name].run.__module__]


@cache
def tiny(name, reading=None, seeds=None):
    """The outcome of a run for tests."""
    experiment = experiments()[name]
    return experiment.run(experiment.study("tiny", reading=reading, seeds=seeds))
