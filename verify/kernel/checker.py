"""The exact kernel on certificates: decides whether one proves that w is nearly optimal.

Trusted and small: standard library alone, exact rational arithmetic or outward enclosures, and no
number of the producer is believed. With every loss written as blocks h_k(B_k w) the problem is

    P(w) = sum_k h_k(B_k w) + sum_e lam A_e phi(w_head(e) - w_tail(e))

and its proof one multiplier r_k per loss block and one flow u_e per edge (Fenchel duality; for one
block a node this is the dual (24) of SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated
Learning via Generalized Total Variation Minimization"). The kernel checks at every node

    sum_k B_k^T r_k + (D^T u)_i = 0  exactly,      and  ||u_e||_* <= lam A_e  where phi is a norm,

and then  lower = - sum_k h_k*(r_k) - sum_e (lam A_e phi)*(u_e) <= min P <= P(w) <= upper.
The file format, each conjugate and the meaning of each answer are in SCHEMA.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from typing import Any

from verify.kernel import losses, numbers, work
from verify.kernel.data import NORM_OF_P, keys, stated
from verify.kernel.losses import Table, dot
from verify.kernel.matrices import Semidefinite
from verify.kernel.numbers import Bounds, Number, by_denominator, exactly, quotients
from verify.kernel.powers import PowerNorm
from verify.kernel.result import Result
from verify.kernel.verdict import Verdict, false, malformed, shown

SCHEMA = "gtv-certificate/1"


#: Tolerance where whoever checks states none. What the document asks for never decides.
RTOL = 1e-6
#: Below this size of the objective, at w and at zero, max(1, |P|) makes a relative gap absolute.
SMALL = Fraction(1, 100)


def check_certificate(
    document: object, external: Mapping[str, Any] | None = None, rtol: Fraction = Fraction(RTOL)
) -> Result:
    """Check a certificate, a mapping as SCHEMA.md has it; see `verify.check`.

    Raises
    ------
    Verdict
        The answer, where it is found early.
    """
    required = {"schema", "sha256", "claim", "w"}
    doc = keys(document, required, {"data", "dual", "better", "producer"}, "certificate")
    if doc["schema"] != SCHEMA:
        raise malformed(f"schema must be {SCHEMA!r}, got {shown(doc['schema'])}")
    claim = keys(doc["claim"], {"rtol", "upper", "lower"}, set(), "claim")
    _single(claim["rtol"], "rtol")
    data = stated(doc, external)
    # before anything else is made: n and d are two numbers in the data, but they are the size of w
    w = numbers.table(doc["w"], data["n_nodes"], data["dim"], "w")
    problem = Problem(data)
    lower = None
    if doc.get("dual") is not None:
        more = {"quadratic"} if problem.phi == "quadratic" else set[str]()
        dual = keys(doc["dual"], {"u", "r"}, more, "dual")
        lower = problem.lower_bound(dual["u"], dual["r"], dual.get("quadratic"))
    better = (
        None
        if doc.get("better") is None
        else lambda: numbers.table(doc["better"], problem.n, problem.d, "better")
    )
    return judged(problem, w, lower, better, claim, rtol)


def judged(
    problem: Problem,
    w: tuple[Table, int],
    lower: Fraction | None,
    better: Callable[[], tuple[Table, int]] | None,
    claim: Mapping[str, object],
    rtol: Fraction,
) -> Result:
    """Return the answer about w, of any document, once the lower bound is proved.

    The better point, if there is one, is read after w was found to be feasible.
    """
    if broken := problem.violation(*w):
        reason = f"w is not feasible: {broken}, where the objective is infinite"
        return Result("REFUTED", reason, None, lower, rtol)
    value = problem.value(*w)
    result = Result("UNPROVED", "the document has no dual witness", value.hi, lower, rtol)
    if lower is not None:
        result = replace(result, distance_squared=problem.upper_distance_squared(value.hi - lower))
    if better is not None and (drop := _lower_drop(problem, value, better(), rtol)):
        reason = f"w is not within rtol: the attached point is better by at least {drop:.6g}"
        return replace(result, status="REFUTED", reason=reason)
    return _judge(replace(result, warning=_warning(problem, value)), claim, value)


def _single(value: object, name: str) -> Fraction:
    (v,), k = numbers.scaled([value])
    if v < 0 and name == "rtol":
        raise malformed("rtol must not be negative")
    return v * numbers.unit(k)


def _warning(problem: Problem, value: Bounds) -> str:
    """Say so where the problem's own scale is far below 1."""
    if max(abs(value.lo), abs(value.hi)) >= SMALL:
        return ""
    zero: Table = [[0] * problem.d for _ in range(problem.n)]
    if problem.violation(zero, 0) or (scale := problem.value(zero, 0).hi) >= SMALL:
        return ""
    return (
        f"the objective is small, {numbers.round_up(value.hi):.3g} at w and"
        f" {numbers.round_up(scale):.3g} at zero: gap / max(1, |upper|) says little, look at"
        " gap / |upper|"
    )


