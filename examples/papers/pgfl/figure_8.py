"""Figure 8 of [PGFL]: three clusters that tell triplets of digits apart.

{123|678}, {123|789} and {123|689}, 6 to 12 samples a client, scheduling and privacy noise. The
paper draws the accuracy for tau = 0 and .4 and prints no values; what is tested is its general
claim, that clusters with similar tasks gain from each other.
"""

from __future__ import annotations

from pgfl._accuracies import of_tasks
from pgfl._digits import TRIPLETS

from gtvcvx.experiments import Experiment, Outcome, Study


def run(study: Study) -> Outcome:
    """Run the triplets."""
    return of_tasks(study, TRIPLETS)


EXPERIMENT = Experiment(
    "pgfl-figure-8",
    "PGFL",
    "Figure 8",
    "Accuracy for triplets of digits",
    run,
    seeds=3,
    paper_seeds=10,
    data="8x8 digits",
    remark="MNIST has twelve times as many pixels as the 8x8 digits, and may be another matter.",
)
