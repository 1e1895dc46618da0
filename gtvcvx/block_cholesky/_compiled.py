"""Compiled Cholesky factorization of blocks of nodes, front by front."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.block_cholesky._plan import Plan
from gtvcvx.compiled import FAST, compiled

# A variable that has lost all but this share of its diagonal is taken as undetermined: it rests,
# as the root of its pivot is as large as this.
LOST = 1e-14
RESTING = 1e64
# Variables that are eliminated together, a multiple of four: their rows fit in a small cache.
TOGETHER = 16


@compiled(fastmath=FAST, small=True, allocates=False)
def assemble(
    blocks: FloatArray,
    node: IntArray,
    X: FloatArray,
    weights: FloatArray,
    edges: IntArray,
    edge_blocks: FloatArray,
) -> None:
    """Add rows and edges to the upper triangles of the blocks (n, d, d).

    ``weight x x^T`` of each row at its node, and the block (d, d) of each edge at both ends.
    """
    d = X.shape[1]
    for r in range(len(node)):
        block, x = blocks[node[r]], X[r]
        for k in range(d):
            a = weights[r] * x[k]
            for h in range(k, d):
                block[k, h] += a * x[h]
    for e in range(len(edges)):
        head, tail, block = blocks[edges[e, 0]], blocks[edges[e, 1]], edge_blocks[e]
        for k in range(d):
            for h in range(k, d):
                head[k, h] += block[k, h]
                tail[k, h] += block[k, h]


@compiled(fastmath=FAST, allocates=False, inner=True)
def _subtract(front: FloatArray, size: int, j: int, end: int, top: int, bottom: int) -> None:
    """Subtract what variables j <= . < end do to rows of an upper triangle (size, size).

    Up to four variables, from two rows at a time, so that what is read is used often: there is a
    row and a column to spare behind the last.
    """
    # Fewer than four are filled up with one that counts for nothing.
    first, second = front[j], front[min(j + 1, end - 1)]
    third, fourth = front[min(j + 2, end - 1)], front[min(j + 3, end - 1)]
    two = 1.0 if j + 1 < end else 0.0
    three = 1.0 if j + 2 < end else 0.0
    four = 1.0 if j + 3 < end else 0.0
    for i in range(top, bottom, 2):
        p, q, r, s = first[i], two * second[i], three * third[i], four * fourth[i]
        h = i + 1
        t, u, v, w = first[h], two * second[h], three * third[h], four * fourth[h]
        row, below = front[i], front[h]
        for k in range(i, size):
            e, f, g, o = first[k], second[k], third[k], fourth[k]
            row[k] -= p * e + q * f + r * g + s * o
            below[k] -= t * e + u * f + v * g + w * o


@compiled(fastmath=FAST, allocates=False, inner=True)
def _eliminated(
    front: FloatArray, size: int, first_of_all: int, count: int, last: int, least: FloatArray
) -> None:
    """Eliminate variables of an upper triangle (size, size) from which those before are gone.

    Some at a time, so that the rows below are gone through once for all of these: large fronts are
    many times what caches hold. Rows from `last` on, an even number after the first, stay as they
    are.
    """
    for start in range(first_of_all, count, TOGETHER):
        stop = min(start + TOGETHER, count)
        # What is left for the end is no multiple of four, and of rows taken by twos.
        first_rows = stop if stop == start + TOGETHER else last
        for j in range(start, stop, 4):
            end = min(j + 4, stop)
            for a in range(j, end):
                row = front[a]
                for b in range(j, a):
                    above, factor = front[b], front[b, a]
                    for k in range(a, size):
                        row[k] -= factor * above[k]
                root = np.sqrt(row[a]) if row[a] > least[a] else RESTING
                row[a] = root
                inverse = 1.0 / root
                for k in range(a + 1, size):
                    row[k] *= inverse
            _subtract(front, size, j, end, end, first_rows)
        for i in range(first_rows, last, 2):
            for j in range(start, stop, 4):
                _subtract(front, size, j, min(j + 4, stop), i, i + 2)


@compiled(fastmath=FAST, allocates=False)
def eliminate(
    front: FloatArray, size: int, first_of_all: int, count: int, last: int, least: FloatArray
) -> None:
    """Do what `_eliminated` does, for Python."""
    _eliminated(front, size, first_of_all, count, last, least)


@compiled(fastmath=FAST, small=True, allocates=False, inner=True)
def _fill(
    plan: Plan, s: int, blocks: FloatArray, edge_blocks: FloatArray, front: FloatArray
) -> None:
    """Write the matrix's own entries to a front, and zero elsewhere, in its upper triangle."""
    d, start = blocks.shape[1], plan.node_starts[s]
    size = (plan.node_starts[s + 1] - start) * d
    for i in range(size):
        for j in range(i, size):
            front[i, j] = 0.0
    for a in range(plan.pivots[s]):
        node = plan.nodes[start + a]
        for k in range(d):
            for h in range(k, d):
                front[a * d + k, a * d + h] = blocks[node, k, h]
    for q in range(plan.edge_starts[s], plan.edge_starts[s + 1]):
        e, i, j = plan.edges[q, 0], plan.edges[q, 1] * d, plan.edges[q, 2] * d
        for k in range(d):
            for h in range(d):
                front[i + k, j + h] -= edge_blocks[e, k, h]


