"""Figure 1 of [PGFL]: all clients take part, and nobody adds noise.

The paper draws the NMSD (53) of the clients' vectors against rounds for PGFL without and with
inter-cluster learning (tau = 0 and .4), for servers without links, and for one model of all
clients, which it calls FedAvg. It states that learning between clusters helps, that servers alone
are poor, and that one model is worse than a model a cluster. The noise of the targets, on which two
of the three depend, is not given. Beside: the certified optimum of the pooled problem of each
cluster, and `PGFLExact`, which reaches it.
"""

from __future__ import annotations

from pgfl._claims import value
from pgfl._compared import MAIN, compared
from pgfl._runs import runs_of
from pgfl._setting import stated
from pgfl._systems import EXACT, setting_of

from gtvcvx.experiments import Experiment, Outcome, Study


def run(study: Study) -> Outcome:
    """Run the four methods, and the exact one."""
    methods = compared(study)
    setting = setting_of(study, noise=MAIN)
    exact = runs_of(study, setting, EXACT)
    say = "ours: the same messages, which reach the pooled optimum of each cluster"
    return Outcome(
        rows=[
            *methods.claims(),
            *methods.value_rows(),
            value(f"{EXACT.label}, noise 1", exact, say=say),
        ],
        panels=methods.panels(exact),
        setting=stated(setting),
        measure="NMSD (53) after the last round; where two methods are compared, their ratio",
    )


EXPERIMENT = Experiment(
    "pgfl-figure-1",
    "PGFL",
    "Figure 1",
    "NMSD with all clients, without privacy noise",
    run,
    seeds=2,
    paper_seeds=10,
    remark=(
        "Whether inter-cluster learning helps, and whether a model a cluster does, depends on the "
        "noise of the targets: it belongs beside the figure, and so does the pooled optimum."
    ),
)
