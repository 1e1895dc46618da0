"""Losses as blocks of a conic program, from their plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.losses.batched._terms import ROW_KINDS, Term, row_counts
from gtvcvx.solvers.interior_point._program import Linear, Program, interleaved


def add_losses(program: Program, terms: Iterable[Term], dim: int) -> None:
    """Add the losses of all nodes, whose coordinates are the first variables, node by node."""
    for term in terms:
        kind = term["kind"]
        if kind == "squared":
            _add_squared(program, term, dim)
        elif kind in ROW_KINDS:
            _ROWS[kind](program, term, _rows(term["X"], term["node"]), _weights(term["node"]))
        else:
            _OTHERS[kind](program, term, dim)


def _rows(X: FloatArray, node: IntArray) -> Linear:
    """Return the linear forms x_r^T w_node(r)."""
    N, d = X.shape
    columns = node[:, None] * d + np.arange(d)
    return Linear(np.repeat(np.arange(N), d), columns.ravel(), X.ravel(), N)


def _weights(node: IntArray) -> FloatArray:
    """Weights 1 / m_i of the rows: losses are means over those of a node."""
    return 1.0 / row_counts(node, int(node.max()) + 1)[node]


def _coordinates(node: IntArray, dim: int) -> IntArray:
    """Variables w_i of some nodes, one node after the other."""
    return (node[:, None] * dim + np.arange(dim)).ravel()


def _add_squared(program: Program, term: Term, dim: int) -> None:
    """Residuals as variables: Hessians would have the squares of the rows' condition numbers."""
    root = np.sqrt(_weights(term["node"]))
    X, y, node = reduced_rows(term["X"] * root[:, None], term["y"] * root, term["node"])
    r = program.variables(len(y))
    program.square_cost(r, 2.0)
    program.constrain("zero", _rows(X, node) + -Linear.of(r), y)


def reduced_rows(
    X: FloatArray, y: FloatArray, node: IntArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return at most d rows a node whose squares differ from the given ones by constants.

    They are ``R w = Q^T y`` of the QR decomposition of a node's rows. Nodes are sorted.
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


def _add_kinked(
    program: Program, forms: Linear, y: FloatArray, c: FloatArray, slopes: tuple[FloatArray, ...]
) -> None:
    """``c max(low r, high r)`` of the residuals r = z - y."""
    t = program.variables(len(y))
    program.linear_cost(t, c)
    for slope in slopes:
        program.constrain("nonneg", forms.times(slope) + -Linear.of(t), slope * y)


def _absolute(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    ones = np.ones(len(c))
    _add_kinked(program, forms, term["y"], c, (-ones, ones))


def _quantile(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    _add_kinked(program, forms, term["y"], c, (-term["level"], 1.0 - term["level"]))


def _hinge(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    y = term["y"]
    _add_kinked(program, forms, y, c, (np.minimum(-y, 0.0), np.maximum(-y, 0.0)))


def _huber(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    """``min_s (r - s)^2 + 2 delta |s|``; s is the difference of two numbers >= 0."""
    N = len(c)
    a, above, below = (program.variables(N) for _ in range(3))
    program.square_cost(a, 2.0 * c)
    for side in (above, below):
        program.linear_cost(side, 2.0 * c * term["delta"])
        program.constrain("nonneg", -Linear.of(side), 0.0)
    rest = -(Linear.of(a) + Linear.of(above)) + Linear.of(below)
    program.constrain("zero", forms + rest, term["y"])


def _pseudohuber(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    """Length of ``(delta, r)`` times delta."""
    delta, y = term["delta"], term["y"]
    t = program.variables(len(c))
    program.linear_cost(t, c * delta)
    cone = interleaved([-Linear.of(t), Linear.constant(len(c)), -forms])
    right = np.stack([np.zeros_like(y), delta, -y], axis=1).ravel()
    program.constrain("soc", cone, right, rows=3)


def _logistic(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    """``t >= log(1 + e^s)`` with ``s = (1 - 2 y) z`` is ``e^-t + e^(s - t) <= 1``."""
    t, left, right = (program.variables(len(c)) for _ in range(3))
    program.linear_cost(t, c)
    _add_exponential(program, -Linear.of(t), left)
    _add_exponential(program, forms.times(1.0 - 2.0 * term["y"]) + -Linear.of(t), right)
    program.constrain("nonneg", Linear.of(left) + Linear.of(right), 1.0)


def _poisson(program: Program, term: Term, forms: Linear, c: FloatArray) -> None:
    t = program.variables(len(c))
    program.linear_cost(t, c)
    program.linear_cost(forms.column, -forms.value * (c * term["y"])[forms.row])
    _add_exponential(program, forms, t)


def _add_exponential(program: Program, forms: Linear, above: IntArray) -> None:
    """Ask for ``exp(forms) <= above``."""
    N = forms.size
    cone = interleaved([-forms, Linear.constant(N), -Linear.of(above)])
    program.constrain("exp", cone, np.tile([0.0, 1.0, 0.0], N), rows=3)


def _point(program: Program, term: Term, dim: int) -> None:
    at = _coordinates(term["node"], dim)
    program.square_cost(at, 2.0)
    program.linear_cost(at, -2.0 * term["a"].ravel())


def _spread(values: FloatArray, dim: int) -> FloatArray:
    """Return parameters of nodes, one for each or one for each coordinate, flattened."""
    return np.broadcast_to(values.reshape(len(values), -1), (len(values), dim)).ravel()


def _ridge(program: Program, term: Term, dim: int) -> None:
    program.square_cost(_coordinates(term["node"], dim), _spread(term["mu"], dim))


def _l1(program: Program, term: Term, dim: int) -> None:
    forms = Linear.of(_coordinates(term["node"], dim))
    ones = np.ones(forms.size)
    _add_kinked(program, forms, 0.0 * ones, _spread(term["kappa"], dim), (-ones, ones))


def _box(program: Program, term: Term, dim: int) -> None:
    at = _coordinates(term["node"], dim)
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        bound = term[name].ravel()
        finite = np.isfinite(bound)
        forms = Linear.of(at[finite]).times(sign)
        program.constrain("nonneg", forms, sign * bound[finite])


def _simplex(program: Program, term: Term, dim: int) -> None:
    at = _coordinates(term["node"], dim)
    k = len(term["node"])
    sums = Linear(np.repeat(np.arange(k), dim), at, np.ones(k * dim), k)
    program.constrain("nonneg", -Linear.of(at), 0.0)
    program.constrain("zero", sums, term["total"])


_ROWS: Mapping[str, Callable[[Program, Term, Linear, FloatArray], None]] = {
    "absolute": _absolute,
    "quantile": _quantile,
    "hinge": _hinge,
    "huber": _huber,
    "pseudohuber": _pseudohuber,
    "logistic": _logistic,
    "poisson": _poisson,
}
_OTHERS: Mapping[str, Callable[[Program, Term, int], None]] = {
    "point": _point,
    "ridge": _ridge,
    "l1": _l1,
    "box": _box,
    "simplex": _simplex,
}
#: Kinds of terms that are known here.
LOSS_KINDS = frozenset({"squared", *_ROWS, *_OTHERS})
