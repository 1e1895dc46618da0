"""Certificates: from any w, or (w, u), to a document that the exact kernel accepts or refutes.

The builder is untrusted: it repairs flows in floats, makes them exact, writes the document, and
takes every figure and the verdict from the kernel. Rational pairs (w, u) go to the kernel as they
are, so an exact solution gets a certificate whose gap is zero.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify._deadline import Expired, until
from verify.certificates._certificate import Certificate
from verify.certificates._dual_points import (
    Candidate,
    DualSearch,
    as_point,
    exact_pair,
    overflowing,
    solved,
)
from verify.certificates._exact_flow import ExactFlow, NoWitness, exact_flow
from verify.certificates._exact_point import Absorb
from verify.certificates._limits import GIVE_BETTER, Clock
from verify.certificates._quadratic_witness import quadratic_witness
from verify.certificates._repair import gaps
from verify.instance import _integers as integers
from verify.instance._constraints import Constraints
from verify.instance._instance import Instance, load
from verify.instance._integers import Exact
from verify.instance._penalties import QuadraticPenalty
from verify.instance._terms import Term
from verify.kernel import Result, check
from verify.kernel.checker import SCHEMA
from verify.kernel.data import digest
from verify.kernel.numbers import round_down, round_up, sqrt_up

LARGEST_ADVISED = 0.01  # relative gap: nobody is advised to ask for more
HOPES = 2  # candidates tried although the estimate of what they miss forbids it
LEAST_MOVE = 1e-9  # floats that miss a constraint by less are moved whatever rtol is


def certify(
    problem: Any,
    w: Any,
    u: Any = None,
    rtol: float = 1e-6,
    *,
    search: bool = True,
    clock: Clock | None = None,
) -> Certificate:
    """Prove how far w is from optimal, in texts; arguments as of `verify.certify`."""
    clock = Clock(None) if clock is None else clock
    inst = load(problem)
    clock.entries = (inst.n + len(inst.edges)) * inst.d
    given, exact_w = as_point(w, (inst.n, inst.d), "w")
    inst = inst.beside(given)
    exact_u = None
    if u is not None:
        u, exact_u = as_point(u, (len(inst.edges), inst.d), "u")
    if not (np.isfinite(rtol) and rtol >= 0):
        raise ValueError(f"rtol must be finite and not negative, got {rtol!r}")
    constraints = Constraints(inst)
    point, exact = given, exact_w
    near = exact_w is None and constraints.near(given, max(float(rtol), LEAST_MOVE))
    if near:
        point, exact = constraints.moved(given)
    elif exact_w is not None:  # the builder's floats must be feasible, as the ratios should be
        point, _ = constraints.moved(given)
    document = _document(inst, _hex(point) if exact is None else _texts(exact), rtol)
    sources = DualSearch(
        inst, problem, point, u, float(rtol), constraints, clock=clock, may_solve=search
    )
    if constraints.any and not near:
        with clock.kept():
            result = check(document, rtol=rtol)
        if result.status == "REFUTED":
            return replace(Builder(sources, document).finish(Proof(result)), w=given)
    if inst.opaque or not inst.penalty.exact:
        certificate = _estimate(sources, document)
    else:
        certificate = Builder(sources, document).run(exact_w, exact_u)
    moved = _distance(given, point, exact) if exact_w is None else 0.0
    return replace(certificate, moved=moved)


@dataclass(frozen=True)
class Proof:
    """A witness as the document has it, with what the kernel says of the document."""

    result: Result
    dual: dict[str, Any] | None = None
    flow: Any = None  # ExactFlow, or whatever else has `floats`

    @property
    def certified(self) -> bool:
        return self.result.status == "CERTIFIED"


UNTRIED = Proof(Result("UNPROVED", "no proof was found in time"))


def _lower(proof: Proof) -> float:
    """Return the proved bound in floats, minus infinity where there is none."""
    return -np.inf if proof.result.lower is None else round_down(proof.result.lower)


def _larger(proof: Proof | None, other: Proof | None) -> Proof | None:
    """Return the proof, or another one if its lower bound is no smaller."""
    if proof is None or other is None:
        return proof or other
    return other if _lower(other) >= _lower(proof) else proof


class Builder:
    """Writes documents with one witness after the other until w is certified or refuted."""

    def __init__(self, search: DualSearch, document: dict[str, Any]) -> None:
        self.search, self.document = search, document
        self.inst, self.w, self.rtol = search.inst, search.w, search.rtol
        self.notes: list[str] = []
        self.proof: Proof | None = None  # the best so far

    def run(self, w: Exact | None, u: Exact | None) -> Certificate:
        """Certify or refute; w and u are the given pair where it is rational."""
        try:
            with self.search.clock.kept():
                return self._searched(w, u)
        except Expired:
            return self.finish(self.proof or UNTRIED)

    def _searched(self, w: Exact | None, u: Exact | None) -> Certificate:
        self.proof = proof = self._given(w, u)
        if proof is not None and proof.certified:
            return self.finish(proof)
        value = self.search.value(self.w)
        promising = value - 4 * self.rtol * max(1.0, abs(value))
        waiting: Candidate | None = None
        hopes = HOPES
        for candidate in self.search.candidates():
            # What is missing counts at the largest entries of w, and may cost a millionth of that.
            if candidate.lower < promising <= candidate.hope and hopes:
                hopes -= 1
            elif candidate.lower < promising:
                if waiting is None or candidate.lower > waiting.lower:
                    waiting = candidate
                continue
            elif proof is not None and candidate.lower <= _lower(proof):
                continue
            self.proof = proof = self.better(proof, candidate)
            if proof is not None and proof.certified:
                return self.finish(proof)
        if waiting is not None and (proof is None or waiting.lower > _lower(proof)):
            self.proof = proof = self.better(proof, waiting)
        return self.refute(proof or self.without_dual())

    def without_dual(self) -> Proof:
        """Return what the document proves by itself."""
        return Proof(check(self.document, rtol=self.rtol))

    def _given(self, w: Exact | None, u: Exact | None) -> Proof | None:
        if w is None or u is None:
            return None
        flow = exact_pair(self.inst, w, u)
        return None if flow is None else self._judged(flow, exact=True)

    def better(self, proof: Proof | None, candidate: Candidate) -> Proof | None:
        """Return the proof or that of the candidate, whichever has the larger lower bound."""
        flow, value = candidate.flow, self.search.value(self.w)
        proof = _larger(proof, self._made(candidate, flow.absorb))
        hopeful = candidate.hope >= value - self.rtol * max(1.0, abs(value))
        # Where what rounding misses is carried far, it fills edges that have hardly any room. Next
        # to an end even rounding is much; it is made up elsewhere, with another factor.
        for absorb, careful in ((flow.near, None), (flow.absorb, flow.careful)):
            done = proof is not None and proof.certified
            if done or not hopeful or self.search.clock.expired():
                break
            if absorb is not None:
                proof = _larger(proof, self._made(candidate, absorb, careful))
        return proof

    def _made(
        self, candidate: Candidate, absorb: Absorb | None, careful: Absorb | None = None
    ) -> Proof | None:
        """Return what the candidate, made exact, proves; None if that is not possible."""
        u, r = candidate.flow.u, candidate.flow.r
        try:
            with overflowing():
                flow = exact_flow(
                    self.inst, u, r, candidate.point, candidate.active, absorb, careful
                )
        except NoWitness as reason:
            self.notes.append(str(reason))
            return None
        return self._judged(flow)

    def _judged(self, flow: ExactFlow, exact: bool = False) -> Proof | None:
        """Let the kernel judge the document with this witness; None if it is not valid."""
        r = [
            integers.texts(term.documented(v), k)
            for term, v, k in zip(self.inst.terms, flow.r, flow.k_r, strict=True)
        ]
        dual: dict[str, Any] = {"u": integers.texts(flow.u, flow.k), "r": r}
        if (quadratic := quadratic_witness(self.inst, flow.u, flow.k, exact)) is not None:
            dual["quadratic"] = quadratic
        result = check({**self.document, "dual": dual}, rtol=self.rtol)
        if result.status == "REFUTED":  # that our witness is false says nothing about w
            self.notes.append(f"the builder's witness was refused: {result.reason}")
            return None
        return Proof(result, dual, flow)

    def refute(self, proof: Proof) -> Certificate:
        """Look for a better point among our own solutions, else leave it unproved."""
        value = self.search.value
        points = sorted(self.search.points, key=value)
        if points and value(points[0]) < value(self.w):
            _, exact = self.search.constraints.moved(points[0])
            table = _hex(points[0]) if exact is None else _texts(exact)
            better = {"dual": proof.dual, "better": table}
            refuted = check({**self.document, **better}, rtol=self.rtol)
            if refuted.status == "REFUTED":
                self.document |= better
                return self.finish(Proof(refuted, proof.dual, proof.flow), points[0])
        return self.finish(proof)

    def finish(self, proof: Proof, better: FloatArray | None = None) -> Certificate:
        """Write the witness and the claim into the document, and say what was proved."""
        result = proof.result
        with until(np.inf):  # what is left to do is to write it down
            u, r, node, edge = self._floats(proof)
        self.document["dual"] = proof.dual
        upper, lower = self._claim(result)
        squared = result.distance_squared
        return Certificate(
            status=result.status,
            reason=self._reason(result),
            upper=upper,
            lower=lower,
            gap=np.inf if result.gap is None else round_up(result.gap),
            rel_gap=np.inf if result.rel_gap is None else round_up(result.rel_gap),
            exact=True,
            node_gaps=node,
            edge_gaps=edge,
            distance_bound=None if squared is None else sqrt_up(squared),
            w=self.w,
            u=u,
            r=tuple(self._documented(term, v) for term, v in zip(self.inst.terms, r, strict=True)),
            better=better,
            rtol=self.rtol,
            document=self.document,
        )

    @staticmethod
    def _documented(term: Term, r: FloatArray) -> FloatArray:
        return np.asarray(term.documented(r), dtype=np.float64)

    def _floats(self, proof: Proof) -> tuple[FloatArray, list[FloatArray], FloatArray, FloatArray]:
        """Return u, r and the gaps per node and per edge in floats."""
        inst = self.inst
        m = len(inst.edges)
        if proof.flow is None:
            r = [np.zeros(t.shape) for t in inst.terms]
            return np.zeros((m, inst.d)), r, np.full(inst.n, np.inf), np.full(m, np.inf)
        u, r = proof.flow.floats()
        if proof.result.gap == 0:  # so are all its parts, which floats only come close to
            return u, r, np.zeros(inst.n), np.zeros(m)
        with overflowing():
            return u, r, *gaps(inst, self.w, u, r)

    def _claim(self, result: Result) -> tuple[float, float]:
        """Write the proved bounds into the document; return them rounded outwards."""
        upper = np.inf if result.upper is None else round_up(result.upper)
        lower = -np.inf if result.lower is None else round_down(result.lower)
        for name, value, rounded in (
            ("upper", result.upper, upper),
            ("lower", result.lower, lower),
        ):
            if value is not None:
                # a ratio where a double would hide that the gap is 0, or overflow
                is_ratio = result.gap == 0 or not np.isfinite(rounded)
                text = integers.text(value, 0) if is_ratio else rounded.hex()
                self.document["claim"][name] = text
        return upper, lower

    def _reason(self, result: Result) -> str:
        """Return the kernel's reason; if nothing is proved, what went wrong and what to change."""
        if result.status != "UNPROVED":
            return result.reason
        late = self.search.clock.note(self.search.wanted)
        notes = [*self.notes[-1:], *self.search.notes, late or _advice(result)]
        return f"{result.reason} ({'; '.join(notes)})"


