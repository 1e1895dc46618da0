"""What a distributed run would take on many machines: a model, and what it is fed with.

    python tests/benchmarks/scaling.py             # tables of docs/distributed.md; a simulation
    python tests/benchmarks/scaling.py --measure   # seconds on this machine

Nothing here runs on 64 machines. Two graphs are partitioned as they are, and their counts are
scaled up to more nodes: of a geometric graph in the plane, shards grow with the nodes and borders
with their root; of a random graph everything grows alike. Times are those of the model in
`gtvcvx/distributed/_efficiency.py`, with the machine stated there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

# The checkout is measured, whatever is installed.
sys.path.insert(1, str(Path(__file__).resolve().parents[2]))

import numpy as np

import gtvcvx as gtv
from gtvcvx import distributed
from gtvcvx.distributed import Manifest, ShardRecord
from gtvcvx.distributed._efficiency import Machine, expectation, in_bytes
from gtvcvx.distributed._partition import partitioned
from gtvcvx.graph import EmpiricalGraph

NODES, DEGREE = 1 << 17, 12
MACHINES = (4, 16, 64)
# Nodes, and how many coefficients each has.
SIZES = ((1_000_000, 1), (100_000_000, 10))
ROWS = 3  # data rows a node

# Of the measurement: nodes, neighbours, coefficients; iterations between which time is taken.
CASES = [(20_000, degree, dim) for degree in (4, 12) for dim in (1, 2, 5, 10)]
ITERATIONS = 50, 250


def graph_of(kind: str, n: int, rng: np.random.Generator) -> EmpiricalGraph:
    if kind == "geometric":
        return gtv.generators.geometric(rng.random((n, 2)), DEGREE)
    ends = rng.integers(0, n, (n * DEGREE // 2, 2))
    return EmpiricalGraph(n, ends[ends[:, 0] != ends[:, 1]])


def records(graph: EmpiricalGraph, shards: int) -> tuple[list[ShardRecord], int, str]:
    """Return what a manifest says of shards, the edges between them, and who has cut."""
    n, edges = graph.n_nodes, graph.edges
    label, count, name = partitioned(n, edges, np.ones(n), shards)
    own, far = label[edges], label[edges[:, ::-1]]
    cut = own[:, 0] != own[:, 1]
    # A node is needed once by each other shard in which it has a neighbour.
    needed = np.unique(
        np.column_stack([edges[cut].ravel(), own[cut].ravel(), far[cut].ravel()]), axis=0
    )
    halo = np.zeros((count, count), dtype=np.int64)
    np.add.at(halo, (needed[:, 1], needed[:, 2]), 1)
    n_nodes, n_edges = np.bincount(label, minlength=count), np.bincount(own[:, 0], minlength=count)
    out = []
    for k in range(count):
        of_others = {int(j): int(halo[k, j]) for j in np.flatnonzero(halo[k])}
        out.append(
            ShardRecord("", "", int(n_nodes[k]), int(n_edges[k]), ROWS * int(n_nodes[k]), of_others)
        )
    return out, int(cut.sum()), name


def scaled(kind: str, found: tuple[list[ShardRecord], int, str], n: int, dim: int) -> Manifest:
    """Return a manifest of more nodes."""
    shards, cut, name = found
    times = n / sum(record.n_nodes for record in shards)
    border = np.sqrt(times) if kind == "geometric" else times
    larger = [
        ShardRecord(
            "",
            "",
            round(r.n_nodes * times),
            round(r.n_edges * times),
            round(r.n_rows * times),
            {other: round(nodes * border) for other, nodes in r.halo.items()},
        )
        for r in shards
    ]
    return Manifest(
        sharding="",
        n_nodes=sum(r.n_nodes for r in larger),
        n_edges=sum(r.n_edges for r in larger),
        dim=dim,
        penalty={"kind": "l2"},
        lam=0.1,
        cut_edges=round(cut * border),
        partitioner=name,
        labelled=False,
        shards=larger,
    )


def simulate() -> None:
    """Print the table: nothing is run."""
    rng = np.random.default_rng(0)
    print("SIMULATION: times of a model, no machine but this one was used")
    print(f"machine: {Machine()}")
    head = (
        "| graph | nodes | d | machines | cut | sent by one | iteration | speed-up | efficiency |"
    )
    print(f"{head}\n|{'---|' * head.count(' | ')}---|")
    for kind in ("geometric", "random"):
        graph = graph_of(kind, NODES, rng)
        for machines in MACHINES:
            found = records(graph, machines)
            for n, dim in SIZES:
                print(row(kind, found, n, dim, machines), flush=True)


def row(
    kind: str, found: tuple[list[ShardRecord], int, str], n: int, dim: int, machines: int
) -> str:
    manifest = scaled(kind, found, n, dim)
    e = expectation(manifest, machines)
    return (
        f"| {kind} | {n:.0e} | {dim} | {machines} | {manifest.cut_edges / manifest.n_edges:.1%} | "
        f"{in_bytes(float(e.sent.max()))} | {e.iteration:.2g} s | {e.speedup:.1f} | "
        f"{e.efficiency:.2f} |"
    )


def problem_of(n: int, degree: int, dim: int) -> gtv.GTVProblem:
    rng = np.random.default_rng(0)
    graph = gtv.generators.geometric(rng.random((n, 2)), degree)
    means = np.where(np.arange(n)[:, None] < n // 2, 1.0, -1.0) * np.ones(dim)
    data = gtv.generators.regression_data(means, ROWS, 0.3, 0.4, rng)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), "l2", 0.1)


def seconds(problem: gtv.GTVProblem) -> float:
    """Return the processor seconds of an iteration, checks and restarts included."""
    problem.solve("PDHG", max_iter=ITERATIONS[0], rtol=1e-15)  # compiled
    taken = []
    for count in ITERATIONS:
        begin = time.process_time()
        problem.solve("PDHG", max_iter=count, rtol=1e-15)
        taken.append(time.process_time() - begin)
    return (taken[1] - taken[0]) / (ITERATIONS[1] - ITERATIONS[0])


def seconds_of_shards(counts: tuple[int, int] = (4, 32), iterations: int = 400) -> float:
    """Return the processor seconds of an iteration that a shard costs whatever is in it."""
    problem, taken = problem_of(2000, 8, 2), []
    with tempfile.TemporaryDirectory() as folder:
        for shards in (counts[0], *counts):  # once to have everything compiled
            distributed.shard(problem, folder, shards, partitioner="order")
            begin = time.process_time()
            run = distributed.solve(folder, workers=1, max_iter=iterations, rtol=1e-15)
            taken.append((time.process_time() - begin) / run.n_iter)
    return (taken[2] - taken[1]) / (counts[1] - counts[0])


def measure() -> None:
    """Print seconds of a coordinate of an edge or a node, and of a shard."""
    found = []
    for n, degree, dim in CASES:
        problem = problem_of(n, degree, dim)
        m, taken = problem.graph.n_edges, seconds(problem)
        found.append(taken / ((m + n) * dim))
        print(f"n = {n}, m = {m}, d = {dim}: {1e3 * taken:.3f} ms, "
              f"{1e9 * found[-1]:.1f} ns a coordinate", flush=True)  # fmt: skip
    print(f"coordinate: median {np.median(found):.2g}, {min(found):.2g} to {max(found):.2g}")
    print(f"shard: {seconds_of_shards():.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", action="store_true", help="seconds on this machine")
    measure() if parser.parse_args().measure else simulate()


if __name__ == "__main__":
    main()
