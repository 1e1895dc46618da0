"""How late limits are: ``python tests/benchmarks/limits.py [INSTANCE ...]``.

Each run has a process of its own, which first solves a small instance of the same kind, so that all
is compiled. Then a time limit of one second, or Ctrl-C after so many seconds. How late the answer
comes is told in seconds, and in CPU seconds of the process, which other work on the machine does
not lengthen.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))

import cvxpy as cp  # noqa: E402
import numpy as np  # noqa: E402

import gtvcvx as gtv  # noqa: E402

# Small enough that nothing ends before the limit by itself.
RTOL = 1e-14
TIME_LIMIT = 1.0
INTERRUPTIONS = (0.5, 2.0, 5.0)


def path(n: int) -> gtv.EmpiricalGraph:
    return gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))


def few_labels(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Path, 1% labels, d = 2."""
    known = rng.random(n) < 0.01
    X, y = rng.standard_normal((n, 2, 2)), rng.standard_normal((n, 2))
    return gtv.GTVProblem(path(n), gtv.SquaredLoss.stack(X, y, known), "l2", 0.1)


def scalar(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Grid, d = 1."""
    graph = gtv.generators.grid(max(n // 1000, 2), min(n, 1000))
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(rng.standard_normal((graph.n_nodes, 1))))


def scalar_few_labels(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Grid, 1% labels, d = 1."""
    graph = gtv.generators.grid(max(n // 1000, 2), min(n, 1000))
    n = graph.n_nodes
    known = rng.random(n) < 0.01
    known[0] = True
    losses = gtv.SquaredLoss.stack(np.ones((n, 1, 1)), rng.standard_normal((n, 1)), known)
    return gtv.GTVProblem(graph, losses, "l2", 0.1)


def rows_at_nodes(
    n: int, d: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((5 * n, d))
    return X, X[:, 0] + rng.standard_normal(5 * n), np.repeat(np.arange(n), 5)


def logistic(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Nearest neighbours, logistic loss, d = 100."""
    X, y, node = rows_at_nodes(n, 100, rng)
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 5)
    return gtv.GTVProblem(graph, gtv.LogisticLoss.from_rows(X, (y > 0) * 1.0, node), "l2", 0.1)


def absolute(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Nearest neighbours, absolute loss, d = 20."""
    X, y, node = rows_at_nodes(n, 20, rng)
    graph = gtv.generators.nearest_neighbours(rng.random((n, 2)), 5)
    return gtv.GTVProblem(graph, gtv.AbsoluteLoss.from_rows(X, y, node), "l2", 0.1)


def star(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Star, hinge loss, d = 2."""
    graph = gtv.EmpiricalGraph(n, np.column_stack([np.zeros(n - 1, int), np.arange(1, n)]))
    X, y, node = rows_at_nodes(n, 2, rng)
    return gtv.GTVProblem(graph, gtv.HingeLoss.from_rows(X, np.sign(y), node), "l2", 0.1)


def random_graph(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Three edges a node to any others, absolute loss, d = 2."""
    ends = np.sort(rng.integers(0, n, (3 * n, 2)), axis=1)
    edges = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    X, y, node = rows_at_nodes(n, 2, rng)
    losses = gtv.AbsoluteLoss.from_rows(X, y, node)
    return gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l2", 0.1)


def by_cvxpy(n: int, rng: np.random.Generator) -> gtv.GTVProblem:
    """Path, CvxpyLoss, d = 2."""
    points = rng.standard_normal((n, 2))
    losses = [gtv.CvxpyLoss(lambda w, a=a: cp.norm1(w - a) + cp.sum_squares(w), 2) for a in points]
    return gtv.GTVProblem(path(n), losses, "l2", 0.1)


INSTANCES: dict[str, tuple[Callable[[int, np.random.Generator], gtv.GTVProblem], int, int]] = {
    "few-labels": (few_labels, 100_000, 200),
    "scalar": (scalar, 1_000_000, 25_000),
    "scalar-few-labels": (scalar_few_labels, 1_000_000, 25_000),
    "logistic": (logistic, 300, 120),
    "absolute": (absolute, 20_000, 30),
    "star": (star, 100_000, 200),
    "random-graph": (random_graph, 100_000, 200),
    "cvxpy": (by_cvxpy, 2000, 5),
}


def run(name: str, limit: float | None) -> None:
    """Solve one instance, between a line that says that it begins and one that says how it was."""
    # A shell has its jobs in the background ignore Ctrl-C, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    build, size, small = INSTANCES[name]
    build(small, np.random.default_rng(1)).solve(rtol=1e-8, max_iter=3000, time_limit=20.0)
    problem = build(size, np.random.default_rng(5))
    print("begin", flush=True)
    solution = problem.solve(rtol=RTOL, time_limit=limit)
    cpu = time.process_time()
    print(f"{cpu} {solution.status} {solution.n_iter} {solution.rel_gap:.2g}", flush=True)


def cpu_of(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(name: str, after: float, interrupt: bool) -> str:
    """Return how late the answer was, and what it was."""
    arguments = [sys.executable, __file__, "--run", name]
    if not interrupt:
        arguments += ["--limit", str(after)]
    child = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begin\n"
    end = time.perf_counter() + after
    while time.perf_counter() < end and child.poll() is None:
        time.sleep(0.002)
    try:
        cpu = cpu_of(child.pid)
        if interrupt:
            child.send_signal(signal.SIGINT)
    except OSError:
        cpu = np.nan
    line = child.stdout.readline()
    late = time.perf_counter() - end
    child.wait()
    if not line:
        return "nothing came back"
    before, rest = line.split(maxsplit=1)
    kind = "Ctrl-C" if interrupt else "limit"
    cpu_late = float(before) - cpu
    return (
        f"{name:18} {kind:6} {after:3.1f} s: {late:6.2f} late, CPU {cpu_late:6.2f}  {rest.strip()}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("instances", nargs="*", metavar="INSTANCE", help=", ".join(INSTANCES))
    parser.add_argument("--run", choices=INSTANCES, help=argparse.SUPPRESS)
    parser.add_argument("--limit", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return run(args.run, args.limit)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    for name in args.instances or INSTANCES:
        print(measure(name, TIME_LIMIT, False), flush=True)
        for after in INTERRUPTIONS:
            print(measure(name, after, True), flush=True)


if __name__ == "__main__":
    main()