def _advice(result: Result) -> str:
    """Return what to change where a claim is not proved."""
    if result.rel_gap is None:
        return "give u, the flow of a solution of this w"
    advice = GIVE_BETTER
    if result.rel_gap > LARGEST_ADVISED:
        return advice
    enough = Context(prec=2, rounding=ROUND_CEILING).create_decimal(round_up(result.rel_gap))
    return f"{advice}, or ask for rtol={float(enough):g}"


def _hex(a: FloatArray) -> list[list[str]]:
    return [[x.hex() for x in row] for row in a.tolist()]


def _texts(a: Exact) -> list[list[str]]:
    """Return ints and Fractions as witness numbers, those that are doubles in their usual form."""
    rows = a.tolist()
    return [[float(x).hex() if float(x) == x else integers.text(x, 0) for x in row] for row in rows]


def _distance(given: FloatArray, w: FloatArray, exact: Exact | None) -> float:
    """Return the largest change of an entry, rounded up."""
    if exact is None:
        return float(np.abs(w - given).max(initial=0.0))
    changes = (
        abs(x - Fraction(y)) for x, y in zip(exact.flat, given.ravel().tolist(), strict=True)
    )
    return round_up(max(changes))


def _document(inst: Instance, w: list[Any], rtol: float) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "sha256": digest(inst.plain),
        "data": inst.plain,
        "claim": {"rtol": float(rtol).hex(), "upper": None, "lower": None},
        "w": w,
        "dual": None,
        "producer": {"name": "verify.certify"},
    }


