"""`verify.conformance`: run any solver through a battery of instances and prove what it returns."""

from __future__ import annotations

import copy
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify.battery._instances import LOSSES, PENALTIES, Case, battery
from verify.battery._report import ConformanceReport, Row
from verify.certificates._entry import certify
from verify.instance._instance import as_table

Solver = Callable[[dict[str, Any]], Any]


def conformance(
    solver: Solver,
    *,
    rtol: float = 1e-6,
    seed: int = 0,
    penalties: Sequence[str] = PENALTIES,
    losses: Sequence[str] = LOSSES,
    time_limit: float | None = None,
    verbose: bool | None = None,
) -> ConformanceReport:
    """Run a solver on planted and random instances, and certify each answer exactly.

    The instances are small; what varies is what solvers get wrong: several components, isolated
    nodes, nodes and whole components without data, fewer data points than dimensions, d = 1 and
    d = 6, chains, stars, grids, stochastic block models, exact ties, very large and very small
    lambda, weights over six orders of magnitude, and instances whose solution was planted.

    Parameters
    ----------
    solver : callable
        ``solver(data)`` gets the plain data of a problem (verify/SCHEMA.md, arrays as NumPy
        arrays; a copy that it may change) and returns w of shape (n, d), or ``(w, u)`` with the
        edge flows u of shape (m, d), or an object with attributes ``w`` and ``u``. It should solve
        somewhat more accurately than rtol, because what it returns has to be proved to rtol. If it
        returns u, the pair is judged: a u that does not prove w fails.
    rtol : float
        Relative gap to prove, gap / max(1, |upper|).
    seed : int
        Of the instances, >= 0; the same seed gives the same data.
    penalties, losses : sequence of str
        Kinds that the solver supports, among ``"l2", "l1", "linf", "squared"`` and ``"squared",
        "point", "mixed"``. Default: all.
    time_limit : float, optional
        Seconds after which no further instance is started. A running solver is not interrupted.
    verbose : bool, optional
        True: report each instance on standard error. False: never. Default: one line that is
        rewritten, on a terminal only.

    Returns
    -------
    ConformanceReport
        With ``rows``, ``passed``, ``str(report)`` as a table and ``to_dict()``. An exception, NaN
        or another shape is an ERROR in its row. After Ctrl-C or the time limit: what ran, and
        ``passed`` is False.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    _check(solver, rtol, seed, time_limit)
    _check_kinds("penalties", penalties, PENALTIES)
    _check_kinds("losses", losses, LOSSES)
    start = time.perf_counter()
    cases = battery(seed, tuple(penalties), tuple(losses))
    rows: list[Row] = []
    stopped = ""
    display = _Display(len(cases), verbose)
    try:
        for number, make in enumerate(cases):
            if time_limit is not None and time.perf_counter() - start >= time_limit:
                stopped = "time limit"
                break
            case = make()
            display.start(number, case.name)
            rows.append(_row(solver, case, rtol))
            display.done(rows[-1])
    except KeyboardInterrupt:
        stopped = "interrupted"
    finally:
        display.close()
    seconds = time.perf_counter() - start
    return ConformanceReport(tuple(rows), len(cases), rtol, seed, seconds, stopped)


def _check(solver: Any, rtol: float, seed: int, time_limit: float | None) -> None:
    if not callable(solver):
        raise TypeError(f"solver: a callable is expected, got {type(solver).__name__}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"seed: an integer is expected, got {seed!r}")
    if seed < 0:
        raise ValueError(f"seed: an integer >= 0 is expected, got {seed}")
    for name, value in (("rtol", rtol), ("time_limit", time_limit)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}: a positive finite number is expected, got {value!r}")


def _check_kinds(name: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    unknown = [kind for kind in chosen if kind not in known]
    if isinstance(chosen, str) or not chosen or unknown:
        raise ValueError(f"{name}: a sequence of names among {known} is expected, got {chosen!r}")


def _row(solver: Solver, case: Case, rtol: float) -> Row:
    data = case.data
    n, m, d = data["n_nodes"], len(data["edges"]), data["dim"]
    start = time.perf_counter()
    try:
        # The solver gets a copy: what is judged must not depend on what it does to its input.
        with warnings.catch_warnings():
            # Some instances have a large lambda on purpose; gtvcvx warns of it (ConsensusWarning).
            warnings.filterwarnings("ignore", "all nodes agree")
            answer = solver(copy.deepcopy(data))
        seconds = time.perf_counter() - start
        w, u = _unpacked(answer, n, m, d)
    except (Exception, SystemExit) as error:
        seconds = time.perf_counter() - start
        judged = "ERROR", math.inf, f"{type(error).__name__}: {_one_line(error)}"
    else:
        judged = _judged(case, w, u, rtol)
    status, rel_gap, reason = judged
    kind = data["penalty"]["kind"]
    return Row(case.name, n, m, d, kind, case.losses, status, rel_gap, seconds, reason)


def _unpacked(answer: Any, n: int, m: int, d: int) -> tuple[FloatArray, FloatArray | None]:
    """Return w and u as arrays, or raise ValueError with what is wrong with them."""
    if isinstance(answer, tuple):
        if len(answer) != 2:
            raise ValueError(f"w or (w, u) is expected, got a tuple of length {len(answer)}")
        w, u = answer
    elif hasattr(answer, "w") and hasattr(answer, "u"):
        w, u = answer.w, answer.u
    else:
        w, u = answer, None
    return _real_table(w, (n, d), "w"), None if u is None else _real_table(u, (m, d), "u")


def _real_table(value: Any, shape: tuple[int, int], name: str) -> FloatArray:
    if np.iscomplexobj(value):
        raise ValueError(f"{name} is complex")
    return as_table(value, shape, name)


def _judged(case: Case, w: FloatArray, u: FloatArray | None, rtol: float) -> tuple[str, float, str]:
    """Return (status, proved relative gap, reason)."""
    problem = _Problem(case, w)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # where a solver has diverged
            certificate = certify(problem, w, u, rtol)
    except Exception as error:  # a fault of ours must not pass, nor end the run
        return "UNPROVED", math.inf, f"verify.certify failed: {_one_line(error)}"
    status, rel_gap, reason = certificate.status, certificate.rel_gap, certificate.reason
    if status == "CERTIFIED" and u is not None and problem.asked:
        status = "UNPROVED"
        reason = (
            "w is within rtol, as another flow proves, but the u returned with it does not prove "
            "it, even after repair; see the sign and the orientation of u"
        )
    return status, rel_gap, _one_line(reason)


@dataclass
class _Problem:
    """The case as a problem object that notices when `certify` asks for another flow.

    `certify` asks only where the flow that it was given does not prove w. The answer is the planted
    solution, which is also the better point that refutes w; without one, no flow at all.
    """

    case: Case
    w: FloatArray
    asked: bool = False

    def to_data(self) -> dict[str, Any]:
        return self.case.data

    def solve(self, rtol: float) -> Any:
        self.asked = True
        if self.case.solution is not None:
            w, u = self.case.solution
            return SimpleNamespace(w=w, u=u)
        return SimpleNamespace(
            w=self.w, u=np.zeros((len(self.case.data["edges"]), self.w.shape[1]))
        )


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


class _Display:
    """Progress on standard error: a line for each instance, or one that is rewritten."""

    def __init__(self, planned: int, verbose: bool | None) -> None:
        self.planned = planned
        stream = sys.stderr  # None without a console
        self.rewrites = verbose is None and stream is not None and stream.isatty()
        self.lines = bool(verbose) and stream is not None
        self.stream: Any = stream
        self.width = 0

    def start(self, number: int, name: str) -> None:
        if self.rewrites:
            line = f"conformance {number + 1}/{self.planned}: {name}"
            self._write("\r" + line.ljust(self.width))
            self.width = len(line)

    def done(self, row: Row) -> None:
        if self.lines:
            self._write(f"{row.instance}: {row.status}, {row.seconds:.3f} s\n")

    def close(self) -> None:
        if self.width:
            self._write("\r" + " " * self.width + "\r")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()
