"""Rational solutions on forests by dynamic programming, where coordinates are scalar problems.

The slope of a subtree's least cost, as a function of the value of the node above it, is piecewise
linear and clipped at the capacity, see `gtvcvx.solvers.forest`. Here it is a list of changes
(position, bend), in order, between a slope on the left and one on the right.
"""

from __future__ import annotations

from bisect import insort
from fractions import Fraction

import numpy as np

from gtvcvx._deadline import look
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.solvers.exact._cluster_flows import Flow
from gtvcvx.solvers.exact._data import ExactData, integers
from gtvcvx.solvers.exact._faces import Point
from gtvcvx.solvers.forest import RootedForest, is_forest, rooted_forest

Change = tuple[Fraction, int]
NODES_A_LOOK = 100


def tree_solution(graph: EmpiricalGraph, data: ExactData) -> tuple[Point, Flow] | None:
    """Return an optimal pair; None if the graph has a cycle or a loss couples coordinates."""
    n, d = data.shape
    diagonal = data.quadratic[:, range(d), range(d)]
    if not is_forest(graph) or np.count_nonzero(data.quadratic) > np.count_nonzero(diagonal):
        return None
    forest = rooted_forest(graph)
    point = Point(integers((n, d)), integers((n, d)))
    flow = Flow(integers((len(data.edges), d)), integers((len(data.edges), d)))
    for k in range(d):
        q, b = diagonal[forest.node, k].tolist(), data.linear[forest.node, k].tolist()
        c = [0 if e < 0 else data.capacities[e] for e in forest.edge.tolist()]
        x = _values(forest, q, b, c)
        sent = _flows(forest, x, q, b, c)
        for i, value in zip(forest.node.tolist(), x, strict=True):
            point.numerators[i, k], point.denominators[i, k] = value.as_integer_ratio()
        ends = zip(forest.edge.tolist(), forest.sign.tolist(), sent, strict=True)
        for e, sign, value in ends:
            if e >= 0:
                numerator, denominator = (value / data.scale).as_integer_ratio()
                flow.numerators[e, k], flow.denominators[e, k] = -sign * numerator, denominator
    return point, flow


def _values(forest: RootedForest, q: list[int], b: list[int], c: list[int]) -> list[Fraction]:
    """Return the minimizer, by position: bounds from the leaves on, values from the roots on."""
    n = len(q)
    parent = forest.parent.tolist()
    lines: list[list[Change]] = [[] for _ in range(n)]
    left, right = [0] * n, [0] * n
    low: list[Fraction | None] = [None] * n
    high: list[Fraction | None] = [None] * n
    for p in range(n):
        if p % NODES_A_LOOK == 0:
            look()
        above, line, goal = parent[p], lines[p], c[p] if parent[p] >= 0 else 0
        low[p], line = _cut_left(line, q[p], left[p] - b[p], -goal)
        left[p] = left[p] - b[p] if low[p] is None else -goal
        if above < 0:
            if low[p] is None:
                low[p] = line[0][0] if line else Fraction(0)
            continue
        high[p], line = _cut_right(line, q[p], right[p] - b[p], goal)
        right[p] = right[p] - b[p] if high[p] is None else goal
        lines[above], lines[p] = _together(lines[above], line), []
        left[above] += left[p]
        right[above] += right[p]
    x = [Fraction(0)] * n
    for p in range(n - 1, -1, -1):
        value = low[p] if parent[p] < 0 else x[parent[p]]
        assert value is not None
        lowest, highest = low[p], high[p]
        if lowest is not None and value < lowest:
            value = lowest
        if highest is not None and value > highest:
            value = highest
        x[p] = value
    return x


def _cut_left(
    line: list[Change], slope: int, at_zero: int, goal: int
) -> tuple[Fraction | None, list[Change]]:
    """Clip a slope from below: where it is the goal, and the changes from there on.

    Left of all changes it is ``slope x + at_zero``. None where it is above the goal everywhere.
    """
    if slope == 0 and at_zero >= goal:
        return None, line
    constant, gone = Fraction(at_zero), 0
    for position, bend in line:
        if slope * position + constant >= goal:
            break
        slope, constant, gone = slope + bend, constant - bend * position, gone + 1
    where = (goal - constant) / slope
    return where, [(where, slope), *line[gone:]]


def _cut_right(
    line: list[Change], slope: int, at_zero: int, goal: int
) -> tuple[Fraction | None, list[Change]]:
    """Clip a slope from above; right of all changes it is ``slope x + at_zero``."""
    if slope == 0 and at_zero <= goal:
        return None, line
    constant, kept = Fraction(at_zero), len(line)
    for position, bend in reversed(line):
        if slope * position + constant <= goal:
            break
        slope, constant, kept = slope - bend, constant + bend * position, kept - 1
    where = (goal - constant) / slope
    return where, [*line[:kept], (where, -slope)]


def _together(one: list[Change], other: list[Change]) -> list[Change]:
    """Merge two lists of changes; the shorter goes into the longer one."""
    if len(one) < len(other):
        one, other = other, one
    for change in other:
        insort(one, change)
    return one


def _flows(
    forest: RootedForest, x: list[Fraction], q: list[int], b: list[int], c: list[int]
) -> list[Fraction]:
    """Return what each position sends to its parent, times the scale of the data."""
    sent = [Fraction(0)] * len(x)
    for p, above in enumerate(forest.parent.tolist()):
        sent[p] += q[p] * x[p] - b[p]
        if above < 0:
            continue
        if x[p] != x[above]:
            sent[p] = Fraction(c[p] if x[p] < x[above] else -c[p])
        sent[above] += sent[p]
    return sent
