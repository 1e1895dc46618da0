"""Fronts by sets and lists, for comparison with compiled ones."""

import numpy as np


def filled(place, edges):
    """Columns that each column of the factor has an effect on."""
    rest = [set() for _ in place]
    for i, j in np.sort(place[edges], axis=1).tolist():
        rest[i].add(j)
    for columns in rest:
        if columns:
            rest[min(columns)] |= columns - {min(columns)}
    return rest


def fronts(columns, d, prices):
    """Pivots, rest and parent of each front, all descendants of one right before it."""
    return _ordered(*_joined(*_fundamental(columns), d, prices))


def _fundamental(columns):
    pivots, rests, front_of = [], [], []
    for column, rest in enumerate(columns):
        before = columns[column - 1] if column else set()
        if column in before and len(before) == len(rest) + 1:
            pivots[-1].append(column)
            rests[-1] = rest
        else:
            pivots.append([column])
            rests.append(rest)
        front_of.append(len(pivots) - 1)
    return pivots, rests, [front_of[min(rest)] if rest else -1 for rest in rests]


def _price(pivots, size, prices):
    rest = size - pivots
    entries, multiplications = (size**2 + rest**2) / 2.0, (size**3 - rest**3) / 6.0
    return prices.front + prices.entry * entries + prices.multiplication * multiplications


def _joined(pivots, rests, parents, d, prices):
    into = list(range(len(parents)))
    for front, parent in enumerate(parents):
        if parent < 0:
            continue
        few, many = len(pivots[front]), len(pivots[parent])
        total = many + len(rests[parent])
        both = _price((few + many) * d, (few + total) * d, prices)
        apart = _price(few * d, (few + len(rests[front])) * d, prices)
        if both <= apart + _price(many * d, total * d, prices):
            into[front] = parent
            pivots[parent] = pivots[front] + pivots[parent]
    for front in reversed(range(len(into))):
        into[front] = into[into[front]]
    kept = [front for front, target in enumerate(into) if front == target]
    number = {front: k for k, front in enumerate(kept)}
    above = [parents[front] for front in kept]
    return (
        [pivots[front] for front in kept],
        [rests[front] for front in kept],
        [-1 if p < 0 else number[into[p]] for p in above],
    )


def _ordered(pivots, rests, parents):
    children, stack = [[] for _ in parents], []
    for front, parent in enumerate(parents):
        (stack if parent < 0 else children[parent]).append(front)
    order = []
    while stack:
        order.append(stack.pop())
        stack.extend(children[order[-1]])
    order.reverse()
    number = {front: k for k, front in enumerate(order)}
    return (
        [pivots[front] for front in order],
        [rests[front] for front in order],
        [number.get(parents[front], -1) for front in order],
    )


def plan(place, edges, d, prices):
    """All that a plan has, as lists: what is ragged is a list of lists."""
    pivots, rests, parents = fronts(filled(place, edges), d, prices)
    order = [column for front in pivots for column in front]
    time = {column: t for t, column in enumerate(order)}
    when = [time[column] for column in place.tolist()]
    later = [sorted(time[column] for column in rest) for rest in rests]
    rows = [[time[c] for c in front] + rest for front, rest in zip(pivots, later, strict=True)]
    children = [[] for _ in parents]
    for front in reversed(range(len(parents))):
        if parents[front] >= 0:
            children[parents[front]].append(front)
    owner = [front for front, columns in enumerate(pivots) for _ in columns]
    tables = [[] for _ in parents]
    for e, (i, j) in enumerate(edges.tolist()):
        first, second = sorted((when[i], when[j]))
        row = rows[owner[first]]
        tables[owner[first]].append([e, row.index(first), row.index(second)])
    waiting, most = 0, 0
    for front, rest in enumerate(later):
        waiting += len(rest) ** 2 - sum(len(later[child]) ** 2 for child in children[front])
        most = max(most, waiting)
    node = {t: i for i, t in enumerate(when)}
    return {
        "pivots": [len(front) for front in pivots],
        "nodes": [[node[t] for t in row] for row in rows],
        "children": children,
        "places": [
            [rows[parent].index(t) for t in rest]
            for rest, parent in zip(later, parents, strict=True)
        ],
        "edges": tables,
        "waiting": most,
        "largest": max(len(row) for row in rows),
    }