@compiled(fastmath=FAST, small=True, allocates=False, inner=True)
def _add_rest(
    plan: Plan, child: int, d: int, rests: FloatArray, top: int, front: FloatArray
) -> int:
    """Add what a front has left, the last of the stack, to the next one; return the new top."""
    start = plan.place_starts[child]
    nodes = plan.place_starts[child + 1] - start
    top -= nodes * d * nodes * d
    for a in range(nodes):
        i = plan.places[start + a] * d
        for k in range(d):
            source = top + (a * d + k) * nodes * d
            for b in range(a, nodes):
                j = plan.places[start + b] * d
                for h in range(k if b == a else 0, d):
                    front[i + k, j + h] += rests[source + b * d + h]
    return top


@compiled(fastmath=FAST, allocates=False)
def factorize(
    plan: Plan,
    blocks: FloatArray,
    edge_blocks: FloatArray,
    panels: FloatArray,
    rests: FloatArray,
    front: FloatArray,
    least: FloatArray,
    at: IntArray,
    large: int,
    most: float,
) -> bool:
    """Write the factor's rows, front by front, to `panels`; say whether that is done.

    Of the matrix with the given diagonal blocks (n, d, d), and minus the block of each edge.
    `rests`, `front`, which is larger than any of the plan's, and `least` are to work in. After
    `most` multiplications, about, it stops, to go on in the next call: `at` (4,) is zero at first.
    It also stops at each front with at least `large` variables to eliminate, before the first of
    them: ``at[3]`` is 1 then. Whoever eliminates some of them says so in ``at[1]``.
    """
    d, spent = blocks.shape[1], 0.0
    while at[0] < len(plan.pivots) and spent < most:
        s, first, top = at[0], at[1], at[2]  # front, variable in it, and top of the stack of rests
        size = (plan.node_starts[s + 1] - plan.node_starts[s]) * d
        count, offset = plan.pivots[s] * d, plan.panel_starts[s] * d * d
        if first == 0 and at[3] == 0:
            _fill(plan, s, blocks, edge_blocks, front)
            for k in range(count):
                least[k] = LOST * front[k, k]
            for q in range(plan.child_starts[s], plan.child_starts[s + 1]):
                top = _add_rest(plan, plan.children[q], d, rests, top, front)
            if count >= large:
                at[2], at[3] = top, 1
                return False
        end = first
        while end < count and spent < most:
            spent += 2.0 * (size - end) ** 2
            end = min(end + 4, count)
        _eliminated(front, size, first, end, size, least)
        at[1], at[2] = end, top
        if end < count:
            continue
        for j in range(count):
            for k in range(j, size):
                panels[offset + j * size + k] = front[j, k]
        left = size - count
        for j in range(left):
            for k in range(j, left):
                rests[top + j * left + k] = front[count + j, count + k]
        at[0], at[1], at[2], at[3] = s + 1, 0, top + left * left, 0
    return bool(at[0] == len(plan.pivots))


@compiled(fastmath=FAST, allocates=False)
def solve(plan: Plan, panels: FloatArray, x: FloatArray, space: FloatArray) -> None:
    """Solve with the factor, in place of the right-hand side x (n, d)."""
    d, n_fronts = x.shape[1], len(plan.pivots)
    for step in range(2 * n_fronts):
        # There and back.
        s = step if step < n_fronts else 2 * n_fronts - 1 - step
        nodes = plan.nodes[plan.node_starts[s] : plan.node_starts[s + 1]]
        size, count, offset = len(nodes) * d, plan.pivots[s] * d, plan.panel_starts[s] * d * d
        for a in range(len(nodes)):
            for k in range(d):
                space[a * d + k] = x[nodes[a], k]
        if step < n_fronts:
            for j in range(count):
                row = panels[offset + j * size : offset + (j + 1) * size]
                value = space[j] / row[j]
                space[j] = value
                for k in range(j + 1, size):
                    space[k] -= value * row[k]
        else:
            for j in range(count - 1, -1, -1):
                row = panels[offset + j * size : offset + (j + 1) * size]
                value = space[j]
                for k in range(j + 1, size):
                    value -= row[k] * space[k]
                space[j] = value / row[j]
        for a in range(len(nodes)):
            for k in range(d):
                x[nodes[a], k] = space[a * d + k]
