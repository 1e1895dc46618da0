"""Arguments of ``gtvcvx solve-shards``, and of ``python -m gtvcvx.distributed``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    ENGINES,
    ArgumentParser,
    command_parser,
    count,
    positive,
    positive_int,
)

_DESCRIPTION = """\
Solve a problem in shards, which 'gtvcvx shard' has written, by several processes. The answer is the
same for any engine and any number of workers, to the last bit; it stays in shards, in the folder
'solution' of SHARDS, unless -o collects it.

What is expected of the run is printed before it: bytes that are exchanged, the parallel efficiency,
and whether one machine does it. For MPI, each rank of 'mpiexec -n 4 python -m gtvcvx.distributed
SHARDS' runs this command.

Exit status 0 if the certificate is CERTIFIED or, without --certificate, if the gap asked for was
reached; 1 if not, or if a worker was lost. Ctrl-C ends the iteration: the best solution so far is
written."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands,
        "solve-shards",
        "solve a problem in shards",
        _DESCRIPTION,
        "gtvcvx.cli._solve_shards",
    )
    parser.add_argument("folder", metavar="SHARDS", help="folder of the shards")
    _add_workers(parser)
    _add_limits(parser)
    _add_checkpoints(parser)
    _add_output(parser)


def _add_workers(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("workers")
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="local (default): processes of this machine; mpi: the ranks of mpiexec, which all run "
        "this command; ray: actors of a cluster of Ray",
    )
    group.add_argument(
        "--workers",
        type=positive_int,
        metavar="W",
        help="how many, at most one for each shard (default: 2, with mpi as many as there are)",
    )
    group.add_argument(
        "--timeout",
        type=positive,
        default=60.0,
        metavar="SECONDS",
        help="silence after which a worker is lost (default: 60)",
    )
    group.add_argument(
        "--replace",
        type=count,
        default=0,
        metavar="N",
        help="start lost workers anew, so many times; with --checkpoint the run goes on from there "
        "(local and ray; default: 0)",
    )


def _add_limits(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("tolerance and limits")
    group.add_argument(
        "--rtol",
        type=positive,
        default=DEFAULT_RTOL,
        help=f"relative gap to reach and to certify (default: {DEFAULT_RTOL:g})",
    )
    group.add_argument("--max-iter", type=positive_int, metavar="N", help="iteration limit")
    group.add_argument("--time-limit", type=positive, metavar="SECONDS", help="time limit")


def _add_checkpoints(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("checkpoints")
    group.add_argument("--checkpoint", metavar="FOLDER", help="folder of checkpoints, by shard")
    group.add_argument(
        "--every",
        type=positive,
        default=30.0,
        metavar="SECONDS",
        help="between two checkpoints at least (default: 30)",
    )
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on from the checkpoint that is there; from the start if there is none",
    )


def _add_output(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o",
        "--output",
        metavar="SOLUTION",
        help="collect the solution into a file, npz, where it fits into memory",
    )
    group.add_argument(
        "--certificate",
        metavar="FILE",
        help="write a certificate, .gtvc, shard by shard, and check it",
    )
