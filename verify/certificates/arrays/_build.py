"""Certificates of large problems: the builder of JSON documents, on arrays all the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify.certificates._certificate import Certificate
from verify.certificates._certify import LEAST_MOVE, Builder, Proof
from verify.certificates._dual_points import Candidate, DualSearch, as_point, overflowing
from verify.certificates._exact_flow import NoWitness
from verify.certificates._limits import Clock
from verify.certificates.arrays._archive import Document
from verify.certificates.arrays._convert import Members, table_of
from verify.certificates.arrays._document import ArraysDocument, judged
from verify.certificates.arrays._grid_flow import GridFlow, grid_flow
from verify.certificates.arrays._load import LargeData, load_arrays
from verify.instance import _integers as integers
from verify.instance._constraints import Constraints
from verify.instance._integers import Exact
from verify.kernel.large.layout import SCHEMA
from verify.kernel.result import Result

# Numbers in w and u beyond which texts, some hundred bytes each, are no way out.
MOST_IN_TEXTS = 4_000_000


def certify_arrays(
    problem: Any, w: Any, u: Any, rtol: float, *, search: bool, clock: Clock
) -> Certificate | None:
    """Do what `verify.certify` does, without any text; None where it has to be done with texts.

    That is, for ratios, singular quadratic penalties, losses without a rule, data that are no
    arrays or wrong, and where no witness on grids is found.
    """
    found = load_arrays(problem)
    if found is None:
        return None
    inst, data = found
    if not inst.penalty.exact or inst.penalty.matrix is not None:
        return None
    clock.entries = (inst.n + len(inst.edges)) * inst.d
    given, exact_w = as_point(w, (inst.n, inst.d), "w")
    exact_u = None
    if u is not None:
        u, exact_u = as_point(u, (len(inst.edges), inst.d), "u")
    if exact_w is not None or exact_u is not None or not (np.isfinite(rtol) and rtol >= 0):
        return None
    constraints = Constraints(inst)
    point, exact = given, None
    if near := constraints.near(given, max(float(rtol), LEAST_MOVE)):
        point, exact = constraints.moved(given)
    sources = DualSearch(
        inst, problem, point, u, float(rtol), constraints, clock=clock, may_solve=search
    )
    builder = _LargeBuilder(sources, data, float(rtol), exact)
    if constraints.any and not near:
        with clock.kept():
            result = builder.checked({}, [])
        if result.status == "REFUTED":
            return replace(builder.finish(Proof(result)), w=given)
    certificate = builder.run(None, None)
    fits = clock.entries <= MOST_IN_TEXTS
    if builder.refused and certificate.status == "UNPROVED" and fits and not clock.expired():
        return None
    moved = float(np.abs(point - given).max(initial=0.0))
    return replace(certificate, moved=moved)


class _LargeBuilder(Builder):
    """Writes arrays with one witness after the other until w is certified or refuted.

    Attributes
    ----------
    refused : bool
        Whether a witness that should have been one was not found, or was none.
    """

    def __init__(
        self, search: DualSearch, data: LargeData, rtol: float, exact: Exact | None
    ) -> None:
        self.data, self.refused = data, False
        w, self.point = _table("w", search.w, exact)
        document = {
            "schema": SCHEMA,
            "sha256": data.sha256,
            "claim": {"rtol": float(rtol).hex(), "upper": None, "lower": None},
            "data": data.head,
            "w": w,
            "dual": None,
            "producer": {"name": "verify.certify"},
        }
        super().__init__(search, document)
        self.of_better: Members = []

    def arrays(self, changes: dict[str, Any], witness: Members) -> Document:
        """Return the document with some more witnesses."""
        members = [*self.point, *witness]
        return Document({**self.document, **changes}, self.data.members, members)

    def checked(self, changes: dict[str, Any], witness: Members) -> Result:
        """Let the kernel judge the document with some more witnesses."""
        return judged(self.arrays(changes, witness), self.rtol)

    def without_dual(self) -> Proof:
        """Return what the document proves by itself."""
        return Proof(self.checked({}, []))

    def better(self, proof: Proof | None, candidate: Candidate) -> Proof | None:
        """Return the proof or that of the candidate, whichever has the larger lower bound."""
        flow = candidate.flow
        try:
            with overflowing():
                found = grid_flow(
                    self.inst, flow.u, flow.r, candidate.point, candidate.active, flow.absorb
                )
        except NoWitness as reason:
            self.notes.append(str(reason))
            self._refuse(candidate)
            return proof
        result = self.checked({"dual": found.dual}, found.members)
        if result.status == "REFUTED":
            self.notes.append(f"the builder's witness was refused: {result.reason}")
            self._refuse(candidate)
            return proof
        other = Proof(result, found.dual, found)
        return other if proof is None or _is_better(result, proof.result) else proof

    def _refuse(self, candidate: Candidate) -> None:
        """Note that the grids are too coarse; another flow need not be found, but finer numbers."""
        self.refused = True
        value = self.search.value(self.w)
        if candidate.hope >= value - self.rtol * max(1.0, abs(value)):
            self.search.ended = True

    def refute(self, proof: Proof) -> Certificate:
        """Look for a better point among our own solutions, else leave it unproved."""
        value, search = self.search.value, self.search
        points = sorted(search.points, key=value)
        if points and value(points[0]) < value(self.w):
            point, exact = search.constraints.moved(points[0])
            table, members = _table("better", point, exact)
            own = _members_of(proof)
            changes = {"dual": proof.dual, "better": table}
            refuted = self.checked(changes, [*own, *members])
            if refuted.status == "REFUTED":
                self.document |= changes
                self.of_better = members
                return self.finish(Proof(refuted, proof.dual, proof.flow), points[0])
        return self.finish(proof)

    def finish(self, proof: Proof, better: FloatArray | None = None) -> Certificate:
        """Write the witness and the claim into the document, and say what was proved."""
        certificate = super().finish(proof, better)
        document = self.arrays({}, [*_members_of(proof), *self.of_better])
        return replace(certificate, document=ArraysDocument(document))


def _is_better(new: Result, old: Result) -> bool:
    return old.lower is None or (new.lower is not None and new.lower >= old.lower)


def _members_of(proof: Proof) -> Members:
    return proof.flow.members if isinstance(proof.flow, GridFlow) else []


def _table(name: str, w: FloatArray, exact: Exact | None) -> tuple[list[dict[str, Any]], Members]:
    """Return the layers of a point, and their arrays: doubles, unless it has ratios."""
    if exact is not None:
        rows = [[integers.text(x, 0) for x in row] for row in exact.tolist()]
        return table_of(rows, name, *exact.shape)
    return [{"type": "float64"}], [(f"{name}/0", w.astype("<f8"))]
