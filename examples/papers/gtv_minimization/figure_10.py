"""[GTV] Figure 10 (IX-B1): error of three penalties against p_out, with noise.

As Figure 9, with 60% of the nodes accessible, noise sigma 0.01, 0.1 and 1, and 2,000 iterations.
The axis of the figure is not at hand; no values are printed.
"""

from __future__ import annotations

from gtv_minimization._setting import READINGS, ROWS, two_blocks
from gtv_minimization._sweep import Sweep, oracle_error
from gtv_minimization.figure_9 import METHODS, P_OUT, SETTING, limit_note

from gtvcvx.experiments import Experiment, Outcome, Study

RHO = 0.6
SIGMA = {"sigma 0.01": 0.01, "sigma 0.1": 0.1, "sigma 1": 1.0}
DRAWN = (1e-6, 1.0)  # our axis


def sweep(study: Study) -> Sweep:
    """Return the axis and the lines for the size of the study."""
    half = study.choose(tiny=10, default=40, paper=100)
    return Sweep(
        "p_out",
        study.choose(tiny=(0.0, 0.4), default=(0.0, 0.01, 0.1, 0.6), paper=P_OUT),
        study.choose(tiny={"sigma 0.1": 0.1}, default=SIGMA, paper=SIGMA),
        METHODS,
        study.choose(tiny=100, default=1_000, paper=2_000),
        lambda p_out, sigma, seed: two_blocks(seed, p_out, RHO, sigma, (half, half)),
    )


def run(study: Study) -> Outcome:
    """Run all; beside the errors without boundary stands what knowing the clusters would give."""
    swept = sweep(study)
    results = swept.run(study)
    half = study.choose(tiny=10, default=40, paper=100)
    rows = [results.noise_row(method) for method in METHODS]
    for line, sigma in swept.lines.items():
        known = oracle_error(sigma, round(RHO * half) * ROWS)
        remark = f"least squares on all data of a cluster has {known:.1e} on average"
        rows += [results.place_row(method, line, 0.0, remark) for method in METHODS]
        rows += results.apart_rows(line)
    rows.append(results.gap_row())
    given = {"R": "given: 2,000", "rho": "given: 0.6", "sigma": "given: 0.01, 0.1, 1"}
    notes = [limit_note(swept.iterations)]
    return Outcome(rows, results.panels(DRAWN), SETTING | given, notes, "error")


EXPERIMENT = Experiment(
    "gtv-figure-10",
    "GTV",
    "Figure 10",
    "error against p_out, with noise",
    run,
    readings=READINGS,
    seeds=2,
    paper_seeds=5,
)
