"""Figure 2 of [PGFL]: each server draws 3 of its 15 clients a round.

The curves of Figure 1 again. The paper states the same of them, and that FedAvg gains from
scheduling. What a server does without clients of a cluster, a third of the cases, is not given.
"""

from __future__ import annotations

from pgfl._claims import smaller
from pgfl._compared import MAIN, compared
from pgfl._runs import runs_of
from pgfl._setting import stated
from pgfl._systems import ONE_MODEL, SCHEDULED, setting_of

from gtvcvx.experiments import Experiment, Outcome, Study


def run(study: Study) -> Outcome:
    """Run the four methods with scheduled clients, and FedAvg with all."""
    methods = compared(study, scheduled=SCHEDULED)
    setting = setting_of(study, noise=MAIN)
    everybody = runs_of(study, setting, ONE_MODEL)
    gain = smaller(
        "FedAvg: scheduled against all clients",
        "FedAvg gains from scheduling",
        methods.one,
        everybody,
    )
    return Outcome(
        rows=[*methods.claims(), gain, *methods.value_rows()],
        panels=methods.panels(),
        setting=stated(setting, scheduled=True),
        measure="NMSD (53) after the last round; where two methods are compared, their ratio",
    )


EXPERIMENT = Experiment(
    "pgfl-figure-2",
    "PGFL",
    "Figure 2",
    "NMSD with 3 of 15 clients a round",
    run,
    seeds=4,
    paper_seeds=10,
    remark=(
        "One model of all clients does not gain from scheduling. The noise of the targets, and the "
        "rule for servers without clients of a cluster, belong beside the figure."
    ),
)
