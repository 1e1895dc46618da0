"""Arguments of ``gtvcvx well-connected``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import command_parser

_DESCRIPTION = """\
Say whether a partition is recovered, and whether every cluster of it is well-connected
(Definition 1 of the paper). For the first, the problem is solved, the solution is certified, and
its clusters are compared with those of the partition: proved where the flow decides, else to a
tolerance, and --recovery tests it exactly. If all clusters are well-connected, every solution of
the problem is constant on each of them (Theorem 2). That is sufficient, not necessary: partitions
that are recovered can fail it.

LABELS is a CSV file of two columns, node and cluster, that names every node of the problem once.
With --output the proof is written to a file, for 'gtvcvx check' or 'python -m verify check', which
work in exact arithmetic.

Exit status 0 if it is proved that all clusters are well-connected, 1 if not (whatever the options
find out)."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands,
        "well-connected",
        "check a partition of the nodes",
        _DESCRIPTION,
        "gtvcvx.cli._well_connected",
    )
    parser.add_argument("problem", metavar="PROBLEM", help="problem, npz, as 'fit' writes it")
    parser.add_argument(
        "--partition", required=True, metavar="LABELS", help="node and cluster of each, CSV"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--solution", metavar="SOLUTION", help="solution of PROBLEM, npz (default: it is solved)"
    )
    source.add_argument(
        "--no-solve", action="store_true", help="check the theorem alone, without a solution"
    )
    parser.add_argument(
        "--recovery",
        action="store_true",
        help="also test whether the solutions are constant on the clusters: Lemma 3, and exactly",
    )
    parser.add_argument(
        "--critical-lambda",
        action="store_true",
        help="also bound the lambda from which on the solutions are constant on the clusters",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="PROOF",
        help="witnesses of the verdicts, for 'check': JSON, or .gtvc for large problems",
    )
    parser.add_argument(
        "--picture",
        metavar="FILE",
        help="draw clusters, boundary, flows, tightest set and margins (png, pdf or svg)",
    )
