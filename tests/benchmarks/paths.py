"""A path of values of lambda against cold solves for the same values."""

from __future__ import annotations

import statistics
import time

import numpy as np
from families import FAMILIES, Case

import gtvcvx as gtv
from gtvcvx.graph_construction import knn_graph

# From nearly one cluster to many of them, for every size of the family.
LARGEST, SMALLEST, POINTS = 3.0, 0.03, 20


def measure(case: Case, rtol: float = 1e-6) -> dict[str, float | int | str]:
    """Seconds of the path, of cold solves for its values, and how many of them it costs."""
    lams = np.geomspace(LARGEST, SMALLEST, POINTS)
    case.problem().solve(rtol=rtol, verbose=False)  # compiles
    cold = []
    for lam in lams:
        problem = case.problem().with_lam(lam)  # that has nothing from other values
        start = time.perf_counter()
        problem.solve(rtol=rtol, verbose=False)
        cold.append(time.perf_counter() - start)
    problem = case.problem()
    start = time.perf_counter()
    path = gtv.lambda_path(problem, lams, rtol=rtol, verbose=False)
    took = time.perf_counter() - start
    if not path.rel_gaps.max() <= rtol:
        raise RuntimeError(f"{case}: the path has a gap of {path.rel_gaps.max()}")
    return {
        "instance": str(case),
        "values": POINTS,
        "gap": rtol,
        "path (s)": took,
        "cold solve, median (s)": statistics.median(cold),
        "all cold solves (s)": sum(cold),
        "path / cold solve": took / statistics.median(cold),
        "path / all cold solves": took / sum(cold),
    }


def default_cases(sizes: list[int] | None, quick: bool) -> list[Case]:
    """F4 with l2 and l1."""
    sizes = sizes or ([FAMILIES["F4"].quick_size] if quick else [2_000, 8_000])
    return [Case("F4", size, "", penalty, LARGEST) for size in sizes for penalty in ("l2", "l1")]


def clustering(n: int, values: int, rtol: float) -> dict[str, float | int | str]:
    """CPU seconds of a path over half moons: ten neighbours, from dozens of clusters to many."""
    from sklearn.datasets import make_moons

    points, _ = make_moons(n, noise=0.1, random_state=1)
    graph = knn_graph(points, 10, weights="gaussian", connect=True)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), "l2")
    start = time.process_time()
    path = gtv.lambda_path(problem, np.geomspace(30.0, 0.03, values), rtol=rtol, verbose=False)
    took = time.process_time() - start
    if not path.rel_gaps.max() <= rtol:
        raise RuntimeError(f"the path has a gap of {path.rel_gaps.max()}")
    return {
        "instance": f"half moons, {n:,} points",
        "values": values,
        "gap": rtol,
        "path (CPU s)": took,
        "clusters": f"{path.n_clusters[0]} to {path.n_clusters[-1]}",
        "iterations": int(sum(solution.n_iter for solution in path)),
    }


def every_clustering(last: int = 40, rtol: float = 1e-4) -> dict[str, float | int | str]:
    """CPU seconds for all clusterings of scikit-learn's digits from 1 to ``last`` clusters."""
    from sklearn.datasets import load_digits

    points = load_digits().data
    graph = knn_graph(points, 10, weights="gaussian", bandwidth="local", connect=True)
    scaled = gtv.EmpiricalGraph(len(points), graph.edges, graph.weights / graph.weights.mean())
    problem = gtv.GTVProblem(scaled, gtv.PointLoss.stack(points), "l2")
    start = time.process_time()
    path = gtv.lambda_path(problem, np.geomspace(64.0, 1.0, 7), rtol=rtol, verbose=False)
    found = path.clusterings(1, last, rtol=rtol)
    return {
        "instance": f"digits, 1 to {last} clusters",
        "gap": rtol,
        "values": len(path) + found.n_solves,
        "CPU seconds": time.process_time() - start,
        "missing": str(found.missing),
    }


def clustering_report() -> None:
    """Print what clustering paths cost; the first line compiles."""
    clustering(2_000, 10, 1e-4)
    for n, values, rtol in ((10_000, 50, 1e-4), (10_000, 50, 1e-6), (100_000, 20, 1e-4)):
        print(clustering(n, values, rtol))
    every_clustering(3)  # compiles for its dimension
    print(every_clustering())


if __name__ == "__main__":
    clustering_report()
