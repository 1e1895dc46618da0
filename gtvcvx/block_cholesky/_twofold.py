"""The factorization by fronts in twice the digits: each number is a sum of two.

Where weights differ by more than the sixteen digits of one number, what the small ones determine is
lost in the large ones.
"""

from __future__ import annotations

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.block_cholesky._digits import less, over, plus, product_of, root, times
from gtvcvx.block_cholesky._plan import Plan
from gtvcvx.compiled import compiled

# A variable that has lost all but this share of its diagonal is taken as undetermined: it rests,
# as the root of its pivot is as large as this.
LOST = 1e-28
RESTING = 1e64
# Variables that are eliminated together: their rows fit in a cache of a megabyte.
TOGETHER = 16


@compiled(small=True, allocates=False)
def assemble(
    blocks: FloatArray,
    node: IntArray,
    X: FloatArray,
    weights: FloatArray,
    edges: IntArray,
    edge_blocks: FloatArray,
) -> None:
    """Add rows and edges to the upper triangles of the blocks (2, n, d, d).

    ``weight x x^T`` of each row at its node, and the block (d, d) of each edge at both ends.
    """
    d = X.shape[1]
    high, low = blocks[0], blocks[1]
    for r in range(len(node)):
        i, x = node[r], X[r]
        for k in range(d):
            a, a_rest = product_of(weights[r], x[k])
            for h in range(k, d):
                b, b_rest = times(a, a_rest, x[h], 0.0)
                high[i, k, h], low[i, k, h] = plus(high[i, k, h], low[i, k, h], b, b_rest)
    for e in range(len(edges)):
        for end in range(2):
            i = edges[e, end]
            for k in range(d):
                for h in range(k, d):
                    b = edge_blocks[e, k, h]
                    high[i, k, h], low[i, k, h] = plus(high[i, k, h], low[i, k, h], b, 0.0)


@compiled(allocates=False, inner=True)
def _subtract(
    a: FloatArray,
    a_rest: FloatArray,
    factor: float,
    factor_rest: float,
    b: FloatArray,
    b_rest: FloatArray,
) -> None:
    """Subtract so many times b from a: from the first entry on, so that several go at a time."""
    for k in range(len(a)):
        a[k], a_rest[k] = less(a[k], a_rest[k], factor, factor_rest, b[k], b_rest[k])


@compiled(allocates=False, inner=True)
def _eliminate(
    high: FloatArray, low: FloatArray, size: int, first: int, end: int, least: FloatArray
) -> None:
    """Eliminate variables of an upper triangle (size, size) from which those before are gone.

    Some at a time, so that the rows below are gone through once for all of these: large fronts are
    many times what caches hold.
    """
    for start in range(first, end, TOGETHER):
        stop = min(start + TOGETHER, end)
        for a in range(start, stop):
            row, rest = high[a, :size], low[a, :size]
            for b in range(start, a):
                above, above_rest = high[b, a:size], low[b, a:size]
                _subtract(row[a:], rest[a:], above[0], above_rest[0], above, above_rest)
            pivot, pivot_rest = RESTING, 0.0
            if row[a] > least[a]:
                pivot, pivot_rest = root(row[a], rest[a])
            row[a], rest[a] = pivot, pivot_rest
            for k in range(a + 1, size):
                row[k], rest[k] = over(row[k], rest[k], pivot, pivot_rest)
        for i in range(stop, size):
            row, rest = high[i, i:size], low[i, i:size]
            for b in range(start, stop):
                above, above_rest = high[b, i:size], low[b, i:size]
                _subtract(row, rest, above[0], above_rest[0], above, above_rest)


@compiled(small=True, allocates=False, inner=True)
def _fill(
    plan: Plan, s: int, blocks: FloatArray, edge_blocks: FloatArray, front: FloatArray
) -> None:
    """Write the matrix's own entries to a front, and zero elsewhere, in its upper triangle."""
    d, start = blocks.shape[2], plan.node_starts[s]
    size = (plan.node_starts[s + 1] - start) * d
    for i in range(size):
        for j in range(i, size):
            front[0, i, j] = front[1, i, j] = 0.0
    for a in range(plan.pivots[s]):
        node = plan.nodes[start + a]
        for part in range(2):
            for k in range(d):
                for h in range(k, d):
                    front[part, a * d + k, a * d + h] = blocks[part, node, k, h]
    for q in range(plan.edge_starts[s], plan.edge_starts[s + 1]):
        e, i, j = plan.edges[q, 0], plan.edges[q, 1] * d, plan.edges[q, 2] * d
        for k in range(d):
            for h in range(d):
                a, a_rest = front[0, i + k, j + h], front[1, i + k, j + h]
                a, a_rest = plus(a, a_rest, -edge_blocks[e, k, h], 0.0)
                front[0, i + k, j + h], front[1, i + k, j + h] = a, a_rest


@compiled(small=True, allocates=False, inner=True)
def _add_rest(
    plan: Plan, child: int, d: int, rests: FloatArray, top: int, front: FloatArray
) -> int:
    """Add what a front has left, the last of the stack, to the next one; return the new top."""
    start = plan.place_starts[child]
    nodes = plan.place_starts[child + 1] - start
    top -= (nodes * d) ** 2
    high, low = front[0], front[1]
    for a in range(nodes):
        for k in range(d):
            i, source = plan.places[start + a] * d + k, top + (a * d + k) * nodes * d
            for b in range(a, nodes):
                for h in range(k if b == a else 0, d):
                    j, at = plan.places[start + b] * d + h, source + b * d + h
                    more, rest = rests[0, at], rests[1, at]
                    high[i, j], low[i, j] = plus(high[i, j], low[i, j], more, rest)
    return top


