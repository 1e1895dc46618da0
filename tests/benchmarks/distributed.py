"""Distributed runs by hand: a large one against one process, and workers that are killed.

    python tests/benchmarks/distributed.py large [--nodes 1000000] [--shards 16] [--folder F]
    python tests/benchmarks/distributed.py kills [--engine local] [--times 10] [--nodes 20000]

`large` solves a geometric graph with six edges a node by two workers, each with one thread, and by
one process with two, and certifies the former. `kills` ends a worker at a random check, again and
again: lost workers are replaced (local, ray), or the job is started again (mpi), and go on from a
checkpoint; each time the answer has to have the bits of a run that was left alone, and to be
CERTIFIED. Runs on MPI need `mpiexec` in the path.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The checkout is measured, whatever is installed.
sys.path.insert(1, str(Path(__file__).resolve().parents[2]))

import numpy as np

import gtvcvx as gtv
from gtvcvx import distributed

EDGES_A_NODE, DIM, ROWS, LABELLED = 6, 1, 3, 0.4
WORKERS = 2
RTOL = 1e-6


def problem_of(n: int) -> gtv.GTVProblem:
    rng = np.random.default_rng(0)
    graph = gtv.generators.geometric(rng.random((n, 2)), 2 * EDGES_A_NODE)
    means = np.where(np.arange(n)[:, None] < n // 2, 1.0, -1.0) * np.ones(DIM)
    data = gtv.generators.regression_data(means, ROWS, 0.3, LABELLED, rng)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), "l2", 0.1)


# --- one large run -------------------------------------------------------------------------------


def large(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder or tempfile.mkdtemp())
    problem = problem_of(arguments.nodes)
    print(f"{problem.graph.n_nodes} nodes, {problem.graph.n_edges} edges, in {folder}", flush=True)
    manifest = distributed.shard(problem, folder / "shards", arguments.shards)
    sizes = [manifest.shard(folder / "shards", k).nbytes for k in range(manifest.n_shards)]
    half = sum(sizes[: len(sizes) // 2]), sum(sizes[len(sizes) // 2 :])
    print(f"cut {manifest.cut_edges}, bytes of the larger half over a half of all: "
          f"{2 * max(half) / sum(sizes):.3f}", flush=True)  # fmt: skip
    taken = {}
    for name in ("one process", "two workers"):
        begin = time.perf_counter()
        if name == "one process":
            found: Any = problem.solve(rtol=RTOL)
        else:
            found = distributed.solve(folder / "shards", workers=WORKERS, rtol=RTOL)
        taken[name] = time.perf_counter() - begin
        print(f"{name}: {taken[name]:.1f} s, {found.n_iter} iterations, relative gap "
              f"{found.gap / max(1, abs(found.value)):.2e}", flush=True)  # fmt: skip
    print(f"ratio {taken['two workers'] / taken['one process']:.2f}")
    begin = time.perf_counter()
    result = found.certificate(folder / "large.gtvc", 2 * RTOL)
    print(f"{result.status}: {result.reason}; {time.perf_counter() - begin:.1f} s")


# --- workers that are killed ---------------------------------------------------------------------


def bits(run: distributed.Run) -> str:
    """Return a hash of all that a run has found."""
    found, digest = run.gather(), hashlib.sha256()
    for array in (found.w, found.u, found.node_gaps, found.edge_gaps):
        digest.update(np.ascontiguousarray(array).tobytes())
    history = [(r.n_iter, r.value, r.gap) for r in run.history]
    digest.update(repr((run.value, run.dual_value, run.gap, run.n_iter, history)).encode())
    return digest.hexdigest()


class Killer:
    """A callback that notes times, and kills another worker once, at some check.

    Parameters
    ----------
    log : Path
        One line a check.
    at : int
        At which check; 0 for never.
    victims : callable
        Returns the processes of other workers.
    """

    def __init__(self, log: Path, at: int, victims: Callable[[], list[int]]) -> None:
        self.log, self.at, self.victims = log, at, victims
        self.count = 0

    def __call__(self, progress: Any) -> bool:
        self.count += 1
        line = {"time": time.time(), "n_iter": progress.n_iter}
        if self.count == self.at:
            self.at = 0
            found = self.victims()
            line["killed"] = found[0]
            os.kill(found[0], signal.SIGKILL)
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return False


def children(words: str = "") -> list[int]:
    """Return processes below this one, those with some words in their command."""
    found, waiting = [], [os.getpid()]
    while waiting:
        pid = waiting.pop()
        try:
            below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        waiting += map(int, below)
        if pid != os.getpid() and words in command:
            found.append(pid)
    return found


def one(arguments: argparse.Namespace) -> None:
    """Run once, in a process of its own; MPI runs this in all ranks."""
    folder, rank = Path(arguments.folder), 0
    victims: Callable[[], list[int]] = children
    if arguments.engine == "mpi":
        rank, _ = distributed.engines.mpi_world()
        (folder / f"pid-{rank}").write_text(str(os.getpid()))
        victims = lambda: [int((folder / "pid-1").read_text())]  # noqa: E731
    elif arguments.engine == "ray":
        victims = lambda: children("ray::_Actor")  # noqa: E731
    killer = Killer(folder / "log", arguments.kill_at, victims) if rank == 0 else None
    run = distributed.solve(
        folder / "shards",
        engine=arguments.engine,
        workers=WORKERS,
        rtol=RTOL,
        checkpoint=folder / "kept",
        every=0.0,
        resume=arguments.resume,
        callback=killer,
        out=folder / "out",
        verbose=False,
        replace=0 if arguments.engine == "mpi" else 1,
    )
    if rank == 0 and run is not None:
        (folder / "bits").write_text(bits(run))


def launched(arguments: argparse.Namespace, folder: Path, **options: Any) -> int:
    """Start `one`; return its exit status."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, __file__, "one", f"--folder={folder}", *words]
    command += [f"--engine={arguments.engine}"]
    if arguments.engine == "mpi":
        command = ["mpiexec", "-n", str(WORKERS), *command]
    return subprocess.run(command, capture_output=True, text=True).returncode


