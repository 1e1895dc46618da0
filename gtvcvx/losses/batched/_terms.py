"""Local losses as plain data: sums of terms, each a dict of arrays (`GTVProblem.to_data`).

Terms of rows (``X`` (N, d), ``y`` (N,), ``node`` (N,)) are means over the rows of a node in that
term; the others have one entry a node. Multinomial rows have features (N, p), d = p K. Rows and
points may have weights, ``weight`` (N,): a term of rows is then a sum in which each is taken so
many times, and no mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, finite_array, integer_array, real_array

Term = dict[str, Any]

#: Terms of rows and their parameters for each row.
ROW_KINDS: Mapping[str, tuple[str, ...]] = {
    "squared": (),
    "logistic": (),
    "huber": ("delta",),
    "pseudohuber": ("delta",),
    "poisson": (),
    "absolute": (),
    "quantile": ("level",),
    "hinge": (),
}
#: Fields of all terms that can be added up and read back, in the order they are written in.
FIELDS: Mapping[str, tuple[str, ...]] = {
    **{kind: ("X", "y", *parameters) for kind, parameters in ROW_KINDS.items()},
    "multinomial": ("X", "y"),
    "point": ("a",),
    "ridge": ("mu",),
    "l1": ("kappa",),
    "box": ("lower", "upper"),
    "simplex": ("total",),
}
#: Optional field of rows and points, see above.
WEIGHT = "weight"
#: Kinds that may have it.
WEIGHTED_KINDS = frozenset({*ROW_KINDS, "multinomial", "point"})
#: Fields that a factor of the loss multiplies where there is no weight to take it.
_MULTIPLIED = {"ridge": "mu", "l1": "kappa"}
_CONSTRAINTS = frozenset({"box", "simplex"})
# Weights below have too few digits, and the inverse of some is infinite.
LEAST_WEIGHT = float(np.finfo(np.float64).tiny)
#: Terms whose sums are quadratic, and those whose sums are finite with a gradient everywhere.
QUADRATIC_KINDS = frozenset({"squared", "point", "ridge"})
SMOOTH_KINDS = QUADRATIC_KINDS | {"logistic", "huber", "pseudohuber", "poisson"}
#: Terms whose rows have one score for each class, features (N, p) and parameters (p, K), d = p K;
#: and those that may be added to them.
MULTINOMIAL = "multinomial"
BESIDE_MULTINOMIAL = frozenset({MULTINOMIAL, "ridge", "point"})
_TARGETS = {
    "logistic": ("0 or 1", lambda y: (y == 0.0) | (y == 1.0)),
    "poisson": ("a number >= 0", lambda y: y >= 0.0),
    "hinge": ("-1 or 1", lambda y: np.abs(y) == 1.0),
}
_PARAMETERS = {
    "delta": ("a number > 0", lambda x: x > 0.0),
    "level": ("a number strictly between 0 and 1", lambda x: (x > 0.0) & (x < 1.0)),
    "total": ("a number > 0", lambda x: x > 0.0),
    "mu": ("a number >= 0", lambda x: x >= 0.0),
    "ridge": ("a number >= 0", lambda x: x >= 0.0),
    "kappa": ("a number >= 0", lambda x: x >= 0.0),
    WEIGHT: ("a normal number > 0", lambda x: x >= LEAST_WEIGHT),
}


#: Where an entry of checked values was in the array that was given.
Place = Callable[[tuple[int, ...]], tuple[int, ...]]


def check_targets(kind: str, y: FloatArray, place: Place = tuple) -> None:
    """Refuse targets that a kind of row has no loss for; say where they were given."""
    if kind in _TARGETS:
        _check("y", y, *_TARGETS[kind], place)


def check_classes(y: FloatArray, n_classes: int, place: Place = tuple) -> None:
    """Refuse labels that are none of 0, ..., n_classes - 1; say where they were given."""
    expected = f"a class 0..{n_classes - 1}"
    _check("y", y, expected, lambda y: (y == np.floor(y)) & (y >= 0.0) & (y < n_classes), place)


def check_parameter(name: str, values: FloatArray) -> None:
    """Refuse parameters out of range, by the entry's place."""
    _check(name, values, *_PARAMETERS[name])


