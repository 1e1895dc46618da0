"""Losses as blocks of a conic program, from their plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.losses.batched._terms import (
    MULTINOMIAL,
    ROW_KINDS,
    WEIGHT,
    Term,
    coefficients,
    row_counts,
)
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.solvers.interior_point._program import Linear, Program, Rows, interleaved

# Roots of weights up to which rows may have them.
GOOD = 30.0
#: Points beyond that are large.
FAR = 1e3

#: Reads the slopes (N,) of a term's rows, or (N, K) with K classes, from the multipliers of all
#: constraints.
ReadSlopes = Callable[[FloatArray], FloatArray]


def add_losses(
    program: Program, terms: Iterable[Term], variables: IntArray
) -> list[ReadSlopes | None]:
    """Add the losses of all nodes, whose coordinates are the given variables (n, d).

    Nodes may share variables. Opaque losses are left out. For each term with rows, returns what
    reads their slopes; None where the point tells them as well, by their derivatives.
    """
    read: list[ReadSlopes | None] = []
    for term in terms:
        kind = term["kind"]
        at = variables[term["node"]]
        if kind == "squared":
            _add_squared(program, term, variables)
            read.append(None)
        elif kind in KINKED:
            read.append(_add_both_sides(program, variables, Kinks.of(term)))
        elif kind in ROW_KINDS:
            forms = _rows(term["X"], at)
            read.append(_ROWS[kind](program, term, forms, coefficients(term)))
        elif kind == MULTINOMIAL:
            read.append(_multinomial(program, term, at))
        elif kind in _OTHERS:
            _OTHERS[kind](program, term, at)
    return read


def _add_both_sides(program: Program, variables: IntArray, kinks: Kinks) -> ReadSlopes:
    """Add kinked rows as variables above both of their sides; return what reads the slopes.

    With one side in the cost, as `add_kinks` has it, data in raw units make costs of which nearly
    all cancels: on absolute losses Clarabel took two to four times as many steps.
    """
    t, forms = program.variables(len(kinks.y)), _rows(kinks.X, variables[kinks.node])
    program.linear_cost(t, kinks.weight)
    low, high = (
        program.constrain("nonneg", forms.times(side) + -Linear.of(t), side * kinks.y)
        for side in (kinks.low, kinks.high)
    )

    def read(multipliers: FloatArray) -> FloatArray:
        below, above = multipliers[program.place(low)], multipliers[program.place(high)]
        return kinks.low * below + kinks.high * above

    return read


def _rows(X: FloatArray, at: IntArray) -> Linear:
    """Return the linear forms x_r^T w of the variables w (N, d)."""
    N, d = X.shape
    return Linear(np.repeat(np.arange(N), d), at.ravel(), X.ravel(), N)


def _add_squared(program: Program, term: Term, variables: IntArray) -> None:
    """Residuals as variables: Hessians would have the squares of the rows' condition numbers."""
    root = np.sqrt(coefficients(term))
    groups, first = _groups(variables)
    unit = _units(root, groups[term["node"]], len(first))
    own = groups[term["node"]]
    root /= unit[own]
    targets = term["y"] * root
    X, y, group = reduced_rows(term["X"] * root[:, None], targets, own)
    left = (unit[own] * targets) @ (unit[own] * targets)
    program.constant_cost(float(left - (unit[group] * y) @ (unit[group] * y)))
    r = program.variables(len(y))
    program.square_cost(r, 2.0 * unit[group] ** 2)
    program.constrain("zero", _rows(X, variables[first[group]]) + -Linear.of(r), y)


def _units(root: FloatArray, group: IntArray, count: int) -> FloatArray:
    """Return units (count,) of the residuals of each group, whose rows have these roots of weights.

    Weights of 1e30 in the rows themselves would be beyond what Clarabel makes up for.
    """
    largest = np.zeros(count)
    np.maximum.at(largest, group, root)
    good = (largest <= GOOD) & (largest >= 1.0 / GOOD) | (largest == 0.0)
    return np.where(good, 1.0, np.exp2(np.floor(np.log2(np.where(good, 1.0, largest)))))


