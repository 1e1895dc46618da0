"""Exact check of the constants of Theorem 2 against the problem data.

For quadratic local losses (squared, point, ridge, zero) with Hessians H_i, their sum H over a
cluster, and g_i = grad L_i at a point v near the cluster's minimizer, in the penalty's norm:

    beta_i = max over v of v^T H_i v / ||v||^2        alpha = min over v of v^T H v / ||v||^2

    norm   beta_i                                     alpha
    l2     lambda_max(H_i)                            lambda_min(H)
    l1     max_j (H_i)_jj                             1 / max_s s^T H^-1 s
    linf   max_s s^T H_i s                            1 / max_j (H^-1)_jj

with s over the sign vectors. A positive claim needs beta and delta from above and alpha from below,
a negative one the reverse, so every function here says in its name which side of the truth it
proves: upper, lower, or exact, which is both. Nothing is eliminated or inverted:

- upper beta and lower alpha are read off diagonal bounds of H_i and H, by roots that the witness
  states, or off a bound of H^-1, by an inverse that it states (`verify.kernel.quadratic_forms`):
  it is multiplied out, and what is left over is added;
- lower beta and upper alpha are quotients v^T H v / ||v||^2 at a direction v that the witness
  states: one vector bounds a maximum from below and a minimum from above.

Maxima over s have no short proof that is known: up to `SIGN_DIMENSION` dimensions they are
enumerated, beyond the sum of absolute entries stands for them in upper bounds. With r = sum of the
g_i, the minimizer is within ||r||_* / alpha of v, hence delta_i within beta_i ||r||_* / alpha of
||g_i||_*. Standard library only, no floating-point arithmetic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel import numbers, work
from verify.kernel.data import NORM_OF_P, term_arrays
from verify.kernel.losses import spread
from verify.kernel.matrices import EMPTY, Matrix, Root, Vector, lower_diagonal
from verify.kernel.quadratic_forms import largest_sign_form, upper_diagonal, upper_inverse
from verify.kernel.verdict import Verdict, malformed

QUADRATIC = ("squared", "point", "ridge")
#: Up to this dimension sign vectors are enumerated (2^(d-1) of them).
SIGN_DIMENSION = 8


class Constants(NamedTuple):
    """Claimed constants of a cluster.

    ``alpha`` None stands for infinity. ``center`` is v, ``modulus`` a lower bound of the true
    alpha; both may be None where nothing depends on them. ``alpha_direction`` and
    ``beta_directions`` are the vectors v of a negative claim, None where none is given; ``total``
    and ``local`` the roots of H and of each H_i, ``inverse`` a guess of H^-1, None likewise.
    """

    alpha: Fraction | None
    beta: Vector
    delta: Vector
    center: Vector | None
    modulus: Fraction | None
    alpha_direction: Vector | None
    beta_directions: Sequence[Vector | None]
    total: Root | None
    inverse: Root | None
    local: Sequence[Root | None]


def norm_of(penalty: Mapping[str, Any]) -> str:
    """Return "l1", "l2" or "linf", for canonical data of such a penalty."""
    kind = str(penalty["kind"])
    kind = NORM_OF_P.get(penalty["p"], kind) if kind == "pnorm" else kind
    if kind not in ("l1", "l2", "linf"):
        raise Verdict("UNPROVED", "the constants are known for the l1, l2 and linf norms only")
    return kind


class Quadratics:
    """Hessian and gradient at zero of each node's loss, from canonical data."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.d = int(data["dim"])
        self._terms: list[tuple[str, dict[str, Any]]] = []
        self._rows: list[dict[int, list[int]]] = []
        for term in data["terms"]:
            kind, rows = term["kind"], defaultdict(list)
            for row, node in enumerate(term["node"]):
                rows[node].append(row)
            read: dict[str, Any] = {}
            arrays = term_arrays(kind, "weight" in term)
            for name, wide in arrays.items() if kind in QUADRATIC else ():
                if wide is False:
                    read[name] = numbers.scaled(term[name])
                else:
                    values = spread(term[name], self.d)
                    read[name] = numbers.table(values, len(term["node"]), self.d, name)
            self._terms.append((kind, read))
            self._rows.append(rows)

    def local(self, node: int) -> tuple[Matrix, Vector]:
        """Return H_i and q_i: the gradient is H_i w + q_i."""
        d = self.d
        work.charge(20 * d * d)  # d may be anything: nothing else bounds it here
        h = [[Fraction(0)] * d for _ in range(d)]
        q = [Fraction(0)] * d
        for (kind, read), rows_of in zip(self._terms, self._rows, strict=True):
            rows = rows_of.get(node)
            if rows is None:
                continue
            if kind == "squared":
                work.operations(len(rows) * d * (d + 2))
                work.fractions(d * d)
                _add_rows(h, q, read, rows)
            elif kind == "point":
                a, k = read["a"]
                twice = 2 * _weight(read, rows[0])
                work.fractions(2 * d)
                for j in range(d):
                    h[j][j] += twice
                    q[j] -= twice * a[rows[0]][j] * numbers.unit(k)
            elif kind == "ridge":
                mu, k = read["mu"]
                work.fractions(d)
                for j in range(d):
                    h[j][j] += mu[rows[0]][j] * numbers.unit(k)
            else:
                raise Verdict("UNPROVED", f"no exact rule for the {kind} loss of node {node}")
        return h, q


