"""[GTV] Figure 4 (VI-B): error of three penalties on a chain, with noise.

As Figure 3, with 60% of the nodes accessible and noise sigma 0.01, 0.1 and 1. The axis goes from
1e-7 to 1; no values are printed.
"""

from __future__ import annotations

from gtv_minimization._setting import READINGS, ROWS, two_paths
from gtv_minimization._sweep import Sweep, oracle_error
from gtv_minimization.figure_3 import EPS, METHODS, SETTING, limit_note

from gtvcvx.experiments import Experiment, Outcome, Study

AXIS = (1e-7, 1.0)
RHO = 0.6
SIGMA = {"sigma 0.01": 0.01, "sigma 0.1": 0.1, "sigma 1": 1.0}


def sweep(study: Study) -> Sweep:
    """Return the axis and the lines for the size of the study."""
    half = study.choose(tiny=10, default=50, paper=50)
    return Sweep(
        "eps",
        study.choose(tiny=(0.0, 1.2), default=EPS[::2], paper=EPS),
        study.choose(tiny={"sigma 0.1": 0.1}, default=SIGMA, paper=SIGMA),
        METHODS,
        study.choose(tiny=100, default=2_000, paper=2_000),
        lambda eps, sigma, seed: two_paths(seed, eps, RHO, sigma, half),
    )


def oracle_note(half: int) -> str:
    """Say what knowing the clusters would give, with so many nodes a cluster."""
    sigma, rows = min(SIGMA.values()), round(RHO * half) * ROWS
    return (
        f"Least squares on all data of each cluster has (39) {oracle_error(sigma, rows):.2g} on "
        f"average for sigma {sigma:g} and n = {half}; n is not given."
    )


def run(study: Study) -> Outcome:
    """Run all and compare with the axis of the figure."""
    swept = sweep(study)
    results = swept.run(study)
    rows = swept.axis_rows(study, results, AXIS) + [results.noise_row(method) for method in METHODS]
    for line in swept.lines:
        rows += [results.place_row(method, line, swept.xs[0]) for method in METHODS]
    rows.append(results.gap_row())
    given = {"rho": "given: 0.6", "sigma": "given: 0.01, 0.1, 1"}
    notes = [limit_note(swept.iterations), *(oracle_note(half) for half in (50, 100))]
    return Outcome(rows, results.panels(AXIS), SETTING | given, notes, "error")


EXPERIMENT = Experiment(
    "gtv-figure-4",
    "GTV",
    "Figure 4",
    "error on a chain against the weight of its middle edge, with noise",
    run,
    readings=READINGS,
    seeds=3,
    paper_seeds=5,
)
