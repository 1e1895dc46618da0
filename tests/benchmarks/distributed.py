"""Distributed runs by hand: a large one against one process, and workers that are killed.

    python tests/benchmarks/distributed.py large [--nodes 1000000] [--shards 16] [--folder F]
    python tests/benchmarks/distributed.py kills [--engine local] [--times 10] [--nodes 20000]

`large` solves a geometric graph with six edges a node by two workers, each with one thread, and by
one process with two, and certifies the former. `kills` ends a worker at a random moment, again and
again: lost workers are replaced (local, ray), or the job is started again (mpi), and go on from a
checkpoint; each time the answer has to have the bits of a run that was left alone, and to be
CERTIFIED. Runs on MPI need `mpiexec` in the path.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The checkout is measured, whatever is installed.
sys.path.insert(1, str(Path(__file__).resolve().parents[2]))

import numpy as np

import gtvcvx as gtv
from gtvcvx import distributed
from gtvcvx.distributed._checkpoint import KIND
from gtvcvx.distributed._efficiency import Machine, expectation
from gtvcvx.distributed._slices import Slices

EDGES_A_NODE, ROWS, LABELLED = 6, 3, 0.4
# Of the large run and of the others, which have more checks then.
DIM, DIM_OF_KILLS = 1, 2
WORKERS = 2
RTOL = 1e-6


def problem_of(n: int, dim: int) -> gtv.GTVProblem:
    rng = np.random.default_rng(0)
    graph = gtv.generators.geometric(rng.random((n, 2)), 2 * EDGES_A_NODE)
    means = np.where(np.arange(n)[:, None] < n // 2, 1.0, -1.0) * np.ones(dim)
    data = gtv.generators.regression_data(means, ROWS, 0.3, LABELLED, rng)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), "l2", 0.1)


# --- one large run -------------------------------------------------------------------------------


def large(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder or tempfile.mkdtemp())
    problem = problem_of(arguments.nodes, arguments.dim)
    print(f"{problem.graph.n_nodes} nodes, {problem.graph.n_edges} edges, d = {problem.dim}, in "
          f"{folder}", flush=True)  # fmt: skip
    manifest = distributed.shard(problem, folder / "shards", arguments.shards)
    expected = expectation(manifest, WORKERS, Machine())
    share = WORKERS * expected.bytes_a_worker / expected.bytes_alone
    print(f"cut {manifest.cut_edges}, array bytes of the larger worker by those of the whole over "
          f"{WORKERS}: {share:.3f}", flush=True)  # fmt: skip
    warm_up(arguments.dim)
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


def warm_up(dim: int) -> None:
    """Compile what both ways need."""
    problem = problem_of(3000, dim)
    problem.solve(rtol=RTOL)
    with tempfile.TemporaryDirectory() as temporary:
        distributed.shard(problem, temporary, 4)
        distributed.solve(temporary, workers=WORKERS, rtol=RTOL, verbose=False)


# --- workers that are killed ---------------------------------------------------------------------


def bits(run: distributed.Run) -> str:
    """Return a hash of all that a run has found."""
    found, digest = run.gather(), hashlib.sha256()
    for array in (found.w, found.u, found.node_gaps, found.edge_gaps):
        digest.update(np.ascontiguousarray(array).tobytes())
    history = [(r.n_iter, r.value, r.gap) for r in run.history]
    digest.update(repr((run.value, run.dual_value, run.gap, run.n_iter, history)).encode())
    return digest.hexdigest()


class Watch(threading.Thread):
    """Kills another worker at some moment, and waits for the next checkpoint.

    Parameters
    ----------
    folder : Path
        Of the run; what is seen is written there.
    delay : float
        Seconds from now on; negative to kill nobody.
    victims : callable
        Returns the processes of other workers.
    """

    def __init__(self, folder: Path, delay: float, victims: Callable[[], list[int]]) -> None:
        super().__init__(daemon=True)
        self.folder, self.delay, self.victims = folder, delay, victims
        self.kept = Slices(folder / "kept", KIND)

    def iteration(self) -> int:
        """Return that of the checkpoint that is there, 0 for none."""
        index = self.kept.index()
        return 0 if index is None else int(str(index["generation"]).split("-")[1])

    def note(self, name: str, **facts: Any) -> None:
        (self.folder / name).write_text(json.dumps({"time": time.time(), **facts}))

    def run(self) -> None:
        before = self.iteration()
        if self.delay >= 0.0:
            time.sleep(self.delay)
            while not (found := self.victims()):
                time.sleep(0.01)
            os.kill(found[0], signal.SIGKILL)
            before = self.iteration()
            self.note("killed", iteration=before)
        while self.iteration() == before:
            time.sleep(0.02)
        self.note("back", iteration=self.iteration())


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
    begin = time.perf_counter()
    if rank == 0 and arguments.delay is not None:
        Watch(folder, arguments.delay, victims).start()
    run = distributed.solve(
        folder / "shards",
        engine=arguments.engine,
        workers=WORKERS,
        rtol=RTOL,
        checkpoint=folder / "kept",
        every=0.0,
        resume=bool(arguments.resume),
        out=folder / "out",
        verbose=False,
        replace=0 if arguments.engine == "mpi" else 1,
    )
    if rank == 0:
        (folder / "seconds").write_text(str(time.perf_counter() - begin))
        (folder / "bits").write_text(bits(run))


def launched(arguments: argparse.Namespace, folder: Path, **options: Any) -> int:
    """Start `one`; return its exit status."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    command = [sys.executable, __file__, "one", f"--folder={folder}", *words]
    command += [f"--engine={arguments.engine}"]
    if arguments.engine == "mpi":
        command = ["mpiexec", "-n", str(WORKERS), *command]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and arguments.engine != "mpi":
        print(done.stderr, file=sys.stderr)
    return done.returncode