def _add_rows(h: Matrix, q: Vector, read: Mapping[str, Any], rows: list[int]) -> None:
    """Add (1/m) sum over the rows of (x.w - y)^2, or the weighted sum."""
    (x, k_x), (y, k_y) = read["X"], read["y"]
    c, k_c = read.get("weight", ([1] * (max(rows) + 1), 0))
    twice = numbers.unit(k_c) * (2 if "weight" in read else Fraction(2, len(rows)))
    h_unit, q_unit = twice * numbers.unit(2 * k_x), twice * numbers.unit(k_x + k_y)
    for i in range(len(q)):
        q[i] -= q_unit * sum(c[r] * x[r][i] * y[r] for r in rows)
        for j in range(i + 1):
            value = h_unit * sum(c[r] * x[r][i] * x[r][j] for r in rows)
            h[i][j] += value
            h[j][i] += value if i != j else 0


def _weight(read: Mapping[str, Any], row: int) -> numbers.Number:
    """Return the weight of a row, 1 where the term has none."""
    if "weight" not in read:
        return 1
    c, k = read["weight"]
    return c[row] * numbers.unit(k)


def check_constants(
    losses: Quadratics, nodes: Sequence[int], norm: str, claim: Constants, positive: bool
) -> None:
    """Verify the constants of a positive or a negative claim, each from the side that it needs.

    Raises
    ------
    Verdict
        REFUTED, naming the constant that is on the wrong side of its bound; UNPROVED for a loss
        without a rule, or a constant whose direction is missing.
    """
    if not positive and claim.alpha is None and not any(claim.beta) and not any(claim.delta):
        return  # beta, delta >= 0 and alpha < infinity need no proof
    local = [losses.local(node) for node in nodes]
    d = losses.d
    work.fractions(len(local) * d * d)
    total = [[sum((h[i][j] for h, _ in local), Fraction(0)) for j in range(d)] for i in range(d)]
    rule = _wrong_upper if positive else _wrong_lower
    wrong = list(rule([h for h, _ in local], nodes, total, norm, claim))
    if wrong:  # what is false before what is not proved
        raise min(wrong, key=lambda verdict: verdict.status)
    if positive:
        _check_upper_deltas(local, nodes, norm, claim)
    elif any(claim.delta):
        _check_lower_deltas(local, nodes, total, norm, claim)


