"""Compare peers on one case: same instance, same run, alternating, all answers checked."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from families import Case
from peers import PEERS, Outcome, Task
from workers import Worker

import verify

# The reference is asked for this share of the smallest gap that is compared.
REFERENCE_SHARE = 0.1
# A peer of the kind "tolerance" tries the target, then a tenth of it, and so on.
TRIES = 4


@dataclass
class Settings:
    targets: list[float]
    repeats: int
    time_limit: float
    certify_up_to: int
    log: Callable[[str], None] = print


@dataclass
class Row:
    """One peer on one case at one target; None where a number is not known."""

    case: str
    series: str
    family: str
    n_nodes: int
    n_edges: int
    target: float
    peer: str
    reached: bool
    status: str
    seconds: float | None  # medians of the runs that reached the target
    own_seconds: float | None
    all_seconds: list[float]
    times: float | None  # seconds and own_seconds relative to gtvcvx's seconds
    own_times: float | None
    suboptimality: float | None  # true, relative: against the best lower bound known
    certificate: str  # by verify.certify, in exact arithmetic
    n_iter: int
    tolerance: float | None
    memory: float | None
    build_seconds: float
    trace: list[tuple[float, float]]  # seconds, suboptimality


class Comparison:
    """The peers on one case, with the best lower bound that any of them has proved so far."""

    def __init__(self, case: Case, peers: list[str], settings: Settings) -> None:
        self.case, self.settings = case, settings
        start = time.perf_counter()
        self.problem = case.problem()
        self.build_seconds = time.perf_counter() - start
        self.peers = [name for name in peers if PEERS[name].applies(self.problem)]
        self.lower, self.u = -np.inf, None
        self.offer(np.zeros((self.problem.graph.n_edges, self.problem.dim)))
        self.workers = {name: Worker(case, name) for name in {"gtvcvx", *self.peers}}

    def offer(self, u: np.ndarray | None) -> None:
        """Keep the bound of a flow if it is the best."""
        if u is not None:
            lower, flow = self.problem.lower_bound(u)
            if lower > self.lower:
                self.lower, self.u = lower, flow

    def gap(self, value: float) -> float:
        return (value - self.lower) / max(1.0, abs(value))

    def reached(self, outcome: Outcome, target: float) -> bool:
        return outcome.w is not None and self.gap(self.problem.value(outcome.w)) <= target

    def solve(self, peer: str, target: float, tolerance: float, limit: float) -> Outcome:
        goal = self.lower + target * max(1.0, abs(self.lower))
        outcome = self.workers[peer].solve(Task(target, goal, limit, tolerance))
        self.offer(outcome.u)
        return outcome

    def rows(self, target: float) -> list[Row]:
        """Run the peers in turn, so that what disturbs the machine disturbs all of them."""
        runs: dict[str, list[Outcome]] = {}
        tolerances: dict[str, float] = {}
        for _ in range(self.settings.repeats):
            for peer in self.peers:
                if peer not in runs:
                    outcome, tolerances[peer] = self._first(peer, target)
                    runs[peer] = [outcome]
                elif self.reached(runs[peer][0], target):
                    limit = self.settings.time_limit
                    runs[peer].append(self.solve(peer, target, tolerances[peer], limit))
        rows = [self._row(peer, target, runs[peer], tolerances[peer]) for peer in self.peers]
        ours = next((row.seconds for row in rows if row.peer == "gtvcvx"), None)
        for row in rows:
            if ours is not None and row.seconds is not None and row.own_seconds is not None:
                row.times, row.own_times = row.seconds / ours, row.own_seconds / ours
            self.settings.log(f"  {target:g} {_short(row)}")
        return rows

    def _first(self, peer: str, target: float) -> tuple[Outcome, float]:
        """First run, with the loosest tolerance whose answer is good enough, and which it was."""
        tries = TRIES if PEERS[peer].stops_by == "tolerance" else 1
        limit = self.settings.time_limit
        for tolerance in target * 0.1 ** np.arange(tries):
            outcome = self.solve(peer, target, float(tolerance), limit)
            if self.reached(outcome, target) or not outcome.seconds < limit:
                break
        return outcome, float(tolerance)

    def _row(self, peer: str, target: float, outcomes: list[Outcome], tolerance: float) -> Row:
        good = [outcome for outcome in outcomes if self.reached(outcome, target)]
        last = (good or outcomes)[-1]
        # Who proves gaps must have proved this one: being there is not enough.
        reached = bool(good) and (PEERS[peer].stops_by != "proof" or last.status == "optimal")
        gap = None if last.w is None else self.gap(self.problem.value(last.w))
        trace = [(t, self.gap(value)) for t, value in last.trace]
        graph = self.problem.graph
        return Row(
            case=str(self.case),
            series=self.case.series,
            family=self.case.family,
            n_nodes=graph.n_nodes,
            n_edges=graph.n_edges,
            target=target,
            peer=peer,
            reached=reached,
            status=last.status,
            seconds=statistics.median(o.seconds for o in good) if reached else None,
            own_seconds=statistics.median(o.own_seconds for o in good) if reached else None,
            all_seconds=[o.seconds for o in outcomes if np.isfinite(o.seconds)],
            times=None,
            own_times=None,
            suboptimality=gap,
            certificate=self._verdict(last, target) if good else "not reached",
            n_iter=last.n_iter,
            tolerance=tolerance if PEERS[peer].stops_by == "tolerance" else None,
            memory=last.memory if np.isfinite(last.memory) else None,
            build_seconds=self.build_seconds,
            trace=trace or ([] if gap is None else [(last.seconds, gap)]),
        )

    def _verdict(self, outcome: Outcome, target: float) -> str:
        """Let the exact kernel judge an answer, whoever's it is, with the best flow known."""
        if self.problem.graph.n_nodes > self.settings.certify_up_to:
            return "too large"
        return verify.certify(self.problem, outcome.w, self.u, rtol=target).status


def run_case(case: Case, peers: list[str], settings: Settings) -> list[Row]:
    """Run the peers that apply; returns their rows, at every target."""
    comparison = Comparison(case, peers, settings)
    try:
        # The reference gives the bound, and compiles whatever the timed runs need.
        target = REFERENCE_SHARE * min(settings.targets)
        reference = comparison.solve("gtvcvx", target, target, 2 * settings.time_limit)
        settings.log(f"{case}: reference {reference.status}, {reference.seconds:.3g} s")
        return [row for target in settings.targets for row in comparison.rows(target)]
    finally:
        for worker in comparison.workers.values():
            worker.close()


def _short(row: Row) -> str:
    if not row.reached:
        return f"{row.peer}: not reached ({row.status})"
    times = "" if row.times is None else f" ({row.times:.2f} x gtvcvx)"
    return f"{row.peer}: {row.seconds:.3g} s{times}, {row.certificate}"
