"""What callbacks are shown, and what they may answer.

A callback is any function of one argument. It is typed as a protocol, for those who check their own
code; nothing has to inherit from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gtvcvx._arrays import FloatArray
from gtvcvx.solution import Solution
from verify._display import fields_text


@dataclass(frozen=True)
class Progress:
    """What a callback of `GTVProblem.solve` sees at every check: the incumbent and its bounds.

    Attributes
    ----------
    n_iter : int
        Iterations so far.
    seconds : float
        Wall-clock time since the start, compilation included.
    w, u : ndarray, shapes (n, d) and (m, d)
        The best point and the best flow so far.
    value, dual_value : float
        P(w), and the lower bound on the optimum that u gives.
    gap, rel_gap : float
        value - dual_value, and that over max(1, abs(value)).
    """

    n_iter: int
    seconds: float
    w: FloatArray
    u: FloatArray
    value: float
    dual_value: float
    gap: float
    rel_gap: float

    __repr__ = fields_text


@dataclass(frozen=True)
class CrossValidationProgress:
    """What a callback of `cross_validate` sees after every solve.

    Attributes
    ----------
    fold : int or None
        The fold that is held out; None while the path of all data is solved, which comes first.
    n_folds : int
    position : int
        Of the value of lambda, 0 for the largest.
    done, total : int
        Solves so far, and of all paths if none is cut short.
    solution : Solution
        The latest one.
    """

    fold: int | None
    n_folds: int
    position: int
    done: int
    total: int
    solution: Solution

    __repr__ = fields_text


@dataclass(frozen=True)
class RoundProgress:
    """What a callback of `federated.simulate` sees at every record.

    Attributes
    ----------
    round : int
    record : dict
        The columns of the history.
    w : ndarray
        Vectors of the problem's nodes, as in `Run`.
    models : ndarray, shape (n, d)
        Each client's model, as in `Run`.
    """

    round: int
    record: dict[str, float]
    w: FloatArray
    models: FloatArray

    __repr__ = fields_text


class SolveCallback(Protocol):
    """Callback of `GTVProblem.solve`."""

    def __call__(self, progress: Progress, /) -> object:
        """Look at a check of the gap; a true value stops the solve."""


class PathCallback(Protocol):
    """Callback of `lambda_path`."""

    def __call__(self, solution: Solution, /) -> object:
        """Look at the solution for a value of lambda; a true value ends the path."""


class CrossValidationCallback(Protocol):
    """Callback of `cross_validate`."""

    def __call__(self, progress: CrossValidationProgress, /) -> object:
        """Look at a solve. What is returned is not used: errors of some folds would mislead."""


class RoundCallback(Protocol):
    """Callback of `federated.simulate`."""

    def __call__(self, progress: RoundProgress, /) -> object:
        """Look at a record; a true value stops the run."""
