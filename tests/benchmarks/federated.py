"""Rounds of federated runs: ``python tests/benchmarks/federated.py [--processes N]``.

In memory: FedADMM with many clients, CPU seconds of all rounds and of the records. With
``--processes`` each client has a process of its own: time to start them and for a round, by the
clock, since the work is theirs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))

import numpy as np  # noqa: E402

import gtvcvx as gtv  # noqa: E402
from gtvcvx import federated as fed  # noqa: E402


def system(n: int, d: int, seed: int) -> gtv.GTVProblem:
    """Clients in the plane, eight neighbours on average, five models."""
    rng = np.random.default_rng(seed)
    graph = gtv.generators.random_geometric(n, 8, seed)
    X, models = rng.standard_normal((n, 2 * d, d)), rng.standard_normal((5, d))
    y = np.einsum("nrd,nd->nr", X, models[np.arange(n) * 5 // n])
    y += 0.3 * rng.standard_normal(y.shape)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), penalty="l2", lam=0.05)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--processes", type=int, metavar="N", help="clients with processes")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    n = args.processes or args.clients
    problem = system(n, args.dim, args.seed)
    marks: list[float] = []
    cpu = time.process_time()
    run = fed.simulate(
        fed.FedADMM(rho=0.2),
        problem,
        args.rounds,
        availability=fed.Bernoulli(0.7) if args.processes else None,
        transport="processes" if args.processes else "memory",
        callback=lambda _: marks.append(time.perf_counter()),
        seed=args.seed,
    )
    cpu = time.process_time() - cpu
    rounds = marks[-1] - marks[0]
    print(f"{n} clients, {problem.graph.n_edges} links, d = {args.dim}, {run.rounds} rounds")
    print(f"  CPU of this process {cpu:.1f} s; by the clock: start {run.seconds - rounds:.1f} s,")
    print(f"  {1e3 * rounds / run.rounds:.1f} ms a round, records included")
    last = run.history.last()
    print(f"  gap {last['gap']:.1e}, {last['bytes_up'] / 1e6:.0f} MB, {last['messages']} messages")


if __name__ == "__main__":
    main()