def _lower_drop(
    problem: Problem, value: Bounds, better: tuple[Table, int], rtol: Fraction
) -> float | None:
    """Return by how much a feasible point is better, None unless by more than rtol allows."""
    if problem.violation(*better):
        return None
    other = problem.value(*better)
    # x - rtol max(1, |x|) is concave, so its least value over the enclosure is at an end.
    if other.hi < min(x - rtol * max(Fraction(1), abs(x)) for x in value):
        return numbers.round_down(value.lo - other.hi)
    return None


def _judge(result: Result, claim: Mapping[str, object], value: Bounds) -> Result:
    """Compare the proved bounds with each other, with the claimed ones and with rtol."""
    gap, relative, lower = result.gap, result.rel_gap, result.lower
    if gap is not None and gap < 0:
        reason = f"defect: the exact gap is negative, {numbers.round_up(gap):.3g}"
        return replace(result, status="REFUTED", reason=reason)
    if claim["lower"] is not None and (
        lower is None or _single(claim["lower"], "claim.lower") > lower
    ):
        raise false("the claimed lower bound is above what its witness proves")
    if claim["upper"] is not None:
        claimed = _single(claim["upper"], "claim.upper")
        if claimed < value.lo:
            raise false("the claimed upper bound is below P(w)")
        if claimed < value.hi:
            return replace(result, reason="P(w) may be above the claimed upper bound")
    if relative is None or result.rtol is None:
        return result
    figures = (numbers.round_up(x) for x in (relative, result.rtol))
    reason = "relative gap {:.3g}, rtol {:.3g}".format(*figures)
    if relative <= result.rtol:
        return replace(result, status="CERTIFIED", reason=reason)
    if relative <= (own := _single(claim["rtol"], "rtol")):
        reason += f", although the document asks for no more than {numbers.round_up(own):.3g}"
    return replace(result, status="UNPROVED", reason=reason)


Norm = Callable[[list[Number]], Number]
#: Norms that are rational; and of each norm phi a power of the dual norm that is, and which power.
NORMS: dict[str, Norm] = {
    "l1": lambda v: sum(-x if x < 0 else x for x in v),
    "linf": lambda v: max(-x if x < 0 else x for x in v),
}
DUAL_NORMS: dict[str, tuple[Norm, int]] = {
    "l1": (NORMS["linf"], 1),
    "l2": (lambda v: dot(v, v), 2),
    "linf": (NORMS["l1"], 1),
}


