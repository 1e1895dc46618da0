"""Optimality conditions as equations and inequalities between integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gtvcvx._deadline import look
from gtvcvx.solution import ExactSolution
from gtvcvx.solvers.exact._cluster_flows import Flow
from gtvcvx.solvers.exact._data import ExactData, Integers
from gtvcvx.solvers.exact._faces import Point
from gtvcvx.solvers.exact._gradient import Gradient

Ratio = tuple[int, int]


def prove(data: ExactData, point: Point, flow: Flow) -> ExactSolution | None:
    """Check the optimality conditions without any tolerance; None if one does not hold.

    Flow conservation (D^T u)_i = -grad L_i(w_i) makes the gap vanish at every node; |u| <= lambda A
    together with u D w = lambda A |D w| does so, per coordinate, on every edge.
    """
    if not (_aligned(data, point, flow) and _conserved(data, point, flow)):
        return None
    return ExactSolution(
        w=_fractions(point.numerators, point.denominators),
        u=_fractions(flow.numerators, flow.denominators),
        value=_value(data, point),
    )


def _aligned(data: ExactData, point: Point, flow: Flow) -> bool:
    """Whether flows stay within the capacities and reach them, with the jump's sign, at jumps."""
    limits = data.capacities[:, None] * flow.denominators
    flows = flow.numerators * data.scale
    signs = point.signs(data.edges)
    inside = (abs(flows) <= limits).all()
    return bool(inside and (flows == signs * limits)[signs != 0].all())


def _conserved(data: ExactData, point: Point, flow: Flow) -> bool:
    """Whether every node's gradient and flows add up to zero."""
    gradient = Gradient(data, point)
    n, d = data.shape
    incident: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (head, tail) in enumerate(data.edges.tolist()):
        incident[head].append((e, 1))
        incident[tail].append((e, -1))
    for i in range(n):
        look()
        for k in range(d):
            slope, common = gradient(i, k)
            parts = [(slope, common * data.scale)]
            for e, sign in incident[i]:
                parts.append((sign * flow.numerators[e, k], flow.denominators[e, k]))
            shared = math.lcm(*{denominator for _, denominator in parts})
            if sum(numerator * (shared // denominator) for numerator, denominator in parts):
                return False
    return True


def _value(data: ExactData, point: Point) -> Fraction:
    """P(w) at an optimum.

    Node by node the optimality conditions give w^T (Q w - b) / S = -<D^T u, w>, and the sum of the
    latter over the nodes is minus the total variation V. So the losses, without their constants,
    are half of -V - b^T w / S, and P(w) = constant + (V - b^T w / S) / 2.
    """
    parts: dict[int, int] = {}

    def add(numerator: int, node: int, k: int) -> None:
        denominator = point.denominators[node, k]
        parts[denominator] = parts.get(denominator, 0) + numerator * point.numerators[node, k]

    n, d = data.shape
    for i in range(n):
        for k in range(d):
            add(-data.linear[i, k], i, k)
    for e, k in np.argwhere(signs := point.signs(data.edges)).tolist():
        head, tail = data.edges[e].tolist()
        weight = int(signs[e, k]) * data.capacities[e]
        add(weight, head, k)
        add(-weight, tail, k)
    numerator, denominator = _sum([(p, q) for q, p in parts.items()])
    return data.constant + Fraction(numerator, 2 * data.scale * denominator)


def _sum(ratios: Sequence[Ratio]) -> Ratio:
    """Add ratios in pairs, so that long numbers meet long ones, and reduce nothing on the way."""
    if len(ratios) <= 1:
        return ratios[0] if ratios else (0, 1)
    half = len(ratios) // 2
    (p, q), (r, s) = _sum(ratios[:half]), _sum(ratios[half:])
    return p * s + r * q, q * s


def _fractions(numerators: Integers, denominators: Integers) -> list[list[Fraction]]:
    """Reduce every ratio, once: whole clusters share theirs, and long numbers take long."""
    reduced: dict[Ratio, Fraction] = {}
    rows = []
    for row in zip(numerators, denominators, strict=True):
        ratios = list(zip(*row, strict=True))
        reduced |= {ratio: Fraction(*ratio) for ratio in ratios if ratio not in reduced}
        rows.append([reduced[ratio] for ratio in ratios])
    return rows
