"""Is a partition recovered, is that known in advance, and how conservative is the theorem.

A stochastic block model has planted clusters, and each node has data of its cluster's linear model.
For a range of lambda the script solves GTV minimization and asks, about the planted partition,

- which clusters the solution shows (`Solution.clusters`),
- whether every solution is constant on the planted clusters: the exact test `verify.recovers`,
- whether Theorem 2 says so (`verify.well_connected`): each cluster has a node i0 to which the
  demands of all other nodes can be routed within the cluster, with a margin above 1.

What you learn: the theorem is sufficient, not necessary. With few edges between the clusters it
holds from some lambda on, but that lambda is many times the one from which the exact test holds;
with a few more edges it holds for no lambda at all, although the clusters are recovered all the
same. A set of nodes whose demands do not fit through its cut says where the condition breaks: it
has all demands of a cluster meet in one node. On a star that is how it is, and the theorem exact.
"""

# gallery: -o margins.png

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import gtvcvx as gtv
import verify
from gtvcvx.generators import regression_data, sbm, star

TRUE_W = np.array([[2.0, 2.0], [-2.0, 2.0]])
ROWS, NOISE, LABELLED = 10, 0.1, 1.0
LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0)


def planted_problem(
    size: int, p_in: float, p_out: float, seed: int
) -> tuple[gtv.GTVProblem, NDArray[np.int64]]:
    """Two clusters of ``size`` nodes with linear models of their own; problem and partition."""
    graph = sbm([size, size], p_in, p_out, seed)
    planted = np.repeat([0, 1], size)
    data = regression_data(TRUE_W[planted], ROWS, NOISE, LABELLED, seed)
    losses = gtv.SquaredLoss.stack(data.X, data.y, data.labelled)
    return gtv.GTVProblem(graph, losses, "l2", LAMBDAS[0]), planted


def lambda_table(problem: gtv.GTVProblem, planted: NDArray[np.int64]) -> list[tuple[float, float]]:
    """Print the three answers for every lambda; return slacks and least margins."""
    answers = []
    print(f"  {'lambda':>8}{'found':>7}{'recovered':>11}{'slack':>9}{'Theorem 2':>11}   margins")
    for lam in LAMBDAS:
        at_lam = problem.with_lam(lam)
        found = at_lam.solve(verbose=False).clusters().max() + 1
        exact = verify.recovers(at_lam, planted)
        report = verify.well_connected(at_lam, planted)
        margins = ", ".join(f"{cluster.margin:.3g}" for cluster in report.clusters.values())
        print(
            f"  {lam:8g}{found:7d}{_yes(exact.holds):>11}{exact.slack:9.3g}"
            f"{_yes(report.holds):>11}   {margins}"
        )
        answers.append((exact.slack, min(c.margin for c in report.clusters.values())))
    return answers


def explain_failure(problem: gtv.GTVProblem, planted: NDArray[np.int64], lam: float) -> None:
    """Print, for the first cluster that is not well-connected, a set A that violates the condition.

    The violating sets have no node in common: whatever i0, one of them leaves it out, and its
    demands b_i + beta_i |dC| / alpha + delta_i / lambda cannot get through its cut.
    """
    report = verify.well_connected(problem.with_lam(lam), planted)
    failing = [cluster for cluster in report.clusters.values() if not cluster.holds]
    if not failing:
        print(f"  at lambda {lam:g} every cluster is well-connected")
        return
    cluster = failing[0]
    violating = min(cluster.violating_sets, key=len)
    inside = np.isin(cluster.nodes, violating)
    rest = [node for node in cluster.nodes if node not in violating]
    ends = problem.graph.edges
    touches = np.isin(ends, violating)
    crossing = touches[:, 0] != touches[:, 1]
    within = (planted[ends] == cluster.label).all(axis=1)
    weights = problem.graph.weights
    shares = [
        ("edges to other clusters", weights[crossing & ~within].sum()),
        ("shift of the minimizer", np.sum(cluster.beta[inside]) * cluster.boundary / cluster.alpha),
        ("gradients / lambda", np.sum(cluster.delta[inside]) / lam),
    ]
    print(f"  at lambda {lam:g} cluster {cluster.label} is not well-connected:", end=" ")
    left_out = ", ".join(map(str, rest)) if len(rest) <= 6 else f"{len(rest)} nodes"
    print(f"the demands of all its nodes but {left_out}")
    print("  " + " + ".join(f"{share:.3g} ({name})" for name, share in shares), end=" ")
    print(f"do not fit through edges of weight {weights[crossing & within].sum():.3g}")


