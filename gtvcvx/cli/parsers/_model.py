"""Arguments that commands which read EDGES and DATA share: files, model, loss, solver."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    LOSSES,
    ArgumentParser,
    nonnegative,
    penalty,
    positive,
    positive_int,
    share,
)


def add_files(parser: ArgumentParser) -> None:
    """Add the tables and their columns."""
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


def add_penalty_and_scaling(model: Any) -> None:
    """Add the penalty, the intercept and scaling to the group of the model."""
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


def add_loss(parser: ArgumentParser) -> None:
    """Add the loss and its parameters."""
    group = parser.add_argument_group(
        "loss",
        "Targets of logistic are 0 or 1, those of hinge -1 or 1; two labels that are no numbers\n"
        "become that in alphabetical order. Those of multinomial are labels of two classes or\n"
        "more, integers or texts, numbered from 0 in their order. Those of poisson are counts.\n"
        "With point, DATA has one row a node and no target, and the parameters follow the\n"
        "features: convex clustering.",
    )
    group.add_argument(
        "--loss",
        choices=tuple(LOSSES),
        default="squared",
        help="what is minimized at the nodes (default: squared); lasso is squared with --kappa, "
        "poisson has the rates exp<x, w>",
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


def add_solver(parser: ArgumentParser) -> None:
    """Add tolerances and limits."""
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