def _unprovable(inst: Instance, document: dict[str, Any], rtol: float) -> str:
    """Return why the kernel has no rule, or no witness can be made."""
    if inst.opaque or not isinstance(inst.penalty, QuadraticPenalty):
        return check(document, rtol=rtol).reason
    return "Q is not positive semidefinite in exact arithmetic"


def _estimate(search: DualSearch, document: dict[str, Any]) -> Certificate:
    """Return float bounds, marked as not proved, where the kernel has no rule."""
    inst, problem, w, flow, rtol = search.inst, search.problem, search.w, search.u, search.rtol
    upper, lower = np.inf, -np.inf
    node, edge = np.full(inst.n, np.inf), np.full(len(inst.edges), np.inf)
    r = [np.zeros(t.shape) for t in inst.terms]
    with suppress(Expired), search.clock.kept():
        if inst.opaque:
            if hasattr(problem, "value"):
                upper = float(problem.value(w))
            if flow is None and search.may_solve and hasattr(problem, "solve"):
                with search.clock.solving() as seconds:
                    flow = solved(problem, rtol, seconds).u
            if flow is not None and hasattr(problem, "lower_bound"):
                bound, flow = problem.lower_bound(flow)
                lower = float(bound)
        else:
            upper = search.value(w)
            for candidate in search.candidates():
                if candidate.lower > lower:
                    flow, r, lower = candidate.flow.u, candidate.flow.r, candidate.lower
                    with overflowing():
                        node, edge = gaps(inst, w, flow, r)
                if upper - lower <= rtol * max(1.0, abs(upper)):
                    break
    gap = np.inf if np.isinf(upper) else upper - lower
    return Certificate(
        status="UNPROVED",
        reason=f"{_unprovable(inst, document, rtol)}; the bounds are float estimates",
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
