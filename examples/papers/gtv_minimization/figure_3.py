"""[GTV] Figure 3 (VI-B): error of three penalties on a chain, without noise.

Two clusters, {1, ..., n} and {n+1, ..., 2n}, along a chain whose edge between them has the weight
eps, from 0 to 1.2, and all others weight 1. A random part rho of the nodes is accessible. 2,000
iterations, lambda 0.1 for Algorithm 1 and 0.05 for MOCHA, five runs. The axis goes from 1e-10 to 1;
no values are printed. Not given: n, m_i, d and w_bar.
"""

from __future__ import annotations

from gtv_minimization._setting import READINGS, Method, two_paths
from gtv_minimization._sweep import Sweep

from gtvcvx.experiments import Experiment, Outcome, Study

AXIS = (1e-10, 1.0)
METHODS = (Method("l1", 0.1), Method("l2", 0.1), Method("MOCHA", 0.05))
EPS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2)
RHO = {"rho 0.2": 0.2, "rho 0.4": 0.4, "rho 0.6": 0.6}

SETTING = {
    "graph": "given: a chain, its middle edge of weight eps, 0 to 1.2; not given: n = 50",
    "data": "not given: m_i = 5, d = 2, w_bar (2, 2) and (-2, 2)",
    "lambda": "given: 0.1 for l1 and l2, 0.05 for MOCHA",
    "R": "given: 2,000",
    "loss": "given: (38), a mean; a sum in reading 'notebook'",
}


def sweep(study: Study) -> Sweep:
    """Return the axis and the lines for the size of the study."""
    half = study.choose(tiny=10, default=50, paper=50)
    return Sweep(
        "eps",
        study.choose(tiny=(0.0, 1.2), default=EPS[::2], paper=EPS),
        study.choose(tiny={"rho 0.6": 0.6}, default=RHO, paper=RHO),
        METHODS,
        study.choose(tiny=100, default=2_000, paper=2_000),
        lambda eps, rho, seed: two_paths(seed, eps, rho, half=half),
    )


def limit_note(iterations: int) -> str:
    """Say what the speed limit of Algorithm 1 leaves open here."""
    return (
        f"Speed limit: R lambda = {iterations * METHODS[0].lam:g} and ||w_bar|| = 2.83, so that it "
        "does not bind. What takes long are waves along the chain: its length is what an iteration "
        "works against."
    )


def run(study: Study) -> Outcome:
    """Run all and compare with the axis of the figure."""
    swept = sweep(study)
    results = swept.run(study)
    line = "rho 0.6"
    rows = swept.axis_rows(study, results, AXIS)
    rows += [results.place_row(method, line, x) for x in swept.xs[:1] for method in METHODS]
    rows += [*results.apart_rows(line), results.gap_row()]
    given = {"rho": "given: 0.2, 0.4, 0.6", "sigma": "given: 0"}
    notes = [
        limit_note(swept.iterations),
        "Errors below 1e-10 are drawn at the lower end of the axis. Without an edge between the "
        "clusters the optimum is exact, and the runs' errors there are those of 2,000 iterations.",
    ]
    return Outcome(rows, results.panels(AXIS), SETTING | given, notes, "error")


EXPERIMENT = Experiment(
    "gtv-figure-3",
    "GTV",
    "Figure 3",
    "error on a chain against the weight of its middle edge",
    run,
    readings=READINGS,
    seeds=3,
    paper_seeds=5,
)
