"""Chains and trees, and many dimensions: ``python tests/benchmarks/forests.py [--rounds R]``.

CPU seconds, medians of some rounds, compilation excluded: of dynamic programming and its flow
alone, of the whole of `solve` with its valid gap, of what the default solver does without it, of
exact solutions; and of points in many dimensions, with the largest memory that Python has held.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))

import numpy as np  # noqa: E402
from families import Case  # noqa: E402

import gtvcvx as gtv  # noqa: E402
from gtvcvx.solvers import _auto  # noqa: E402
from gtvcvx.solvers.driver import Options  # noqa: E402
from gtvcvx.solvers.forest import rooted_forest  # noqa: E402
from gtvcvx.solvers.forest._forest import scalar_solution  # noqa: E402
from gtvcvx.solvers.scalar._problems import slopes_in  # noqa: E402

LAM = 0.5


def problem_of(shape: str, loss: str, n: int) -> gtv.GTVProblem:
    """An instance of F10."""
    return Case("F10", n, f"{shape} {loss}", "l1", LAM).problem()


def points_of(n: int, d: int, seed: int = 0) -> gtv.GTVProblem:
    """Points around twenty centres, linked to their nearest neighbours."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((20, d))[rng.integers(0, 20, n)]
    points += 0.5 * rng.standard_normal((n, d))
    graph = gtv.graph_construction.knn_graph(points, 8, bandwidth="local")
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2", 3.0)


def fresh(problem: gtv.GTVProblem) -> gtv.GTVProblem:
    """Return the problem without what was made for it before."""
    return gtv.GTVProblem(problem.graph, problem.losses, problem.penalty, problem.lam)


def median(work: Callable[[], Any], rounds: int) -> float:
    """Return the median of the CPU seconds of some rounds, after one that compiles."""
    work()
    seconds = []
    for _ in range(rounds):
        before = time.process_time()
        work()
        seconds.append(time.process_time() - before)
    return statistics.median(seconds)


def forest_times(problem: gtv.GTVProblem, rounds: int, others: bool) -> dict[str, float]:
    """Return the CPU seconds of dynamic programming alone, of `solve`, and of other methods."""
    slopes, capacities = slopes_in(problem, 0), problem.capacities

    def alone() -> None:
        scalar_solution(rooted_forest(problem.graph), slopes, capacities)

    out = {
        "dynamic programming": median(alone, rounds),
        "solve": median(lambda: fresh(problem).solve(), rounds),
    }
    if others:
        options = Options(time_limit=60.0)

        def without() -> None:
            _auto._whole(fresh(problem), None, options.limits())

        out["solve without it"] = median(without, rounds)
    return out


def high_dimension(n: int, d: int, rtol: float) -> tuple[float, float, str]:
    """Return CPU seconds, megabytes of arrays at most and status of one solve, none before."""
    problem = points_of(n, d)
    fresh(points_of(200, d)).solve(rtol=rtol)  # compiles
    tracemalloc.start()
    before = time.process_time()
    status = problem.solve(rtol=rtol).status
    seconds, most = time.process_time() - before, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, most / 1e6, status


def lines(rounds: int, scale: float = 1.0) -> Iterator[str]:
    """Measure everything; with a scale below 1 on smaller instances."""
    for shape in ("chain", "tree"):
        for loss, sizes in (("points", (100_000, 1_000_000)), ("absolute", (100_000,))):
            for size in sizes:
                n = max(int(scale * size), 3)
                times = forest_times(problem_of(shape, loss, n), rounds, others=size == 100_000)
                told = ", ".join(f"{name} {1e3 * s:.0f} ms" for name, s in times.items())
                yield f"{shape} of {n:,}, {loss}: {told}"
    problem = problem_of("tree", "points", max(int(scale * 10_000), 3))
    seconds = median(lambda: fresh(problem).solve(solver="EXACT"), 1)
    yield f"EXACT, tree of {problem.graph.n_nodes:,}: {seconds:.2f} s"
    for n, d in ((1440, 1024), (500, 5000)):
        n, d = max(int(scale * n), 30), max(int(scale * d), 3)
        seconds, most, status = high_dimension(n, d, 1e-4)
        yield f"{n:,} points, d = {d:,}, 1e-4: {seconds:.1f} s, {most:.0f} MB, {status}"


def main() -> None:
    """Print a line a measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    for line in lines(parser.parse_args().rounds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
