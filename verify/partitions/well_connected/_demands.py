"""Demands of Definition 1, d_i = b_i + beta_i |dC| / alpha + delta_i / lambda, of one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isinf
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify.kernel.partitions import NO, YES
from verify.partitions._data import Partition, ProblemData
from verify.partitions._rounding import Enclosure, gamma
from verify.partitions.constants._rational import RationalConstants
from verify.partitions.constants._theorem import TheoremConstants
from verify.partitions.well_connected._best_sink import ClusterGraph
from verify.partitions.well_connected._decide import Decision

#: Covers products that underflow.
_LEAST = 1e-300


def boundary_weights(data: ProblemData, parts: Partition) -> Enclosure:
    """Enclose b_i, the weight of the edges from node i to other clusters, (n,)."""
    crossing = parts.cluster_of[data.edges[:, 0]] != parts.cluster_of[data.edges[:, 1]]
    ends = data.edges[crossing].ravel()
    total = np.bincount(ends, np.repeat(data.weights[crossing], 2), data.n_nodes)
    rounding = gamma(np.maximum(np.bincount(ends, minlength=data.n_nodes) - 1, 0))
    return Enclosure(total * (1.0 - rounding), total * (1.0 + rounding))


class ClusterDemands:
    """Constants and demands of one cluster, as enclosures; its approximate minimizer."""

    def __init__(
        self,
        center: FloatArray,
        cross: Enclosure,
        alpha_lo: float,
        alpha_hi: float,
        beta: Enclosure,
        delta: Enclosure,
        lam: float,
    ) -> None:
        self.center, self.cross, self.beta, self.delta = center, cross, beta, delta
        self.alpha_lo, self.alpha_hi = alpha_lo, alpha_hi
        n = len(cross.lo)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            total_hi = float(cross.hi.sum()) * (1.0 + gamma(n))
            total_lo = float(cross.lo.sum()) * (1.0 - gamma(n))
            self.factor_hi = 0.0
            if total_hi > 0.0:
                self.factor_hi = float(np.divide(total_hi, alpha_lo) * (1.0 + gamma(2)))
            factor_lo = 0.0 if total_lo == 0.0 else total_lo / alpha_hi * (1.0 - gamma(2))
            least = np.where((beta.hi > 0.0) | (delta.hi > 0.0), _LEAST, 0.0)
            self.base_hi: FloatArray = (cross.hi + _product(beta.hi, self.factor_hi)) * (
                1.0 + gamma(4)
            ) + least
            hi = (self.base_hi + delta.hi / lam) * (1.0 + gamma(4)) + least
            lo = (cross.lo + beta.lo * factor_lo + delta.lo / lam) * (1.0 - gamma(6)) - least
        self.demand = Enclosure(np.maximum(lo, 0.0), hi)


def demands_of(
    data: ProblemData,
    graph: ClusterGraph,
    constants: TheoremConstants,
    boundary: Enclosure,
    c: int,
) -> ClusterDemands:
    """Collect the constants of cluster ``c`` and form its demands."""
    own = graph.nodes
    return ClusterDemands(
        constants.centers[c],
        Enclosure(boundary.lo[own], boundary.hi[own]),
        float(constants.alpha.lo[c]),
        float(constants.alpha.hi[c]),
        Enclosure(constants.beta.lo[own], constants.beta.hi[own]),
        Enclosure(constants.delta.lo[own], constants.delta.hi[own]),
        data.lam,
    )


def _product(x: FloatArray, factor: float) -> FloatArray:
    """Multiply, with 0 times infinity = 0."""
    return np.where(x > 0.0, x * factor, 0.0)


def exact_demands(
    data: ProblemData, parts: Partition, graph: ClusterGraph, exact: RationalConstants
) -> tuple[list[Fraction], list[Fraction]]:
    """Rational demands of a cluster: lower and upper, equal unless delta is irrational."""
    cross = dict.fromkeys(graph.nodes.tolist(), Fraction(0))
    ends = parts.cluster_of[data.edges]
    c = parts.cluster_of[graph.nodes[0]]
    for e in np.flatnonzero((ends[:, 0] == c) != (ends[:, 1] == c)):
        inside = data.edges[e, 0] if ends[e, 0] == c else data.edges[e, 1]
        cross[int(inside)] += Fraction(float(data.weights[e]))
    factor = sum(cross.values(), Fraction(0)) / exact.alpha
    lam = Fraction(data.lam)
    fixed = [b + beta * factor for b, beta in zip(cross.values(), exact.beta, strict=True)]
    return (
        [x + g / lam for x, g in zip(fixed, exact.delta_lo, strict=True)],
        [x + g / lam for x, g in zip(fixed, exact.delta_hi, strict=True)],
    )


def witness_document(
    graph: ClusterGraph, own: ClusterDemands, decision: Decision, exact: RationalConstants | None
) -> dict[str, Any] | None:
    """Write the witness for the kernel, with the constants that the verdict used."""
    if not decision.decided:
        return None
    up = decision.holds
    nodes = graph.nodes.tolist()
    if len(nodes) == 1 or graph.components[0] > 1:
        constants = _no_constants(len(nodes))
    elif decision.rational and exact is not None:
        delta = exact.delta_hi if up else exact.delta_lo
        constants = _constants(exact.alpha, exact.beta, delta, exact.center, None)
    else:
        alpha = own.alpha_lo if up else own.alpha_hi
        beta, delta_of = (x.hi if up else x.lo for x in (own.beta, own.delta))
        constants = _constants(
            alpha, beta.tolist(), delta_of.tolist(), own.center.tolist(), own.alpha_lo
        )
    if up:
        sink = decision.sink
        assert sink is not None
        proof = {"sink": nodes[sink], "flow": decision.flow, "scale": decision.scale}
    else:
        sets = [graph.nodes[inside].tolist() for inside in decision.sets]
        proof = {"sets": sets, "left_out": graph.nodes[decision.left_out].tolist()}
    claim = YES if up else NO
    return {"claim": claim, "cluster": nodes, **constants, **proof}


def single_node_witness(node: int) -> dict[str, Any]:
    """Witness that a cluster of one node is well-connected, whatever its loss."""
    proof: dict[str, Any] = {"sink": node, "flow": [], "scale": 1}
    return {"claim": YES, "cluster": [node], **_no_constants(1), **proof}


def _no_constants(size: int) -> dict[str, Any]:
    """Constants where none are needed: a single node, or a cut of weight zero."""
    zeros = [0] * size
    return {"alpha": None, "beta": zeros, "delta": zeros, "center": None, "modulus": None}


def _constants(
    alpha: float | Fraction,
    beta: Sequence[float | Fraction],
    delta: Sequence[float | Fraction],
    center: Sequence[float | Fraction],
    modulus: float | None,
) -> dict[str, Any]:
    return {
        "alpha": _number(alpha),
        "beta": [_number(x) for x in beta],
        "delta": [_number(x) for x in delta],
        "center": [_number(x) for x in center],
        "modulus": None if modulus is None else _number(modulus),
    }


def _number(value: float | Fraction) -> str | None:
    """Write a number for a witness: a ratio of hexadecimal integers, None for infinity."""
    if isinstance(value, float) and isinf(value):
        return None
    fraction = Fraction(value)
    return f"{fraction.numerator:#x}/{fraction.denominator:#x}"