class Problem:
    """A problem as exact numbers: its objective and the dual bound of a witness.

    Raises `Verdict` (UNPROVED) for a loss or a penalty that has no rule.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.n, self.d, self.edges = data["n_nodes"], data["dim"], data["edges"]
        lam, k_lam = numbers.scaled([data["lam"]])
        weights, k_weights = numbers.scaled(data["weights"])
        self.caps, self.k_caps = [int(lam[0] * a) for a in weights], k_lam + k_weights
        self.phi = data["penalty"]["kind"]
        if self.phi == "opaque":
            raise Verdict("UNPROVED", f"no exact rule for the penalty {data['penalty']['name']!r}")
        if self.phi == "pnorm":
            # In one dimension every p-norm is the absolute value.
            self.phi = "l1" if self.d == 1 else NORM_OF_P.get(data["penalty"]["p"], "pnorm")
            if self.phi == "pnorm":
                self.norm = PowerNorm(data["penalty"]["p"])
        if self.phi == "quadratic":
            self.q, self.k_q = numbers.table(data["penalty"]["Q"], self.d, self.d, "Q")
        self.terms = [losses.term_of(t, self.d) for t in data["terms"]]

    def violation(self, w: Table, k: int) -> str | None:
        """Return a constraint that the point with rows w_i 2^-k breaks, where P is infinite."""
        return next(filter(None, (t.violation(w, k) for t in self.terms)), None)

    def _charge(self, w: Table) -> None:
        """Count the work of one look at a point: a rational may be in every row and every edge."""
        rational = work.rational_rows(w) > 0
        for term in self.terms:
            term.charge(len(term.node) if rational else 0, self.d, 0)
        self._charge_edges(len(self.edges) if rational else 0, 0)

    def _charge_edges(self, rational: int, sums: int) -> None:
        """Count the work of one pass over the edges, roots with 64 bits more included."""
        squares = self.d if self.phi == "quadratic" else 1
        work.operations((8 * squares * self.d + 16) * len(self.edges))
        work.charge(40 * len(self.edges))
        work.rows(squares * rational, self.d)
        work.sums(rational * sums)

    def value(self, w: Table, k: int) -> Bounds:
        """Enclose P at the point with rows w_i 2^-k, which breaks no constraint."""
        self._charge(w)
        parts = [t.value(w, k) for t in self.terms] + [self._variation(w, k)]
        return Bounds(work.total(p.lo for p in parts), work.total(p.hi for p in parts))

    def _variation(self, w: Table, k: int) -> Bounds:
        """Enclose sum_e lam A_e phi(w_head - w_tail)."""
        rows = ([a - b for a, b in zip(w[i], w[j], strict=True)] for i, j in self.edges)
        if self.phi == "l2" and self.d > 1:
            return numbers.roots([sum(x * x for x in v) for v in rows], self.caps, k + self.k_caps)
        if self.phi == "pnorm":
            return self.norm.total(rows, self.caps, k + self.k_caps)
        if self.phi == "quadratic":
            forms = (sum(x * dot(q, v) for x, q in zip(v, self.q, strict=True)) for v in rows)
            return exactly(dot(self.caps, forms), self.k_caps + self.k_q + 2 * k + 1)
        if self.phi == "squared":
            return exactly(dot(self.caps, (dot(v, v) for v in rows)), self.k_caps + 2 * k + 1)
        norm = NORMS["linf" if self.phi == "linf" else "l1"]  # l2 here for d = 1, where all agree
        return exactly(dot(self.caps, map(norm, rows)), self.k_caps + k)

    def lower_bound(self, flows: object, witnesses: object, quadratic: object = None) -> Fraction:
        """Return the lower bound that (u, r) proves; `Verdict` (REFUTED) if it proves none.

        ``quadratic`` is the witness of a quadratic penalty; UNPROVED where it is None.
        """
        u, k = numbers.table(flows, len(self.edges), self.d, "dual.u")
        self._charge_edges(work.rational_rows(u), 2 * self.d)
        lists = numbers.as_list(witnesses, len(self.terms), "dual.r")
        conjugates, images = [], []
        for number, (term, r) in enumerate(zip(self.terms, lists, strict=True)):
            bound, image, k_image = term.dual(r, f"dual.r[{number}]")
            conjugates.append(bound)
            images.append((image, k_image))
        self._check_conservation(u, k, images)
        return -work.total([*conjugates, self._upper_conjugate(u, k, quadratic)])

    def _check_conservation(
        self, u: Table, k_u: int, images: list[tuple[dict[int, list[Number]], int]]
    ) -> None:
        """Check  sum_k B_k^T r_k + D^T u = 0  at every node, in every coordinate."""
        k = max([k_u, *(k for _, k in images)])
        rows = 2 * len(self.edges) + sum(len(image) for image, _ in images)
        work.operations(2 * self.d * rows)
        one = 1 << (k - k_u)
        into = ((i, flow, one) for (i, _), flow in zip(self.edges, u, strict=True))
        out = ((j, flow, -one) for (_, j), flow in zip(self.edges, u, strict=True))
        own = ((i, row, 1 << (k - other)) for image, other in images for i, row in image.items())
        sums: dict[int, list[Number]] = defaultdict(lambda: [0] * self.d)
        for i, row, scale in chain(into, out, own):
            total = sums[i]
            for c, x in enumerate(row):
                total[c] = work.plus(total[c], x * scale)
        for i, total in sums.items():
            if any(total):
                c = next(c for c, x in enumerate(total) if x)
                raise false(f"the flow is not conserved at node {i}, coordinate {c}")

    def _upper_conjugate(self, u: Table, k: int, quadratic: object) -> Fraction:
        """Return an upper bound of sum_e (lam A_e phi)*(u_e); a flow above capacity is refused."""
        if self.phi == "quadratic":
            return self._upper_quadratic_conjugate(u, k, quadratic)
        if self.phi == "squared":
            squares = ((cap, dot(v, v)) for cap, v in zip(self.caps, u, strict=True))
            return quotients(by_denominator(squares), 2 * k - self.k_caps + 1).hi
        scale, more = 1 << max(0, self.k_caps - k), max(0, k - self.k_caps)
        if self.phi == "pnorm":
            for e, (flow, cap) in enumerate(zip(u, self.caps, strict=True)):
                self.norm.check(flow, scale, cap << more, f"edge {e} {self.edges[e]}")
            return Fraction(0)
        size, power = DUAL_NORMS[self.phi]
        for e, (flow, cap) in enumerate(zip(u, self.caps, strict=True)):
            if size(flow) * scale**power > (cap << more) ** power:
                raise false(f"the flow on edge {e} {self.edges[e]} is above its capacity")
        return Fraction(0)

    def _upper_quadratic_conjugate(self, u: Table, k: int, witness: object) -> Fraction:
        """Return an upper bound of sum_e u_e^T Q^+ u_e / (2 lam A_e), u_e in the range of Q.

        The witness proves Q positive semidefinite, and at least mu on its range, where then
        u^T Q^+ u <= x^T (u + s) + ||s||^2 / mu  for any x, with s = u - Q x.
        """
        if witness is None:
            raise Verdict("UNPROVED", "the dual has no `quadratic`, the witness for such a penalty")
        raw = keys(witness, {"root", "null_space", "x"}, set(), "dual.quadratic")
        null, root = (numbers.table(raw[key], None, self.d, key) for key in ("null_space", "root"))
        x, k_x = numbers.table(raw["x"], len(u), self.d, "dual.quadratic.x")
        q = Semidefinite(self.q, self.k_q, null, root)
        q.charge(len(u), work.rational_rows(u) + work.rational_rows(x), max(k, k_x + q.k))
        forms = list(q.upper_forms(u, k, x, k_x))
        linear, square = (
            by_denominator(zip(self.caps, (form[j] for form in forms), strict=True)) for j in (0, 1)
        )
        unit, unit_of_squares = q.units(k, k_x)
        first = quotients(linear, unit + 1 - self.k_caps).hi
        return first + quotients(square, unit_of_squares + 1 - self.k_caps).hi / q.lower_margin

    def upper_distance_squared(self, gap: Fraction) -> Fraction | None:
        """Bound ||w - w_hat||^2 by 2 gap / mu, mu the least modulus proved at a coordinate."""
        work.charge(20 * self.n * self.d)
        modulus = [[Fraction(0)] * self.d for _ in range(self.n)]
        for term in self.terms:
            for i, row in term.lower_moduli():
                modulus[i] = [a + b for a, b in zip(modulus[i], row, strict=True)]
        least = min(map(min, modulus))
        return 2 * gap / least if gap >= 0 and least > 0 else None
