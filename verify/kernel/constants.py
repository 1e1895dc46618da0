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
proves: upper, lower, or exact, which is both. Where the maxima over s are too many to enumerate,
beyond `SIGN_DIMENSION` dimensions,

- upper beta is the sum of absolute entries of H_i, lower alpha the better of 1 over that of H^-1
  and of lambda_min(H) / d;
- lower beta and upper alpha are quotients v^T H v / ||v||^2 at a direction v that the witness
  states: one vector bounds a maximum from below and a minimum from above, and no others do. The
  direction is believed in no other way, and it may be given for any norm and dimension.

Eigenvalues are compared with a number by eliminating in c I - H, exactly. With r = sum of the g_i,
the minimizer is within ||r||_* / alpha of v, hence delta_i within beta_i ||r||_* / alpha of
||g_i||_*. Standard library only, no floating-point arithmetic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel import numbers, work
from verify.kernel.data import NORM_OF_P, TERMS
from verify.kernel.losses import spread
from verify.kernel.matrices import Matrix, Vector
from verify.kernel.quadratic_forms import definite, inverted, largest_sign_form
from verify.kernel.verdict import Verdict, malformed

_QUADRATIC = ("squared", "point", "ridge")
#: Up to this dimension sign vectors are enumerated (2^(d-1) of them).
SIGN_DIMENSION = 8


class Constants(NamedTuple):
    """Claimed constants of a cluster.

    ``alpha`` None stands for infinity. ``center`` is v, ``modulus`` a lower bound of the true
    alpha; both may be None where nothing depends on them. ``alpha_direction`` and
    ``beta_directions`` are the vectors v of a negative claim, None where none is given.
    """

    alpha: Fraction | None
    beta: Vector
    delta: Vector
    center: Vector | None
    modulus: Fraction | None
    alpha_direction: Vector | None
    beta_directions: Sequence[Vector | None]


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
            for name, wide in TERMS[kind].items() if kind in _QUADRATIC else ():
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
                work.fractions(d)
                for j in range(d):
                    h[j][j] += 2
                    q[j] -= 2 * a[rows[0]][j] * numbers.unit(k)
            elif kind == "ridge":
                mu, k = read["mu"]
                work.fractions(d)
                for j in range(d):
                    h[j][j] += mu[rows[0]][j] * numbers.unit(k)
            else:
                raise Verdict("UNPROVED", f"no exact rule for the {kind} loss of node {node}")
        return h, q


def _add_rows(h: Matrix, q: Vector, read: Mapping[str, Any], rows: list[int]) -> None:
    """Add (1/m) sum over the rows of (x.w - y)^2."""
    (x, k_x), (y, k_y) = read["X"], read["y"]
    h_unit = Fraction(2, len(rows)) * numbers.unit(2 * k_x)
    q_unit = Fraction(2, len(rows)) * numbers.unit(k_x + k_y)
    for i in range(len(q)):
        q[i] -= q_unit * sum(x[r][i] * y[r] for r in rows)
        for j in range(i + 1):
            value = h_unit * sum(x[r][i] * x[r][j] for r in rows)
            h[i][j] += value
            h[j][i] += value if i != j else 0


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
    if positive:
        _check_positive([h for h, _ in local], nodes, total, norm, claim)
        _check_upper_deltas(local, nodes, norm, claim)
    else:
        _check_negative([h for h, _ in local], nodes, total, norm, claim)
        if any(claim.delta):
            _check_lower_deltas(local, nodes, total, norm, claim)


def _check_positive(
    local: list[Matrix], nodes: Sequence[int], total: Matrix, norm: str, claim: Constants
) -> None:
    """Refuse an alpha that is not a lower bound and a beta that is not an upper one."""
    if claim.alpha is None or not _is_lower_alpha(total, claim.alpha, norm):
        raise _wrong("alpha is above the strong convexity of the cluster's losses")
    for node, h, beta in zip(nodes, local, claim.beta, strict=True):
        if not _is_upper_beta(h, beta, norm):
            raise _wrong(f"beta of node {node} is below the smoothness of its loss")


def _check_negative(
    local: list[Matrix], nodes: Sequence[int], total: Matrix, norm: str, claim: Constants
) -> None:
    """Refuse an alpha that is not an upper bound and a beta that is not a lower one."""
    if claim.alpha is not None and not _is_upper_alpha(
        total, claim.alpha, norm, claim.alpha_direction
    ):
        raise _wrong("alpha is below the strong convexity of the cluster's losses")
    rows = zip(nodes, local, claim.beta, claim.beta_directions, strict=True)
    for node, h, beta, direction in rows:
        if beta and not _is_lower_beta(h, beta, norm, direction):
            raise _wrong(f"beta of node {node} is above the smoothness of its loss")


