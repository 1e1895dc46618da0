"""One instance of the fuzz: solved by gtvcvx and by Clarabel, judged, and certified."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import clarabel
import numpy as np
import truth
from fuzz_instance import Instance

import gtvcvx as gtv
import verify
from gtvcvx._deadline import now
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._losses import add_losses
from gtvcvx.solvers.interior_point._penalties import add_penalty
from gtvcvx.solvers.interior_point._program import Program
from gtvcvx.solvers.interior_point._written import add_written_losses

TARGET = 1e-6  # relative gap to be proved
# The answer must be proved within so many times its solve time, or so many seconds.
CERTIFY_TIMES, CERTIFY_SECONDS = 10.0, 2.0
# A call below this is timed a second time, and the faster one counts: a single one may load
# compiled code, or find the caches of the machine taken by somebody else.
TWICE_BELOW = 3.0
# A run that compiles for so long is run again: solves are timed once everything is compiled.
COMPILED = 0.02
TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11, "max_iter": 500}
# Times what rounding may change by the estimate, which counts each digit once.
ROUNDING = 4.0


@dataclass
class Trial:
    """What happened to one instance; times are CPU seconds, None where there are none."""

    name: str
    loss: str
    penalty: str
    shape: str
    scale: str
    n_nodes: int
    n_edges: int
    dim: int
    n_rows: int
    lam: float
    status: str = ""
    method: str = ""
    switched: str = ""
    n_iter: int = 0
    value: float | None = None
    rel_gap: float | None = None
    seconds: float | None = None
    wall: float | None = None
    clarabel: float | None = None  # alone, on the model of CVXPY
    modelling: float | None = None  # what CVXPY takes beside it
    clarabel_status: str = ""
    clarabel_error: float | None = None  # true suboptimality of its answer, relative
    direct: float | None = None  # Clarabel on our conic program, building it included
    direct_status: str = ""
    best: float | None = None  # lowest objective that anybody found
    best_by: str = ""
    error: float | None = None  # true suboptimality of our answer, relative
    certificate: str = ""
    certify_seconds: float | None = None
    certify_reason: str = ""
    faults: list[str] = field(default_factory=list)  # never to happen, however hard the instance

    @property
    def solved(self) -> bool:
        return self.status == "optimal" and self.rel_gap is not None and self.rel_gap <= TARGET

    @property
    def right(self) -> bool:
        """Whether w is good enough, proved or not."""
        return self.error is not None and self.error <= TARGET

    @property
    def provable(self) -> bool:
        return self.certificate != "no rule"

    @property
    def certified(self) -> bool:
        """Whether it was proved in time."""
        if self.certificate != "CERTIFIED" or self.certify_seconds is None or self.seconds is None:
            return False
        return self.certify_seconds <= max(CERTIFY_TIMES * self.seconds, CERTIFY_SECONDS)

    def ratio(self, peer: str) -> float | None:
        """Our time over that of "clarabel" or "direct", where that answer is good enough too."""
        seconds = getattr(self, peer)
        right = self.clarabel_error is not None and self.clarabel_error <= TARGET
        if not seconds or self.seconds is None or not right:
            return None
        return self.seconds / seconds


def described(instance: Instance) -> Trial:
    """Return the trial of an instance that nothing has happened to."""
    return Trial(
        name=instance.name,
        loss=instance.loss,
        penalty=instance.penalty_name,
        shape=instance.shape,
        scale=instance.scale,
        n_nodes=instance.n,
        n_edges=len(instance.edges),
        dim=instance.dim,
        n_rows=sum(len(rows.y) for rows in instance.rows),
        lam=instance.lam,
    )


def warm_up(instance: Instance, limit: float) -> None:
    """Solve and prove a small instance of the same kind, so that what it needs is compiled."""
    try:
        problem = instance.problem()
        found = problem.solve(rtol=TARGET, max_iter=2_000, time_limit=limit, verbose=False)
        verify.certify(problem, found.w, found.u, rtol=TARGET, time_limit=limit)
    except Exception:  # the instance itself will say what is wrong
        return


def run(instance: Instance, limit: float, threads: int) -> Trial:
    """Solve, compare and certify; whatever goes wrong is in the trial."""
    trial = described(instance)
    judge = _Judge(instance, trial)
    ours = _ours(instance, trial, limit)
    options = {"time_limit": limit, "max_threads": threads}
    built = truth.model(instance)
    answer = _faster(lambda: truth.solve(built, "CLARABEL", **options), lambda a: a.seconds)
    trial.clarabel_status, trial.clarabel = answer.status, _known(answer.seconds)
    trial.modelling = _known(answer.modelling)
    judge.offer("clarabel", answer.w)
    _direct(instance, trial, judge, limit, threads)
    judge.offer("clarabel, tight", truth.solve(built, "CLARABEL", **options, **TIGHT).w)
    if judge.best_by == "":
        judge.offer("scs", truth.solve(built, "SCS", time_limit_secs=limit).w)
    if ours is not None:
        judge.ours(ours)
    judge.clarabel(answer.w)
    if ours is not None and instance.exact:
        _certify(instance, trial, ours, limit)
    elif not instance.exact:
        trial.certificate = "no rule"
    return trial


def _known(seconds: float) -> float | None:
    return None if math.isnan(seconds) else seconds


def _faster(call: Callable[[], Any], seconds: Callable[[Any], float]) -> Any:
    first = call()
    if not seconds(first) < TWICE_BELOW:
        return first
    second = call()
    return second if seconds(second) < seconds(first) else first


def _ours(instance: Instance, trial: Trial, limit: float) -> gtv.Solution | None:
    def call() -> tuple[gtv.Solution, float, float]:
        while True:
            problem = instance.problem()
            wall, cpu, counted = time.perf_counter(), time.process_time(), now()
            found = problem.solve(rtol=TARGET, time_limit=limit, verbose=False)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            # A small instance does not need, and compile, all that a larger one does.
            if wall - (now() - counted) < COMPILED:
                return found, cpu, wall

    try:
        found, trial.seconds, trial.wall = _faster(call, lambda result: result[1])
    except Exception as error:
        trial.status = "exception"
        trial.faults.append(f"exception: {_place(error)}")
        return None
    trial.status, trial.n_iter = found.status, int(found.n_iter)
    trial.value, trial.rel_gap = _finite(found.value), _finite(found.rel_gap)
    trial.method = str(found.info.get("method", found.solver))
    trial.switched = str(found.info.get("switched", ""))
    if not (np.isfinite(found.w).all() and np.isfinite(found.u).all()):
        trial.faults.append("w or u is not finite")
        return None
    return found


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None


def _place(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "/".join(last.filename.split("/")[-2:])
    return f"{type(error).__name__}: {error} ({where}:{last.lineno})"[:300]


def _direct(instance: Instance, trial: Trial, judge: _Judge, limit: float, threads: int) -> None:
    """Time Clarabel, with its own default tolerances, on the conic program of gtvcvx."""
    problem = instance.problem()
    if any(condition(problem) for condition in InteriorPoint.requires):
        trial.direct_status = "does not apply"
        return

    def call() -> tuple[Any, float]:
        fresh = instance.problem()
        settings = clarabel.DefaultSettings()
        settings.verbose, settings.time_limit, settings.max_threads = False, limit, threads
        start = time.process_time()
        shape = fresh.graph.n_nodes, fresh.dim
        program = Program(shape[0] * shape[1])
        coordinates = np.arange(program.size).reshape(shape)
        add_losses(program, fresh.losses.plain, coordinates)
        add_written_losses(program, fresh.losses, coordinates)
        add_penalty(program, fresh)
        answer = program.solver(settings).solve()
        return answer, time.process_time() - start

    try:
        answer, trial.direct = _faster(call, lambda result: result[1])
    except Exception as error:
        trial.direct_status = f"exception: {_place(error)}"
        return
    trial.direct_status = str(answer.status)
    size = instance.n * instance.dim
    judge.offer("clarabel, direct", np.array(answer.x)[:size].reshape(instance.n, instance.dim))


class _Judge:
    """Knows the lowest objective that anybody found, by the benchmark's own evaluation."""

    def __init__(self, instance: Instance, trial: Trial) -> None:
        self.instance, self.trial = instance, trial
        self.best, self.best_by = np.inf, ""

    def offer(self, by: str, w: np.ndarray | None) -> float:
        """Take a candidate; return its objective."""
        if w is None or not np.isfinite(w).all():
            return np.inf
        value, _ = truth.value(self.instance, truth.feasible(self.instance, w))
        if value < self.best:
            self.best, self.best_by = value, by
        return value

    def ours(self, found: gtv.Solution) -> None:
        """Compare our answer, its value and its gap with what is true."""
        trial = self.trial
        value, digits = truth.value(self.instance, found.w)
        rounding = ROUNDING * digits
        off = truth.violation(self.instance, found.w)
        if off > 1e-9 * max(1.0, float(np.abs(found.w).max())):
            trial.faults.append(f"w breaks a constraint by {off:.1e}")
        if not abs(value - found.value) <= rounding:
            trial.faults.append(f"value {found.value!r} at w where the model has {value!r}")
        beyond = value - self.best - found.gap
        if not beyond <= rounding:
            trial.faults.append(f"gap {found.gap:.3e} below the suboptimality, by {beyond:.1e}")
        self.offer("gtvcvx", found.w)
        trial.best, trial.best_by = _finite(self.best), self.best_by
        trial.error = self.error(value)

    def clarabel(self, w: np.ndarray | None) -> None:
        """Say how good Clarabel's answer is."""
        error = self.error(self.offer("clarabel", w))
        self.trial.clarabel_error = _finite(error)
        self.trial.best, self.trial.best_by = _finite(self.best), self.best_by

    def error(self, value: float) -> float:
        return (value - self.best) / max(1.0, abs(value)) if math.isfinite(value) else np.inf


def _certify(instance: Instance, trial: Trial, found: gtv.Solution, limit: float) -> None:
    """Let the exact kernel judge our answer, for as long as it may take."""
    problem = instance.problem()
    allowed = max(CERTIFY_TIMES * (trial.seconds or 0.0), CERTIFY_SECONDS)
    # Longer by the clock: on a machine that others use the CPU time is what counts.
    clock = min(4 * allowed, 2 * limit)
    start = time.process_time()
    try:
        proof = verify.certify(problem, found.w, found.u, rtol=TARGET, time_limit=clock)
    except Exception as error:
        trial.certificate = "exception"
        trial.faults.append(f"certify, exception: {_place(error)}")
        return
    trial.certify_seconds = time.process_time() - start
    trial.certificate, trial.certify_reason = proof.status, proof.reason[:300]
    if proof.status == "REFUTED" and trial.right:
        trial.faults.append("a right answer is REFUTED")


def killed(trial: Trial, reason: str) -> Trial:
    """Return the trial of an instance whose process had to be stopped."""
    return replace(trial, status="killed", faults=[reason])
