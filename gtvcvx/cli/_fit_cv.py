"""``gtvcvx fit --cv``: lambda chosen by cross-validation."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import numpy as np

from gtvcvx.cli._design import Design
from gtvcvx.cli._report import counted, entry, table
from gtvcvx.model_selection import CrossValidation
from gtvcvx.model_selection import cross_validate as validate

_DEFAULTS: dict[str, Any] = {
    "cv_over": "points",
    "rule": "min",
    "lams": 20,
    "lambda_ratio": 1e-3,
    "seed": 0,
}


def check(args: Namespace) -> None:
    """Refuse options that have no effect; set the others to their defaults."""
    if args.cv is None:
        for name in _DEFAULTS:
            if getattr(args, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')}: only with --cv")
    elif args.lambda_ratio is not None and isinstance(args.lams, list):
        raise ValueError("--lambda-ratio: not with the values of --lams")
    if args.loss == "point" and args.cv is not None and args.cv_over is None:
        args.cv_over = "nodes"  # a node has a single point
    for name, default in _DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, default)


def cross_validate(
    args: Namespace, design: Design, rtol: float, atol: float | None
) -> CrossValidation:
    """Cross-validate as the arguments say."""
    given = isinstance(args.lams, list)
    return validate(
        design.problem,
        lams=args.lams if given else None,
        cv=args.cv,
        over=args.cv_over,
        rule=args.rule,
        seed=args.seed,
        n_lams=len(args.lams) if given else args.lams,
        min_ratio=args.lambda_ratio,
        rtol=rtol,
        solver=args.solver,
        max_iter=args.max_iter,
        time_limit=args.time_limit,
        atol=atol,
        verbose=False if args.quiet else None,
    )


def lines(args: Namespace, found: CrossValidation, rtol: float) -> list[str]:
    """Return the errors for each value of lambda, and what is to be said about the choice."""
    what = "data point" if found.over == "points" else "node"
    text = [
        entry(
            "Choice",
            f"lambda {found.lam:g} by {len(found.fold_sizes)}-fold cross-validation, "
            f"{counted(int(np.sum(found.folds >= 0)), what)} held out once, rule {found.rule}, "
            f"seed {args.seed}",
        ),
        *table(["lambda", "mean error", "standard error", "clusters", ""], _rows(found)),
    ]
    if found.index_min == len(found.lams) - 1:
        text.append(
            entry("", "the smallest lambda has the least error: try a smaller --lambda-ratio")
        )
    if found.path.missing.size:
        left_out = counted(found.path.missing.size, "smaller value")
        text.append(entry("", f"the time limit has left out {left_out} of lambda"))
    missed = found.fold_rel_gaps > rtol
    if missed.any():
        text.append(
            entry(
                "",
                f"{int(missed.sum())} of {missed.size} solutions without the held-out data missed "
                f"the gap, the largest relative gap is {found.fold_rel_gaps.max():.3g}",
            )
        )
    return text


def _rows(found: CrossValidation) -> list[list[str]]:
    marks: dict[int, list[str]] = {found.index_min: ["least"]}
    marks.setdefault(found.index_1se, []).append("1se")
    marks[found.index].append("<- chosen")
    columns = zip(
        found.lams, found.mean_errors, found.std_errors, found.path.n_clusters, strict=True
    )
    return [
        [f"{lam:.6g}", f"{mean:.6g}", f"{error:.3g}", str(clusters), " ".join(marks.get(i, []))]
        for i, (lam, mean, error, clusters) in enumerate(columns)
    ]


def summary(args: Namespace, found: CrossValidation) -> dict[str, Any]:
    """Return what is noted in the solution, for readers of its file."""
    return {
        "folds": len(found.fold_sizes),
        "over": found.over,
        "rule": found.rule,
        "seed": args.seed,
        "lams": found.lams,
        "mean_errors": found.mean_errors,
        "standard_errors": found.std_errors,
        "n_clusters": found.path.n_clusters,
        "lam_min": found.lam_min,
        "lam_1se": found.lam_1se,
        "lam": found.lam,
    }


def data(args: Namespace, design: Design, found: CrossValidation) -> dict[str, Any]:
    """Return the whole cross-validation for JSON."""
    nodes = design.problem.graph.nodes
    if found.over == "nodes":
        assignment = [[label, fold] for label, fold in zip(nodes, found.folds, strict=True)]
    else:
        # The losses keep the rows node by node; here they are in the order of the file.
        of_rows = np.empty_like(found.folds)
        of_rows[np.argsort(design.owner, kind="stable")] = found.folds
        assignment = [[line, fold] for line, fold in zip(design.table.lines, of_rows, strict=True)]
    return {
        **summary(args, found),
        "fold_errors": found.fold_errors,
        "fold_sizes": found.fold_sizes,
        "rel_gaps": found.path.rel_gaps,
        "fold_rel_gaps": found.fold_rel_gaps,
        # of each line of the data file, or of each node; -1: never held out
        "fold_of": assignment,
    }
