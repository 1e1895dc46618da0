"""Ridge regression is least squares on augmented data.

(14) of [Notes] adds (lam/2) ||w - c||^2 to the mean squared error of m points; c = 0 is ridge
regression. Exercise 4.1 asks for a data set on which ordinary least squares gives the same w: d
more rows sqrt(m lam/2) e_j with the labels sqrt(m lam/2) c_j, since

    (1/m) ||y - X w||^2 + (lam/2) ||w - c||^2
        = (1/m) (||y - X w||^2 + ||sqrt(m lam/2) (c - w)||^2).

No data are given. Here scikit-learn's `LinearRegression` is fitted to the augmented rows of random
data, and compared with the proximal operator of the loss at c with the step 1/lam: the update of a
node in Algorithm 1 of [GTV] is a problem of this kind.
"""

from __future__ import annotations

import numpy as np
from notes._augmented import augmented, least_squares

import gtvcvx as gtv
from gtvcvx.experiments import (
    Curve,
    Experiment,
    Outcome,
    Panel,
    Row,
    Study,
    Verdict,
    gap_text,
    proved_gap,
)

LAMS = np.geomspace(1e-3, 1e3, 13)
POINTS, FEATURES = 8, 5
# Two ways to solve five equations agree to rounding.
EQUAL = 1e-10
# Differences of nothing at all have no logarithm.
FLOOR = 1e-17


def ridge_problem(X: np.ndarray, y: np.ndarray, lam: float) -> gtv.GTVProblem:
    """(14) with c = 0 as a problem of one node, to be certified."""
    loss = gtv.SumLoss([gtv.SquaredLoss(X, y), gtv.Ridge(np.full(X.shape[1], lam))])
    return gtv.GTVProblem(gtv.EmpiricalGraph(1, np.empty((0, 2), int)), [loss])


def one_draw(seed: int) -> dict[str, np.ndarray]:
    """Differences for each lambda, and what is proved of the fit to the augmented rows."""
    rng = np.random.default_rng([seed, 41])
    X = rng.standard_normal((POINTS, FEATURES))
    y = X @ rng.standard_normal(FEATURES) + rng.standard_normal(POINTS)
    c = rng.standard_normal(FEATURES)
    difference, gaps = [], []
    for lam in LAMS:
        fitted = least_squares(*augmented(X, y, lam, c))
        difference.append(np.abs(fitted - gtv.SquaredLoss(X, y).prox(c, 1.0 / lam)).max())
        ridge = least_squares(*augmented(X, y, lam, np.zeros(FEATURES)))
        gaps.append(proved_gap(ridge_problem(X, y, lam), ridge[None], 1e-9))
    return {"difference": np.array(difference), "gap": np.array(gaps)}


def verdict(difference: np.ndarray) -> Verdict:
    """REPRODUCED where both ways agree to 1e-10 for every seed and lambda."""
    return Verdict.REPRODUCED if np.max(difference) <= EQUAL else Verdict.NOT_REPRODUCED


def run(study: Study) -> Outcome:
    """Compare both ways over six powers of ten of lambda."""
    cells = [study.cell(f"seed={seed}", lambda seed=seed: one_draw(seed)) for seed in study.seeds]
    difference = np.array([cell["difference"] for cell in cells])
    gaps = np.array([cell["gap"] for cell in cells])
    row = Row(
        name="least squares on augmented rows minimizes (14)",
        printed="to be shown",
        ours=difference.max(axis=1),
        optimum=np.zeros(len(cells)),
        verdict=verdict(difference),
        reason="largest difference of a coordinate from the proximal operator, over all lambda",
    )
    curve = Curve("augmented rows", LAMS, np.maximum(difference, FLOOR), gap_text(gaps, 1e-9))
    panel = Panel(
        "least squares on augmented rows against the proximal operator",
        "lambda",
        "largest difference of a coordinate of w",
        [curve],
        xlog=True,
        ylog=True,
    )
    setting = {
        "m, d": f"not given: ours are {POINTS} points of {FEATURES} features",
        "x, w, c, noise": "not given: ours are standard normal",
        "lambda": "not given: ours are 13 values from 0.001 to 1000",
    }
    measure = "largest difference of a coordinate of w"
    return Outcome([row], [panel], setting, measure=measure)


EXPERIMENT = Experiment(
    name="notes-exercise-4-1",
    paper="Notes",
    item="Exercise 4.1",
    title="regularization by additional rows",
    run=run,
    seeds=5,
    paper_seeds=5,
)