def _groups(variables: IntArray) -> tuple[IntArray, IntArray]:
    """Return groups (n,) of the nodes with the same variables (n, d), and the first of each."""
    n = len(variables)
    if variables.max(initial=-1) + 1 == variables.size:
        return np.arange(n), np.arange(n)
    _, first, group = np.unique(variables, axis=0, return_index=True, return_inverse=True)
    return group.ravel(), first


def reduced_rows(
    X: FloatArray, y: FloatArray, node: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return at most d rows a node whose squares differ from the given ones by constants.

    They are ``R w = Q^T y`` of the QR decomposition of a node's rows.
    """
    d = X.shape[1]
    counts = row_counts(node, int(node.max()) + 1)
    many = counts[node] > d
    parts = [(X[~many], y[~many], node[~many])]
    # Nodes with about as many rows each are decomposed at once, zeros filling up the rest.
    sizes = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64)
    sizes[counts <= d] = -1
    for size in np.unique(sizes[sizes >= 0]):
        chosen = np.flatnonzero(sizes == size)
        at = np.flatnonzero(sizes[node] == size)
        parts.append(_decomposed(X[at], y[at], node[at], chosen, 2**size))
    tables, targets, nodes = (np.concatenate(part) for part in zip(*parts, strict=True))
    return tables, targets, nodes


def _decomposed(
    X: FloatArray, y: FloatArray, node: IntArray, chosen: IntArray, most: int
) -> tuple[FloatArray, FloatArray, IntArray]:
    d = X.shape[1]
    place = np.searchsorted(chosen, node)
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(len(chosen)))
    level = np.arange(len(node)) - starts[place[order]]
    tables = np.zeros((len(chosen), max(most, d + 1), d + 1))
    tables[place[order], level, :d], tables[place[order], level, d] = X[order], y[order]
    R = np.asarray(np.linalg.qr(tables, mode="r"))[:, :d]
    return R[:, :, :d].reshape(-1, d), R[:, :, d].ravel(), np.repeat(chosen, d)


class Kinks(NamedTuple):
    """Rows ``weight max(low r, high r)`` of the residuals ``r = x^T w - y``, low < high."""

    X: FloatArray  # (N, d)
    y: FloatArray  # (N,)
    node: IntArray  # (N,)
    weight: FloatArray  # (N,)
    low: FloatArray  # (N,)
    high: FloatArray  # (N,)

    @staticmethod
    def of(term: Term) -> Kinks:
        """Return the rows of a term of one of `KINKED`."""
        low, high = _SLOPES[term["kind"]](term)
        return Kinks(term["X"], term["y"], term["node"], coefficients(term), low, high)

    def residuals(self, w: FloatArray) -> FloatArray:
        """Residuals (N,) at w (n, d)."""
        found: FloatArray = np.einsum("rk,rk->r", self.X, w[self.node]) - self.y
        return found

    def chosen(self, rows: BoolArray) -> Kinks:
        """Return some of the rows."""
        return Kinks(
            self.X[rows],
            self.y[rows],
            self.node[rows],
            self.weight[rows],
            self.low[rows],
            self.high[rows],
        )


def _absolute(term: Term) -> tuple[FloatArray, FloatArray]:
    ones = np.ones(len(term["y"]))
    return -ones, ones


def _quantile(term: Term) -> tuple[FloatArray, FloatArray]:
    return -term["level"], 1.0 - term["level"]


def _hinge(term: Term) -> tuple[FloatArray, FloatArray]:
    """``max(0, 1 - y z)`` is ``max(0, -y (z - y))``, as y is its own inverse."""
    return np.minimum(-term["y"], 0.0), np.maximum(-term["y"], 0.0)


_SLOPES: Mapping[str, Callable[[Term], tuple[FloatArray, FloatArray]]] = {
    "absolute": _absolute,
    "quantile": _quantile,
    "hinge": _hinge,
}
#: Kinds of rows with a kink, linear on both sides of it.
KINKED = frozenset(_SLOPES)


def add_kinks(program: Program, variables: IntArray, kinks: Kinks) -> Rows:
    """Add kinked rows: linear ones, and what the slope gains at the kink; returns the gains' place.

    The multipliers there, from 0 to ``weight (high - low)``, are what the slopes are above
    ``weight low``.
    """
    add_slopes(program, variables, kinks, kinks.weight * kinks.low)
    t, forms = program.variables(len(kinks.y)), _rows(kinks.X, variables[kinks.node])
    program.linear_cost(t, kinks.weight * (kinks.high - kinks.low))
    program.constrain("nonneg", -Linear.of(t), 0.0)
    return program.constrain("nonneg", forms + -Linear.of(t), kinks.y)


def add_slopes(program: Program, variables: IntArray, kinks: Kinks, slope: FloatArray) -> None:
    """Add rows as linear ones of known slope (N,)."""
    cost = kinks.X * slope[:, None]
    program.constant_cost(-float(slope @ kinks.y))
    program.linear_cost(variables[kinks.node].ravel(), cost.ravel())


def _huber(program: Program, term: Term, forms: Linear, c: FloatArray) -> ReadSlopes:
    """``min_s (r - s)^2 + 2 delta |s|``; s is the difference of two numbers >= 0."""
    N = len(c)
    a, above, below = (program.variables(N) for _ in range(3))
    program.square_cost(a, 2.0 * c)
    for side in (above, below):
        program.linear_cost(side, 2.0 * c * term["delta"])
        program.constrain("nonneg", -Linear.of(side), 0.0)
    rest = -(Linear.of(a) + Linear.of(above)) + Linear.of(below)
    rows = program.constrain("zero", forms + rest, term["y"])
    return lambda multipliers: multipliers[program.place(rows)]


def _pseudohuber(program: Program, term: Term, forms: Linear, c: FloatArray) -> ReadSlopes:
    """Length of ``(delta, r)`` times delta."""
    delta, y = term["delta"], term["y"]
    t = program.variables(len(c))
    program.linear_cost(t, c * delta)
    program.constant_cost(-float(c @ delta**2))
    cone = interleaved([-Linear.of(t), Linear.constant(len(c)), -forms])
    right = np.stack([np.zeros_like(y), delta, -y], axis=1).ravel()
    rows = program.constrain("soc", cone, right, rows=3)
    return lambda multipliers: -multipliers[program.place(rows)].reshape(-1, 3)[:, 2]


def _logistic(program: Program, term: Term, forms: Linear, c: FloatArray) -> ReadSlopes:
    """``t >= log(1 + e^s)`` with ``s = (1 - 2 y) z`` is ``e^-t + e^(s - t) <= 1``."""
    t, left, right = (program.variables(len(c)) for _ in range(3))
    program.linear_cost(t, c)
    _add_exponential(program, -Linear.of(t), left)
    sign = 1.0 - 2.0 * term["y"]
    rows = _add_exponential(program, forms.times(sign) + -Linear.of(t), right)
    program.constrain("nonneg", Linear.of(left) + Linear.of(right), 1.0)
    return lambda multipliers: sign * _exponents(program, rows, multipliers)


def _poisson(program: Program, term: Term, forms: Linear, c: FloatArray) -> ReadSlopes:
    t = program.variables(len(c))
    program.linear_cost(t, c)
    program.linear_cost(forms.column, -forms.value * (c * term["y"])[forms.row])
    rows = _add_exponential(program, forms, t)
    return lambda multipliers: _exponents(program, rows, multipliers) - c * term["y"]


def _add_exponential(program: Program, forms: Linear, above: IntArray) -> Rows:
    """Ask for ``exp(forms) <= above``."""
    N = forms.size
    cone = interleaved([-forms, Linear.constant(N), -Linear.of(above)])
    return program.constrain("exp", cone, np.tile([0.0, 1.0, 0.0], N), rows=3)


def _exponents(program: Program, rows: Rows, multipliers: FloatArray) -> FloatArray:
    """Return what the exponents' forms add to the gradient, for each of them."""
    return -multipliers[program.place(rows)].reshape(-1, 3)[:, 0]


def _multinomial(program: Program, term: Term, at: IntArray) -> ReadSlopes:
    """``t >= log sum_k e^(z_k - z_y)`` is ``sum_k e^(z_k - z_y - t) <= 1``."""
    N, p = term["X"].shape
    own = term["y"].astype(np.int64)
    by_class = at.reshape(N, p, -1)
    t = program.variables(N)
    program.linear_cost(t, coefficients(term))
    own_score = -_rows(term["X"], by_class[np.arange(N), :, own])
    total, rows = Linear.constant(N), []
    for k in range(by_class.shape[2]):
        above = program.variables(N)
        others = own != k  # the two scores are one at its own class
        score = _rows(term["X"] * others[:, None], by_class[:, :, k]) + own_score.times(others)
        rows.append(_add_exponential(program, score + -Linear.of(t), above))
        total = total + Linear.of(above)
    program.constrain("nonneg", total, 1.0)

    def read(multipliers: FloatArray) -> FloatArray:
        chances = np.stack([_exponents(program, each, multipliers) for each in rows], axis=1)
        return softmax.slopes(chances, own[:, None] == np.arange(len(rows)))

    return read


def _point(program: Program, term: Term, at: IntArray) -> None:
    """Distances from points are variables, if some point is large.

    As costs of coordinates their squares would be small differences of large numbers, and what
    rounding makes of the constants more than gaps that are asked for.
    """
    twice = 2.0 * _spread(term.get(WEIGHT, np.ones(len(at))), at)
    own, a = at.ravel(), term["a"].ravel()
    if largest_point([term]) > FAR:
        r = program.variables(len(own))
        program.square_cost(r, twice)
        program.constrain("zero", Linear.of(own) + -Linear.of(r), a)
        return
    program.square_cost(own, twice)
    program.linear_cost(own, -twice * a)
    program.constant_cost(0.5 * float(twice @ a**2))


def largest_point(terms: list[Term]) -> float:
    """Return the largest coordinate of the points of some terms; 0 without any."""
    sizes = (np.abs(term["a"]).max(initial=0.0) for term in terms if term["kind"] == "point")
    return float(max(sizes, default=0.0))


def _spread(values: FloatArray, at: IntArray) -> FloatArray:
    """Return parameters of nodes, one for each or one for each coordinate, for all variables."""
    return np.broadcast_to(values.reshape(len(values), -1), at.shape).ravel()


def _ridge(program: Program, term: Term, at: IntArray) -> None:
    program.square_cost(at.ravel(), _spread(term["mu"], at))


def _l1(program: Program, term: Term, at: IntArray) -> None:
    index, place = np.unique(at, return_inverse=True)
    kappa = np.bincount(place.ravel(), _spread(term["kappa"], at)).astype(np.float64)
    t = program.variables(len(index))
    program.linear_cost(t, kappa)
    for sign in (-1.0, 1.0):
        program.constrain("nonneg", Linear.of(index).times(sign) + -Linear.of(t), 0.0)


def _box(program: Program, term: Term, at: IntArray) -> None:
    index, place = np.unique(at, return_inverse=True)
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        bound = np.full(len(index), np.inf)
        np.minimum.at(bound, place.ravel(), sign * term[name].ravel())
        finite = np.isfinite(bound)
        program.constrain("nonneg", Linear.of(index[finite]).times(sign), bound[finite])


def _simplex(program: Program, term: Term, at: IntArray) -> None:
    index = np.unique(at)
    program.constrain("nonneg", -Linear.of(index), 0.0)
    sums, first = np.unique(at, axis=0, return_index=True)
    k, dim = sums.shape
    forms = Linear(np.repeat(np.arange(k), dim), sums.ravel(), np.ones(k * dim), k)
    program.constrain("zero", forms, term["total"][first])


_ROWS: Mapping[str, Callable[[Program, Term, Linear, FloatArray], ReadSlopes]] = {
    "huber": _huber,
    "pseudohuber": _pseudohuber,
    "logistic": _logistic,
    "poisson": _poisson,
}
_OTHERS: Mapping[str, Callable[[Program, Term, IntArray], None]] = {
    "point": _point,
    "ridge": _ridge,
    "l1": _l1,
    "box": _box,
    "simplex": _simplex,
}
#: Kinds of terms that are known here.
LOSS_KINDS = frozenset({"squared", *KINKED, *_ROWS, MULTINOMIAL, *_OTHERS})
