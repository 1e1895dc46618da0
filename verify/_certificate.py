"""Certificates: from any w, or (w, u), to a document that the exact kernel accepts or refutes.

The builder is untrusted: it repairs flows in floats, makes them exact, writes the document, and
takes every figure and the verdict from the kernel.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from verify import _integers as integers
from verify import kernel
from verify._data import Floats, Instance, as_table, load
from verify._exact import ExactFlow, NoWitness, exact_flow
from verify._repair import gaps
from verify._search import Candidate, Search
from verify.kernel_data import digest
from verify.kernel_numbers import round_down, round_up, sqrt_up


@dataclass(frozen=True)
class Certificate:
    """What is proved about a point w.

    Attributes
    ----------
    status : "CERTIFIED" (within rtol), "REFUTED" (proved not to be) or "UNPROVED"
    reason : one sentence
    upper, lower : outward-rounded bounds: lower <= min P and P(w) <= upper
    gap, rel_gap : upper - lower, rounded up and signed, and gap / max(1, |upper|)
    exact : whether the bounds are proved by the kernel; False means float estimates
    node_gaps, edge_gaps : (n,) and (m,), each >= 0; they add up to the gap up to float rounding
    distance_bound : bound on ||w - w_hat||_F where every node's loss is strongly convex by a point
        or ridge term, else None
    w, u, r : the point (n, d), the flow (m, d) and the multipliers per loss term, in floats
    better : a point (n, d) whose exact objective refutes w, or None
    rtol : the tolerance of the claim
    document : the certificate as `save` writes it
    """

    status: str
    reason: str
    upper: float
    lower: float
    gap: float
    rel_gap: float
    exact: bool
    node_gaps: Floats
    edge_gaps: Floats
    distance_bound: float | None
    w: Floats
    u: Floats
    r: tuple[Floats, ...]
    better: Floats | None
    rtol: float
    document: dict[str, Any] = field(repr=False)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document as JSON, atomically: a temporary file in the same folder, renamed."""
        target = Path(path)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(self.document, file, separators=(",", ":"), allow_nan=False)
                file.write("\n")
            os.replace(name, target)
        except BaseException:
            os.unlink(name)
            raise

    def worst(self, count: int = 5) -> tuple[list[tuple[Any, float]], list[tuple[Any, float]]]:
        """Return the nodes and the edges with the largest gaps, as (label, gap), worst first."""
        data = self.document["data"]
        labels = data.get("nodes", range(data["n_nodes"]))
        nodes = [(labels[i], float(self.node_gaps[i])) for i in np.argsort(-self.node_gaps)[:count]]
        edges = []
        for e in np.argsort(-self.edge_gaps)[:count]:
            i, j = data["edges"][e]
            edges.append(((labels[i], labels[j]), float(self.edge_gaps[e])))
        return nodes, edges

    def summary(self, count: int = 5) -> str:
        """Return status, bounds and the nodes and edges with the largest gaps as text."""
        kind = "exact" if self.exact else "float estimate, not proved"
        lines = [
            f"{self.status}: {self.reason}",
            f"  upper {self.upper:.12g}   lower {self.lower:.12g}   ({kind})",
            f"  gap {self.gap:.3e}   relative {self.rel_gap:.3e}   rtol {self.rtol:.3e}",
        ]
        if self.distance_bound is not None:
            lines.append(f"  distance to the solution at most {self.distance_bound:.3e}")
        for name, worst in zip(("nodes", "edges"), self.worst(count), strict=True):
            shown = ", ".join(f"{label}: {gap:.2e}" for label, gap in worst if gap > 0)
            lines.append(f"  worst {name}: {shown or 'none'}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary(3)


def certify(problem: Any, w: Any, u: Any = None, rtol: float = 1e-6) -> Certificate:
    """Prove, exactly, how far w is from optimal.

    Parameters
    ----------
    problem : plain data (verify/SCHEMA.md), or an object with `to_data` and perhaps `solve`
    w : (n, d) the point, from any source
    u : (m, d) edge flows of a dual solution, if known.  Where they are missing or do not suffice,
        `problem.solve(rtol=...).u` is asked for, and without it the dual is solved by CVXPY.
    rtol : tolerance on gap / max(1, |upper|)

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError, TypeError
        Bad problem data, shapes, NaN or infinity, or a tolerance that is negative or not finite.
    """
    inst = load(problem)
    w = as_table(w, (inst.n, inst.d), "w")
    if u is not None:
        u = as_table(u, (len(inst.edges), inst.d), "u")
    if not (np.isfinite(rtol) and rtol >= 0):
        raise ValueError(f"rtol must be finite and not negative, got {rtol!r}")
    search = Search(inst, problem, w, u, float(rtol))
    if inst.opaque or not inst.penalty.exact:
        return _estimate(search)
    return _Builder(search).run()


class _Builder:
    """Writes documents with one witness after the other until w is certified or refuted."""

    def __init__(self, search: Search) -> None:
        self.search = search
        self.inst, self.w, self.rtol = search.inst, search.w, search.rtol
        self.document = _document(self.inst, self.w, self.rtol)
        self.note = ""

    def run(self) -> Certificate:
        value = self.inst.value(self.w)
        promising = value - 4 * self.rtol * max(1.0, abs(value))
        best: Candidate | None = None
        proved: tuple[kernel.Result, ExactFlow | None] | None = None
        for candidate in self.search.candidates():
            if best is not None and not candidate.lower > best.lower:
                continue
            best = candidate
            if not candidate.lower < promising:
                proved = self._prove(candidate)
                if proved[0].status == "CERTIFIED":
                    return self._finish(*proved)
        if best is not None and (proved is None or proved[1] is None):
            proved = self._prove(best)
        return self._refute(*(proved or (self._checked(None), None)))

    def _prove(self, candidate: Candidate) -> tuple[kernel.Result, ExactFlow | None]:
        try:
            flow = exact_flow(
                self.inst, candidate.flow.u, candidate.flow.r, candidate.point, candidate.active
            )
        except NoWitness as reason:
            self.note = str(reason)
            return self._checked(None), None
        result = self._checked(flow)
        if result.status == "REFUTED":  # our witness is not valid, which says nothing about w
            self.note = f"the builder's witness was refused: {result.reason}"
            return self._checked(None), None
        return result, flow

    def _checked(self, flow: ExactFlow | None) -> kernel.Result:
        """Write the witness into the document and let the kernel judge it."""
        self.document["dual"] = None
        if flow is not None:
            r = [integers.texts(v, k) for v, k in zip(flow.r, flow.k_r, strict=True)]
            self.document["dual"] = {"u": integers.texts(flow.u, flow.k), "r": r}
        return kernel.check(self.document)

    def _refute(self, result: kernel.Result, flow: ExactFlow | None) -> Certificate:
        """Look for a better point among our own solutions, else leave it unproved."""
        points = sorted(self.search.points, key=self.inst.value)
        if points and self.inst.value(points[0]) < self.inst.value(self.w):
            self.document["better"] = _hex(points[0])
            refuted = kernel.check(self.document)
            if refuted.status == "REFUTED":
                return self._finish(refuted, flow, points[0])
            del self.document["better"]
        return self._finish(result, flow)

    def _finish(
        self, result: kernel.Result, flow: ExactFlow | None, better: Floats | None = None
    ) -> Certificate:
        inst = self.inst
        u, r = np.zeros((len(inst.edges), inst.d)), [np.zeros(t.shape) for t in inst.terms]
        node, edge = np.full(inst.n, np.inf), np.full(len(inst.edges), np.inf)
        if flow is not None:
            u, r = flow.floats()
            node, edge = gaps(inst, self.w, u, r)
        claim = self.document["claim"]
        if result.upper is not None:
            claim["upper"] = round_up(result.upper).hex()
        if result.lower is not None:
            claim["lower"] = round_down(result.lower).hex()
        squared = result.distance_squared
        reason = result.reason
        note = self.note or self.search.note
        if note and result.status == "UNPROVED":
            reason = f"{reason} ({note})"
        return Certificate(
            status=result.status,
            reason=reason,
            upper=np.inf if result.upper is None else round_up(result.upper),
            lower=-np.inf if result.lower is None else round_down(result.lower),
            gap=np.inf if result.gap is None else round_up(result.gap),
            rel_gap=np.inf if result.rel_gap is None else round_up(result.rel_gap),
            exact=True,
            node_gaps=node,
            edge_gaps=edge,
            distance_bound=None if squared is None else sqrt_up(squared),
            w=self.w,
            u=u,
            r=tuple(r),
            better=better,
            rtol=self.rtol,
            document=self.document,
        )


def _hex(a: Floats) -> list[list[str]]:
    return [[x.hex() for x in row] for row in a.tolist()]


def _document(inst: Instance, w: Floats, rtol: float) -> dict[str, Any]:
    return {
        "schema": kernel.SCHEMA,
        "sha256": digest(inst.plain),
        "data": inst.plain,
        "claim": {"rtol": rtol.hex(), "upper": None, "lower": None},
        "w": _hex(w),
        "dual": None,
        "producer": {"name": "verify.certify"},
    }


def _estimate(search: Search) -> Certificate:
    """Return float bounds, marked as not proved, where the kernel has no rule."""
    inst, problem, w, flow, rtol = search.inst, search.problem, search.w, search.u, search.rtol
    document = _document(inst, w, rtol)
    upper, lower = np.inf, -np.inf
    node, edge = np.full(inst.n, np.inf), np.full(len(inst.edges), np.inf)
    r = [np.zeros(t.shape) for t in inst.terms]
    if inst.opaque:
        if hasattr(problem, "value"):
            upper = float(problem.value(w))
        if flow is None and hasattr(problem, "solve"):
            flow = problem.solve(rtol=rtol).u
        if flow is not None and hasattr(problem, "lower_bound"):
            bound, flow = problem.lower_bound(flow)
            lower = float(bound)
    else:
        upper = inst.value(w)
        for candidate in search.candidates():
            if candidate.lower > lower:
                flow, r, lower = candidate.flow.u, candidate.flow.r, candidate.lower
                node, edge = gaps(inst, w, flow, r)
            if upper - lower <= rtol * max(1.0, abs(upper)):
                break
    gap = upper - lower
    return Certificate(
        status="UNPROVED",
        reason=f"{kernel.check(document).reason}; the bounds are float estimates",
        upper=upper,
        lower=lower,
        gap=gap,
        rel_gap=gap / max(1.0, abs(upper)) if np.isfinite(gap) else np.inf,
        exact=False,
        node_gaps=node,
        edge_gaps=edge,
        distance_bound=None,
        w=w,
        u=np.zeros((len(inst.edges), inst.d)) if flow is None else np.asarray(flow, dtype=float),
        r=tuple(r),
        better=None,
        rtol=rtol,
        document=document,
    )