def _check(
    name: str, values: FloatArray, expected: str, allowed: Any, place: Place = tuple
) -> None:
    wrong = np.argwhere(~allowed(values))
    if len(wrong):
        at = tuple(int(k) for k in wrong[0])
        where = f"entry {place(at)} is " if at else "got "
        raise ValueError(f"{name}: {where}{values[at]}, {expected} is expected")


def check_bounds(lower: FloatArray, upper: FloatArray) -> None:
    """Refuse bounds that are NaN, infinite the wrong way round, or cross."""
    for name, bound, wrong_end in (("lower", lower, np.inf), ("upper", upper, -np.inf)):
        wrong = np.argwhere(np.isnan(bound) | (bound == wrong_end))
        if len(wrong):
            at = tuple(int(k) for k in wrong[0])
            raise ValueError(f"{name}: entry {at} is {bound[at]}, a bound is expected")
    crossed = np.argwhere(lower > upper)
    if len(crossed):
        at = tuple(int(k) for k in crossed[0])
        raise ValueError(f"lower: entry {at} is {lower[at]}, above upper, {upper[at]}")


def weight_field(term: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the name of the weights' field where a term has one."""
    return (WEIGHT,) if term["kind"] in WEIGHTED_KINDS and WEIGHT in term else ()


def fields_of(term: Term) -> tuple[str, ...]:
    """Return the names of a term's arrays but its nodes; none of kinds that cannot be read."""
    return (*FIELDS.get(term["kind"], ()), *weight_field(term))


def coefficients(term: Term) -> FloatArray:
    """Return what each row (N,) of a term of rows is multiplied by in the loss of its node."""
    if WEIGHT in term:
        return np.asarray(term[WEIGHT])
    node = term["node"]
    return 1.0 / row_counts(node, int(node.max(initial=-1)) + 1)[node]


def multiplied(term: Term, factor: FloatArray) -> Term:
    """Return a term times the factor >= 0 of each node (n,); constraints stay as they are.

    What is multiplied by zero is left out.

    Raises
    ------
    ValueError
        A product is not a number > 0 that a double can hold.
    """
    kind = term["kind"]
    if kind in WEIGHTED_KINDS or kind in _MULTIPLIED:
        term = _restricted(term, factor[term["node"]] > 0.0)
    node = term["node"]
    if kind in WEIGHTED_KINDS:
        if WEIGHT not in term and kind != "point":
            weight = factor[node] / row_counts(node, len(factor))[node]
            _check_product(weight, np.ones_like(weight), node)
        else:
            weight = _product(factor, term.get(WEIGHT, np.ones(len(node))), node)
        return {**term, WEIGHT: weight}
    if kind in _CONSTRAINTS:
        return term
    if kind not in _MULTIPLIED:
        raise TypeError(f"factor: a loss of kind {kind!r} cannot be multiplied")
    name = _MULTIPLIED[kind]
    return {**term, name: _product(factor, term[name], node)}


def _product(factor: FloatArray, values: FloatArray, node: IntArray) -> FloatArray:
    """Return values (N, ...) >= 0 at nodes (N,) times the factors of these nodes."""
    with np.errstate(over="ignore", under="ignore"):
        product: FloatArray = (factor[node] * values.T).T
    _check_product(product, values, node)
    return product


def _restricted(term: Term, kept: BoolArray) -> Term:
    """Return the entries (N,) of a term that are kept."""
    if kept.all():
        return term
    return {key: value if key == "kind" else value[kept] for key, value in term.items()}


def _check_product(product: FloatArray, values: FloatArray, node: IntArray) -> None:
    good = np.isfinite(product) & ((product >= LEAST_WEIGHT) | (values == 0.0))
    wrong = np.argwhere(~good)
    if len(wrong):
        at = int(wrong[0][0])
        raise ValueError(
            f"factor: times the loss of node {int(node[at])}, it leaves the range of doubles"
        )


def checked(term: Mapping[str, Any], dim: int) -> Term:
    """Return a term of plain data with arrays of the right types; refuse it by name.

    Raises
    ------
    KeyError
        A field is missing.
    """
    kind = term["kind"]
    if kind not in FIELDS:
        raise ValueError(f"terms: kind {kind!r} is not one of {sorted(FIELDS)}")
    node = integer_array(term["node"], "node").astype(np.int64)
    out: Term = {"kind": kind, "node": node}
    if node.ndim != 1 or np.any(node < 0):
        raise ValueError("node: one axis of numbers >= 0 is expected")
    for name in (*FIELDS[kind], *weight_field(term)):
        if name in ("lower", "upper"):
            out[name] = real_array(term[name], name)
        else:
            axes = 2 if name in ("X", "a") or np.ndim(term[name]) == 2 else 1
            out[name] = finite_array(term[name], name, axes)
        shape = (len(node), dim)[: out[name].ndim]
        if kind == MULTINOMIAL and name == "X":
            shape = len(node), _features(out["X"], dim)
        if out[name].shape != shape:
            if name in ("X", "a"):
                raise ValueError(
                    f"{name}: one common dimension d and one row for each entry of node are "
                    f"expected, shape {shape}, got {out[name].shape}"
                )
            raise ValueError(f"{name}: shape {shape} is expected, got {out[name].shape}")
        if name in _PARAMETERS:
            check_parameter(name, out[name])
    if kind in ROW_KINDS:
        check_targets(kind, out["y"])
    elif kind == MULTINOMIAL:
        check_classes(out["y"], dim // out["X"].shape[1])
    elif len(np.unique(node)) < len(node):
        raise ValueError(f"node: a node occurs twice in a term of kind {kind!r}")
    if kind == "box":
        check_bounds(out["lower"], out["upper"])
    return out


def _features(X: FloatArray, dim: int) -> int:
    """Return the number of features p of rows (N, p) with two classes or more, d = p K."""
    p = X.shape[1]
    if p == 0 or dim % p or dim < 2 * p:
        raise ValueError(
            f"X: p columns with d = {dim} = p K for K >= 2 classes are expected, got {p}"
        )
    return p


def terms_by_node(terms: Sequence[Term], n_nodes: int) -> list[list[Term]]:
    """Split terms by node; each of the n_nodes is number 0 of its own."""
    out: list[list[Term]] = [[] for _ in range(n_nodes)]
    for term in terms:
        order = np.argsort(term["node"], kind="stable")
        nodes, first = np.unique(term["node"][order], return_index=True)
        for node, rows in zip(nodes.tolist(), np.split(order, first[1:]), strict=True):
            fields = {name: term[name][rows] for name in fields_of(term)}
            own = {"kind": term["kind"], "node": np.zeros(len(rows), dtype=np.int64), **fields}
            out[node].append(own)
    return out


def selected(term: Term, place: IntArray, copied: bool = True) -> Term:
    """Return what a term says of some nodes, renumbered: place (n,), -1 for the others.

    Where it says something of no others, arrays may be those of the term, unless they are copied.
    """
    node = place[term["node"]]
    there = node >= 0
    kept: BoolArray | slice = there if copied or not there.all() else slice(None)
    fields = {name: term[name][kept] for name in fields_of(term)}
    return _sorted({"kind": term["kind"], "node": node[kept], **fields})


def _sorted(term: Term) -> Term:
    node = term["node"]
    if np.all(node[1:] >= node[:-1]):
        return term
    order = np.argsort(node, kind="stable")
    return {key: value if key == "kind" else value[order] for key, value in term.items()}


def merged(terms: Sequence[Term], dim: int) -> list[Term]:
    """Return the same losses in as few terms as possible, in an order that depends on them alone.

    Kinds are written in the order of `FIELDS`. Means over rows, and points, that a node has in
    several terms stay apart; weighted rows are joined, regularizers and constraints of a node are
    added up. Terms of other kinds come last.

    Raises
    ------
    ValueError
        Bounds or sums of a node that contradict each other.
    """
    of_kind = {kind: [t for t in terms if t["kind"] == kind and len(t["node"])] for kind in FIELDS}
    out: list[Term] = []
    for kind in (*ROW_KINDS, MULTINOMIAL, "point"):
        plain = [t for t in of_kind[kind] if WEIGHT not in t]
        weighted = [t for t in of_kind[kind] if WEIGHT in t]
        out += _merged_rows(plain)
        out += _merged_rows(weighted, apart=kind == "point")
    for name, key in (("ridge", "mu"), ("l1", "kappa")):
        out += _added(name, key, of_kind[name], dim)
    return [
        *out,
        *_boxes(of_kind["box"]),
        *_simplices(of_kind["simplex"]),
        *(term for term in terms if term["kind"] not in FIELDS),
    ]


def _merged_rows(terms: list[Term], apart: bool = True) -> list[Term]:
    """Join terms of one kind; what a node has in several of them stays apart, or does not."""
    if len(terms) < 2:
        return [_sorted(term) for term in terms]
    kind, fields = terms[0]["kind"], fields_of(terms[0])
    if kind == MULTINOMIAL and len({term["X"].shape[1] for term in terms}) > 1:
        raise ValueError("losses: one number of classes for all nodes is expected")
    joined = {name: np.concatenate([t[name] for t in terms]) for name in ("node", *fields)}
    if not apart:
        return [_sorted({"kind": kind, **joined})]
    source = np.repeat(np.arange(len(terms)), [len(t["node"]) for t in terms])
    order = np.lexsort((source, joined["node"]))
    node, source = joined["node"][order], source[order]
    first = np.concatenate([[True], node[1:] != node[:-1]])
    other = first | np.concatenate([[True], source[1:] != source[:-1]])
    # The how manieth term of its node a row belongs to.
    count = np.cumsum(other)
    level = count - np.maximum.accumulate(np.where(first, count, 0))
    out = []
    for k in range(int(level.max()) + 1):
        rows = order[level == k]
        out.append({"kind": kind, **{name: values[rows] for name, values in joined.items()}})
    return out


def _added(kind: str, name: str, terms: list[Term], dim: int) -> list[Term]:
    """Sum of ridge or l1 terms; one number a node where all entries of each node are equal."""
    if not terms:
        return []
    nodes, place = np.unique(np.concatenate([t["node"] for t in terms]), return_inverse=True)
    total = np.zeros((len(nodes), dim))
    values = [np.broadcast_to(np.atleast_2d(t[name].T).T, (len(t["node"]), dim)) for t in terms]
    np.add.at(total, place, np.concatenate(values))
    some = total.any(axis=1)
    nodes, total = nodes[some], total[some]
    if not len(nodes):
        return []
    uniform = bool(np.all(total == total[:, :1]))
    return [{"kind": kind, "node": nodes, name: total[:, 0].copy() if uniform else total}]


def _boxes(terms: list[Term]) -> list[Term]:
    if not terms:
        return []
    nodes, place = np.unique(np.concatenate([t["node"] for t in terms]), return_inverse=True)
    d = terms[0]["lower"].shape[1]
    lower, upper = np.full((len(nodes), d), -np.inf), np.full((len(nodes), d), np.inf)
    np.maximum.at(lower, place, np.concatenate([t["lower"] for t in terms]))
    np.minimum.at(upper, place, np.concatenate([t["upper"] for t in terms]))
    empty = np.flatnonzero((lower > upper).any(axis=1))
    if empty.size:
        raise ValueError(f"losses: the boxes of node {int(nodes[empty[0]])} do not meet")
    some = (np.isfinite(lower) | np.isfinite(upper)).any(axis=1)
    fields = {"node": nodes[some], "lower": lower[some], "upper": upper[some]}
    return [{"kind": "box", **fields}] if some.any() else []


def _simplices(terms: list[Term]) -> list[Term]:
    if not terms:
        return []
    node = np.concatenate([t["node"] for t in terms])
    total = np.concatenate([t["total"] for t in terms])
    nodes, first, place = np.unique(node, return_index=True, return_inverse=True)
    wrong = np.flatnonzero(total != total[first][place])
    if wrong.size:
        raise ValueError(f"losses: the simplices of node {int(node[wrong[0]])} do not meet")
    return [{"kind": "simplex", "node": nodes, "total": total[first]}]


def row_counts(node: IntArray, n_nodes: int) -> IntArray:
    """Return the number of rows of each node (n_nodes,)."""
    return np.bincount(node, minlength=n_nodes).astype(np.int64)
