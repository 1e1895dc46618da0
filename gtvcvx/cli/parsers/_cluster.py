"""Arguments of ``gtvcvx cluster``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    command_parser,
    penalty,
    positive,
    positive_int,
)

_DESCRIPTION = """\
Convex clustering of the rows of DATA:

  minimize  sum_i ||w_i - x_i||^2  +  lam sum_{i,j} A_ij phi(w_i - w_j)

over a graph of nearest neighbours, or that of EDGES. Rows whose centres w_i coincide are a cluster
if they are enough; others are outliers, and join the cluster whose centre is nearest.
DATA is a CSV file with a header and one row a point. Columns count as they are: unless they have
the same unit, --standardize them. Without --n-clusters and --lam, clusters are those that
stand out, or one; of EDGES, the most stable number along lambda.

LABELS is a CSV file of each row's name and cluster. Exit status 0 if the solution is certified, so
that its centres are as close to the optimal ones as the report says."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "cluster", "convex clustering of the rows", _DESCRIPTION, "gtvcvx.cli._cluster"
    )
    parser.add_argument("data", metavar="DATA", help="points, CSV")
    parser.add_argument("-o", "--output", required=True, metavar="LABELS", help="clusters, CSV")
    parser.add_argument(
        "--node", metavar="NAME", help="column with the rows' names (default: numbered from 1)"
    )
    parser.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="columns of DATA that count (default: all but the names)",
    )
    parser.add_argument(
        "--standardize",
        action="store_true",
        help="scale the columns to mean 0 and variance 1; centres are told in the units of DATA",
    )
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--n-clusters", type=positive_int, metavar="K", help="take a lambda with K clusters"
    )
    choice.add_argument("--lam", type=positive, help="lambda, > 0")
    parser.add_argument(
        "--min-cluster-size",
        type=positive_int,
        metavar="SIZE",
        help="rows whose centres coincide are a cluster if there are so many (default: a fifth of "
        "the mean size; without --n-clusters a twentieth of all rows; 1 with --lam)",
    )
    parser.add_argument(
        "--noise", action="store_true", help="label outliers -1, and have them join no cluster"
    )
    graph = parser.add_mutually_exclusive_group()
    graph.add_argument(
        "--neighbours",
        type=positive_int,
        metavar="K",
        help="neighbours of each point in the graph, which is made connected (default: 10)",
    )
    graph.add_argument(
        "--edges", metavar="EDGES", help="edge list, CSV, of the rows' names, instead"
    )
    parser.add_argument(
        "--penalty", type=penalty, default="l2", metavar="PHI", help="l2 (default), l1 or linf"
    )
    parser.add_argument(
        "--rtol",
        type=positive,
        help=f"relative gap to reach and to certify (default: 1e-9 and {DEFAULT_RTOL:g})",
    )
    parser.add_argument("--max-iter", type=positive_int, metavar="N", help="limit of each solve")
    parser.add_argument(
        "--time-limit", type=positive, metavar="SECONDS", help="time limit of all solves"
    )
    parser.add_argument(
        "--solution",
        metavar="FILE",
        help="also write the solution, npz, and the problem beside it (solution.problem.npz for "
        "solution.npz), for 'certify', 'report' and 'well-connected'",
    )
