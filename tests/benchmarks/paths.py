"""A path of values of lambda against cold solves for the same values."""

from __future__ import annotations

import statistics
import time

import numpy as np
from families import FAMILIES, Case

import gtvcvx as gtv

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
