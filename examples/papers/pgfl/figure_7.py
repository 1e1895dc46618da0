"""Figure 7 of [PGFL]: three clusters that tell pairs of digits apart, from very few images.

{1|8}, {1|9} and {7|8}, 2 to 4 samples a client, scheduling and privacy noise. The paper draws the
accuracy for tau = 0 and .4 and prints no values; what is tested is its general claim, that clusters
with similar tasks gain from each other.
"""

from __future__ import annotations

from pgfl._accuracies import of_tasks
from pgfl._digits import PAIRS

from gtvcvx.experiments import Experiment, Outcome, Study


def run(study: Study) -> Outcome:
    """Run the pairs."""
    return of_tasks(study, PAIRS)


EXPERIMENT = Experiment(
    "pgfl-figure-7",
    "PGFL",
    "Figure 7",
    "Accuracy for pairs of digits",
    run,
    seeds=3,
    paper_seeds=10,
    data="8x8 digits",
    remark=(
        "(54) prints log l for l, and divides by D_k a second time. MNIST has twelve times as many "
        "pixels as the 8x8 digits, and may be another matter."
    ),
)
