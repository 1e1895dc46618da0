"""K-fold cross-validation of the regularization parameter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._callbacks import CrossValidationCallback, CrossValidationProgress
from gtvcvx._compiling import announced
from gtvcvx._deadline import now
from gtvcvx._logging import room_logger
from gtvcvx._progress import ProgressDisplay
from gtvcvx.model_selection._errors import own_errors, targets_and_predictions
from gtvcvx.model_selection._folds import Folds
from gtvcvx.path import LambdaPath, lambda_path
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers import warn_if_small
from verify._display import aligned, few, fitted, html_block, html_curve, html_table

_LOG = room_logger("model_selection")
Scoring = Callable[[FloatArray, FloatArray], float]

RULES = ("min", "1se")
# What is left for a path when the time is over: its first solution, as it starts.
_LEAST_SECONDS = 1e-3
_HEADER = ("lambda", "mean error", "std. error", "")


@dataclass(frozen=True)
class CrossValidation:
    """Errors of held-out data for each lambda, and the lambda chosen by them.

    Attributes
    ----------
    lams : ndarray, shape (k,)
        Values of lambda, decreasing.
    fold_errors : ndarray, shape (K, k)
        Mean error of the data that each fold holds out.
    fold_sizes : ndarray of int64, shape (K,)
        Number of data points that each fold holds out.
    fold_rel_gaps : ndarray, shape (K, k)
        Relative gaps of the solutions that the errors are of.
    mean_errors : ndarray, shape (k,)
        Means of ``fold_errors`` over the folds, weighted by ``fold_sizes``.
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
        Number of folds K, or the fold 0..K-1 of each data point, in the order of the rows in the
        terms of ``problem.to_data()``, or of each node; -1 holds it out in no fold.
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
        rows, or a (k, d) and w_i (k, d) of held-out points; called once for each kind of loss
        and averaged by their numbers of data points. Default: the mean error in the data's own
        loss.
    n_lams, min_ratio
        See `lambda_path`.
    rtol, solver, max_iter, atol
        Of each solve; see `GTVProblem.solve`.
    time_limit : float, optional
        Seconds for all of it. The paths of all data and of the folds have equal shares of what is
        left; values of lambda that some of them did not reach are left out of all.
    callback : callable, optional
        Sees a `CrossValidationProgress` after every solve. It cannot stop the work but by an
        exception: errors of some of the folds would mislead.
    verbose : bool, optional
        Show progress. Default: only on a terminal.

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
    folds = Folds(whole, cv, over, np.random.default_rng(seed))
    options: dict[str, Any] = {"rtol": rtol, "solver": solver, "max_iter": max_iter}
    options["atol"] = rtol if atol is None else atol
    shares = _Shares(time_limit, folds.count + 1)
    total = (folds.count + 1) * (n_lams if lams is None else np.size(lams))
    display = ProgressDisplay("cross-validation", verbose=verbose, total=total)
    steps = _Steps(folds.count, total, display, callback)
    paths = _Paths(options, shares, steps)
    with announced(verbose), display:
        path = paths.solve(whole, lams=lams, n_lams=n_lams, min_ratio=min_ratio)
        reached = len(path)
        errors = np.empty((folds.count, len(path)))
        rel_gaps = np.empty_like(errors)
        sizes = np.empty(folds.count, dtype=np.int64)
        for k in range(folds.count):
            held_out = folds.held_out(k)
            steps.begin(k)
            sizes[k] = sum(len(term["node"]) for term in held_out)
            _LOG.info("fold %d of %d: %d data held out", k + 1, folds.count, sizes[k])
            found = paths.solve(folds.training(k), lams=path.lams, warm_start=path[0])
            reached = min(reached, len(found))
            rel_gaps[k, : len(found)] = found.rel_gaps
            for i, solution in enumerate(found):
                errors[k, i] = _mean_error(held_out, solution.w, scoring, k)
    if atol is None:
        warn_if_small(whole, path, rtol)
    path, errors, rel_gaps = _first(path, reached), errors[:, :reached], rel_gaps[:, :reached]
    mean = sizes @ errors / sizes.sum()
    variance = sizes @ (errors - mean) ** 2 / sizes.sum()
    return CrossValidation(
        lams=path.lams,
        fold_errors=errors,
        fold_sizes=sizes,
        fold_rel_gaps=rel_gaps,
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


class _Shares:
    """Shares out what is left of a time limit."""

    def __init__(self, time_limit: float | None, count: int) -> None:
        if time_limit is not None and not (math.isfinite(time_limit) and time_limit > 0):
            raise ValueError(
                f"time_limit: a positive finite number is expected, got {time_limit!r}"
            )
        self._end = None if time_limit is None else now() + time_limit
        self._count = count

    def next(self) -> float | None:
        """Return the seconds of the next; None if there is no limit."""
        self._count -= 1
        if self._end is None:
            return None
        return max((self._end - now()) / (self._count + 1), _LEAST_SECONDS)


class _Steps:
    """Counts the solves of all paths, and tells display and callback."""

    def __init__(
        self,
        n_folds: int,
        total: int,
        display: ProgressDisplay,
        callback: CrossValidationCallback | None,
    ) -> None:
        self._n_folds, self._total = n_folds, total
        self._display, self._callback = display, callback
        self._done = self._position = 0
        self._fold: int | None = None

    def begin(self, fold: int) -> None:
        """Go on to the path of a fold."""
        self._fold, self._position = fold, 0

    def take(self, solution: Solution) -> None:
        """Count a solve."""
        self._done += 1
        self._display.update(self._done, solution.rel_gap)
        if self._callback is not None:
            self._callback(
                CrossValidationProgress(
                    fold=self._fold,
                    n_folds=self._n_folds,
                    position=self._position,
                    done=self._done,
                    total=self._total,
                    solution=solution,
                )
            )
        self._position += 1


class _Paths:
    """Solves paths with common options."""

    def __init__(self, options: dict[str, Any], shares: _Shares, steps: _Steps) -> None:
        self._options, self._shares, self._steps = options, shares, steps

    def solve(self, problem: GTVProblem, **options: Any) -> LambdaPath:
        """Solve a whole path; one that Ctrl-C cut short is of no use."""
        path = lambda_path(
            problem,
            **options,
            **self._options,
            time_limit=self._shares.next(),
            callback=self._steps.take,
            verbose=False,
        )
        if path.status == "interrupted":
            raise KeyboardInterrupt("interrupted during cross-validation")
        return path


def _mean_error(
    held_out: Sequence[Mapping[str, Any]], w: FloatArray, scoring: Scoring | None, fold: int
) -> float:
    total, count = 0.0, 0
    for term in held_out:
        size = len(term["node"])
        if scoring is None:
            total += float(np.sum(own_errors(term, w)))
        else:
            total += size * _scored(scoring(*targets_and_predictions(term, w)))
        count += size
    mean = total / count
    if not math.isfinite(mean):
        raise ValueError(
            f"scoring: the mean error of fold {fold} is {mean}, a finite number is expected"
        )
    return mean


def _scored(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scoring: a number is expected, got {value!r}") from error
