"""What a distributed run has found: numbers of the whole, and points and flows in shards."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.distributed._certificate import certify_parts
from gtvcvx.distributed._incumbent import ShardedSolution
from gtvcvx.distributed._manifest import Manifest
from gtvcvx.distributed._parts import Parts
from gtvcvx.distributed._slices import Slices
from gtvcvx.distributed.engines import Engine, Fabric
from gtvcvx.solution import Record, Solution
from verify import Result
from verify._display import fitted

KIND = "solution"
# Numbers of the whole, by the names that `Solution` has for them.
_FACTS = ("value", "dual_value", "gap", "status", "n_iter", "seconds", "solver", "info")


def write_solution(parts: Parts, folder: str, name: str, solution: ShardedSolution) -> None:
    """Write what a run has found; all workers call this."""
    facts = {key: getattr(solution, key) for key in _FACTS}
    facts["history"] = [list(astuple(record)) for record in solution.history]
    slices = []
    for at, part in enumerate(parts):
        own, counted = part.own, part.counted
        slices.append(
            {
                "nodes": part.shard.nodes[own],
                "ends": part.shard.nodes[part.shard.edges[counted]],
                "labels": part.shard.labels,
                "w": solution.w[at][own],
                "u": solution.u[at][counted],
                "node_gaps": solution.node_gaps[at][own],
                "edge_gaps": solution.edge_gaps[at][counted],
                "slack": solution.slack[at][counted],
            }
        )
    Slices(folder, KIND).write(parts, name, facts, slices)


@dataclass
class Run:
    """What `gtvcvx.distributed.solve` has found: a point, a flow, and how far from optimal at most.

    The point and the flow stay in shards, in the folder ``out``.

    Attributes
    ----------
    value, dual_value, gap, status, n_iter, seconds, solver, history, info
        As in `gtvcvx.Solution`.
    partition : Manifest
        With ``cut_edges`` and ``halo_bytes``.
    shards, out : Path
        Folders of the problem and of what was found.
    engine : Engine
    workers : int
    timeout : float
        Of the run; certificates are written in the same way.
    """

    value: float
    dual_value: float
    gap: float
    status: str
    n_iter: int
    seconds: float
    solver: str
    partition: Manifest
    shards: Path
    out: Path
    engine: Engine
    workers: int
    timeout: float
    history: list[Record] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def load(
        cls,
        shards: str | os.PathLike[str],
        out: str | os.PathLike[str],
        manifest: Manifest,
        engine: Engine,
        workers: int,
        timeout: float,
    ) -> Run:
        """Read the numbers of the whole that a run has left in a folder.

        Raises
        ------
        ValueError
            There is nothing, or it is of another problem.
        """
        index = Slices(out, KIND).index()
        if index is None or index["sharding"] != manifest.sharding:
            raise ValueError(f"{os.fspath(out)}: no solution of the problem in {shards}")
        facts = index["facts"]
        history = [Record(*record) for record in facts.pop("history")]
        return cls(
            **facts,
            shards=Path(shards),
            out=Path(out),
            engine=engine,
            workers=workers,
            timeout=timeout,
            partition=manifest,
            history=history,
        )

    @property
    def rel_gap(self) -> float:
        """Gap relative to max(1, |value|)."""
        return self.gap / max(1.0, abs(self.value))

    def gather(self) -> Solution:
        """Collect point, flow and gaps in this process, where they fit.

        Raises
        ------
        ValueError
            Naming a file that is missing or damaged.
        """
        slices = Slices(self.out, KIND)
        index = slices.index()
        if index is None:
            raise ValueError(f"{self.out}: there is no solution any more")
        found = list(slices.slices(index))
        nodes: IntArray = np.concatenate([own["nodes"] for own in found])
        ends: IntArray = np.concatenate([own["ends"] for own in found])
        order, along = np.argsort(nodes), np.lexsort((ends[:, 1], ends[:, 0]))
        return Solution(
            w=_sorted(found, "w", order),
            u=_sorted(found, "u", along),
            node_gaps=_sorted(found, "node_gaps", order),
            edge_gaps=_sorted(found, "edge_gaps", along),
            slack=_sorted(found, "slack", along),
            value=self.value,
            dual_value=self.dual_value,
            gap=self.gap,
            status=self.status,
            n_iter=self.n_iter,
            seconds=self.seconds,
            solver=self.solver,
            nodes=_labels([own["labels"] for own in found], order),
            history=list(self.history),
            info=dict(self.info),
            edges=ends[along],
        )

    def certificate(self, path: str | os.PathLike[str], rtol: float = 1e-6) -> Result | None:
        """Write a certificate shard by shard, and have the kernel of ``verify`` check it.

        Where that proves nothing of a small problem, or knows no such losses, rank 0 gathers and
        certifies it. All ranks of MPI call this.

        Parameters
        ----------
        path : str or path-like
            Of the document: ``.gtvc``, or ``.json`` for multinomial losses.
        rtol : float
            Relative gap that is to be proved.

        Returns
        -------
        verify.Result
            None at ranks of MPI other than 0.
        """
        work = str(self.shards), str(self.out), os.fspath(path), rtol
        found: Result | None = self.engine.run(_certify, work, self.workers, self.timeout)
        return found

    def __repr__(self) -> str:
        cut = f"{self.partition.cut_edges} of {self.partition.n_edges} edges between shards"
        facts = [
            ("value", f"{self.value:.12g}, at least {self.dual_value:.12g}"),
            ("gap", f"{self.gap:.3g}, relative {self.rel_gap:.3g}"),
            ("work", f"{self.n_iter} iterations, {self.seconds:.3g} s, {self.workers} workers"),
            ("shards", f"{self.partition.n_shards}, {cut}"),
        ]
        return fitted(
            [
                f"distributed run by {self.engine.name}: {self.status}",
                *(f"  {name:<9} {text}" for name, text in facts),
            ]
        )


def _certify(fabric: Fabric, work: tuple[str, str, str, float]) -> Result | None:
    """Write a certificate of what a folder holds; all workers call this."""
    shards, out, path, rtol = work
    parts = Parts.load(fabric, shards)
    slices = Slices(out, KIND)
    index = slices.index()
    if index is None or index["sharding"] != parts.manifest.sharding:
        raise ValueError(f"{out}: no solution of the problem in {shards}")
    w, u = parts.node_zeros(), parts.edge_zeros()
    for at, part in enumerate(parts):
        own = slices.slice(index, part.number)
        w[at][part.own], u[at][part.counted] = own["w"], own["u"]
    return certify_parts(parts, w, u, path, rtol)


def _sorted(found: Sequence[dict[str, Any]], name: str, order: IntArray) -> FloatArray:
    rows: FloatArray = np.concatenate([own[name] for own in found])
    return rows[order]


def _labels(labels: Sequence[list[Any] | None], order: IntArray) -> Sequence[Any]:
    if any(some is None for some in labels):
        return range(len(order))
    joined = [label for some in labels for label in some or ()]
    return [joined[i] for i in order.tolist()]
