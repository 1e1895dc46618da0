"""Arguments of ``gtvcvx fit``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    LOSSES,
    ArgumentParser,
    command_parser,
    folds,
    grid,
    nonnegative,
    penalty,
    positive,
    positive_int,
    seed,
    share,
)

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
    _add_files(parser)
    _add_model(parser)
    _add_loss(parser)
    _add_cross_validation(parser)
    _add_solver(parser)
    _add_output(parser)


def _add_files(parser: ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--edges", required=True, metavar="EDGES", help="edge list, CSV")
    files.add_argument("--data", required=True, metavar="DATA", help="data points, CSV")
    files.add_argument("--node", required=True, metavar="NAME", help="node column of DATA")
    files.add_argument(
        "--target", metavar="NAME", help="target column of DATA; needed but for --loss point"
    )
    files.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="feature columns of DATA (default: all but the node and the target column)",
    )
    files.add_argument(
        "--isolated",
        action="store_true",
        help="take nodes of DATA that EDGES does not name as nodes without neighbours "
        "(default: an error, because it is often a misspelling)",
    )


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
    model.add_argument(
        "--penalty",
        type=penalty,
        default="l2",
        metavar="PHI",
        help="l2 (default), l1, linf, squared (half the squared norm) or pnorm:P with P >= 1 "
        "(for which there is no exact certificate unless P is 1, 2 or inf)",
    )
    model.add_argument("--intercept", action="store_true", help="add a column of ones, the last")
    model.add_argument(
        "--standardize",
        action="store_true",
        help="scale the feature columns to mean 0 and variance 1 over all rows; a constant column "
        "is left as it is; the parameters are those of the scaled features, and mean and scale "
        "are kept in the solution's info['standardized']; coefficients in the units of DATA are "
        "told, too, and kept in info['original']",
    )


def _add_loss(parser: ArgumentParser) -> None:
    group = parser.add_argument_group(
        "loss",
        "Targets of logistic are 0 or 1, those of hinge -1 or 1; two labels that are no numbers\n"
        "become that in alphabetical order. Those of poisson are counts. With point, DATA has one\n"
        "row a node and no target, and the parameters follow the features: convex clustering.",
    )
    group.add_argument(
        "--loss",
        choices=tuple(LOSSES),
        default="squared",
        help="squared (default), lasso (squared with --kappa), logistic, poisson (rates exp<x, w>),"
        " huber, pseudohuber, absolute, quantile, hinge or point",
    )
    group.add_argument(
        "--delta", type=positive, help="huber, pseudohuber: residual beyond which rows are outliers"
    )
    group.add_argument(
        "--level", type=share, metavar="Q", help="quantile: its level, between 0 and 1"
    )
    group.add_argument(
        "--ridge",
        type=nonnegative,
        metavar="MU",
        help="add MU/2 ||w_i||_2^2 at nodes with data, the intercept excepted",
    )
    group.add_argument(
        "--kappa",
        type=nonnegative,
        metavar="K",
        help="add K ||w_i||_1 at nodes with data, the intercept excepted",
    )


def _add_solver(parser: ArgumentParser) -> None:
    solver = parser.add_argument_group("solver")
    solver.add_argument(
        "--solver",
        default="AUTO",
        metavar="NAME",
        help="AUTO (default), PDHG (Algorithm 1 of the paper), or a conic solver of CVXPY such as "
        "CLARABEL",
    )
    solver.add_argument(
        "--rtol",
        type=positive,
        help=f"relative gap to reach and to certify (default: {DEFAULT_RTOL:g}; a conic solver "
        "keeps its own tolerance unless this is given)",
    )
    solver.add_argument(
        "--atol",
        type=nonnegative,
        help="gap that will do whatever the objective is (default: RTOL); 0 for a gap relative to "
        "the objective alone. What is certified is relative to max(1, |objective|) all the same",
    )
    solver.add_argument("--max-iter", type=positive_int, metavar="N", help="iteration limit")
    solver.add_argument(
        "--time-limit",
        type=positive,
        metavar="SECONDS",
        help="time limit of the solve, or of all of a cross-validation, which then leaves out the "
        "values of lambda that some fold did not reach",
    )


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
