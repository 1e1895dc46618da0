"""[GTV] Figure 7: the comparison of Figure 6 with five clusters, {0, 1} to {8, 9}, and 100 nodes.

Without pFedMe, which "could" handle such clusters, as the text has it; "could not" is meant.
"""

from __future__ import annotations

from gtv_minimization._digits import Method, curves_of
from gtv_minimization.figure_6 import methods, outcome

from gtvcvx.experiments import Experiment, Outcome, Study

CLUSTERS = 5


def compared() -> dict[str, Method]:
    """Name the methods of Figure 7 and Table II."""
    return {name: method for name, method in methods().items() if name != "pFedMe"}


def run(study: Study) -> Outcome:
    """Train by all methods."""
    return outcome(study, *curves_of(study, CLUSTERS, compared()))


EXPERIMENT = Experiment(
    name="gtv-figure-7",
    paper="GTV",
    item="Figure 7",
    title="Digits: Algorithm 1, IFCA and a direct optimizer on five clusters",
    run=run,
    seeds=2,
    paper_seeds=3,
    data="8x8 digits (scikit-learn), or a user's MNIST",
)