def kills(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        distributed.shard(problem_of(arguments.nodes), folder / "shards", arguments.shards)
        assert launched(arguments, folder, kill_at=0) == 0
        expected, checks = (folder / "bits").read_text(), len(lines(folder))
        print(f"{arguments.engine}: {checks} checks, bits {expected[:12]}", flush=True)
        rng = np.random.default_rng(arguments.seed)
        good = sum(killed(arguments, folder, expected, int(k)) for k in
                   rng.integers(1, checks, arguments.times))  # fmt: skip
        print(f"{good} of {arguments.times} runs with a killed worker are as they should be")
        sys.exit(good < arguments.times)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log").read_text().splitlines()]


def killed(arguments: argparse.Namespace, folder: Path, expected: str, at: int) -> bool:
    """Kill a worker at a check; say whether the run came back, and to the same bits."""
    for name in ("log", "bits"):
        (folder / name).unlink()
    status = launched(arguments, folder, kill_at=at)
    again = time.time()
    if arguments.engine == "mpi":
        assert status != 0
        status = launched(arguments, folder, kill_at=0, resume=1)
    seen = lines(folder)
    place = next(k for k, line in enumerate(seen) if "killed" in line)
    begin = again if arguments.engine == "mpi" else seen[place]["time"]
    back = seen[place + 1]["time"] - begin
    manifest = distributed.Manifest.load(folder / "shards")
    engine = distributed.engines.engine_named("local")
    run = distributed.Run.load(folder / "shards", folder / "out", manifest, engine, 1, 60.0)
    result = run.certificate(folder / "c.gtvc", 2 * RTOL)
    same = (folder / "bits").read_text() == expected
    good = status == 0 and same and result is not None and result.status == "CERTIFIED"
    print(f"killed at check {at}, iteration {seen[place]['n_iter']}: next check {back:.1f} s after "
          f"{'the new start' if arguments.engine == 'mpi' else 'the kill'}, the same bits: {same}, "
          f"{result.status if result else ''}", flush=True)  # fmt: skip
    return good and back < 10.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("large", "kills", "one"))
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--engine", choices=distributed.engines.ENGINES, default="local")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder")
    parser.add_argument("--kill-at", type=int, default=0)
    parser.add_argument("--resume", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.nodes is None:
        arguments.nodes = 1_000_000 if arguments.what == "large" else 20_000
    {"large": large, "kills": kills, "one": one}[arguments.what](arguments)


if __name__ == "__main__":
    main()
