"""Compiled passes over the graph that is left as nodes are eliminated."""

from __future__ import annotations

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import compiled


@compiled(small=True, allocates=False)
def eliminate(
    later: IntArray,
    starts: IntArray,
    until: int,
    rest: IntArray,
    rest_starts: IntArray,
    first: IntArray,
    parent: IntArray,
    children: IntArray,
    sibling: IntArray,
    seen: IntArray,
    at: IntArray,
) -> bool:
    """Eliminate columns one after the other, and find out which ones each has an effect on.

    Those that follow each other and have an effect on the same ones are a front. It stops before a
    column for which `rest` may be too short, and says False then; called again, it goes on.

    Parameters
    ----------
    later, starts : ndarray, shapes (m,) and (n + 1,)
        Neighbours of each column that are eliminated later.
    until : int
        Column to stop at.
    rest, rest_starts : ndarray, shapes (any,) and (n + 1,)
        What each front has an effect on, and where that begins: rest_starts[0] is 0.
    first : ndarray, shape (n,)
        The first column of each front.
    parent : ndarray, shape (n,)
        The first column that each front has an effect on; -1 if there is none.
    children, sibling, seen : ndarray, shape (n,)
        For what is under way: -1 at first.
    at : ndarray, shape (3,)
        The next column, how many fronts there are, and the squares of the numbers of columns that
        each has an effect on, added up.
    """
    while at[0] < until:
        column, front = at[0], at[1] - 1
        begin, room = rest_starts[front + 1], starts[column + 1] - starts[column]
        child = children[column]
        while child >= 0:
            room += rest_starts[child + 1] - rest_starts[child]
            child = sibling[child]
        if begin + room > len(rest):
            return False
        seen[column] = column
        end = _unseen(later, starts[column], starts[column + 1], column, seen, rest, begin)
        child = children[column]
        while child >= 0:
            first_one, last = rest_starts[child], rest_starts[child + 1]
            end = _unseen(rest, first_one, last, column, seen, rest, end)
            child = sibling[child]
        least = len(seen)
        for k in range(begin, end):
            least = min(least, rest[k])
        size = end - begin
        if front >= 0 and parent[front] == column and begin - rest_starts[front] == size + 1:
            # All that the column before has an effect on, but for this one.
            start = rest_starts[front]
            for k in range(size):
                rest[start + k] = rest[begin + k]
            rest_starts[front + 1] = start + size
        else:
            front += 1
            at[1] += 1
            first[front] = column
            rest_starts[front + 1] = end
        parent[front] = least if size else -1
        if size:
            sibling[front] = children[least]
            children[least] = front
        at[0] += 1
        at[2] += size * size
    return True


@compiled(small=True, allocates=False, inner=True)
def _unseen(
    columns: IntArray,
    start: int,
    stop: int,
    column: int,
    seen: IntArray,
    rest: IntArray,
    end: int,
) -> int:
    """Write those of some columns that one has not seen yet behind others; return the new end."""
    for k in range(start, stop):
        other = columns[k]
        if seen[other] != column:
            seen[other] = column
            rest[end] = other
            end += 1
    return end


@compiled(small=True, allocates=False)
def join(
    first: IntArray,
    sizes: IntArray,
    parent: IntArray,
    d: int,
    prices: FloatArray,
    into: IntArray,
    pivots: IntArray,
    head: IntArray,
    following: IntArray,
) -> None:
    """Join fronts with their parents, from the leaves on, where that is no more expensive.

    Parameters
    ----------
    first, sizes, parent : ndarray, shapes (k + 1,), (k,) and (k,)
        The first column of each front, on how many later ones it has an effect, and the front that
        this is added to: -1 for none. The last entry of `first` is n.
    d : int
        Of the blocks.
    prices : ndarray, shape (3,)
        Of a front, an entry, and a multiplication.
    into : ndarray, shape (k,)
        Set to the front that each has gone into: itself, if it stays.
    pivots : ndarray, shape (k,)
        Set to how many columns each eliminates.
    head, following : ndarray, shape (k,)
        Set to the fronts of which each eliminates the columns: the first, and the one after each.
    """
    count = len(sizes)
    for front in range(count):
        into[front] = head[front] = front
        following[front] = -1
        pivots[front] = first[front + 1] - first[front]
    for front in range(count):
        into_it = parent[front]
        if into_it < 0:
            continue
        few, many = pivots[front], pivots[into_it]
        total = many + sizes[into_it]
        both = _price((few + many) * d, (few + total) * d, prices)
        apart = _price(few * d, (few + sizes[front]) * d, prices)
        if both <= apart + _price(many * d, total * d, prices):
            into[front] = into_it
            pivots[into_it] += few
            # The last one of a front's own list is itself.
            following[front] = head[into_it]
            head[into_it] = head[front]
    for front in range(count - 1, -1, -1):
        into[front] = into[into[front]]


@compiled(small=True, allocates=False, inner=True)
def _price(pivots: int, size: int, prices: FloatArray) -> float:
    """Return what a front takes: see `FrontPrices`."""
    p, s = float(pivots), float(size)
    rest = s - p
    entries, multiplications = (s * s + rest * rest) / 2.0, (s * s * s - rest * rest * rest) / 6.0
    return prices[0] + prices[1] * entries + prices[2] * multiplications


@compiled(small=True, allocates=False)
def arrange(
    first: IntArray,
    parent: IntArray,
    into: IntArray,
    head: IntArray,
    following: IntArray,
    child: IntArray,
    sibling: IntArray,
    order: IntArray,
    number: IntArray,
    time: IntArray,
) -> int:
    """Order fronts such that all descendants of one come right before it; return how many.

    Parameters
    ----------
    first, parent, into, head, following
        As in `join`.
    child, sibling : ndarray, shapes (k + 1,) and (k,)
        For what is under way: `child` is -1 at first.
    order : ndarray, shape (k,)
        Set to the fronts that are left, as far as there are.
    number : ndarray, shape (k,)
        Set to the place there of the one that each front has gone into.
    time : ndarray, shape (n,)
        Set to when each column is eliminated.
    """
    count = len(into)
    kept = 0
    for front in range(count - 1, -1, -1):
        if into[front] == front:
            kept += 1
            # Behind all of them: the roots.
            above = into[parent[front]] if parent[front] >= 0 else count
            sibling[front] = child[above]
            child[above] = front
    # `number` is the stack while fronts are taken, parents before their children, from the end on.
    height, place = 0, kept
    front = child[count]
    while front >= 0:
        number[height] = front
        height += 1
        front = sibling[front]
    while height:
        height -= 1
        front = number[height]
        place -= 1
        order[place] = front
        front = child[front]
        while front >= 0:
            number[height] = front
            height += 1
            front = sibling[front]
    now = 0
    for place in range(kept):
        number[order[place]] = place
        part = head[order[place]]
        while part >= 0:
            for column in range(first[part], first[part + 1]):
                time[column] = now
                now += 1
            part = following[part]
    for front in range(count):
        number[front] = number[into[front]]
    return kept