def least_recovered_lam(problem: gtv.GTVProblem, planted: NDArray[np.int64]) -> float:
    """Bisect for the lambda where the exact test begins to hold; inf if it does not at the top."""
    low, high = LAMBDAS[0] / 100, LAMBDAS[-1]
    if not verify.recovers(problem.with_lam(high), planted).holds:
        return math.inf
    while high > 1.02 * low:
        middle = math.sqrt(low * high)
        if verify.recovers(problem.with_lam(middle), planted).holds:
            high = middle
        else:
            low = middle
    return high


def check_blocks(size: int, p_in: float, p_out: float, seed: int) -> list[tuple[float, float]]:
    """Print the account of one stochastic block model; return what `lambda_table` does."""
    problem, planted = planted_problem(size, p_in, p_out, seed)
    ends = planted[problem.graph.edges]
    between = int((ends[:, 0] != ends[:, 1]).sum())
    print(f"Stochastic block model {size} + {size}, p_in {p_in:g}, p_out {p_out:g}:", end=" ")
    print(f"{problem.graph.n_edges} edges, {between} of them between the clusters")
    answers = lambda_table(problem, planted)
    explain_failure(problem, planted, LAMBDAS[2])
    exact = least_recovered_lam(problem, planted)
    theorem = verify.well_connected(problem, planted).lam_min
    print(f"  recovered from lambda {exact:.3g}, by the exact test")
    if math.isfinite(theorem):
        print(f"  well-connected from lambda {theorem:.3g}: {theorem / exact:.3g} times as large\n")
    else:
        print("  well-connected for no lambda\n")
    return answers


def draw(path: str, accounts: dict[float, list[tuple[float, float]]]) -> None:
    """Draw, for each p_out, the exact test and Theorem 2 side by side: both hold above zero."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SystemExit('drawing needs matplotlib: pip install "gtvcvx[plot]"') from None

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharex=True)
    for p_out, answers in accounts.items():
        slacks, margins = zip(*answers, strict=True)
        left.semilogx(LAMBDAS, slacks, "o-", label=f"p_out {p_out:g}")
        right.loglog(LAMBDAS, margins, "o-", label=f"p_out {p_out:g}")
    left.set_ylim(bottom=-1)
    left.set_title("exact test: recovered above 0")
    left.set_ylabel("slack")
    right.set_title("Theorem 2: well-connected above 1")
    right.set_ylabel("least margin of a cluster")
    for ax, threshold in ((left, 0.0), (right, 1.0)):
        ax.axhline(threshold, color="black", linewidth=0.8)
        ax.set_xlabel("lambda")
        ax.grid(True, linewidth=0.4, alpha=0.6)
    left.legend()
    figure.savefig(path, dpi=120)


def check_star(n_leaves: int, seed: int) -> None:
    """Print lambda from which a star is one cluster, in four ways that agree."""
    graph = star(n_leaves)
    rng = np.random.default_rng(seed)
    losses = gtv.PointLoss.stack(rng.standard_normal((graph.n_nodes, 2)))
    problem = gtv.GTVProblem(graph, losses, "l2", 1.0)
    whole = np.zeros(graph.n_nodes, dtype=int)
    mean = np.tile(losses.minimizer(graph.n_nodes).mean(axis=0), (graph.n_nodes, 1))
    leaves = np.linalg.norm(losses.gradient(mean), axis=1)[1:]
    theorem = verify.well_connected(problem, whole).lam_min
    critical = verify.critical_lambda(problem)
    print(f"Star with {n_leaves} leaves, all of it one cluster")
    print(f"  largest gradient norm of a leaf at the cluster's minimizer {leaves.max():.9f}")
    print(f"  well-connected above lambda                                {theorem:.9f}")
    print(f"  proved: one cluster above {critical.upper:.9f}, none below {critical.lower:.9f}")
    for factor in (0.99, 1.01):
        solution = problem.with_lam(factor * theorem).solve(verbose=False)
        found = solution.clusters().max() + 1
        print(f"  solved with {factor:g} times that: {found} cluster{'s' if found > 1 else ''}")


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def main(argv: Sequence[str] | None = None) -> int:
    """Check block models and a star."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=20, help="nodes of each cluster")
    parser.add_argument("--p-in", type=float, default=0.5, help="edge probability in a cluster")
    parser.add_argument(
        "--p-out", type=float, nargs="+", default=[0.005, 0.05], help="and between clusters"
    )
    parser.add_argument("--leaves", type=int, default=10, help="leaves of the star")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("-o", "--output", metavar="PICTURE", help="draw slacks and margins, too")
    args = parser.parse_args(argv)
    accounts = {p: check_blocks(args.size, args.p_in, p, args.seed) for p in args.p_out}
    check_star(args.leaves, args.seed)
    if args.output:
        draw(args.output, accounts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
