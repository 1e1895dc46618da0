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
from verify.partitions.well_connected._roots import LocalHessians

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
    """Constants and demands of one cluster, as enclosures; its approximate minimizer.

    ``modulus`` is a lower bound of alpha, cheap to check, and ``directions`` are the vectors that
    prove alpha_hi and beta.lo, None where formulas do.
    """

    def __init__(
        self,
        center: FloatArray,
        cross: Enclosure,
        alpha_lo: float,
        alpha_hi: float,
        beta: Enclosure,
        delta: Enclosure,
        lam: float,
        directions: tuple[FloatArray | None, FloatArray | None],
        modulus: float,
    ) -> None:
        self.modulus = modulus
        self.directions = directions
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
    modulus = constants.alpha.modulus
    along, along_beta = constants.alpha.directions, constants.beta.directions
    return ClusterDemands(
        constants.centers[c],
        Enclosure(boundary.lo[own], boundary.hi[own]),
        float(constants.alpha.lo[c]),
        float(constants.alpha.hi[c]),
        Enclosure(constants.beta.lo[own], constants.beta.hi[own]),
        Enclosure(constants.delta.lo[own], constants.delta.hi[own]),
        data.lam,
        (None if along is None else along[c], None if along_beta is None else along_beta[own]),
        float(constants.alpha.lo[c] if modulus is None else modulus[c]),
    )


def _product(x: FloatArray, factor: float) -> FloatArray:
    """Multiply, with 0 times infinity = 0."""
    return np.where(x > 0.0, x * factor, 0.0)


def exact_demands(
    data: ProblemData, parts: Partition, graph: ClusterGraph, exact: RationalConstants
) -> tuple[list[Fraction], list[Fraction]]:
    """Rational demands of a cluster, lower and upper; equal if all constants are exact."""
    cross = dict.fromkeys(graph.nodes.tolist(), Fraction(0))
    ends = parts.cluster_of[data.edges]
    c = parts.cluster_of[graph.nodes[0]]
    for e in np.flatnonzero((ends[:, 0] == c) != (ends[:, 1] == c)):
        inside = data.edges[e, 0] if ends[e, 0] == c else data.edges[e, 1]
        cross[int(inside)] += Fraction(float(data.weights[e]))
    boundary, lam = sum(cross.values(), Fraction(0)), Fraction(data.lam)

    def demands(alpha: Fraction, betas: list[Fraction], deltas: list[Fraction]) -> list[Fraction]:
        rows = zip(cross.values(), betas, deltas, strict=True)
        return [b + beta * boundary / alpha + delta / lam for b, beta, delta in rows]

    return (
        demands(exact.alpha_hi, exact.beta_lo, exact.delta_lo),
        demands(exact.alpha_lo, exact.beta_hi, exact.delta_hi),
    )


def witness_document(
    graph: ClusterGraph,
    own: ClusterDemands,
    decision: Decision,
    exact: RationalConstants | None,
    hessians: LocalHessians,
) -> dict[str, Any]:
    """Write the witness for the kernel, with the constants that the verdict used."""
    up = decision.holds
    nodes = graph.nodes.tolist()
    if len(nodes) == 1 or graph.components[0] > 1:
        constants = _no_constants(len(nodes))
    elif decision.rational and exact is not None:
        constants = _rational_constants(exact, up)
    else:
        constants = _float_constants(own, up)
    if up:
        sink = decision.sink
        assert sink is not None
        proof = {"sink": nodes[sink], "flow": decision.flow, "scale": decision.scale}
    else:
        sets = [graph.nodes[inside].tolist() for inside in decision.sets]
        proof = {"sets": sets, "left_out": graph.nodes[decision.left_out].tolist()}
    claim = YES if up else NO
    witness = {"claim": claim, "cluster": nodes, **constants, **proof}
    return witness | hessians.roots(witness)


def single_node_witness(node: int) -> dict[str, Any]:
    """Witness that a cluster of one node is well-connected, whatever its loss."""
    proof: dict[str, Any] = {"sink": node, "flow": [], "scale": 1}
    return {"claim": YES, "cluster": [node], **_no_constants(1), **proof}


def _no_constants(size: int) -> dict[str, Any]:
    """Constants where none are needed: a single node, or a cut of weight zero."""
    zeros = [0] * size
    return {"alpha": None, "beta": zeros, "delta": zeros, "center": None, "modulus": None}


def _rational_constants(exact: RationalConstants, up: bool) -> dict[str, Any]:
    if up:
        return _constants(exact.alpha_lo, exact.beta_hi, exact.delta_hi, exact.center, None)
    constants = _constants(exact.alpha_hi, exact.beta_lo, exact.delta_lo, exact.center, None)
    return constants | _directions(exact.alpha_direction, exact.beta_directions)


def _float_constants(own: ClusterDemands, up: bool) -> dict[str, Any]:
    alpha = own.alpha_lo if up else own.alpha_hi
    beta, delta = ((x.hi if up else x.lo).tolist() for x in (own.beta, own.delta))
    constants = _constants(alpha, beta, delta, own.center.tolist(), own.modulus)
    if up:
        return constants
    along, along_beta = (None if v is None else v.tolist() for v in own.directions)
    return constants | _directions(along, along_beta)


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


def _directions(
    alpha: Sequence[float | Fraction] | None, beta: Sequence[Sequence[float | Fraction]] | None
) -> dict[str, Any]:
    """Vectors that prove an upper alpha and lower betas; no entry where formulas prove them."""
    found: dict[str, Any] = {}
    if alpha is not None:
        found["alpha"] = [_number(x) for x in alpha]
    if beta is not None:
        found["beta"] = [[_number(x) for x in row] for row in beta]
    return {"directions": found} if found else {}


def _number(value: float | Fraction) -> str | None:
    """Write a number for a witness: a ratio of hexadecimal integers, None for infinity."""
    if isinstance(value, float) and isinf(value):
        return None
    fraction = Fraction(value)
    return f"{fraction.numerator:#x}/{fraction.denominator:#x}"
