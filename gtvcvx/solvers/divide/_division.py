"""Exact solution of scalar total variation problems by divide and conquer with maximum flows.

For d = 1, or the l1 norm and losses that are separable, every coordinate is a scalar problem with
piecewise quadratic losses. Its solution falls into clusters, and whether one splits at its own
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

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from types import TracebackType
from typing import Any

import numba as nb
import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import Expired, look
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.divide._network import Skeleton
from gtvcvx.solvers.divide._scalar_division import ScalarDivision
from gtvcvx.solvers.driver import Limits, Proposal
from gtvcvx.solvers.driver._scalar import scalar_capacities
from gtvcvx.solvers.scalar._problems import extent_in, slopes_in
from gtvcvx.solvers.scalar._proof import proved

# Rounds on fewer nodes than this are over before a second thread has started.
_PARALLEL_NODES = 20_000


class Division:
    """Divide and conquer over all coordinates of w, a few of them at a time.

    Use it as a context manager: it holds threads. Between rounds only w is new, since a flow that
    is still being routed bounds nothing; that is checked after every round if somebody watches
    (a callback), and otherwise not before the end. A round looks at the clock now and then; one
    that is left early changes the flow alone.

    Parameters
    ----------
    problem : GTVProblem
        See `REQUIREMENTS`.

    Attributes
    ----------
    n_iter : int
        Rounds so far.
    """

    stride = 1

    def __init__(self, problem: GTVProblem) -> None:
        self._problem = problem
        self._capacities = scalar_capacities(problem)
        self._skeleton = Skeleton(problem.graph)
        self._threads = nb.get_num_threads()
        self._pool = ThreadPoolExecutor(self._threads)
        self._w = np.zeros((problem.graph.n_nodes, problem.dim))
        self._u = np.zeros((problem.graph.n_edges, problem.dim))
        self._waiting = list(reversed(range(problem.dim)))
        self._running: dict[int, ScalarDivision] = {}
        self._left = False  # whether the main thread has left a round
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

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run under limits."""
        self._limits = limits

    def due(self) -> bool:
        """Say whether somebody wants to see the point after this round."""
        return self._limits.callback is not None

    def proposal(self, final: bool = False) -> Proposal:
        """Return the point, with the flow if it is optimal or the last that there will be."""
        if self.finished:
            w, u = self.w(), self.u()
            return Proposal(w, u, 0.0, exact=True, proved=proved(self._problem, w, u))
        if not final:
            return Proposal(self.w(), np.zeros_like(self._u), np.inf)
        # Beside kinks a flow that is still being routed proves less than none, and takes long to
        # repair: the point alone is offered.
        return Proposal(self.w(), self.u(), np.inf, another=not self._problem.losses.is_quadratic)

    def learn(self, rel_gap: float) -> None:
        """Take no notice: rounds go on until no cluster splits."""

    def info(self) -> dict[str, Any]:
        """Return nothing beside the method's name."""
        return {}

    def run(self, n_iter: int) -> None:
        """Do n_iter rounds."""
        for _ in range(n_iter):
            self._round()

    def _round(self) -> None:
        """Split every cluster of the coordinates that are being worked on."""
        while self._waiting and len(self._running) < self._threads:
            k = self._waiting[-1]
            look()
            self._running[k] = ScalarDivision(
                self._skeleton,
                slopes_in(self._problem, k),
                self._capacities,
                extent_in(self._problem, k)[:2],
            )
            self._waiting.pop()
        size = sum(division.size for division in self._running.values())
        tasks = [task for division in self._running.values() for task in division.tasks(self._look)]
        self._do(tasks, parallel=size >= _PARALLEL_NODES)
        for k, division in list(self._running.items()):
            division.conclude()
            if division.finished:
                self._w[:, k], self._u[:, k] = division.x(), division.flow()
                del self._running[k]
        self.n_iter += 1

    def _look(self) -> None:
        """Look at the clock, in any thread."""
        if self._left:
            raise Expired
        look()

    def _do(self, tasks: Sequence[Callable[[], None]], parallel: bool) -> None:
        if parallel and len(tasks) > 1 and self._threads > 1:
            futures: list[Future[None]] = []
            try:
                for task in tasks:
                    # The deadline belongs to a context, and each thread needs one of its own.
                    futures.append(self._pool.submit(copy_context().run, task))
                for done in futures:
                    done.result()
            finally:
                # After Ctrl-C too nobody may look at the flow while it is being changed.
                self._left = any(not done.done() for done in futures)
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
