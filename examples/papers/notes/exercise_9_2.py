"""Federated averaging, with scikit-learn's least squares as the step of a client.

Algorithms 3 and 4 of [Notes]: the server sends the mean c of the clients' vectors, and a client
answers with the minimizer of L_i(v) + lam ||v - c||^2. Exercise 9.2 asks for that step by
`LinearRegression.fit`: fit the rows of the client and d more, sqrt(m lam) e_j with the labels
sqrt(m lam) c_j (exercise 4.1 with 2 lam for lam). Network and data are not given.

The rounds minimize sum_i L_i(w_i) + lam sum_i ||w_i - c||^2 in turn over the w_i and over c: a star
whose centre has no data, with the squared penalty. So every lam has a certified optimum, not only
lam to infinity, where it is the fit to all rows at once.
"""

from __future__ import annotations

import numpy as np
from notes._augmented import augmented, least_squares
from notes._network import CLIENTS, FEATURES, SETTING, draw

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.experiments import (
    Curve,
    Experiment,
    Level,
    Outcome,
    Panel,
    Row,
    Study,
    Verdict,
    gap_text,
    proved_gap,
)

LAMS = (0.1, 1.0, 10.0)
# Two ways to compute a step agree to rounding; the limit is reached to this distance.
EQUAL, REACHED = 1e-9, 1e-6
RTOL = 1e-9


def star(X: np.ndarray, y: np.ndarray, lam: float) -> gtv.GTVProblem:
    """Pose the problem that the rounds minimize; the centre is the last node."""
    graph = gtv.EmpiricalGraph(CLIENTS + 1, [[i, CLIENTS] for i in range(CLIENTS)])
    losses = [gtv.SquaredLoss(X[i], y[i]) for i in range(CLIENTS)] + [gtv.ZeroLoss()]
    return gtv.GTVProblem(graph, losses, "squared", 2.0 * lam)


def rounds_of(
    X: np.ndarray, y: np.ndarray, lam: float, rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the server's vectors (rounds + 1, d), and the clients' in the end (n, d)."""
    c = np.zeros(FEATURES)
    means, w = [c], np.zeros((CLIENTS, FEATURES))
    for _ in range(rounds):
        w = np.array([least_squares(*augmented(X[i], y[i], 2 * lam, c)) for i in range(CLIENTS)])
        c = w.mean(axis=0)
        means.append(c)
    return np.array(means), w


def one_draw(seed: int, lam: float, rounds: int) -> dict[str, np.ndarray]:
    """Run by scikit-learn and as programs, and compare with the star's and the pooled optimum."""
    _, X, y = draw(seed)
    problem = star(X, y, lam)
    best = problem.solve(rtol=1e-12)
    means, w = rounds_of(X, y, lam, rounds)
    net = fed.Network.star([gtv.SquaredLoss(X[i], y[i]) for i in range(CLIENTS)])
    program = fed.simulate(fed.FedAvg(lam=lam), net, rounds=rounds)
    pooled = least_squares(X.reshape(-1, FEATURES), y.ravel())
    return {
        "step": np.abs(program.w[:CLIENTS] - w).max(),
        "distance": np.abs(means - best.w[-1]).max(axis=1),
        "pooled": np.abs(best.w[-1] - pooled).max(),
        "gap": proved_gap(problem, np.vstack([w, means[-1]]), RTOL, solution=best),
    }


def same_step(difference: np.ndarray) -> Verdict:
    """REPRODUCED where both ways agree to 1e-9 after the last round, for every seed and lambda."""
    return Verdict.REPRODUCED if np.max(difference) <= EQUAL else Verdict.NOT_REPRODUCED


def limit(distance: np.ndarray) -> Verdict:
    """REPRODUCED where the server reaches the star's optimum to 1e-6 for every seed and lambda."""
    return Verdict.REPRODUCED if np.max(distance) <= REACHED else Verdict.NOT_REPRODUCED


def run(study: Study) -> Outcome:
    """Compare for three values of lambda."""
    # Rounds grow like lam; these suffice for a distance of 1e-6.
    rounds = study.choose(tiny=(8, 8, 8), default=(30, 80, 480), paper=(30, 80, 480))
    found = {
        lam: [
            study.cell(f"lam={lam}, seed={seed}, rounds={count}",
                       lambda seed=seed, lam=lam, count=count: one_draw(seed, lam, count))
            for seed in study.seeds
        ]
        for lam, count in zip(LAMS, rounds, strict=True)
    }  # fmt: skip
    step = np.array([[cell["step"] for cell in cells] for cells in found.values()])
    last = np.array([[cell["distance"][-1] for cell in cells] for cells in found.values()])
    zero = np.zeros(len(study.seeds))
    rows = [
        Row(
            "least squares on augmented rows is the client's step",
            "to be shown",
            step.max(axis=0),
            zero,
            same_step(step),
            "largest difference of a coordinate from the run of programs that send messages, over "
            "all lambda",
        ),
        Row(
            "the rounds converge to the optimum of the star",
            "not given",
            last.max(axis=0),
            zero,
            None,
            f"distance of the server after the last round, over all lambda; {limit(last)} by the "
            "rule of 1e-6",
        ),
    ]
    curves = [
        Curve(f"lambda {lam:g}", np.arange(count + 1), [cell["distance"] for cell in found[lam]],
              gap_text([float(cell["gap"]) for cell in found[lam]], RTOL))
        for lam, count in zip(LAMS, rounds, strict=True)
    ]  # fmt: skip
    levels = [
        Level(f"its optimum to the pooled fit, lambda {lam:g}",
              float(np.mean([cell["pooled"] for cell in found[lam]])))
        for lam in LAMS
    ]  # fmt: skip
    panel = Panel(
        "the server's vector",
        "rounds",
        "largest distance of a coordinate from the star's optimum",
        curves,
        levels,
        ylog=True,
    )
    setting = SETTING | {
        "lambda": f"not given: ours are {', '.join(f'{lam:g}' for lam in LAMS)}",
        "start": "not given: ours is zero",
    }
    notes = ["With every lambda the limit differs from the fit to all rows at once: dotted lines."]
    return Outcome(rows, [panel], setting, notes, "largest difference of a coordinate of w")


EXPERIMENT = Experiment(
    name="notes-exercise-9-2",
    paper="Notes",
    item="Exercise 9.2",
    title="federated averaging by least squares on additional rows",
    run=run,
    seeds=3,
    paper_seeds=5,
)
