"""Arguments of ``gtvcvx fit``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import ArgumentParser, command_parser, folds, grid, positive, seed, share
from gtvcvx.cli.parsers._model import add_files, add_loss, add_penalty_and_scaling, add_solver

_DESCRIPTION = """\
Fit one linear model per node, y = <x, w_i>, by GTV minimization:

  minimize  sum_i (1/m_i) ||X_i w_i - y_i||^2  +  lam sum_{i,j} A_ij phi(w_i - w_j)

or with another loss of the predictors <x, w_i> (--loss).

EDGES is a CSV file of two node columns and an optional weight column. DATA is a CSV file with a
header, one row a data point: the node column, the target column, and feature columns, which are
used in file order and as they are. A node without rows, or whose target cells are empty, is
unlabelled: it gets its parameters from its neighbours. lam is given, or chosen by cross-validation
(--cv).

Tables may be separated by semicolons or tabs and gzipped; Parquet files (.parquet) need pandas.

The solution is written to SOLUTION, and the problem beside it (see --problem), which is what
'gtvcvx certify' and 'gtvcvx well-connected' read. Exit status 0 if the solution is certified.
Ctrl-C ends the iteration: the best solution so far is certified and written."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "fit", "solve from CSV files", _DESCRIPTION, "gtvcvx.cli._fit"
    )
    add_files(parser)
    _add_model(parser)
    add_loss(parser)
    _add_cross_validation(parser)
    add_solver(parser)
    _add_output(parser)


def _add_model(parser: ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    choice = model.add_mutually_exclusive_group(required=True)
    choice.add_argument("--lam", type=positive, help="lambda, > 0")
    choice.add_argument(
        "--cv",
        type=folds,
        metavar="K",
        help="choose lambda by K-fold cross-validation, see below",
    )
    add_penalty_and_scaling(model)


def _add_output(parser: ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", required=True, metavar="SOLUTION", help="solution, npz")
    output.add_argument(
        "--problem",
        metavar="FILE",
        help="problem, npz (default: beside the solution, solution.problem.npz for solution.npz)",
    )
    output.add_argument(
        "--coefficients", metavar="FILE", help="CSV of node, cluster and coefficients"
    )
    output.add_argument(
        "--clusters",
        metavar="FILE",
        help="CSV of node and cluster, for 'gtvcvx well-connected --partition'",
    )


def _add_cross_validation(parser: ArgumentParser) -> None:
    """Add options that go with ``--cv``."""
    group = parser.add_argument_group(
        "cross-validation",
        "With --cv, data that are held out are predicted from the rest, for a sequence of values\n"
        "of lambda. The fit to all data takes the value with the least mean error in the loss.",
    )
    group.add_argument(
        "--cv-over",
        choices=("points", "nodes"),
        help="hold out single data points (default), or all data of a node, which is then "
        "predicted from its neighbours (with --loss point there is nothing else)",
    )
    group.add_argument(
        "--rule",
        choices=("min", "1se"),
        help="take the value with the least mean error (default), or the largest one within one "
        "standard error of it, which gives fewer clusters",
    )
    group.add_argument(
        "--lams",
        type=grid,
        metavar="N",
        help="number of values, from the smallest one that makes each component one cluster down "
        "(default: 20), or the values themselves, separated by commas",
    )
    group.add_argument(
        "--lambda-ratio",
        type=share,
        metavar="R",
        help="the smallest value over the largest one (default: 0.001)",
    )
    group.add_argument(
        "--seed", type=seed, metavar="S", help="seed of the random folds (default: 0)"
    )
