"""A small instance solved exactly, and its dual solution seen as a flow through the network.

Ten nodes in two clusters fit a linear model each (d = 2); two nodes have no data. CVXPY solves the
primal problem and, separately, its dual, a network-flow problem. The script prints both values,
the gap, and an exact certificate, and draws the optimal flow, one panel per coordinate.

What you learn, in the picture:

- A node sends into the network what its own data ask for, -(D^T u)_i = grad L_i(w_i), the number
  beside it. A node without data asks for nothing: all that flows in flows out.
- No edge carries more than its capacity lambda A_e, in norm over both coordinates. Where the flow
  stays below, the ends have equal parameters; that is what makes a cluster.
- Only a saturated edge (red) can join different clusters, and its flow points along the difference
  of their parameters, from the smaller value to the larger one.

Try --lam 0.1: edges inside the clusters become saturated as well, and the clusters break up.
Drawing needs matplotlib: pip install "gtvcvx[plot]".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import gtvcvx as gtv
import verify

FloatArray = NDArray[np.float64]

# Two wheels, each a hub and four nodes around it, and two edges between the wheels.
WHEEL = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1)]
EDGES = [*WHEEL, *((i + 5, j + 5) for i, j in WHEEL), (2, 6), (3, 9)]
WEIGHTS = [1.0] * 16 + [0.5] * 2
TRUE_W = np.repeat([[2.0, 1.0], [-2.0, 3.0]], 5, axis=0)
UNLABELLED = (4, 7)
ROWS, NOISE = 4, 0.3
RTOL = 1e-8

# Where to draw the nodes.
CORNERS = [(0.0, 0.0), (-1.0, 1.0), (1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)]
POSITIONS = np.array(CORNERS + [(x + 3.6, y) for x, y in CORNERS])
SATURATED, BELOW = "#c1121f", "#4a4e69"


def make_problem(lam: float, seed: int) -> gtv.GTVProblem:
    """Four data points of a linear model at each node, none at the unlabelled ones."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((10, ROWS, 2))
    y = np.einsum("nmd,nd->nm", X, TRUE_W) + NOISE * rng.standard_normal((10, ROWS))
    labelled = ~np.isin(np.arange(10), UNLABELLED)
    graph = gtv.EmpiricalGraph(10, EDGES, WEIGHTS)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y, labelled), "l2", lam)


def solve_dual(problem: gtv.GTVProblem) -> tuple[float, FloatArray]:
    """Solve the network-flow problem; return its value and the flow u (m, d)."""
    dual = problem.dual()
    value = dual.cvxpy().solve(solver=cp.CLARABEL)
    return float(value), np.asarray(dual.flow.value)


def draw(
    path: str, problem: gtv.GTVProblem, clusters: NDArray[np.int64], flow: FloatArray, w: FloatArray
) -> None:
    """Write a PNG with one panel for each coordinate of the flow."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        message = 'drawing needs matplotlib: pip install "gtvcvx[plot]"'
        raise SystemExit(message) from error
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    load = np.linalg.norm(flow, axis=1) / problem.capacities
    for k, axes in enumerate(figure.subplots(1, problem.dim)):
        draw_edges(axes, problem, flow[:, k], load > 1 - 1e-6)
        draw_nodes(axes, clusters, -(problem.graph.divergence @ flow[:, k]))
        values = ", ".join(f"{w[clusters == c, k].mean():.2f}" for c in np.unique(clusters))
        axes.set_title(f"coordinate {k + 1}: w of the clusters {values}", fontsize=10)
        axes.set(xlim=(-1.7, 5.3), ylim=(-1.55, 1.55), aspect="equal")
        axes.axis("off")
    figure.suptitle(
        f"Optimal flow for lambda = {problem.lam:g}. Red: saturated edge. Number at a node: what "
        "it sends into the network. Dashed: node without data.",
        fontsize=11,
    )
    figure.savefig(path, dpi=130, format="png")


def draw_edges(
    axes: Any, problem: gtv.GTVProblem, amount: FloatArray, saturated: NDArray[np.bool_]
) -> None:
    """Draw each edge with an arrow in the direction of its flow, as wide as the flow is large."""
    for (head, tail), u, full in zip(problem.graph.edges, amount, saturated, strict=True):
        # A positive u_e leaves the tail and enters the head: s_tail = +u_e, s_head = -u_e.
        ends = POSITIONS[[tail, head] if u > 0 else [head, tail]]
        colour = SATURATED if full else BELOW
        axes.plot(*ends.T, color=colour, linewidth=0.8, alpha=0.5, zorder=1)
        share = abs(u) / problem.capacities.max()
        axes.annotate(
            "",
            xy=ends[1],
            xytext=ends[0],
            arrowprops={
                "arrowstyle": f"simple,head_width={0.25 + 0.9 * share},head_length=0.5,"
                f"tail_width={0.03 + 0.5 * share}",
                "color": colour,
                "shrinkA": 13,
                "shrinkB": 13,
            },
            zorder=2,
        )
        axes.text(
            *(0.5 * ends.sum(axis=0)),
            f"{abs(u):.2f}",
            fontsize=7,
            color=colour,
            ha="center",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
            zorder=3,
        )


def draw_nodes(axes: Any, clusters: NDArray[np.int64], injection: FloatArray) -> None:
    """Draw the nodes in the colours of their clusters, with what they inject."""
    shown = injection.round(2) + 0.0  # no minus before zero
    for i, (x, y) in enumerate(POSITIONS):
        axes.scatter(
            x,
            y,
            s=330,
            color=f"C{clusters[i]}",
            edgecolor="black",
            linestyle="--" if i in UNLABELLED else "-",
            zorder=4,
        )
        axes.text(x, y, str(i), ha="center", va="center", fontsize=9, color="white", zorder=5)
        above = 1 if y >= 0 else -1
        axes.text(x, y + 0.36 * above, f"{shown[i]:+.2f}", fontsize=8, ha="center", va="center")


def main(argv: Sequence[str] | None = None) -> int:
    """Solve, certify, draw; exit status 0 if the solution is certified."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("png", nargs="?", default="exact_small_instance.png", help="PNG to write")
    parser.add_argument("--lam", type=float, default=0.2, help="regularization parameter lambda")
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    args = parser.parse_args(argv)

    problem = make_problem(args.lam, args.seed)
    solution = problem.solve("CLARABEL", rtol=RTOL / 10)
    dual_value, flow = solve_dual(problem)
    certificate = verify.certify(problem, solution.w, flow, rtol=RTOL)
    clusters = solution.clusters()
    print(f"primal value {solution.value:.10f}")
    print(f"dual value   {dual_value:.10f}")
    print(f"gap          {solution.value - dual_value:.1e}, as the solvers say")
    print(f"certificate  {certificate.status}: relative gap {certificate.rel_gap:.1e}, proved")
    for c in np.unique(clusters):
        members = ", ".join(str(i) for i in np.flatnonzero(clusters == c))
        print(f"cluster {c}    w = {solution.w[clusters == c].mean(axis=0).round(4)}: {members}")
    draw(args.png, problem, clusters, flow, solution.w)
    print(f"written      {args.png}")
    return 0 if certificate.status == "CERTIFIED" else 1


if __name__ == "__main__":
    sys.exit(main())
