"""What `GTVProblem.solve` is given, which of it a solver takes, and refusals that name the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gtvcvx._arrays import is_integer
from gtvcvx._callbacks import SolveCallback
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver._limits import Limits

DEFAULT_RTOL = 1e-6
DEFAULT_ITERATIONS = 100_000
# [GTV] stops Algorithm 1 after a fixed number of iterations R; section VI takes 1000.
PAPER_ITERATIONS = 1000
STOPPING_RULES = ("gap", "objective", "iterations")


@dataclass(frozen=True)
class Options:
    """Options as the user gave them, None where they were left open; see `GTVProblem.solve`.

    Attributes
    ----------
    own : mapping
        Of the solver alone, by name.
    """

    rtol: float | None = None
    max_iter: int | None = None
    time_limit: float | None = None
    warm_start: Solution | None = None
    callback: SolveCallback | None = None
    verbose: bool | None = None
    stop: str | None = None
    own: Mapping[str, Any] = field(default_factory=dict)
    atol: float | None = None

    def __post_init__(self) -> None:
        check_positive("rtol", self.rtol)
        check_positive("time_limit", self.time_limit)
        if self.atol is not None and not (_is_finite("atol", self.atol) and self.atol >= 0):
            raise ValueError(f"atol: a finite number >= 0 is expected, got {self.atol!r}")
        if self.max_iter is not None and (not is_integer(self.max_iter) or self.max_iter < 1):
            raise ValueError(f"max_iter: a positive integer is expected, got {self.max_iter!r}")
        if self.callback is not None and not callable(self.callback):
            kind = type(self.callback).__name__
            raise TypeError(f"callback: a callable is expected, got {kind}")
        if self.warm_start is not None and not isinstance(self.warm_start, Solution):
            kind = type(self.warm_start).__name__
            raise TypeError(f"warm_start: a Solution is expected, got {kind}")
        if self.stop is not None and self.stop not in STOPPING_RULES:
            raise ValueError(f"stop: one of {STOPPING_RULES} is expected, got {self.stop!r}")

    def checked_start(self, problem: GTVProblem) -> Solution | None:
        """Return the warm start after checking that it fits the problem."""
        if self.warm_start is not None:
            problem.checked_w(self.warm_start.w, "warm_start.w")
            problem.checked_u(self.warm_start.u, "warm_start.u")
        return self.warm_start

    def limits(self, stop: str = "gap", max_iter: int | None = None) -> Limits:
        """Return the limits of a run that starts now.

        Parameters
        ----------
        stop : str
            The solver's default.
        max_iter : int, optional
            The solver's default. Default: that of iterations, which goes by the stopping rule.
        """
        stop = stop if self.stop is None else self.stop
        if max_iter is None:
            max_iter = PAPER_ITERATIONS if stop == "iterations" else DEFAULT_ITERATIONS
        return Limits(
            rtol=DEFAULT_RTOL if self.rtol is None else self.rtol,
            max_iter=max_iter if self.max_iter is None else self.max_iter,
            time_limit=math.inf if self.time_limit is None else self.time_limit,
            stop=stop,
            callback=self.callback,
            verbose=self.verbose,
            atol=self.atol,
        )


def check_positive(name: str, value: float | None) -> None:
    """Refuse, by name, what is neither a positive finite number nor None."""
    if value is not None and not (_is_finite(name, value) and value > 0):
        raise ValueError(f"{name}: a positive finite number is expected, got {value!r}")


def _is_finite(name: str, value: Any) -> bool:
    try:
        return math.isfinite(value)
    except TypeError:
        raise TypeError(f"{name}: a number is expected, got {value!r}") from None


@dataclass(frozen=True)
class Takes:
    """Which options a solver takes: what it refuses is declared here, and nowhere else.

    Attributes
    ----------
    refused : tuple of str
        Options that solvers have in common, but this one does not take.
    own : tuple of str, or None
        Options of its own; None if it gets whatever is given, and refuses by itself.
    reason : str
        Why it does not take the refused ones, or unknown ones; completes "NAME ...".
    error : type
        Of the refusal of an option that is neither in common nor its own.
    """

    refused: tuple[str, ...] = ()
    own: tuple[str, ...] | None = ()
    reason: str = "has no such option"
    error: type[Exception] = TypeError

    def check(self, name: str, options: Options) -> None:
        """Refuse an option that the solver does not take, by its name.

        Raises
        ------
        ValueError
            An option that other solvers take.
        TypeError, or what was declared
            An option that is not known.
        """
        for option in self.refused:
            if getattr(options, option) is not None:
                raise ValueError(f"{option}: {name} {self.reason}")
        for option in options.own if self.own is not None else ():
            if option not in (self.own or ()):
                raise self.error(f"{option}: {name} {self.reason}")
