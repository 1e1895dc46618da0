"""Arguments of ``gtvcvx predict``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import command_parser

_DESCRIPTION = """\
Predict the rows of DATA with the models that 'gtvcvx fit' has found.

DATA is a CSV file with the node column and the feature columns of the fit; other columns do not
matter. What SOLUTION says about intercept, scaling and loss is applied: DATA is in the units of
the file that was fitted. The predictions are a CSV file of one line a row, in the same order:

  node, prediction            squared, lasso, huber, pseudohuber, absolute, quantile
  node, rate                  poisson: exp<x, w>
  node, probability, label    logistic: probability of the label 1, or of the second of two texts
  node, score, label          hinge

Exit status 0 if the predictions are written, 2 if the input is bad: among it a node that SOLUTION
does not know."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "predict", "predict rows with a solution", _DESCRIPTION, "gtvcvx.cli._predict"
    )
    parser.add_argument("solution", metavar="SOLUTION", help="solution, npz, as 'fit' writes it")
    parser.add_argument("data", metavar="DATA", help="rows to predict, CSV")
    parser.add_argument(
        "--node", metavar="NAME", help="node column of DATA (default: as in the fit)"
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="also compare with the target column, in the rows where it is not empty",
    )
    parser.add_argument(
        "--target", metavar="NAME", help="target column for --score (default: as in the fit)"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="PREDICTIONS", help="predictions, CSV"
    )