@compiled(allocates=False)
def factorize(
    plan: Plan,
    blocks: FloatArray,
    edge_blocks: FloatArray,
    panels: FloatArray,
    rests: FloatArray,
    front: FloatArray,
    least: FloatArray,
    at: IntArray,
    most: float,
) -> bool:
    """Write the factor's rows, front by front, to `panels`; say whether that is done.

    Of the matrix with the given diagonal blocks (2, n, d, d), and minus the block of each edge.
    `rests`, `front`, which is larger than any of the plan's, and `least` are to work in. After
    `most` multiplications, about, it stops, to go on in the next call: `at` (3,) is zero at first.
    """
    d, spent = blocks.shape[2], 0.0
    while at[0] < len(plan.pivots) and spent < most:
        s, first, top = at[0], at[1], at[2]  # front, variable in it, and top of the stack of rests
        size = (plan.node_starts[s + 1] - plan.node_starts[s]) * d
        count, offset = plan.pivots[s] * d, plan.panel_starts[s] * d * d
        if first == 0:
            _fill(plan, s, blocks, edge_blocks, front)
            for k in range(count):
                least[k] = LOST * front[0, k, k]
            for q in range(plan.child_starts[s], plan.child_starts[s + 1]):
                top = _add_rest(plan, plan.children[q], d, rests, top, front)
        end = first
        while end < count and spent < most:
            spent += 0.5 * (size - end) ** 2
            end += 1
        _eliminate(front[0], front[1], size, first, end, least)
        at[1], at[2] = end, top
        if end < count:
            continue
        left = size - count
        for part in range(2):
            for j in range(count):
                for k in range(j, size):
                    panels[part, offset + j * size + k] = front[part, j, k]
            for j in range(left):
                for k in range(j, left):
                    rests[part, top + j * left + k] = front[part, count + j, count + k]
        at[0], at[1], at[2] = s + 1, 0, top + left * left
    return bool(at[0] == len(plan.pivots))


@compiled(allocates=False, inner=True)
def _dot(
    a: FloatArray,
    a_rest: FloatArray,
    b: FloatArray,
    b_rest: FloatArray,
    products: FloatArray,
) -> tuple[float, float]:
    """Return the sum of the products, added up by halves, so that several go at a time."""
    high, low = products[0], products[1]
    size = len(a)
    for k in range(size):
        high[k], low[k] = times(a[k], a_rest[k], b[k], b_rest[k])
    while size > 1:
        left = (size + 1) // 2
        more, more_rest = high[left:size], low[left:size]
        for k in range(size - left):
            high[k], low[k] = plus(high[k], low[k], more[k], more_rest[k])
        size = left
    return (high[0], low[0]) if size else (0.0, 0.0)


@compiled(allocates=False)
def solve(plan: Plan, panels: FloatArray, x: FloatArray, space: FloatArray) -> None:
    """Solve with the factor, in place of the right-hand side x (2, n, d).

    `space` (4, k), of the size of the largest front, is to work in.
    """
    d, n_fronts = x.shape[2], len(plan.pivots)
    first, second, products = space[0], space[1], space[2:]
    for step in range(2 * n_fronts):
        # There and back.
        s = step if step < n_fronts else 2 * n_fronts - 1 - step
        nodes = plan.nodes[plan.node_starts[s] : plan.node_starts[s + 1]]
        size, count, offset = len(nodes) * d, plan.pivots[s] * d, plan.panel_starts[s] * d * d
        for part in range(2):
            for a in range(len(nodes)):
                for k in range(d):
                    space[part, a * d + k] = x[part, nodes[a], k]
        for turn in range(count):
            j = turn if step < n_fronts else count - 1 - turn
            row = panels[0, offset + j * size : offset + (j + 1) * size]
            rest = panels[1, offset + j * size : offset + (j + 1) * size]
            value, value_rest = first[j], second[j]
            if step < n_fronts:
                value, value_rest = over(value, value_rest, row[j], rest[j])
                behind, behind_rest = first[j + 1 : size], second[j + 1 : size]
                _subtract(behind, behind_rest, value, value_rest, row[j + 1 :], rest[j + 1 :])
            else:
                behind = slice(j + 1, size)
                a, a_rest = _dot(row[behind], rest[behind], first[behind], second[behind], products)
                value, value_rest = plus(value, value_rest, -a, -a_rest)
                value, value_rest = over(value, value_rest, row[j], rest[j])
            first[j], second[j] = value, value_rest
        for part in range(2):
            for a in range(len(nodes)):
                for k in range(d):
                    x[part, nodes[a], k] = space[part, a * d + k]


@compiled(small=True, allocates=False)
def follow(
    node: IntArray,
    X: FloatArray,
    edges: IntArray,
    x: FloatArray,
    rows: FloatArray,
    jumps: FloatArray,
) -> None:
    """Write what x (2, n, d) comes to along rows (N,) and edges (m, d): parts may nearly cancel."""
    d = X.shape[1]
    high, low = x[0], x[1]
    for r in range(len(node)):
        i, total, rest = node[r], 0.0, 0.0
        for k in range(d):
            a, a_rest = times(X[r, k], 0.0, high[i, k], low[i, k])
            total, rest = plus(total, rest, a, a_rest)
        rows[r] = total
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        for k in range(d):
            jumps[e, k], _ = plus(high[i, k], low[i, k], -high[j, k], -low[j, k])
