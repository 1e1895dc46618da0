"""The default solver over shards: what each worker does, and the door for users.

Every worker runs the driver of the single machine. They need no conductor: all decisions are made
from sums over all shards, which are the same numbers in all workers, and from the clock of rank 0
that comes along with them (`gtvcvx.distributed._clock`).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gtvcvx._compiling import announced
from gtvcvx.distributed._checkpoint import Checkpoints
from gtvcvx.distributed._incumbent import ShardedProgress, ShardedSolution
from gtvcvx.distributed._manifest import Manifest
from gtvcvx.distributed._parts import Parts, check_workers
from gtvcvx.distributed._portfolio import Iterating, Portfolio
from gtvcvx.distributed._run import Run, write_solution
from gtvcvx.distributed.engines import Engine, Fabric, engine_named
from gtvcvx.solvers.driver import Options

#: What a callback is: it sees numbers of the whole, and a true answer stops the run.
Callback = Callable[[ShardedProgress], object]


class _Here:
    """Something that stays in this process: other workers get None in its place."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __getstate__(self) -> dict[str, Any]:
        return {"thing": None}


@dataclass(frozen=True)
class _Order:
    """What all workers are to do.

    Attributes
    ----------
    folder, out : str
        Of the shards, and of what is found.
    options : Options
        Without a callback.
    callback : _Here
    checkpoint : str, optional
    every : float
    resume : bool
    name : str
        Of the run.
    """

    folder: str
    out: str
    options: Options
    callback: _Here
    checkpoint: str | None
    every: float
    resume: bool
    name: str


def solve(
    folder: str | os.PathLike[str],
    *,
    engine: str | Engine = "local",
    workers: int = 2,
    rtol: float | None = None,
    atol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    out: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    every: float = 30.0,
    resume: bool = False,
    callback: Callback | None = None,
    verbose: bool | None = None,
    timeout: float = 60.0,
    replace: int = 0,
) -> Run:
    """Solve a problem in shards by several processes, and prove how good the answer is.

    The answer does not depend on the engine or on the number of workers, to the last bit. It stays
    in shards; `Run.gather` collects it where it fits.

    Parameters
    ----------
    folder : str or path-like
        That `shard` has filled. Each worker reads its own shards, and no others.
    engine : {"local", "mpi", "ray"} or Engine
        Processes of this machine; the ranks of one ``mpiexec`` (extra ``mpi``), which all call this
        function; actors of a cluster (extra ``ray``).
    workers : int
        At most one for each shard.
    rtol, atol, max_iter, time_limit, verbose
        As in `GTVProblem.solve`. Progress is shown at rank 0.
    out : str or path-like, optional
        Folder of what is found, by shard. Default: ``solution`` in the folder of the shards.
    checkpoint : str or path-like, optional
        Folder of checkpoints, by shard. Default: none are written.
    every : float
        Seconds between two checkpoints at least.
    resume : bool
        Go on from the checkpoint that is there; from the start if there is none.
    callback : callable, optional
        Called at rank 0 with a `ShardedProgress` at every check; a true return value stops the run.
    timeout : float
        Seconds of silence after which a worker is lost: more than it takes to read its shards.
    replace : int
        How often workers that are lost are started anew (local and Ray); the run goes on from its
        last checkpoint then, or from the start.

    Returns
    -------
    Run
        The same at all ranks of MPI, which call its `Run.certificate` together. After a limit,
        Ctrl-C or a stop by the callback it is the incumbent with its gap, status ``"user_limit"``;
        ``info["switched"]`` says whether iterations have stalled on a small problem, and rank 0 has
        gathered and finished it.

    Raises
    ------
    ValueError, TypeError
        Naming the argument, or the file that is missing, broken or foreign.
    WorkerLostError
        Naming the worker.
    """
    if resume and checkpoint is None:
        raise ValueError("resume: there is no checkpoint to go on from; give its folder")
    if not every >= 0.0:
        raise ValueError(f"every: a number of seconds >= 0 is expected, got {every!r}")
    chosen = engine_named(engine) if isinstance(engine, str) else engine
    manifest = Manifest.load(folder)
    check_workers(workers, manifest)
    result = Path(folder) / "solution" if out is None else Path(out)
    order = _Order(
        folder=os.fspath(folder),
        out=str(result),
        options=Options(rtol, max_iter, time_limit, verbose=verbose, atol=atol),
        callback=_Here(callback),
        checkpoint=None if checkpoint is None else os.fspath(checkpoint),
        every=every,
        resume=resume,
        name=secrets.token_hex(8),
    )
    with announced(verbose):
        chosen.run(work, order, workers, timeout, replace)
    # All ranks of MPI read what rank 0 has written before they were let go.
    return Run.load(folder, result, manifest, chosen, workers, timeout)


def work(fabric: Fabric, order: _Order) -> None:
    """Do a worker's share, and write what was found."""
    parts = Parts.load(fabric, order.folder)
    # Ranks of MPI have each made up a name.
    own = order.name.encode() if fabric.rank == 0 else None
    name = fabric.broadcast(own).decode()
    with parts.running():
        solution = _solved(parts, order, name)
    write_solution(parts, order.out, name, solution)


def _solved(parts: Parts, order: _Order, name: str) -> ShardedSolution:
    first = parts.fabric.rank == 0
    # The first sum of the run sets the clock.
    parts.add([0.0 for _ in parts])
    limits = order.options.limits()
    limits.verbose = limits.verbose if first else False
    if float(parts.most([float(order.callback.thing is not None) for _ in parts])):
        limits.callback = _Told(parts, order.callback.thing)
    portfolio = Portfolio(parts, limits)

    def begun(iterating: Iterating) -> None:
        if order.checkpoint is not None:
            given = parts, portfolio.run, iterating, order.every, name
            checkpoints = Checkpoints(order.checkpoint, *given)
            wanted = None if order.resume else name
            iterating.method.at_begin = lambda: checkpoints.restore(wanted)
            iterating.method.at_restart = checkpoints.at_restart

    return portfolio.solve(begun)


class _Told:
    """A callback that rank 0 calls, and whose answer all workers hear."""

    def __init__(self, parts: Parts, callback: Callback | None) -> None:
        self._parts, self._callback = parts, callback

    def __call__(self, progress: Any, /) -> bool:
        answer = self._callback is not None and bool(self._callback(progress))
        return bool(float(self._parts.most([float(answer) for _ in self._parts])))