def _wrong(reason: str) -> Verdict:
    return Verdict("REFUTED", f"false constant: {reason}")


def _undirected(name: str) -> Verdict:
    """Return the answer to a negative claim that rests on a maximum over too many sign vectors."""
    return Verdict(
        "UNPROVED",
        f"{name} beyond {SIGN_DIMENSION} dimensions needs a direction that attains it",
    )


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
    if distance and claim.modulus is not None and not _is_lower_alpha(total, claim.modulus, norm):
        raise _wrong("the modulus is above the strong convexity of the cluster's losses")
    for k, (node, g) in enumerate(zip(nodes, gradients, strict=True)):
        if claim.delta[k]:
            room = _upper_beta(local[k][0], norm) * distance if distance else Fraction(0)
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


def _upper_beta(h: Matrix, norm: str) -> Fraction:
    """Bound beta_i from above without elimination or enumeration, at most d times too large."""
    if norm == "linf":
        return _absolute_sum(h)
    diagonal = [h[j][j] for j in range(len(h))]
    return max(diagonal) if norm == "l1" else sum(diagonal, Fraction(0))


def _exact_beta(h: Matrix, norm: str) -> Fraction:
    """Return beta_i for l1 and, up to `SIGN_DIMENSION` dimensions, for linf."""
    return max(h[j][j] for j in range(len(h))) if norm == "l1" else largest_sign_form(h)


def _is_upper_beta(h: Matrix, beta: Fraction, norm: str) -> bool:
    """Whether beta is proved to be at least the true one."""
    if norm == "l2":
        return definite(_shifted(h, beta, -1))[0]
    many = norm == "linf" and len(h) > SIGN_DIMENSION
    return (_upper_beta(h, norm) if many else _exact_beta(h, norm)) <= beta


def _is_lower_beta(h: Matrix, beta: Fraction, norm: str, direction: Vector | None) -> bool:
    """Whether beta is proved to be at most the true one; UNPROVED where that needs a direction."""
    if direction is not None:
        return beta * _squared_norm(direction, norm) <= _form(h, direction)
    if norm == "l2":
        return not definite(_shifted(h, beta, -1))[1]
    if norm == "linf" and len(h) > SIGN_DIMENSION:
        raise _undirected("beta")
    return _exact_beta(h, norm) >= beta


def _is_lower_alpha(total: Matrix, alpha: Fraction, norm: str) -> bool:
    """Whether alpha is proved to be positive and at most the true one."""
    d = len(total)
    if alpha <= 0:
        return False
    # ||v||_2 >= ||v||_inf and ||v||_2^2 >= ||v||_1^2 / d: lower bounds that take no inverse
    if definite(_shifted(total, alpha * (d if norm == "l1" else 1), 1))[0]:
        return True
    upper = None if norm == "l2" else _upper_inverse_top(total, norm)
    return upper is not None and alpha * upper <= 1


def _is_upper_alpha(total: Matrix, alpha: Fraction, norm: str, direction: Vector | None) -> bool:
    """Whether alpha is proved to be at least the true one; UNPROVED if that needs a direction."""
    if direction is not None:
        return alpha * _squared_norm(direction, norm) >= _form(total, direction)
    if norm == "l2":
        return not definite(_shifted(total, alpha, 1))[1]
    if norm == "l1" and len(total) > SIGN_DIMENSION:
        raise _undirected("alpha")
    exact = _upper_inverse_top(total, norm)  # up to SIGN_DIMENSION dimensions, and for linf
    return exact is None or alpha * exact >= 1  # H is singular: alpha = 0


def _upper_inverse_top(total: Matrix, norm: str) -> Fraction | None:
    """Return max_j (H^-1)_jj for linf, max_s s^T H^-1 s for l1; None if H is singular.

    Both are exact, but the latter, beyond `SIGN_DIMENSION` dimensions, is bounded from above.
    """
    inverse = inverted(total)
    if inverse is None:
        return None
    if norm == "linf":
        return max(inverse[j][j] for j in range(len(inverse)))
    many = len(inverse) > SIGN_DIMENSION
    return _absolute_sum(inverse) if many else largest_sign_form(inverse)


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


def _shifted(h: Matrix, c: Fraction, sign: int) -> Matrix:
    """H - c I for sign = 1, c I - H for sign = -1."""
    return [[sign * (x - (c if i == j else 0)) for j, x in enumerate(r)] for i, r in enumerate(h)]


def _absolute_sum(h: Matrix) -> Fraction:
    """Return the sum of absolute entries, an upper bound of max_s s^T H s."""
    return sum((abs(x) for row in h for x in row), Fraction(0))


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
