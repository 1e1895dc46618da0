"""Where lambda of the linear models comes from: given, by its scale, or by cross-validation."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, is_integer
from gtvcvx.estimators._base import NetworkModel, node_weights
from gtvcvx.estimators._rows import Data
from gtvcvx.estimators._solving import Solving
from gtvcvx.losses import SquaredLoss
from gtvcvx.model_selection import CrossValidation, cross_validate
from gtvcvx.path._critical import critical
from gtvcvx.path._solve import NoLambdaMax
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

AUTO = "auto"
# lambda="auto" is this share of lambda_max over the square root of the rows a node: what lambda has
# to outweigh is the noise in the means of nodes, which falls like that. Measured on maps of
# counties and on clustered models (docs/decisions/automatic-lambda.md).
SHARE = 0.1
# lambda_max is needed for its scale alone.
LAMBDA_MAX_RTOL = 0.05
# Any will do where lambda_max is zero: all lead to the same models.
ANY_LAMBDA = 1.0


@dataclass(kw_only=True, repr=False, eq=False)
class GivenLambda(NetworkModel):
    """A model whose lambda is given, or a share of `lambda_max`."""

    lam: float | str = AUTO

    def _solved(
        self, problem: GTVProblem, solving: Solving, data: Data, kept: BoolArray, at: IntArray
    ) -> Solution:
        if not isinstance(self.lam, str):
            self.lam_ = self.lam
        elif self.lam == AUTO:
            self.lam_ = automatic_lambda(problem, data, solving.end)
        else:
            raise ValueError(f"lam: a number > 0 or {AUTO!r} is expected, got {self.lam!r}")
        self.problem_ = problem.with_lam(self.lam_)
        return solving.solve(self.problem_)


def automatic_lambda(problem: GTVProblem, data: Data, end: float) -> float:
    """Return 0.1 lambda_max over the square root of the mean number of rows at nodes with rows."""
    if not problem.penalty.is_norm:
        raise ValueError(
            f"lam: a number is expected for the penalty {problem.penalty.name!r}, which is not a "
            f"norm; {AUTO!r} is a share of lambda_max, and there is none"
        )
    if not problem.graph.n_edges:
        return ANY_LAMBDA
    with warnings.catch_warnings():
        # How tight the bounds are does not matter here.
        warnings.filterwarnings("ignore", message="lambda_max lies between")
        found = critical(problem, LAMBDA_MAX_RTOL, verbose=False, end=end)
    largest = found.upper if math.isfinite(found.upper) else found.lower
    rows_a_node = len(data.node) / len(np.unique(data.node))
    return SHARE * largest / math.sqrt(rows_a_node) or ANY_LAMBDA


@dataclass(kw_only=True, repr=False, eq=False)
class CrossValidatedLambda(NetworkModel):
    """A model whose lambda is chosen by `cross_validate`."""

    lams: int | ArrayLike = 20
    min_ratio: float = 1e-3
    cv: Any = 5
    over: str = "points"
    rule: str = "min"
    seed: int = 0
    n_jobs: int | None = None

    cv_path_: CrossValidation = field(init=False)

    def _solved(
        self, problem: GTVProblem, solving: Solving, data: Data, kept: BoolArray, at: IntArray
    ) -> Solution:
        if len(kept) < 2:
            raise ValueError("cv: at least two rows are expected, got n_samples=1")
        order = self._order_of_errors(data)
        weight = np.ones(len(order)) if data.weight is None else data.weight
        options: dict[str, Any] = {
            "cv": self._folds(data, kept, at, order),
            "over": self.over,
            "rule": self.rule,
            "seed": self.seed,
            "solver": self.solver,
            "max_iter": self.max_iter,
            "verbose": bool(self.verbose),
            # None is what joblib.parallel_config says, as for scikit-learn's estimators.
            "n_jobs": joblib.effective_n_jobs(None) if self.n_jobs is None else self.n_jobs,
            "error_weight": weight[order],
            **solving.tolerances,
        }
        grid = {"n_lams": self.lams} if is_integer(self.lams) else {"lams": self.lams}
        try:
            found = cross_validate(
                problem, **grid, min_ratio=self.min_ratio, time_limit=solving.left, **options
            )
        except NoLambdaMax:
            found = cross_validate(problem, [ANY_LAMBDA], time_limit=solving.left, **options)
        self.cv_path_, self.lam_ = found, found.lam
        self.problem_ = problem.with_lam(found.lam)
        return found.solution

    def _order_of_errors(self, data: Data) -> IntArray:
        """Return the rows (N,) in the order in which the losses keep them.

        Losses with weights and without are kept apart. Those whose targets are the numbers of the
        rows show in which order.
        """
        n_nodes = self.graph_.n_nodes
        numbers = np.arange(len(data.node), dtype=np.float64)
        losses = SquaredLoss.from_rows(None, numbers, data.node, n_nodes, sample_weight=data.weight)
        if self.weighting == "rows":
            losses = losses * node_weights(data, n_nodes)
        return np.concatenate([term["y"] for term in losses.terms()]).astype(np.int64)

    def _folds(self, data: Data, kept: BoolArray, at: IntArray, order: IntArray) -> int | IntArray:
        """Return what `cross_validate` takes for folds."""
        if is_integer(self.cv):
            return int(self.cv)
        if self.over == "nodes":
            return folds_of(self.cv, np.zeros(self.graph_.n_nodes), None)
        targets = np.full(len(kept), data.y.min() - 1.0)  # a class of their own where missing
        targets[kept] = data.y
        return folds_of(self.cv, targets, at)[kept][order]


def folds_of(cv: Any, targets: FloatArray, groups: IntArray | None) -> IntArray:
    """Fold of each item (N,), -1 where it is in none.

    Parameters
    ----------
    cv : splitter, iterable of (train, test), or array_like of int
        See `NetworkLinearRegressionCV`.
    targets : ndarray, shape (N,)
        For splitters that look at them.
    groups : ndarray, shape (N,), optional
        Likewise: nodes.
    """
    count = len(targets)
    if hasattr(cv, "split") and not isinstance(cv, str):
        with warnings.catch_warnings():
            # Those that need groups have them; the others say that they do not.
            warnings.filterwarnings("ignore", message="The groups parameter is ignored")
            return _fold_numbers(cv.split(np.zeros((count, 1)), targets, groups), count)
    if not isinstance(cv, Iterable) or isinstance(cv, str):
        raise TypeError(
            "cv: a number of folds, the fold of each item, a splitter or pairs of train and test "
            f"positions are expected, got {cv!r}"
        )
    items = list(cv)
    if not all(is_integer(item) for item in items):
        return _fold_numbers(items, count)
    if len(items) != count:
        raise ValueError(f"cv: the fold of each of {count} items is expected, got {len(items)}")
    return np.array(items, dtype=np.int64)


def _fold_numbers(splits: Iterable[Any], count: int) -> IntArray:
    """Fold of each of so many items, from pairs of train and test positions or masks."""
    numbers = np.full(count, -1)
    for k, (train, test) in enumerate(splits):
        held_out, rest = np.zeros((2, count), dtype=bool)
        held_out[np.asarray(test)] = True
        rest[np.asarray(train)] = True
        if np.any(held_out == rest):
            raise ValueError(
                f"cv: fold {k} has to train on all that it does not hold out, and on nothing else"
            )
        twice = np.flatnonzero(held_out & (numbers >= 0))
        if twice.size:
            raise ValueError(
                f"cv: item {int(twice[0])} is held out by folds {int(numbers[twice[0]])} and {k}, "
                "once is expected"
            )
        numbers[held_out] = k
    return numbers
