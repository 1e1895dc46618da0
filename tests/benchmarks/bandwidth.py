"""How far the inner loop is from what the memory of this machine allows.

The floor is the least traffic of an iteration over the bandwidth of a += s b. It is STREAM's triad
but in place, as the loop is: writing to a third array costs a read that nobody counts. Its arrays
take as much memory as the loop's, so that caches help both alike, and the two are timed in turn, so
that a disturbed machine slows both. What comes out below the floor all the same says nothing about
the loop, and is not reported as a ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numba as nb
import numpy as np
from families import FAMILIES, Case

from gtvcvx.solvers.primal_dual._ordering import Ordering
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

WARM_UP, TIMED, TRIES = 100, 50, 9
WORD = 8


@nb.njit(parallel=True)
def _triad(a: np.ndarray, b: np.ndarray, s: float, parts: int) -> None:
    for part in nb.prange(parts):
        for i in range(part * len(a) // parts, (part + 1) * len(a) // parts):
            a[i] += s * b[i]


def bytes_per_iteration(n: int, m: int, d: int) -> int:
    """Least traffic of one iteration of the compiled loop (gtvcvx/compiled/_edges.py).

    Every array once in each pass that needs it, one thread's copy of the nodes, and no second read
    of a node by its other edges: more threads or a poorer order of the nodes only move more.
    """
    edge = 2 * WORD * d + 4 + WORD  # flow read and written; tail; capacity
    # Node pass: balance read, extrapolated point written, w read and written, matrix, offset, tau.
    # Edge pass: extrapolated point read, balance read and written, start.
    node = WORD * (4 * d + d * d + d + 1) + WORD * (3 * d + 1)
    return m * edge + n * node


def footprint(n: int, m: int, d: int) -> int:
    """Memory of the arrays that an iteration needs, one thread's copy of the nodes."""
    edge = WORD * d + 4 + WORD
    node = WORD * (d + 2 * d + d * d + d + 2)  # w, both of the nodes, matrix, offset, tau, start
    return m * edge + n * node


def _seconds(call: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def measure(case: Case) -> dict[str, float | int | str]:
    """Seconds per iteration, restarts and averages included, against the floor."""
    problem = Ordering(case.problem()).problem
    n, m, d = problem.graph.n_nodes, problem.graph.n_edges, problem.dim
    traffic, size = bytes_per_iteration(n, m, d), footprint(n, m, d)
    length = max(size // (2 * WORD), 1)
    a, b = np.zeros(length), np.ones(length)
    method = PrimalDual(problem)
    method.run(WARM_UP)
    triad, loop = [], []
    for k in range(TRIES + 1):
        for threads in range(1, nb.get_num_threads() + 1):
            took = _seconds(lambda threads=threads: _triad(a, b, 3.0, threads), TIMED)
            triad += [took] if k else []  # the first round compiles
        loop += [_seconds(lambda: method.run(TIMED), 1) / TIMED]
    bandwidth = 3 * WORD * length / min(triad)
    floor, measured = traffic / bandwidth, min(loop)
    ratio = measured / floor
    return {
        "instance": str(case),
        "edges": m,
        "arrays (MB)": size / 1e6,
        "traffic (MB)": traffic / 1e6,
        "bandwidth (GB/s)": bandwidth / 1e9,
        "floor (ms)": 1e3 * floor,
        "measured (ms)": 1e3 * measured,
        "median (ms)": 1e3 * float(np.median(loop)),
        "ns an edge": 1e9 * measured / m,
        "times the floor": ratio if ratio >= 1 else "not valid: below the floor",
    }


def default_cases(sizes: list[int] | None, quick: bool) -> list[Case]:
    """F4 at lambda .3 with l2 and l1."""
    sizes = sizes or ([FAMILIES["F4"].quick_size] if quick else [8_000, 100_000, 1_000_000])
    return [Case("F4", size, "", penalty, 0.3) for size in sizes for penalty in ("l2", "l1")]
