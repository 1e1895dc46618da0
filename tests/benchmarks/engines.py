"""How long workers take to exchange numbers, engine by engine, with nothing to compute.

    python tests/benchmarks/engines.py [--workers 2] [--runs 3] [--greedy] [local] [ray]
    mpiexec -n 2 python tests/benchmarks/engines.py mpi

Prints medians, over `REPEATS` calls at rank 0, in microseconds: `exchange` of 20 kB with each of
the others, and `all_gather` of three numbers, which is a sum of shards. The best and the worst of
the runs are shown: on cores that are shared with other processes they differ tenfold.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

# The checkout is measured, whatever is installed.
sys.path.insert(1, str(Path(__file__).resolve().parents[2]))

import numpy as np

from gtvcvx.distributed.engines import ENGINES, Fabric, _mesh, engine_named

REPEATS = 300
HALO = 2500  # numbers, 20 kB: the halo of a graph of 1e6 nodes on two workers
SUMS = 3


def median(call: Callable[[], object], fabric: Fabric) -> float:
    for _ in range(10):
        call()
    fabric.barrier()
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


def measure(fabric: Fabric, greedy: bool) -> tuple[float, float]:
    """Return both medians; the task of each worker."""
    if greedy:
        _mesh.give_way = lambda: None
    others = [rank for rank in range(fabric.size) if rank != fabric.rank]
    out = {rank: np.ones(HALO) for rank in others}
    into = {rank: np.empty(HALO) for rank in others}
    sums = np.ones(SUMS)
    return (
        median(lambda: fabric.exchange(out, into), fabric),
        median(lambda: fabric.all_gather(sums), fabric),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "engines", nargs="*", default=["local"], metavar="engine", help=str(ENGINES)
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    greedy = "do not give cores to others while waiting (local, ray)"
    parser.add_argument("--greedy", action="store_true", help=greedy)
    arguments = parser.parse_args()
    for name in arguments.engines:
        show(name, arguments.workers, arguments.runs, arguments.greedy)


def show(name: str, workers: int, runs: int, greedy: bool) -> None:
    engine = engine_named(name)
    begin = time.perf_counter()
    found = [engine.run(measure, greedy, workers, 60.0) for _ in range(runs)]
    seconds = (time.perf_counter() - begin) / runs
    if None in found:  # other ranks of MPI
        return
    exchange, gather = ([f"{t:.1f}" for t in sorted(times)] for times in zip(*found, strict=True))
    print(
        f"{name:6} {workers} workers: exchange of 20 kB {exchange[0]} to {exchange[-1]} us, "
        f"all_gather of {SUMS} {gather[0]} to {gather[-1]} us; {seconds:.1f} s a run"
    )


if __name__ == "__main__":
    main()
