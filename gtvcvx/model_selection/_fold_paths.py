"""Solutions without what each fold holds out, and its errors: in turn, or in several processes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, is_integer
from gtvcvx._callbacks import CrossValidationCallback, CrossValidationProgress
from gtvcvx._deadline import now, seconds_until
from gtvcvx._extras import extra_module
from gtvcvx._logging import room_logger
from gtvcvx._progress import ProgressDisplay
from gtvcvx.model_selection._errors import own_errors, targets_and_predictions
from gtvcvx.path import LambdaPath, lambda_path
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._options import check_positive

_LOG = room_logger("model_selection")
Scoring = Callable[[FloatArray, FloatArray], float]
# Hears of each solution.
Report = Callable[[Solution], None]


class FoldErrors(NamedTuple):
    """Mean errors of what a fold holds out, and the gaps of the solutions, (k,): those reached."""

    errors: FloatArray
    rel_gaps: FloatArray
    solutions: list[Solution]  # those that somebody wants to see; else none


class Steps:
    """Counts the solves of all paths, and tells display and callback.

    Parameters
    ----------
    n_folds, total : int
        Numbers of folds, and of solves of all paths.
    display : ProgressDisplay
    callback : callable, optional
    """

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

    @property
    def looks(self) -> bool:
        """Whether somebody wants to see the solutions."""
        return self._callback is not None

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

    def take_all(self, found: FoldErrors) -> None:
        """Count the solves of a fold that is done."""
        for solution in found.solutions:
            self.take(solution)
        if not found.solutions:
            self._done += len(found.errors)
            self._display.update(self._done, float(found.rel_gaps[-1]))


@dataclass(frozen=True)
class Fold:
    """What it takes to compute the errors of one fold, here or in another process.

    Attributes
    ----------
    number : int
    training : GTVProblem
        The problem without what the fold holds out.
    held_out : list of dict
        That, as terms.
    weights : list of ndarray
        How much the errors of the rows of each of them count.
    lams : ndarray, shape (k,)
    start : Solution
        For the largest lambda, of all data.
    scoring : callable, optional
    options : dict
        Of each solve.
    """

    number: int
    training: GTVProblem
    held_out: Sequence[Mapping[str, Any]]
    weights: Sequence[FloatArray]
    lams: FloatArray
    start: Solution
    scoring: Scoring | None
    options: Mapping[str, Any]

    def errors(
        self, seconds: float | None, report: Report | None = None, keep: bool = False
    ) -> FoldErrors:
        """Solve along the path, within so many seconds, and compare; keep the solutions, or not."""
        path = complete_path(
            self.training,
            seconds,
            report,
            lams=self.lams,
            warm_start=self.start,
            **self.options,
        )
        found = np.array([self._mean(solution.w) for solution in path])
        return FoldErrors(found, path.rel_gaps, path.solutions if keep else [])

    def _mean(self, w: FloatArray) -> float:
        """Mean error of what is held out, for w (n, d)."""
        total = 0.0
        for term, weights in zip(self.held_out, self.weights, strict=True):
            if self.scoring is None:
                total += float(weights @ own_errors(term, w))
            else:
                own = self.scoring(*targets_and_predictions(term, w))
                total += float(weights.sum()) * _scored(own)
        mean = total / self.weight
        if not math.isfinite(mean):
            raise ValueError(
                f"scoring: the mean error of fold {self.number} is {mean}, a finite number is "
                "expected"
            )
        return mean

    @property
    def size(self) -> int:
        """Number of data points that are held out."""
        return sum(map(len, self.weights))

    @property
    def weight(self) -> float:
        """Weight of all that is held out."""
        return float(sum(weights.sum() for weights in self.weights))


def complete_path(
    problem: GTVProblem, seconds: float | None, report: Report | None, **options: Any
) -> LambdaPath:
    """Solve along a path; one that Ctrl-C cut short is of no use."""
    path = lambda_path(problem, **options, time_limit=seconds, callback=report, verbose=False)
    if path.status == "interrupted":
        raise KeyboardInterrupt("interrupted during cross-validation")
    return path


class Shares:
    """Shares out what is left of a time limit.

    Parameters
    ----------
    time_limit : float, optional
        Seconds, from now on.
    """

    def __init__(self, time_limit: float | None) -> None:
        check_positive("time_limit", time_limit)
        self._end = math.inf if time_limit is None else now() + time_limit

    def of(self, count: int) -> float | None:
        """Return the seconds of each of so many that follow; None if there is no limit."""
        return seconds_until(self._end, 1.0 / count)


def worker_count(n_jobs: int | None, n_folds: int) -> int:
    """Return how many processes work at the same time.

    Raises
    ------
    ValueError
        Naming ``n_jobs``.
    ImportError
        joblib is not there, and more than one is asked for.
    """
    if n_jobs is None:
        return 1
    if not is_integer(n_jobs) or n_jobs == 0:
        raise ValueError(
            f"n_jobs: a number of processes, or -1 for one a core, is expected, got {n_jobs!r}"
        )
    if n_jobs == 1:
        return 1
    joblib = extra_module("joblib", "ml", "several processes")
    return min(int(joblib.effective_n_jobs(int(n_jobs))), n_folds)


def errors_of_folds(
    folds: Iterator[Fold], n_folds: int, workers: int, shares: Shares, steps: Steps
) -> Iterator[FoldErrors]:
    """Errors of each fold, in their order; ``steps`` hears of the solutions.

    Several processes, not threads: these would wait for each other, and numba's own threads must
    not be started from two of them. Each has its share of the cores for numba (joblib sees to it).
    """
    if workers == 1:
        for k, fold in enumerate(folds):
            steps.begin(k)
            _LOG.info("fold %d of %d: %d data held out", k + 1, n_folds, fold.size)
            yield fold.errors(shares.of(n_folds - k), steps.take)
        return
    joblib = extra_module("joblib", "ml", "several processes")
    # Arrays as copies: in memory that is mapped they cannot be written, and compiled functions,
    # which are cached for arrays that can, would all be compiled again.
    pool = joblib.Parallel(workers, backend="loky", max_nbytes=None, return_as="generator")
    seconds = shares.of(math.ceil(n_folds / workers))
    _LOG.info("%d folds in %d processes", n_folds, workers)
    run = joblib.delayed(_outcome)
    failure: Exception | None = None
    for k, found in enumerate(pool(run(fold, seconds, steps.looks) for fold in folds)):
        if isinstance(found, Exception):
            failure = failure or found
        if failure is None:
            steps.begin(k)
            steps.take_all(found)
            yield found
    if failure is not None:
        raise failure


def _outcome(fold: Fold, seconds: float | None, keep: bool) -> FoldErrors | Exception:
    """Errors of a fold, or what was raised: so the first fold that fails is told, in their order.

    Left to the pool, the one that fails first by the clock would be: not the same every time.
    """
    try:
        return fold.errors(seconds, keep=keep)
    except Exception as error:
        return error


def _scored(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"scoring: a number is expected, got {value!r}") from error
