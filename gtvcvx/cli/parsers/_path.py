"""Arguments of ``gtvcvx path``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import command_parser, grid, share
from gtvcvx.cli.parsers._model import add_files, add_loss, add_penalty_and_scaling, add_solver

_DESCRIPTION = """\
Fit the models of 'gtvcvx fit' for a sequence of values of lambda, from the smallest one that makes
each component one cluster down, and tell for each: clusters, errors of the data, relative gap.
EDGES and DATA are as for 'gtvcvx fit'. The errors are those of the data that were fitted, which
fall as lambda does: to choose a lambda by data held out, use 'gtvcvx fit --cv'.

PATH is an npz file with all solutions (gtvcvx.LambdaPath.load) or, where the name ends in .csv, the
table. Exit status 0 if every solution has the gap that was asked for, by the solver's own valid
bound; 'gtvcvx fit --lam' certifies one. Ctrl-C ends the path: what was solved is written."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "path", "solve for many values of lambda", _DESCRIPTION, "gtvcvx.cli._path"
    )
    add_files(parser)
    model = parser.add_argument_group("model")
    model.add_argument(
        "--lams",
        type=grid,
        default=20,
        metavar="N",
        help="number of values (default: 20), or the values themselves, separated by commas",
    )
    model.add_argument(
        "--lambda-ratio",
        type=share,
        metavar="R",
        help="the smallest value over the largest one (default: 0.001)",
    )
    add_penalty_and_scaling(model)
    add_loss(parser)
    add_solver(parser)
    output = parser.add_argument_group("output")
    output.add_argument(
        "-o", "--output", required=True, metavar="PATH", help="solutions, npz, or the table, csv"
    )
    output.add_argument(
        "--picture",
        metavar="FILE",
        help="draw coefficients and number of clusters along lambda (png, pdf or svg)",
    )
