"""Arguments of ``gtvcvx shard``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import (
    PARTITIONERS,
    ROW_LOSSES,
    ArgumentParser,
    command_parser,
    penalty,
    positive,
    positive_int,
    share,
)

_DESCRIPTION = """\
Cut a problem into shards, for 'gtvcvx solve-shards': each has its own nodes with their data, and
all edges that end there. The problem is a file PROBLEM, or two tables, EDGES and DATA, as for
'gtvcvx fit'. Files are read piece by piece: memory holds one shard at a time, and some numbers a
node. What is expected of a run on the shards is printed.

The number of shards is that of the processes which will work on them, or larger. The same shards
give the same answer, to the last bit, whoever works on them.

Exit status 0 if the shards are written."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "shard", "cut a problem into shards", _DESCRIPTION, "gtvcvx.cli._shard"
    )
    parser.add_argument(
        "problem", metavar="PROBLEM", nargs="?", help="problem, npz, as 'fit' writes it"
    )
    _add_tables(parser)
    _add_model(parser)
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="SHARDS",
        help="folder of the shards; it is made, and shards that are in it are replaced",
    )
    parser.add_argument(
        "--shards", type=positive_int, default=16, metavar="N", help="how many (default: 16)"
    )
    parser.add_argument(
        "--partitioner",
        choices=PARTITIONERS,
        default="auto",
        help="who chooses the nodes of each shard: metis cuts few edges, and needs pymetis; order "
        "cuts more; blocks takes nodes as they are numbered; auto (default) is metis where it can",
    )
    parser.add_argument(
        "--workers",
        type=positive_int,
        metavar="W",
        help="processes that the expectation is for (default: one for each shard)",
    )


def _add_tables(parser: ArgumentParser) -> None:
    tables = parser.add_argument_group("tables, instead of PROBLEM")
    tables.add_argument("--edges", metavar="EDGES", help="edge list, CSV")
    tables.add_argument("--data", metavar="DATA", help="data points, CSV")
    tables.add_argument("--node", metavar="NAME", help="node column of DATA")
    tables.add_argument("--target", metavar="NAME", help="target column of DATA")
    tables.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="feature columns of DATA (default: all but the node and the target column)",
    )


def _add_model(parser: ArgumentParser) -> None:
    model = parser.add_argument_group("model of the tables")
    model.add_argument("--lam", type=positive, help="lambda, > 0")
    model.add_argument(
        "--penalty", type=penalty, metavar="PHI", help="l2 (default), l1, linf, squared or pnorm:P"
    )
    model.add_argument("--intercept", action="store_true", help="add a column of ones, the first")
    model.add_argument(
        "--loss", choices=ROW_LOSSES, help="what is minimized at the nodes (default: squared)"
    )
    model.add_argument(
        "--delta", type=positive, help="huber, pseudohuber: residual beyond which rows are outliers"
    )
    model.add_argument(
        "--level", type=share, metavar="Q", help="quantile: its level, between 0 and 1"
    )