def _wrong_upper(
    local: list[Matrix], nodes: Sequence[int], total: Matrix, norm: str, claim: Constants
) -> Iterator[Verdict]:
    """Find an alpha that is not proved to be a lower bound, and betas no upper ones."""
    alpha = claim.alpha
    if alpha is None or not is_lower_alpha(total, alpha, norm, claim.total, claim.inverse):
        reason = "alpha is not proved to be below the strong convexity of the cluster's losses"
        given = len(total) == 1 or claim.total is not None
        yield _wrong(reason, given or alpha is None or alpha <= 0)
    for node, h, beta, root in zip(nodes, local, claim.beta, claim.local, strict=True):
        if _upper_beta(h, norm, root or EMPTY) > beta:
            given = len(h) == 1 or root is not None or norm == "l1" or _enumerated(h, norm)
            yield _wrong(f"beta of node {node} is not proved to be above its smoothness", given)


def _wrong_lower(
    local: list[Matrix], nodes: Sequence[int], total: Matrix, norm: str, claim: Constants
) -> Iterator[Verdict]:
    """Find an alpha that is not proved to be an upper bound, and betas no lower ones."""
    rows = zip(nodes, local, claim.beta, claim.beta_directions, strict=True)
    bounds = [(f"beta of node {i}", h, beta, v, 1) for i, h, beta, v in rows if beta]
    if claim.alpha is not None:
        bounds.append(("alpha", total, claim.alpha, claim.alpha_direction, -1))
    for name, matrix, bound, v, sign in bounds:
        if v is None:
            yield Verdict("UNPROVED", f"{name} needs a direction that attains it (`directions`)")
        elif sign * (bound * _squared_norm(v, norm) - _form(matrix, v)) > 0:
            yield _wrong(f"{name} is beyond the quotient of its direction")


def _wrong(reason: str, given: bool = True) -> Verdict:
    """Return the answer to a constant on the wrong side of its bound; a root might better that."""
    if given:
        return Verdict("REFUTED", f"false constant: {reason}")
    return Verdict("UNPROVED", f"{reason}: that may need a root (`roots`, docs/theorem2.md)")


def _check_upper_deltas(
    local: list[tuple[Matrix, Vector]], nodes: Sequence[int], norm: str, claim: Constants
) -> None:
    """Refuse a delta_i below ||g_i||_* + beta_i ||r||_* / alpha, an upper bound."""
    gradients, rest = _gradients(local, claim.center)
    distance = _upper_distance(rest, claim.alpha, norm)
    for k, (node, g) in enumerate(zip(nodes, gradients, strict=True)):
        if not _norm_at_most(g, claim.delta[k] - claim.beta[k] * distance, norm):
            raise _wrong(f"delta of node {node} is below the norm of its gradient")


def _check_lower_deltas(
    local: list[tuple[Matrix, Vector]],
    nodes: Sequence[int],
    total: Matrix,
    norm: str,
    claim: Constants,
) -> None:
    """Refuse a delta_i above ||g_i||_* - beta_i ||r||_* / alpha, a lower bound.

    What is taken off needs beta from above and alpha, here the modulus, from below.
    """
    gradients, rest = _gradients(local, claim.center)
    distance = _upper_distance(rest, claim.modulus, norm)
    least = claim.modulus or Fraction(0)
    if distance and not is_lower_alpha(total, least, norm, claim.total, claim.inverse):
        reason = "the modulus is not proved to be below the strong convexity of the losses"
        raise _wrong(reason, len(total) == 1 or claim.total is not None)
    for k, (node, g) in enumerate(zip(nodes, gradients, strict=True)):
        if claim.delta[k]:
            beta = _upper_beta(local[k][0], norm, claim.local[k] or EMPTY) if distance else 0
            room = beta * distance
            if not _norm_at_least(g, claim.delta[k] + room, norm):
                raise _wrong(f"delta of node {node} is above the norm of its gradient")


def _gradients(
    local: list[tuple[Matrix, Vector]], center: Vector | None
) -> tuple[list[Vector], Vector]:
    """Return the g_i at the center and their sum r, exactly."""
    if center is None:
        raise malformed("the constants need a center")
    work.fractions(4 * len(local) * len(center) ** 2)
    gradients = [
        [_dot(row, center) + b for row, b in zip(h, q, strict=True)] for h, q in local
    ]  # fmt: skip
    return gradients, [sum((g[j] for g in gradients), Fraction(0)) for j in range(len(center))]


