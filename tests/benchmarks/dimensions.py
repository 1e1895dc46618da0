"""Many coordinates, and many points: ``python tests/benchmarks/dimensions.py [NAME ...]``.

CPU seconds of one solve, compilation excluded, iterations, the relative gap, and what NumPy has
held at most; of the process too, the graph and the packages included.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))

import numpy as np  # noqa: E402

import gtvcvx as gtv  # noqa: E402

Problem = Callable[[float], gtv.GTVProblem]


def rows_of(loss: str, n: int, m: int, d: int) -> Problem:
    """m rows of d features at each of n nodes; parameters jump twice in the plane."""

    def problem(scale: float) -> gtv.GTVProblem:
        rng = np.random.default_rng(0)
        nodes = max(int(scale * n), 20)
        places, X = rng.random((nodes, 2)), rng.standard_normal((nodes, m, d))
        W = rng.standard_normal((3, d))[(3 * places[:, 0]).astype(int)]
        if loss == "squared":
            y = np.einsum("nmd,nd->nm", X, W) + 0.1 * rng.standard_normal((nodes, m))
            losses, lam = gtv.SquaredLoss.stack(X, y), 0.1
        elif loss == "logistic":
            z = np.einsum("nmd,nd->nm", X, W / np.sqrt(d)) + rng.logistic(size=(nodes, m))
            losses, lam = gtv.LogisticLoss.stack(X, (z > 0.0).astype(float)), 0.05
        else:
            y = rng.integers(0, 10, (nodes, m))
            losses, lam = gtv.MultinomialLogisticLoss.stack(X, y, n_classes=10), 0.05
        graph = gtv.generators.nearest_neighbours(places, 6)
        return gtv.GTVProblem(graph, losses, "l2", lam)

    return problem


def images(scale: float) -> gtv.GTVProblem:
    """Ten classes in 784 dimensions with the spectrum of handwritten digits, k^-1.2."""
    rng, n, d = np.random.default_rng(0), max(int(10_000 * scale), 50), 784
    sizes = np.arange(1, 301.0) ** -0.6
    basis = np.linalg.qr(rng.standard_normal((d, 300)))[0].T
    # Shares of the variance, 53 in all with pixels in [0, 1]: between classes a quarter.
    noise = rng.standard_normal((n, 300)) * (sizes * np.sqrt(40.0 / np.sum(sizes**2)))
    means = rng.standard_normal((10, d)) * np.sqrt(13.0 / d)
    return _clustering(means[rng.integers(0, 10, n)] + noise @ basis, 10, 0.5)


def points(scale: float) -> gtv.GTVProblem:
    """A million points around twenty centres in seven dimensions."""
    rng, n = np.random.default_rng(0), max(int(1e6 * scale), 50)
    means = 2.0 * rng.standard_normal((20, 7))
    return _clustering(means[rng.integers(0, 20, n)] + 0.7 * rng.standard_normal((n, 7)), 15, 3.0)


def _clustering(X: np.ndarray, k: int, lam: float) -> gtv.GTVProblem:
    graph = gtv.graph_construction.knn_graph(X, k, bandwidth="local")
    return gtv.GTVProblem(graph, gtv.PointLoss.stack(X), "l2", lam)


#: Instances, and the relative gap that is asked for.
INSTANCES: dict[str, tuple[Problem, float]] = {
    "squared": (rows_of("squared", 500, 2, 100), 1e-4),
    "wide": (rows_of("squared", 2000, 3, 500), 1e-3),
    "logistic": (rows_of("logistic", 200, 3, 100), 1e-4),
    "multinomial": (rows_of("multinomial", 200, 5, 20), 1e-4),
    "images": (images, 1e-4),
    "points": (points, 1e-5),
}


def measured(name: str, scale: float = 1.0, trace: bool = True) -> dict[str, Any]:
    """Solve one instance; tracing slows what makes many small arrays."""
    make, rtol = INSTANCES[name]
    make(0.02 * scale).solve(rtol=rtol, max_iter=50)  # compiles
    problem = make(scale)
    if trace:
        tracemalloc.start()
    before = time.process_time()
    solution = problem.solve(rtol=rtol, time_limit=900.0)
    seconds = time.process_time() - before
    most = tracemalloc.get_traced_memory()[1] if trace else 0
    tracemalloc.stop()
    return {
        "status": solution.status,
        "iterations": solution.n_iter,
        "gap": solution.gap / max(1.0, abs(solution.value)),
        "seconds": seconds,
        "arrays, MB": most / 1e6,
        "process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def main() -> None:
    """Print a line an instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(INSTANCES), metavar="NAME")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the nodes")
    arguments = parser.parse_args()
    for name in arguments.names:
        told = measured(name, arguments.scale)
        print(
            f"{name}:",
            ", ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in told.items()
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
