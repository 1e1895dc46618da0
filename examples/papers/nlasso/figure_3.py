"""[nLasso] Figure 3: error (24) when more and more edges join the two clusters.

p_in stays at 1/2 and p_out varies; its values, lambda and the number of iterations are not at hand.
Ours: p_out from 1e-3 to 0.4, and the lambda and the 500 iterations of Table 1. Beside Algorithm 1
stand the certified optima for three lambda, and Algorithm 1 after many more iterations.

What to expect: 15 nodes with known labels hold a cluster in place, by at most as much flow as their
edges can carry. Once the edges between the clusters can carry more, nothing does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from nlasso._limits import largest_error, least_error
from nlasso._setting import (
    GIVEN,
    ITERATIONS,
    LAM,
    READINGS,
    Array,
    Network,
    algorithm1,
    draw,
    optimum,
)
from numpy.typing import ArrayLike

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

P_OUTS = (1e-3, 3e-3, 0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.2, 0.4)
LAMS = (1e-1, 1e-2, LAM)
# The error grows where it is at least ten times as large at the last p_out as at the first, and has
# a rank correlation with p_out of at least this: single draws jump at a p_out of their own, and
# beyond it errors are level, which disturbs neighbours but no trend.
GROWTH, CORRELATION = 10.0, 0.7


def grows(means: ArrayLike, largest_growth: float = np.inf) -> Verdict:
    """REPRODUCED where the error grows tenfold from first to last, with rank correlation 0.7.

    CANNOT HOLD where a proved bound leaves it no tenfold growth.
    """
    errors = np.asarray(means, dtype=float)
    ranks = np.argsort(np.argsort(errors))
    trend = np.corrcoef(ranks, np.arange(len(errors)))[0, 1]
    if errors[-1] >= GROWTH * errors[0] and trend >= CORRELATION:
        return Verdict.REPRODUCED
    return Verdict.CANNOT_HOLD if largest_growth < GROWTH else Verdict.NOT_REPRODUCED


def crossing(net: Network) -> float:
    """Divide the edges between the clusters by those at the known nodes of one, the fewer."""
    head, tail = net.graph.edges.T
    cluster = np.arange(net.graph.n_nodes) >= net.graph.n_nodes // 2
    known = net.data.labelled
    holding = [
        np.sum((known & (cluster == side))[head] | (known & (cluster == side))[tail])
        for side in (False, True)
    ]
    return float(np.sum(cluster[head] != cluster[tail]) / max(min(holding), 1))


def cell(seed: int, p_out: float, last: int, nodes: int, summed: bool) -> dict[str, ArrayLike]:
    """Compute errors of one draw after 500 and after many iterations, and at the optima."""
    net = draw(seed, p_out, nodes=nodes, summed=summed)
    problem = net.problem(LAM)
    points = algorithm1(problem, [ITERATIONS, last])
    problems = [problem.with_lam(lam) for lam in LAMS]
    solved = [optimum(one) for one in problems]
    last_point = p_out == P_OUTS[-1]  # of the curves, and the only one whose gap is shown

    def gaps(of: gtv.GTVProblem, w: Array, solution: gtv.Solution) -> float:
        return proved_gap(of, w, solution=solution) if last_point else np.nan

    return {
        "printed": net.error(points[ITERATIONS]),
        "long": net.error(points[last]),
        "optima": [net.error(one.w) for one in solved],
        "gaps": [gaps(p, one.w, one) for p, one in zip(problems, solved, strict=True)],
        "printed gap": gaps(problem, points[ITERATIONS], solved[-1]),
        "long gap": gaps(problem, points[last], solved[-1]),
        "bounds": [least_error(net, LAM, ITERATIONS), largest_error(net, LAM, ITERATIONS)],
        "crossing": crossing(net),
    }


def panels(of: Callable[[str], Array], p_outs: Sequence[float], last: int) -> list[Panel]:
    """Draw errors against p_out; ``of`` gives an entry of all cells, (seeds, p_out, ...)."""
    optima, gaps = of("optima"), of("gaps")[:, -1]
    solved = [
        Curve(f"solved, lambda {lam:g}", p_outs, optima[..., k], gap_text(gaps[:, k]))
        for k, lam in enumerate(LAMS)
    ]
    runs = [
        Curve(f"{count:,} iterations", p_outs, of(name), gap_text(of(f"{name} gap")[:, -1]))
        for name, count in (("printed", ITERATIONS), ("long", last))
    ]
    best = Curve("optimum", p_outs, optima[..., -1], solved[-1].final, kind="optimum")
    limit = of("bounds")[..., 0]
    limits = Curve(f"speed limit, {ITERATIONS} iterations", p_outs, limit, "proved", kind="limit")
    axes = ("p_out", "error (24)")
    return [
        Panel("The solution", *axes, solved, xlog=True, ylog=True),
        Panel(f"Algorithm 1, lambda {LAM:g}", *axes, [*runs, best, limits], xlog=True, ylog=True),
    ]


def rows(of: Callable[[str], Array], p_outs: Sequence[float]) -> list[Row]:
    """Say whether the error grows, in the solution and in the printed run, and where it jumps."""
    solved = of("optima")[..., -1]
    ratio = solved[:, -1] / solved[:, 0]
    bounds = of("bounds")
    room = float(np.max(bounds[:, -1, 1] / bounds[:, 0, 0]))
    printed = of("printed")
    statement = "the error grows with p_out (curves)"
    return [
        Row(
            f"growth of (24), solved, lambda {LAM:g}",
            statement,
            ratio,
            ratio,
            grows(solved.mean(axis=0)),
            f"from p_out {p_outs[0]:g} to {p_outs[-1]:g}",
        ),
        Row(
            f"growth of (24), Algorithm 1, {ITERATIONS} iterations",
            statement,
            printed[:, -1] / printed[:, 0],
            ratio,
            grows(printed.mean(axis=0), room),
            f"the speed limit leaves the error no more than a factor of {room:.2g} from first to "
            f"last",
        ),
        Row(
            "largest p_out that the solution stands",
            "not given",
            last_good(solved, p_outs),
            last_good(solved, p_outs),
            None,
            "the last with (24) below 1, that is an eighth of the error of w = 0",
        ),
        Row(
            "p_out where clusters hold less than joins them",
            "not given",
            first_heavy(of("crossing"), p_outs),
            None,
            None,
            "edges between the clusters outnumber those at the known nodes of one: a count",
        ),
    ]


def last_good(errors: Array, p_outs: Sequence[float]) -> Array:
    """Find for each seed the largest p_out up to which all errors are below 1; 0 for none."""
    good = np.cumprod(errors < 1.0, axis=1).sum(axis=1)
    return np.array([0.0, *p_outs])[good]


def first_heavy(shares: Array, p_outs: Sequence[float]) -> Array:
    """Find for each seed the first p_out with a share above 1; infinity for none."""
    light = np.cumprod(shares <= 1.0, axis=1).sum(axis=1)
    return np.array([*p_outs, np.inf])[light]


def run(study: Study) -> Outcome:
    """Draw networks for each p_out, and compare."""
    # A run for tests has one of each kind: separate, torn, one.
    p_outs = study.choose(tiny=(P_OUTS[0], 0.05, P_OUTS[-1]), default=P_OUTS, paper=P_OUTS)
    nodes = study.choose(tiny=60, default=300, paper=300)
    last = study.choose(tiny=600, default=1_000, paper=2_000)
    summed = study.reading == "notebook"
    cells = [
        [
            study.cell(
                f"p_out={p_out} seed={seed} last={last}",
                lambda seed=seed, p_out=p_out: cell(seed, p_out, last, nodes, summed),
            )
            for p_out in p_outs
        ]
        for seed in study.seeds
    ]

    def of(name: str) -> Array:
        return np.array([[found[name] for found in line] for line in cells])

    return Outcome(
        rows=rows(of, p_outs),
        panels=panels(of, p_outs, last),
        setting=GIVEN
        | {
            "p_out": f"not at hand: ours are {p_outs[0]:g} to {p_outs[-1]:g}",
            "lambda": f"not at hand: ours is that of Table 1, {LAM:g}; optima for three",
            "iterations": f"not at hand: ours are those of Table 1, {ITERATIONS}, and {last:,}",
            "runs": f"not given: ours are {len(study.seeds)}",
        },
        measure="growth of the error (24)",
    )


EXPERIMENT = Experiment(
    name="nlasso-figure-3",
    paper="nLasso",
    item="Figure 3",
    title="Error of network Lasso when more edges join the clusters",
    run=run,
    readings=READINGS,
    seeds=3,
    paper_seeds=5,
)
