"""A problem as integers: quadratic losses and edge capacities on one common scale.

The floats of a problem are dyadic rationals. With one positive integer S, the scale, every loss is

    L_i(w) = (1/S) ((1/2) w^T Q_i w - b_i^T w) + constant,    Q_i and b_i integer,

and every capacity lambda A_e is an integer over S. Nothing is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.losses.batched._terms import WEIGHT
from gtvcvx.problem import GTVProblem

# Python integers of any size, dtype object: Numpy adds and multiplies them exactly.
Integers = NDArray[Any]


@dataclass(frozen=True)
class ExactData:
    """Integer data of a problem with absolute differences along the edges.

    Attributes
    ----------
    scale : int
        S > 0.
    quadratic : integers (n, d, d)
        S times the Hessians of the losses.
    linear : integers (n, d)
        S times b_i, so that the gradient of L_i at w is (Q_i w - b_i) / S.
    constant : Fraction
        Sum of the constants of the losses.
    edges : ndarray, shape (m, 2)
    capacities : integers (m,)
        S lambda A_e.
    """

    scale: int
    quadratic: Integers
    linear: Integers
    constant: Fraction
    edges: IntArray
    capacities: Integers

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of nodes n and of dimensions d."""
        n, d = self.linear.shape
        return n, d


@dataclass(frozen=True)
class _Term:
    """Quadratics at some nodes, as integers over a scale of their own."""

    nodes: IntArray
    scale: int
    quadratic: Integers  # (k, d, d)
    linear: Integers  # (k, d)
    constant: Fraction


def exact_data(problem: GTVProblem) -> ExactData:
    """Read a problem exactly.

    Raises
    ------
    ValueError
        Naming the penalty or the loss that leads to no rational solution.
    """
    data = problem.to_data()
    _check_penalty(data["penalty"]["kind"], data["dim"], problem.penalty.is_norm)
    n, d = data["n_nodes"], data["dim"]
    terms = [_read(term) for term in data["terms"]]
    weights, k = dyadic(data["weights"])
    lam = Fraction(data["lam"])
    scale = math.lcm(lam.denominator << k, *(term.scale for term in terms))
    quadratic, linear = integers((n, d, d)), integers((n, d))
    for term in terms:
        factor = scale // term.scale
        quadratic[term.nodes] += factor * term.quadratic
        linear[term.nodes] += factor * term.linear
    return ExactData(
        scale=scale,
        quadratic=quadratic,
        linear=linear,
        constant=sum((term.constant for term in terms), Fraction(0)),
        edges=data["edges"],
        capacities=weights * (lam.numerator * (scale // (lam.denominator << k))),
    )


def _check_penalty(kind: str, dim: int, is_norm: bool) -> None:
    if kind == "l1" or (is_norm and dim == 1 and kind != "opaque"):
        return
    where = "" if is_norm else ": it is not a norm"
    raise ValueError(
        f"solver: EXACT does not support the penalty {kind!r} in dimension d = {dim}{where}; "
        "it takes 'l1', or any norm for d = 1; use solver='CLARABEL' or 'AUTO' instead"
    )


def integers(shape: tuple[int, ...]) -> Integers:
    """Array of Python integers, all zero."""
    return np.full(shape, 0, dtype=object)


def dyadic(values: FloatArray) -> tuple[Integers, int]:
    """Return integers v and k >= 0 with values = v / 2^k exactly."""
    ratios = [x.as_integer_ratio() for x in values.ravel().tolist()]
    k = max((q.bit_length() - 1 for _, q in ratios), default=0)
    out = integers((len(ratios),))
    for position, (p, q) in enumerate(ratios):
        out[position] = p * ((1 << k) // q)
    return out.reshape(values.shape), k


def _read(term: dict[str, Any]) -> _Term:
    if term["kind"] not in _READERS:
        node = int(np.asarray(term["node"])[0])
        raise ValueError(
            f"solver: EXACT does not support the loss of kind {term['kind']!r} at node {node}; "
            "it takes squared, point and zero losses; use solver='CLARABEL' or 'AUTO' instead"
        )
    return _READERS[term["kind"]](term)


def _squared(term: dict[str, Any]) -> _Term:
    """(1/m) ||X w - y||^2, with Q = (2/m) X^T X and b = (2/m) X^T y; c_r in place of 1/m."""
    d = term["X"].shape[1]
    nodes, first, counts = np.unique(term["node"], return_index=True, return_counts=True)
    rows, k = dyadic(np.column_stack([term["X"], term["y"]]))
    shares, common = _shares(term, counts)
    quadratic, linear = integers((len(nodes), d, d)), integers((len(nodes), d))
    constant = 0
    for j, (start, count) in enumerate(zip(first.tolist(), counts.tolist(), strict=True)):
        X, y = rows[start : start + count, :d], rows[start : start + count, d]
        share = shares[start : start + count]
        quadratic[j] = 2 * (X.T @ (share[:, None] * X))
        linear[j] = 2 * (X.T @ (share * y))
        constant += int(y @ (share * y))
    scale = common << (2 * k)
    return _Term(nodes, scale, quadratic, linear, Fraction(constant, scale))


def _shares(term: dict[str, Any], counts: IntArray) -> tuple[Integers, int]:
    """Return what each row counts, its weight or 1/m, as integers over a common scale."""
    if WEIGHT in term:
        weights, k = dyadic(term[WEIGHT])
        return weights, 1 << k
    common = math.lcm(*counts.tolist())
    return np.repeat(np.array([common // m for m in counts.tolist()], dtype=object), counts), common


def _point(term: dict[str, Any]) -> _Term:
    """C ||w - a||^2, with Q = 2 c I and b = 2 c a."""
    points, k = dyadic(term["a"])
    count, d = points.shape
    weights, k_c = dyadic(term.get(WEIGHT, np.ones(count)))
    quadratic = integers((count, d, d))
    quadratic[:, np.arange(d), np.arange(d)] = (2 * weights * (1 << k))[:, None]
    linear = 2 * weights[:, None] * points
    constant = Fraction(int((weights[:, None] * points**2).sum()), 1 << (2 * k + k_c))
    return _Term(np.asarray(term["node"]), 1 << (k + k_c), quadratic, linear, constant)


_READERS = {"squared": _squared, "point": _point}
