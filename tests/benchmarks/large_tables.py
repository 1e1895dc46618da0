"""Thousands of nodes with data as people have them: ``python tests/benchmarks/large_tables.py``.

The fuzz (`--family F8`) has small instances, of which Clarabel knows the truth in a moment. These
have thousands of nodes, and mostly columns like an intercept, a year, an income and a rate; losses,
penalties, labels and lambda are drawn, and some graphs are no neighbours in the plane. Told is
whether the default solver proves its answer within the limit, and the CPU seconds that it takes.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))

import fuzz_graphs  # noqa: E402
import networkx as nx  # noqa: E402
import numpy as np  # noqa: E402

import gtvcvx as gtv  # noqa: E402

RTOL = 1e-6
# Typical values and spreads of ten columns: an intercept, years, incomes, rates, ...
MEANS = np.array([1.0, 1985.0, 3e4, 0.05, 2e5, -8.0, 0.0, 37.5, 0.5, 100.0])
SPREADS = np.array([0.0, 20.0, 1e4, 0.02, 1e5, 3.0, 1.0, 1.0, 0.5, 1000.0])
# Of targets in raw units; and the share of those that are in raw units.
TARGETS, RAW = 1e4, 0.7
# Share of those whose rows have weights, and the decades of these.
WEIGHTED, DECADES = 0.25, 8
# Share of graphs that are no neighbours in the plane, and what they are, of n nodes.
ELSEWHERE = 0.25
SHAPES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "star": fuzz_graphs.SHAPES["star"],
    "two centres": lambda n, rng: np.array(nx.complete_bipartite_graph(2, n - 2).edges),
    "tree": fuzz_graphs.SHAPES["tree"],
    "random": lambda n, rng: np.array(nx.fast_gnp_random_graph(n, 6.0 / n, seed=rng).edges),
    "scale-free": fuzz_graphs.SHAPES["scale-free"],
    "small world": fuzz_graphs.SHAPES["small world"],
}
PENALTIES = ("l2", "l2", "l2", "l1", "linf", "squared")

#: By name: stacked losses of features (n, m, d) and scores (n, m), whose spread is given.
LOSSES: dict[str, Callable[..., Any]] = {
    "squared": lambda X, z, spread, known, weight: gtv.SquaredLoss.stack(
        X, z, known, sample_weight=weight
    ),
    "absolute": lambda X, z, spread, known, weight: gtv.AbsoluteLoss.stack(
        X, z, known, sample_weight=weight
    ),
    "huber": lambda X, z, spread, known, weight: gtv.HuberLoss.stack(
        X, z, known, delta=0.2 * spread, sample_weight=weight
    ),
    "pseudohuber": lambda X, z, spread, known, weight: gtv.PseudoHuberLoss.stack(
        X, z, known, delta=0.2 * spread, sample_weight=weight
    ),
    "quantile": lambda X, z, spread, known, weight: gtv.QuantileLoss.stack(
        X, z, known, level=0.3, sample_weight=weight
    ),
    "lasso": lambda X, z, spread, known, weight: gtv.LassoLoss.stack(
        X, z, known, kappa=0.1 * spread, sample_weight=weight
    ),
    "hinge": lambda X, z, spread, known, weight: gtv.HingeLoss.stack(
        X, np.sign(z), known, sample_weight=weight
    ),
    "logistic": lambda X, z, spread, known, weight: gtv.LogisticLoss.stack(
        X, 1.0 * (z > 0.0), known, sample_weight=weight
    ),
    "poisson": lambda X, z, spread, known, weight: gtv.PoissonLoss.stack(
        X, np.floor(np.exp(np.clip(z / spread, -2.0, 2.0))), known, sample_weight=weight
    ),
    "multinomial": lambda X, z, spread, known, weight: gtv.MultinomialLogisticLoss.stack(
        X[:, :, : max(X.shape[2] // 3, 1)],
        np.digitize(z, [-0.4 * spread, 0.4 * spread]),
        n_classes=3,
        labelled=known,
        sample_weight=weight,
    ),
}
# Their scores are centred, and their values do not grow with them.
OF_CLASSES = frozenset({"hinge", "logistic", "poisson", "multinomial"})


@dataclass(frozen=True)
class Drawn:
    """An instance and what is said of it."""

    problem: gtv.GTVProblem
    text: str


def drawn(seed: int, index: int, largest: int = 20_000) -> Drawn:
    """Return one instance of a seed."""
    rng = np.random.default_rng([seed, index])
    least = max(largest // 10, 10)
    n, d = int(np.exp(rng.uniform(np.log(least), np.log(largest)))), int(rng.integers(2, 11))
    n = max(least, min(n, 6 * largest // d))
    k, m = int(rng.integers(3, 9)), int(rng.integers(1, 13))
    share = float(rng.choice([0.05, 0.2, 0.5, 1.0]))
    loss, penalty = str(rng.choice(list(LOSSES))), str(rng.choice(PENALTIES))
    raw, lam = bool(rng.random() < RAW), float(10.0 ** rng.uniform(-3, 1))

    places = rng.random((n, 2))
    X = rng.standard_normal((n, m, d))
    if raw:
        X = MEANS[:d] + SPREADS[:d] * X
    zone = (places[:, 0] > 0.5).astype(int) + 2 * (places[:, 1] > 0.6)
    sizes = X.std(axis=(0, 1)) + 1e-3 * np.abs(X).mean(axis=(0, 1))
    z = np.einsum("nmd,nd->nm", X, (rng.standard_normal((4, d)) / sizes)[zone])
    z += 0.2 * z.std() * rng.standard_normal(z.shape)
    z *= (TARGETS if raw else 1.0) / z.std()
    known = rng.random(n) < share
    known[0] = True
    spread = float(z.std())
    if loss in OF_CLASSES:
        z, scale = z - np.median(z), 1.0
        z[z == 0.0] = spread
    else:
        scale = spread
    more = np.random.default_rng([seed, index, 1])
    weighted = bool(more.random() < WEIGHTED)
    weight = 10.0 ** more.uniform(-DECADES / 2, DECADES / 2, (n, m)) if weighted else None
    shape = str(more.choice(list(SHAPES))) if more.random() < ELSEWHERE else ""
    graph = (
        gtv.EmpiricalGraph(n, SHAPES[shape](n, more))
        if shape
        else gtv.generators.nearest_neighbours(places, k)
    )
    problem = gtv.GTVProblem(
        graph,
        LOSSES[loss](X, z, spread, known, weight),
        penalty,
        lam * scale,
    )
    units = ("raw" if raw else "unit") + (", weighted" if weighted else "")
    where = shape or f"k={k}"
    text = (
        f"{loss}, {penalty}, {units}, n={n} d={d} {where} rows={m} labelled={share} lam={lam:.2g}"
    )
    return Drawn(problem, text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", type=int, help="number of one instance")
    parser.add_argument("--largest", type=int, default=20_000, help="nodes")
    parser.add_argument("--time-limit", type=float, default=60.0)
    args = parser.parse_args()
    numbers = range(args.count) if args.only is None else [args.only]
    missed = 0
    for index in numbers:
        one = drawn(args.seed, index, args.largest)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begun = time.process_time()
            found = one.problem.solve(rtol=RTOL, time_limit=args.time_limit, verbose=False)
        seconds, solved = time.process_time() - begun, found.status == "optimal"
        missed += not solved
        told = f"{seconds:7.2f} s, gap {found.rel_gap:.1e}, {found.n_iter} iterations"
        mark = " " if solved else "!"
        print(f"{mark} {index:3d} {told}, {found.info['method']}: {one.text}", flush=True)
    print(f"{len(numbers) - missed} of {len(numbers)} solved to {RTOL:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
