"""Problems in memory, solved by several processes of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from gtvcvx.distributed._sharding import shard
from gtvcvx.distributed._solve import solve
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# Shards, whatever the number of workers up to it, so that the answer does not depend on that.
SHARDS = 16


def solve_in_processes(
    problem: GTVProblem,
    *,
    engine: str,
    workers: int,
    solver: str = "AUTO",
    warm_start: Solution | None = None,
    callback: Callable[[Any], object] | None = None,
    **options: Any,
) -> Solution:
    """Cut a problem into shards in a temporary folder, solve it there, and gather the solution.

    Parameters
    ----------
    problem : GTVProblem
    engine : {"local", "ray"}
    workers : int
    solver : str
        "AUTO", the only one that works on shards.
    warm_start : None
        There is none over shards.
    callback, **options
        As in `gtvcvx.distributed.solve`.

    Raises
    ------
    ValueError
        Naming an option that makes no sense here.
    """
    if solver.upper() != "AUTO":
        raise ValueError(f"engine: solver {solver!r} does not work over shards; AUTO does")
    if warm_start is not None:
        raise ValueError("warm_start: a run over shards starts at zero, or from its checkpoint")
    if engine == "mpi":
        raise ValueError(
            "engine: ranks of MPI need a folder that all can read; use gtvcvx.distributed.shard "
            "and gtvcvx.distributed.solve"
        )
    for name in ("out", "checkpoint", "resume", "every"):
        if name in options:
            raise TypeError(f"{name}: an option of gtvcvx.distributed.solve")
    shards = min(max(SHARDS, workers), problem.graph.n_nodes)
    with tempfile.TemporaryDirectory(prefix="gtvcvx-shards-") as folder:
        shard(problem, folder, shards)
        run = solve(folder, engine=engine, workers=workers, callback=callback, **options)
        return run.gather()
