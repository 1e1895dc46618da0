"""K-fold cross-validation of the regularization parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._callbacks import CrossValidationCallback
from gtvcvx._compiling import announced
from gtvcvx._progress import ProgressDisplay
from gtvcvx.model_selection._fold_paths import (
    Fold,
    Scoring,
    Shares,
    Steps,
    complete_path,
    errors_of_folds,
    worker_count,
)
from gtvcvx.model_selection._folds import Folds
from gtvcvx.path import LambdaPath
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_small
from verify._display import aligned, few, fitted, html_block, html_curve, html_table

RULES = ("min", "1se")
_HEADER = ("lambda", "mean error", "std. error", "")


@dataclass(frozen=True)
class CrossValidation:
    """Errors of held-out data for each lambda, and the lambda chosen by them.

    Attributes
    ----------
    lams : ndarray, shape (k,)
        Values of lambda, decreasing.
    fold_errors : ndarray, shape (K, k)
        Mean error of the data that each fold holds out, by their weights if they have any.
    fold_sizes : ndarray of int64, shape (K,)
        Number of data points that each fold holds out.
    fold_weights : ndarray, shape (K,)
        Their weights: numbers of data points, unless these have weights.
    fold_rel_gaps : ndarray, shape (K, k)
        Relative gaps of the solutions that the errors are of.
    mean_errors : ndarray, shape (k,)
        Means of ``fold_errors`` over the folds, weighted by ``fold_weights``.
    std_errors : ndarray, shape (k,)
        Their standard errors.
    folds : ndarray of int64
        Fold of each data point (over="points", in the order of the rows in the terms of
        ``problem.to_data()``) or of each node (over="nodes"); -1: never held out.
    over, rule : str
    path : LambdaPath
        Solutions for all data; of values that a time limit left out, ``path.missing`` tells.
    """

    lams: FloatArray
    fold_errors: FloatArray
    fold_sizes: IntArray
    fold_weights: FloatArray
    fold_rel_gaps: FloatArray
    mean_errors: FloatArray
    std_errors: FloatArray
    folds: IntArray
    over: str
    rule: str
    path: LambdaPath

    @property
    def index_min(self) -> int:
        """Position of the least mean error; the largest lambda of several."""
        return int(np.argmin(self.mean_errors))

    @property
    def index_1se(self) -> int:
        """Position of the largest lambda within one standard error of the least mean error."""
        best = self.index_min
        limit = self.mean_errors[best] + self.std_errors[best]
        return int(np.argmax(self.mean_errors <= limit))

    @property
    def index(self) -> int:
        """Position of the lambda that the rule chooses."""
        return self.index_min if self.rule == "min" else self.index_1se

    @property
    def lam_min(self) -> float:
        """Value of lambda with the least mean error."""
        return float(self.lams[self.index_min])

    @property
    def lam_1se(self) -> float:
        """Largest lambda whose mean error is within one standard error of the least one."""
        return float(self.lams[self.index_1se])

    @property
    def lam(self) -> float:
        """Value of lambda that the rule chooses."""
        return float(self.lams[self.index])

    @property
    def solution(self) -> Solution:
        """Solution for all data at the lambda that the rule chooses."""
        return self.path[self.index]

    def _title(self) -> str:
        return (
            f"CrossValidation: lambda = {self.lam:.6g} by rule {self.rule!r}, "
            f"{len(self.fold_errors)} folds over {self.over}"
        )

    def _rows(self) -> list[list[str] | None]:
        """Return values of lambda and their errors: the first, the last and the chosen one."""
        chosen = self.index
        shown = few(len(self.lams))
        if chosen not in shown:
            place = shown.index(None)
            shown[place : place + 1] = [None, chosen, None]
        return [None if i is None else self._row(i) for i in shown]

    def _row(self, i: int) -> list[str]:
        notes = [(self.index, "chosen"), (self.index_min, "least"), (self.index_1se, "1se")]
        return [
            f"{self.lams[i]:.6g}",
            f"{self.mean_errors[i]:.6g}",
            f"{self.std_errors[i]:.2g}",
            ", ".join(name for k, name in notes if k == i),
        ]

    def __repr__(self) -> str:
        return fitted([self._title(), *aligned(_HEADER, self._rows())])

    def _repr_html_(self) -> str:
        """Show values of lambda with their errors, and the curve of the errors."""
        picture = html_curve(
            "Mean error over the logarithm of lambda; the dot is the lambda chosen",
            np.log(self.lams).tolist(),
            self.mean_errors.tolist(),
            self.index,
        )
        return html_block(self._title(), html_table(_HEADER, self._rows()), picture)


def cross_validate(
    problem: GTVProblem | Mapping[str, Any],
    lams: ArrayLike | None = None,
    cv: int | ArrayLike = 5,
    over: str = "points",
    rule: str = "min",
    seed: int | np.random.Generator = 0,
    scoring: Scoring | None = None,
    *,
    n_lams: int = 20,
    min_ratio: float = 1e-3,
    rtol: float = 1e-6,
    solver: str = "AUTO",
    max_iter: int | None = None,
    time_limit: float | None = None,
    callback: CrossValidationCallback | None = None,
    verbose: bool | None = None,
    atol: float | None = None,
    n_jobs: int | None = None,
    error_weight: ArrayLike | None = None,
) -> CrossValidation:
    """Choose lambda by K-fold cross-validation.

    Data that a fold holds out are predicted from the solution of the problem without them: those
    of single data points from the node's other data and its neighbours, those of whole nodes from
    the neighbours alone. Each fold's problems are solved along a path of decreasing lambda.

    Parameters
    ----------
    problem : GTVProblem or mapping
        The problem, or its plain data (`GTVProblem.to_data`); its own lambda is not used.
    lams : array_like, optional
        Values of lambda. Default: the grid of `lambda_path` for ``n_lams`` and ``min_ratio``.
    cv : int or array_like of int
        Number of folds K, over which classes are spread evenly, or the fold 0..K-1 of each data
        point, in the order of the rows in the terms of ``problem.to_data()``, or of each node; -1
        holds it out in no fold.
    over : {"points", "nodes"}
        "points": each node's rows are spread over the folds; a node all of whose rows are held out
        is unlabelled in that fold. "nodes": nodes with data are held out, with all their rows
        and points. Terms that hold no data (ridge, l1, box, simplex) stay in every fold; so do
        points with over="points", and a component's only row or only node with data.
    rule : {"min", "1se"}
        The lambda with the least mean error, or the largest one within its standard error.
    seed : int or numpy.random.Generator
        Of the random assignment to folds.
    scoring : callable, optional
        ``scoring(target, prediction)``, a number to be small: y (N,) and <x, w_i> (N,) of held-out
        rows (of several classes that of each, (N, K)), or a (k, d) and w_i (k, d) of held-out
        points; called once for each kind of loss and averaged by their numbers of data points.
        Default: the mean error in the data's own loss.
    n_lams, min_ratio
        See `lambda_path`.
    rtol, solver, max_iter, atol
        Of each solve; see `GTVProblem.solve`.
    time_limit : float, optional
        Seconds for all of it. The paths of all data and of the folds have equal shares of what is
        left (with several processes, of what each of them has to do); values of lambda that some
        of them did not reach are left out of all.
    callback : callable, optional
        Sees a `CrossValidationProgress` after every solve (with several processes, when its fold
        is done). It cannot stop the work but by an exception: errors of some of the folds would
        mislead.
    verbose : bool, optional
        Show progress. Default: only on a terminal.
    n_jobs : int, optional
        Number of processes that work on folds at the same time, -1 for one a core; the result is
        the same. Needs joblib, which comes with the extra ``ml``. Default: 1.
    error_weight : array_like, optional
        How much the error of each data point counts, > 0: of all rows and points, in the order of
        the terms of ``problem.to_data()``. Default: rows that are weighted count by their weight
        in the loss times the number of rows of their node, all others 1.

    Returns
    -------
    CrossValidation

    Raises
    ------
    TypeError, ValueError
        Naming the argument: among them a loss whose data cannot be held out, fewer data than
        folds, folds that are empty or leave a component without data.
    KeyboardInterrupt
        At Ctrl-C: errors of some of the folds would mislead.
    """
    whole = problem if isinstance(problem, GTVProblem) else GTVProblem.from_data(problem)
    if rule not in RULES:
        raise ValueError(f"rule: one of {RULES} is expected, got {rule!r}")
    folds = Folds(whole, cv, over, np.random.default_rng(seed), error_weight)
    workers = worker_count(n_jobs, folds.count)
    options: dict[str, Any] = {"rtol": rtol, "solver": solver, "max_iter": max_iter}
    options["atol"] = rtol if atol is None else atol
    shares = Shares(time_limit)
    total = (folds.count + 1) * (n_lams if lams is None else np.size(lams))
    display = ProgressDisplay("cross-validation", verbose=verbose, total=total)
    with announced(verbose), display:
        steps = Steps(folds.count, total, display, callback)
        path = complete_path(
            whole,
            shares.of(1 + math.ceil(folds.count / workers)),
            steps.take,
            lams=lams,
            n_lams=n_lams,
            min_ratio=min_ratio,
            **options,
        )
        tasks = (
            Fold(
                k,
                folds.training(k),
                folds.held_out(k),
                folds.weights(k),
                path.lams,
                path[0],
                scoring,
                options,
            )
            for k in range(folds.count)
        )
        found = list(errors_of_folds(tasks, folds.count, workers, shares, steps))
    if atol is None:
        warn_if_small(whole, path, rtol)
    reached = min(len(path), *(len(fold.errors) for fold in found))
    path = _first(path, reached)
    errors = np.stack([fold.errors[:reached] for fold in found])
    weights = folds.total_weights
    mean = weights @ errors / weights.sum()
    variance = weights @ (errors - mean) ** 2 / weights.sum()
    return CrossValidation(
        lams=path.lams,
        fold_errors=errors,
        fold_sizes=folds.sizes,
        fold_weights=weights,
        fold_rel_gaps=np.stack([fold.rel_gaps[:reached] for fold in found]),
        mean_errors=mean,
        std_errors=np.sqrt(variance / (folds.count - 1)),
        folds=folds.assignment,
        over=over,
        rule=rule,
        path=path,
    )


def _first(path: LambdaPath, count: int) -> LambdaPath:
    """Return the path of the largest values of lambda."""
    if count == len(path):
        return path
    missing = np.concatenate([path.lams[count:], path.missing])
    return LambdaPath(path.lams[:count], path.solutions[:count], missing, "time_limit")
