"""[GTV] Figure 11 (IX-B2): clusters of unequal size, and models that differ within a cluster.

A cluster of 50 nodes and one of 50, 100, 150 or 200; 40% of the nodes accessible, no noise. The
second picture gives every node a model of its own, w_bar + 1e-3 eps_i / ||w_bar||. MOCHA is beside
Algorithm 1. The axis goes from 1e-6 to 1; no values are printed. Not given: p_out, lambda, R, and
the distribution of eps_i.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from gtv_minimization._setting import READINGS, W_BAR, Instance, Method, two_blocks
from gtv_minimization._sweep import Sweep

from gtvcvx.experiments import Experiment, Outcome, Study

AXIS = (1e-6, 1.0)
LAM = 1e-2
METHODS = (Method("l1", LAM), Method("l2", LAM), Method("MOCHA", LAM))
FIRST, SECOND = 50, (50, 100, 150, 200)
LINES = {"equal models": 0.0, "perturbed models": 1e-3}
P_OUT, RHO = 0.01, 0.4

SETTING = {
    "graph": "given: |C_1| = 50, |C_2| = 50, 100, 150, 200; not given: p_in 0.5, p_out 0.01",
    "data": "given: rho 0.4, sigma 0; m_i = 5, d = 2, w_bar (2, 2) and (-2, 2) as in Figure 9",
    "perturbation": "given: 1e-3 eps_i / ||w_bar||; not given: eps_i is standard normal",
    "lambda": "not given: 1e-2 as in the section",
    "R": "not given: ours is 2,000",
    "loss": "given: (38), a mean; a sum in reading 'notebook'",
}


def draw(second: float, scale: float, seed: int, unit: int) -> Instance:
    """Draw an instance; ``unit`` nodes stand for 50."""
    sizes = (unit, round(unit * second / FIRST))
    plain = two_blocks(seed, P_OUT, RHO, sizes=sizes)
    if not scale:
        return plain
    eps = np.random.default_rng([seed, 11, *sizes]).standard_normal(plain.true_w.shape)
    true_w = plain.true_w + scale * eps / np.linalg.norm(W_BAR[0])
    y = np.einsum("nmd,nd->nm", plain.data.X, true_w)
    return replace(plain, data=plain.data._replace(y=y), true_w=true_w)


def sweep(study: Study) -> Sweep:
    """Return the axis and the lines for the size of the study."""
    unit = study.choose(tiny=5, default=50, paper=50)
    return Sweep(
        "|C_2|",
        study.choose(tiny=(50, 100), default=(50, 200), paper=SECOND),
        LINES,
        METHODS,
        study.choose(tiny=100, default=1_000, paper=2_000),
        lambda second, scale, seed: draw(second, scale, seed, unit),
    )


def run(study: Study) -> Outcome:
    """Run all and compare with the axis of the figure."""
    swept = sweep(study)
    results = swept.run(study)
    rows = swept.axis_rows(study, results, AXIS)
    for line in swept.lines:
        for method in METHODS:
            rows += [results.place_row(method, line, x) for x in (swept.xs[0], swept.xs[-1])]
    rows.append(results.gap_row())
    perturbation = W_BAR.shape[1] * (max(LINES.values()) / np.linalg.norm(W_BAR[0])) ** 2
    notes = [
        f"Speed limit: R lambda = {swept.iterations * LAM:g} and ||w_bar|| = 2.83, so that it does "
        "not bind.",
        f"The perturbation is worth d (1e-3 / ||w_bar||)^2 = {perturbation:.1e} of (39).",
    ]
    return Outcome(rows, results.panels(AXIS), SETTING, notes, "error")


EXPERIMENT = Experiment(
    "gtv-figure-11",
    "GTV",
    "Figure 11",
    "clusters of unequal size, and models that differ within a cluster",
    run,
    readings=READINGS,
    seeds=2,
    paper_seeds=5,
)