def kills(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        problem = problem_of(arguments.nodes, DIM_OF_KILLS)
        distributed.shard(problem, folder / "shards", arguments.shards)
        assert launched(arguments, folder) == 0
        expected, whole = (folder / "bits").read_text(), float((folder / "seconds").read_text())
        print(f"{arguments.engine}: {whole:.1f} s, bits {expected[:12]}", flush=True)
        rng, good = np.random.default_rng(arguments.seed), 0
        for _ in range(arguments.times):
            good += killed(arguments, folder, expected, float(rng.uniform(0.0, 0.9)) * whole)
        print(f"{good} of {arguments.times} runs with a killed worker are as they should be")
        sys.exit(good < arguments.times)


def killed(arguments: argparse.Namespace, folder: Path, expected: str, delay: float) -> bool:
    """Kill a worker; say whether the run came back, and to the same bits."""
    for name in ("killed", "back", "bits"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "kept")
    status, begin = launched(arguments, folder, delay=delay), time.time()
    if not (folder / "killed").exists():
        print("the run was over before its worker was to be killed: it counts for nothing")
        return False
    lost = json.loads((folder / "killed").read_text())
    if arguments.engine == "mpi":
        assert status != 0
        status = launched(arguments, folder, delay=-1.0, resume=1)
    else:
        begin = lost["time"]
    back = json.loads((folder / "back").read_text()) if (folder / "back").exists() else None
    manifest = distributed.Manifest.load(folder / "shards")
    engine = distributed.engines.engine_named("local")
    run = distributed.Run.load(folder / "shards", folder / "out", manifest, engine, 1, 60.0)
    result = run.certificate(folder / "c.gtvc", 2 * RTOL)
    same = (folder / "bits").exists() and (folder / "bits").read_text() == expected
    proved = result is not None and result.status == "CERTIFIED"
    took = "there was no other one"
    if back is not None:
        took = f"that of iteration {back['iteration']} came {back['time'] - begin:.1f} s later"
    print(
        f"killed after {delay:.1f} s and the checkpoint of iteration {lost['iteration']}; {took}; "
        f"the same bits: {same}, CERTIFIED: {proved}",
        flush=True,
    )
    return status == 0 and same and proved


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("large", "kills", "one"))
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--engine", choices=distributed.engines.ENGINES, default="local")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder")
    parser.add_argument("--delay", type=float)
    parser.add_argument("--resume", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.nodes is None:
        arguments.nodes = 1_000_000 if arguments.what == "large" else 20_000
    {"large": large, "kills": kills, "one": one}[arguments.what](arguments)


if __name__ == "__main__":
    main()
