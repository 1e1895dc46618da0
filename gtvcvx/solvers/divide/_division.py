"""Exact solution of scalar total variation problems by divide and conquer with maximum flows.

For d = 1, or the l1 norm and losses that are separable, every coordinate is a scalar problem with
a quadratic loss. Its solution falls into clusters, and whether a cluster splits at its own
minimizer is decided by one maximum flow [1]_, [2]_; the last flows are the optimal u. Rounds split
all clusters at once; five to twenty are enough.

References
----------
.. [1] D. S. Hochbaum, "An efficient algorithm for image segmentation, Markov random fields and
   related problems", J. ACM 48, 2001: decomposition by thresholds.
.. [2] A. Chambolle, J. Darbon, "On total variation minimization and surface evolution using
   parametric maximum flows", IJCV 84, 2009.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from types import TracebackType

import numba as nb
import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._progress import Progress as Display
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Record, Solution
from gtvcvx.solvers.divide._network import Skeleton
from gtvcvx.solvers.divide._scalar_division import ScalarDivision
from gtvcvx.solvers.divide._scalar_problems import ScalarProblems
from gtvcvx.solvers.driver._incumbent import Incumbent
from gtvcvx.solvers.driver._limits import Limits
from gtvcvx.solvers.driver._schedule import CHECK_SHARE

METHOD = "divide and conquer"
# Rounds on fewer nodes than this are over before a second thread has started.
_PARALLEL_NODES = 20_000


class Division:
    """Divide and conquer over all coordinates of w, a few of them at a time.

    Use it as a context manager: it holds threads.

    Attributes
    ----------
    n_iter : int
        Rounds so far.
    """

    def __init__(self, problem: GTVProblem, scalars: ScalarProblems) -> None:
        self._scalars = scalars
        self._skeleton = Skeleton(problem.graph)
        self._threads = nb.get_num_threads()
        self._pool = ThreadPoolExecutor(self._threads)
        self._w = np.zeros((problem.graph.n_nodes, problem.dim))
        self._u = np.zeros((problem.graph.n_edges, problem.dim))
        self._waiting = list(reversed(range(problem.dim)))
        self._running: dict[int, ScalarDivision] = {}
        self.n_iter = 0

    def __enter__(self) -> Division:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()

    @property
    def finished(self) -> bool:
        """Whether the solution has been found."""
        return not (self._waiting or self._running)

    def run(self) -> None:
        """Do one round: split every cluster of the coordinates that are being worked on."""
        while self._waiting and len(self._running) < self._threads:
            k = self._waiting.pop()
            self._running[k] = ScalarDivision(
                self._skeleton,
                self._scalars.curvature[:, k],
                self._scalars.linear[:, k],
                self._scalars.capacities,
            )
        size = sum(division.size for division in self._running.values())
        tasks = [task for division in self._running.values() for task in division.tasks()]
        self._do(tasks, parallel=size >= _PARALLEL_NODES)
        for k, division in list(self._running.items()):
            division.conclude()
            if division.finished:
                self._w[:, k], self._u[:, k] = division.x(), division.flow()
                del self._running[k]
        self.n_iter += 1

    def _do(self, tasks: Sequence[Callable[[], None]], parallel: bool) -> None:
        if parallel and len(tasks) > 1 and self._threads > 1:
            futures = [self._pool.submit(task) for task in tasks]
            try:
                for done in futures:
                    done.result()
            finally:
                # After Ctrl-C too nobody may look at the flow while it is being changed.
                wait(futures)
        else:
            for task in tasks:
                task()

    def w(self) -> FloatArray:
        """Return the thresholds of the clusters so far, (n, d)."""
        for k, division in self._running.items():
            self._w[:, k] = division.x()
        return self._w

    def u(self) -> FloatArray:
        """Return the flow so far, (m, d); it is optimal in the coordinates that are finished."""
        for k, division in self._running.items():
            self._u[:, k] = division.flow()
        return self._u


class DivisionRun:
    """A run of divide and conquer under limits, with its checks of the gap.

    The gap of the result is always checked. Between rounds only w is new, since a flow that is
    still being routed bounds nothing; that is looked at after every round if there is a callback,
    and otherwise if it costs a small share of the run.
    """

    def __init__(
        self,
        problem: GTVProblem,
        scalars: ScalarProblems,
        warm_start: Solution | None,
        limits: Limits,
    ) -> None:
        self._problem, self._scalars, self._limits = problem, scalars, limits
        self._start = time.perf_counter()
        self._checks = self._last_check = 0.0
        self._history: list[Record] = []
        self._incumbent = Incumbent(problem)
        self._n_iter = 0
        self._stopped = False
        if warm_start is not None:
            self._incumbent.offer(warm_start.w, warm_start.u)
            self._record()

    @property
    def _seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def _rel_gap(self) -> float:
        return self._incumbent.rel_gap if self._history else np.inf

    def divide(self) -> bool:
        """Divide until a limit is met or no cluster splits; say whether it came to that."""
        if self._rel_gap <= self._limits.rtol:
            return True
        display = Display(
            "AUTO",
            verbose=self._limits.verbose,
            total=self._limits.max_iter,
            gap_goal=self._limits.rtol,
        )
        with Division(self._problem, self._scalars) as division, display:
            self._last_check = self._seconds  # until there is one: as long as the preparation
            try:
                last = False
                while not last:
                    last = self._round(division)
                    display.update(self._n_iter, self._rel_gap)
            except KeyboardInterrupt:
                # Ctrl-C ends the run, not the session: what was found so far is returned.
                self._n_iter, self._stopped = division.n_iter, True
                self._incumbent.offer(division.w(), division.u())
        return division.finished and not self._stopped

    def _round(self, division: Division) -> bool:
        """Do a round and perhaps evaluate the gap; say whether it was the last one."""
        limits = self._limits
        division.run()
        self._n_iter = division.n_iter
        limited = self._seconds >= limits.time_limit or self._n_iter >= limits.max_iter
        last = limited or division.finished
        if not (last or self._affordable()):
            return False
        before = self._seconds
        u = division.u() if last else np.zeros((self._problem.graph.n_edges, self._problem.dim))
        self._incumbent.offer(division.w(), u)
        self._last_check = self._seconds - before
        self._checks += self._last_check
        self._record()
        asked = limits.callback is not None and bool(
            limits.callback(self._incumbent.progress(self._n_iter, self._seconds))
        )
        self._stopped = limited or asked
        return last or asked

    def _affordable(self) -> bool:
        share = CHECK_SHARE * (self._seconds - self._checks)
        return self._limits.callback is not None or self._checks + self._last_check <= share

    def _record(self) -> None:
        self._history.append(self._incumbent.record(self._n_iter, self._seconds))

    def solution(self) -> Solution:
        """Return the incumbent."""
        optimal = self._incumbent.rel_gap <= self._limits.rtol
        return self._incumbent.solution(
            status="optimal" if optimal else "user_limit",
            n_iter=self._n_iter,
            seconds=self._seconds,
            solver="AUTO",
            history=self._history,
            info={"method": METHOD},
        )
