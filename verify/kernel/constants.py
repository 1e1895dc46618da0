"""Exact check of the constants of Theorem 2 against the problem data.

For quadratic local losses (squared, point, ridge, zero) with Hessians H_i, their sum H over a
cluster, and g_i = grad L_i at a point v near the cluster's minimizer:

    norm   beta_i at the formula's value              alpha at the formula's value
    l2     lambda_max(H_i)                            lambda_min(H)
    l1     max_j (H_i)_jj                             1 / max_s s^T H^-1 s
    linf   max_s s^T H_i s                            1 / max_j (H^-1)_jj

with s over the sign vectors; beyond `SIGN_DIMENSION` dimensions the maxima over s are replaced by
the sum of absolute entries, for alpha by the better of that and lambda_min(H) / d. Eigenvalues are
compared with a number by eliminating in c I - H, exactly. With r = sum of the g_i, the minimizer is
within ||r||_* / alpha of v, hence delta_i within beta_i ||r||_* / alpha of ||g_i||_*.

A positive claim needs beta and delta from above and alpha from below, a negative one the reverse.
Standard library only, no floating-point arithmetic.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel import numbers
from verify.kernel.data import NORM_OF_P, TERMS
from verify.kernel.losses import spread
from verify.kernel.matrices import Matrix, Vector, definite, inverted, largest_sign_form
from verify.kernel.numbers import Verdict

_QUADRATIC = ("squared", "point", "ridge")
#: Up to this dimension sign vectors are enumerated (2^(d-1) of them).
SIGN_DIMENSION = 8


class Constants(NamedTuple):
    """Claimed constants of a cluster.

    ``alpha`` None stands for infinity. ``center`` is v, ``modulus`` a lower bound of the true
    alpha; both may be None where nothing depends on them.
    """

    alpha: Fraction | None
    beta: Vector
    delta: Vector
    center: Vector | None
    modulus: Fraction | None


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
        h = [[Fraction(0)] * d for _ in range(d)]
        q = [Fraction(0)] * d
        for (kind, read), rows_of in zip(self._terms, self._rows, strict=True):
            rows = rows_of.get(node)
            if rows is None:
                continue
            if kind == "squared":
                _add_rows(h, q, read, rows)
            elif kind == "point":
                a, k = read["a"]
                for j in range(d):
                    h[j][j] += 2
                    q[j] -= 2 * a[rows[0]][j] * numbers.unit(k)
            elif kind == "ridge":
                mu, k = read["mu"]
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
    losses: Quadratics, nodes: Sequence[int], norm: str, claim: Constants, upper: bool
) -> None:
    """Verify the constants of a positive (``upper``) or a negative claim.

    Raises
    ------
    Verdict
        REFUTED, naming the constant that is on the wrong side of its bound; UNPROVED for a loss
        without a rule.
    """
    if not upper and claim.alpha is None and not any(claim.beta) and not any(claim.delta):
        return  # beta, delta >= 0 and alpha < infinity need no proof
    local = [losses.local(node) for node in nodes]
    d = losses.d
    total = [[sum((h[i][j] for h, _ in local), Fraction(0)) for j in range(d)] for i in range(d)]
    if upper:
        if claim.alpha is None or not _alpha_at_least(total, claim.alpha, norm):
            raise _wrong("alpha is above the strong convexity of the cluster's losses")
    elif claim.alpha is not None and not _alpha_at_most(total, claim.alpha, norm):
        raise _wrong("alpha is below the strong convexity of the cluster's losses")
    for node, (h, _), beta in zip(nodes, local, claim.beta, strict=True):
        if upper and not _beta_at_most(h, beta, norm):
            raise _wrong(f"beta of node {node} is below the smoothness of its loss")
        if not upper and beta and not _beta_at_least(h, beta, norm):
            raise _wrong(f"beta of node {node} is above the smoothness of its loss")
    if upper or any(claim.delta):
        _check_delta(local, nodes, total, norm, claim, upper)


def _wrong(reason: str) -> Verdict:
    return Verdict("REFUTED", f"false constant: {reason}")


def _check_delta(
    local: list[tuple[Matrix, Vector]],
    nodes: Sequence[int],
    total: Matrix,
    norm: str,
    claim: Constants,
    upper: bool,
) -> None:
    """Compare the claimed delta_i with ||g_i||_* +- beta_i ||r||_* / alpha."""
    if claim.center is None:
        raise numbers.malformed("the constants need a center")
    center = claim.center
    gradients = [
        [_dot(row, center) + b for row, b in zip(h, q, strict=True)] for h, q in local
    ]  # fmt: skip
    rest = [sum((g[j] for g in gradients), Fraction(0)) for j in range(len(center))]
    distance = Fraction(0)
    if any(rest):
        modulus = claim.alpha if upper else claim.modulus
        if modulus is None or modulus <= 0:
            raise numbers.malformed("a center that is not the minimizer needs a modulus")
        if not upper and not _alpha_at_least(total, modulus, norm):
            raise _wrong("the modulus is above the strong convexity of the cluster's losses")
        distance = _norm_up(rest, norm) / modulus
    for k, (node, g) in enumerate(zip(nodes, gradients, strict=True)):
        if upper:
            if not _norm_at_most(g, claim.delta[k] - claim.beta[k] * distance, norm):
                raise _wrong(f"delta of node {node} is below the norm of its gradient")
        elif claim.delta[k]:
            spread = _crude_beta(local[k][0], norm) * distance if distance else Fraction(0)
            if not _norm_at_least(g, claim.delta[k] + spread, norm):
                raise _wrong(f"delta of node {node} is above the norm of its gradient")


def _norm_at_most(g: Vector, bound: Fraction, norm: str) -> bool:
    if norm == "l2":
        return bound >= 0 and _dot(g, g) <= bound * bound
    return _dual_size(g, norm) <= bound


def _norm_at_least(g: Vector, bound: Fraction, norm: str) -> bool:
    """Whether the dual norm of g is at least the bound, which is not negative."""
    return _dot(g, g) >= bound * bound if norm == "l2" else _dual_size(g, norm) >= bound


def _norm_up(g: Vector, norm: str) -> Fraction:
    return Fraction(numbers.sqrt_up(_dot(g, g))) if norm == "l2" else _dual_size(g, norm)


def _dual_size(g: Vector, norm: str) -> Fraction:
    """Dual norm for l1 (the largest entry) and linf (the sum of the entries)."""
    return max(map(abs, g)) if norm == "l1" else sum(map(abs, g), Fraction(0))


def _crude_beta(h: Matrix, norm: str) -> Fraction:
    """Bound beta_i from above without elimination, at most d times too large."""
    if norm == "linf":
        return _absolute_sum(h)
    diagonal = [h[j][j] for j in range(len(h))]
    return max(diagonal) if norm == "l1" else sum(diagonal, Fraction(0))


def _beta_at_most(h: Matrix, beta: Fraction, norm: str) -> bool:
    return definite(_shifted(h, beta, -1))[0] if norm == "l2" else _beta(h, norm) <= beta


def _beta_at_least(h: Matrix, beta: Fraction, norm: str) -> bool:
    return not definite(_shifted(h, beta, -1))[1] if norm == "l2" else _beta(h, norm) >= beta


def _beta(h: Matrix, norm: str) -> Fraction:
    if norm == "l1":
        return max(h[j][j] for j in range(len(h)))
    return largest_sign_form(h) if len(h) <= SIGN_DIMENSION else _absolute_sum(h)


def _alpha_at_least(total: Matrix, alpha: Fraction, norm: str) -> bool:
    d = len(total)
    if alpha <= 0:
        return False
    if norm == "l2":
        return definite(_shifted(total, alpha, 1))[0]
    top = _inverse_top(total, norm)
    if top is not None and alpha * top <= 1:
        return True
    return norm == "l1" and d > SIGN_DIMENSION and definite(_shifted(total, d * alpha, 1))[0]


def _alpha_at_most(total: Matrix, alpha: Fraction, norm: str) -> bool:
    d = len(total)
    if norm == "l2":
        return not definite(_shifted(total, alpha, 1))[1]
    top = _inverse_top(total, norm)
    if top is None:
        return True  # H is singular: alpha = 0
    crude = norm == "l1" and d > SIGN_DIMENSION
    return alpha * top >= 1 and not (crude and definite(_shifted(total, d * alpha, 1))[1])


def _inverse_top(total: Matrix, norm: str) -> Fraction | None:
    """Return max_j (H^-1)_jj for linf, max_s s^T H^-1 s (or a bound) for l1; None if singular."""
    inverse = inverted(total)
    if inverse is None:
        return None
    if norm == "linf":
        return max(inverse[j][j] for j in range(len(inverse)))
    crude = len(inverse) > SIGN_DIMENSION
    return _absolute_sum(inverse) if crude else largest_sign_form(inverse)


def _shifted(h: Matrix, c: Fraction, sign: int) -> Matrix:
    """H - c I for sign = 1, c I - H for sign = -1."""
    return [[sign * (x - (c if i == j else 0)) for j, x in enumerate(r)] for i, r in enumerate(h)]


def _absolute_sum(h: Matrix) -> Fraction:
    return sum((abs(x) for row in h for x in row), Fraction(0))


def _dot(a: Sequence[Fraction], b: Sequence[Fraction]) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))