def _upper_distance(rest: Vector, lower_alpha: Fraction | None, norm: str) -> Fraction:
    """Bound the distance of the center to the minimizer, ||r||_* / alpha, from above."""
    if not any(rest):
        return Fraction(0)
    if lower_alpha is None or lower_alpha <= 0:
        raise malformed("a center that is not the minimizer needs a modulus")
    return _upper_norm(rest, norm) / lower_alpha


def _norm_at_most(g: Vector, bound: Fraction, norm: str) -> bool:
    """Whether the dual norm of g is at most the bound, exactly."""
    if norm == "l2":
        return bound >= 0 and _dot(g, g) <= bound * bound
    return _exact_dual_norm(g, norm) <= bound


def _norm_at_least(g: Vector, bound: Fraction, norm: str) -> bool:
    """Whether the dual norm of g is at least the bound, which is not negative, exactly."""
    return _dot(g, g) >= bound * bound if norm == "l2" else _exact_dual_norm(g, norm) >= bound


def _upper_norm(g: Vector, norm: str) -> Fraction:
    """Bound the dual norm of g from above."""
    return numbers.upper_root(_dot(g, g)) if norm == "l2" else _exact_dual_norm(g, norm)


def _exact_dual_norm(g: Vector, norm: str) -> Fraction:
    """Dual norm for l1 (the largest entry) and linf (the sum of the entries)."""
    return max(map(abs, g)) if norm == "l1" else sum(map(abs, g), Fraction(0))


def _enumerated(h: Matrix, norm: str) -> bool:
    """Whether sign vectors are enumerated."""
    return norm == "linf" and len(h) <= SIGN_DIMENSION


def _upper_beta(h: Matrix, norm: str, root: Root = EMPTY) -> Fraction:
    """Bound beta_i from above: exactly for l1 and where sign vectors are enumerated."""
    if norm == "l1":
        return max(h[j][j] for j in range(len(h)))
    if _enumerated(h, norm):
        return largest_sign_form(h)
    upper = upper_diagonal(h, root)
    return max(upper) if norm == "l2" else sum(upper, Fraction(0))


def is_lower_alpha(
    total: Matrix, alpha: Fraction, norm: str, root: Root | None, inverse: Root | None
) -> bool:
    """Whether alpha is proved to be positive and at most the true one."""
    if alpha <= 0:
        return False
    lower = lower_diagonal(total, root or EMPTY)
    mu = min(lower)
    # ||v||_2 >= ||v||_inf, and sum t_j v_j^2 >= ||v||_1^2 / sum 1/t_j (Cauchy-Schwarz)
    if alpha <= mu if norm != "l1" else mu > 0 and alpha * work.total(1 / x for x in lower) <= 1:
        return True
    if mu <= 0 or norm == "l2" or inverse is None:
        return False
    return alpha * _upper_inverse_top(upper_inverse(total, inverse, mu), norm) <= 1


def _upper_inverse_top(inverse: Matrix, norm: str) -> Fraction:
    """Return max_j M_jj for linf, an upper bound of max_s s^T M s for l1."""
    d = len(inverse)
    if norm == "linf":
        return max(inverse[j][j] for j in range(d))
    if d <= SIGN_DIMENSION:
        return largest_sign_form(inverse)
    work.charge(d * d * work.fraction(max(work.length(x) for row in inverse for x in row)))
    return sum((abs(x) for row in inverse for x in row), Fraction(0))


def _squared_norm(v: Vector, norm: str) -> Fraction:
    """Return ||v||^2, exactly."""
    if norm == "l2":
        return _dot(v, v)
    sizes = [abs(x) for x in v]
    return (sum(sizes, Fraction(0)) if norm == "l1" else max(sizes)) ** 2


def _form(h: Matrix, v: Vector) -> Fraction:
    """Return v^T H v, exactly."""
    work.fractions(2 * len(v) ** 2)
    return _dot(v, [_dot(row, v) for row in h])


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
