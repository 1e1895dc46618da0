"""[GTV] Figure 9 (IX-B1): error of three penalties against p_out, without noise.

Two clusters of 100 nodes, p_in 1/2, p_out from 0 to 0.6, five points a node, lambda 1e-2, 3,000
iterations; 20%, 40% or 60% of the nodes have accessible data. The figure's axis goes from 1e-16 to
1; no values are printed. Which p_out were tried is not given.
"""

from __future__ import annotations

from gtv_minimization._setting import READINGS, Method, two_blocks
from gtv_minimization._sweep import Sweep

from gtvcvx.experiments import Experiment, Outcome, Study

AXIS = (1e-16, 1.0)
LAM = 1e-2
METHODS = (Method("l1", LAM), Method("l2", LAM), Method("MOCHA", LAM))
P_OUT = (0.0, 0.005, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6)
RHO = {"rho 0.2": 0.2, "rho 0.4": 0.4, "rho 0.6": 0.6}

SETTING = {
    "graph": "given: two clusters of 100 nodes, p_in 0.5, A_e = 1",
    "p_out": "given: 0 to 0.6; not given: which values",
    "data": "given: m_i = 5, d = 2, w_bar (2, 2) and (-2, 2)",
    "lambda": "given: 1e-2, for MOCHA as well",
    "loss": "given: (38), a mean; a sum in reading 'notebook'",
}


def sweep(study: Study) -> Sweep:
    """Return the axis and the lines for the size of the study."""
    half = study.choose(tiny=10, default=40, paper=100)
    return Sweep(
        "p_out",
        study.choose(tiny=(0.0, 0.4), default=(0.0, 0.01, 0.1, 0.6), paper=P_OUT),
        study.choose(tiny={"rho 0.4": 0.4}, default=RHO, paper=RHO),
        METHODS,
        study.choose(tiny=100, default=1_000, paper=3_000),
        lambda p_out, rho, seed: two_blocks(seed, p_out, rho, sizes=(half, half)),
    )


def limit_note(iterations: int) -> str:
    """Say what the speed limit of Algorithm 1 leaves open here."""
    return (
        f"Speed limit: from 0 no run takes a node without data beyond R lambda = "
        f"{iterations * LAM:g}. ||w_bar|| is 2.83, so that it does not bind by itself; where many "
        "edges leave a cluster the runs are far slower, see their gaps."
    )


def run(study: Study) -> Outcome:
    """Run all and compare with the axis of the figure."""
    swept = sweep(study)
    results = swept.run(study)
    rows = [
        *swept.axis_rows(study, results, AXIS),
        *results.apart_rows("rho 0.4"),
        results.gap_row(),
    ]
    given = {"R": "given: 3,000", "rho": "given: 0.2, 0.4, 0.6", "sigma": "given: 0"}
    notes = [
        limit_note(swept.iterations),
        "Errors below 1e-16 are drawn at the lower end of the axis.",
        "An optimum can be worse than one model for all: where the edges between clusters win, "
        "nodes without data side with the other cluster.",
    ]
    return Outcome(rows, results.panels(AXIS), SETTING | given, notes, "error")


EXPERIMENT = Experiment(
    "gtv-figure-9",
    "GTV",
    "Figure 9",
    "error against p_out, without noise",
    run,
    readings=READINGS,
    seeds=2,
    paper_seeds=5,
)
