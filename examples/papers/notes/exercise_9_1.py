"""FedRelax: the update of a client is a proximal operator, and which problem its limit solves.

In FedRelax of [Notes] a client minimizes its own loss plus the weighted squared distances from the
last vectors of its neighbours. Completing the square, that is the proximal operator of the loss

    w_i <- prox_(L_i, tau)(weighted mean of the w_j),  tau = 1/(2 lam deg_i),

deg_i being the sum of the weights of its edges: exercise 9.1. The printed updates (53), (54) have
lam/2 where minimizing (51) block by block has lam. The network and its data are not given.
"""

from __future__ import annotations

import numpy as np
from notes._network import SETTING, draw

import gtvcvx as gtv
from gtvcvx import federated as fed
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

LAM = 0.05
# Two ways to compute a step agree to rounding; the limit is reached to this distance.
EQUAL, REACHED = 1e-10, 1e-6
# Gap that is claimed of the limits.
RTOL = 1e-9


def network(seed: int, lam: float) -> gtv.GTVProblem:
    """(51) with lam: the squared penalty, which has a half, with 2 lam."""
    graph, X, y = draw(seed)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), "squared", 2.0 * lam)


def by_prox(problem: gtv.GTVProblem, lam: float, rounds: int) -> np.ndarray:
    """Run FedRelax from zero by proximal operators, for each client in turn."""
    graph = problem.graph
    adjacency = np.zeros((graph.n_nodes, graph.n_nodes))
    adjacency[tuple(graph.edges.T)] = graph.weights
    adjacency += adjacency.T
    degrees = adjacency.sum(axis=1)
    w = np.zeros((graph.n_nodes, problem.dim))
    points = [w]
    for _ in range(rounds):
        means = adjacency @ w / degrees[:, None]
        w = problem.losses.prox(means, 1.0 / (2.0 * lam * degrees))
        points.append(w)
    return np.array(points)


def one_draw(seed: int, rounds: int) -> dict[str, np.ndarray]:
    """Distances from the certified optimum after each round, for lam and lam/2 in the update."""
    problem, halved = network(seed, LAM), network(seed, LAM / 2.0)
    best, other = problem.solve(rtol=1e-12), halved.solve(rtol=1e-12)
    points, printed = by_prox(problem, LAM, rounds), by_prox(problem, LAM / 2.0, rounds)
    program = fed.simulate(fed.FedRelax(lam=LAM), fed.Network.from_problem(problem), rounds=rounds)
    return {
        "step": np.abs(program.w - points[-1]).max(),
        "distance": np.abs(points - best.w).max(axis=(1, 2)),
        "printed": np.abs(printed - best.w).max(axis=(1, 2)),
        "halved": np.abs(printed[-1] - other.w).max(),
        "gap": proved_gap(problem, points[-1], RTOL, solution=best),
        "gap_printed": proved_gap(problem, printed[-1], RTOL, solution=best),
    }


def same_step(difference: np.ndarray) -> Verdict:
    """REPRODUCED where programs that send messages and proximal operators agree to 1e-10."""
    return Verdict.REPRODUCED if np.max(difference) <= EQUAL else Verdict.NOT_REPRODUCED


def limit(printed: np.ndarray, ours: np.ndarray) -> Verdict:
    """Judge "the update reaches the solution of (51)" by distances from it, to 1e-6.

    REPRODUCED if the printed update reaches it; under another reading if the one with lam does.
    """
    if np.max(printed) <= REACHED:
        return Verdict.REPRODUCED
    return Verdict.OTHER_READING if np.max(ours) <= REACHED else Verdict.NOT_REPRODUCED


def run(study: Study) -> Outcome:
    """Compare steps and limits."""
    rounds = study.choose(tiny=60, default=120, paper=200)
    cells = [
        study.cell(f"seed={seed}, rounds={rounds}", lambda seed=seed: one_draw(seed, rounds))
        for seed in study.seeds
    ]
    found = {name: np.array([cell[name] for cell in cells]) for name in cells[0]}
    zero = np.zeros(len(cells))
    last, last_printed = found["distance"][:, -1], found["printed"][:, -1]
    rows = [
        Row(
            "update of a client is a proximal operator",
            "to be shown",
            found["step"],
            zero,
            same_step(found["step"]),
            "largest difference of a coordinate between the run of clients that send messages and "
            "proximal operators, after the last round",
        ),
        Row(
            "(53), (54) converge to the solution of (51)",
            "limit of the printed update",
            last_printed,
            zero,
            limit(last_printed, last),
            f"with lam/2 as printed the limit is {found['halved'].max():.0e} from the solution for "
            f"lam/2; with lam it is {last.max():.0e} from that of (51)",
        ),
    ]
    x = np.arange(rounds + 1)
    curves = [
        Curve("update with lam", x, found["distance"], gap_text(found["gap"], RTOL)),
        Curve("update with lam/2, as printed", x, found["printed"],
              gap_text(found["gap_printed"], RTOL)),
    ]  # fmt: skip
    panel = Panel(
        "FedRelax on a network of 20 clients",
        "rounds",
        "largest distance of a coordinate from the optimum of (51)",
        curves,
        ylog=True,
    )
    setting = SETTING | {"lambda": f"not given: ours is {LAM}", "start": "not given: ours is zero"}
    return Outcome(rows, [panel], setting, measure="largest difference of a coordinate of w")


EXPERIMENT = Experiment(
    name="notes-exercise-9-1",
    paper="Notes",
    item="Exercise 9.1",
    title="FedRelax by proximal operators",
    run=run,
    seeds=5,
    paper_seeds=5,
    remark="(53) and (54) need lam where they have lam/2, or (51) needs lam/2.",
)
