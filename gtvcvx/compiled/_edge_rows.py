"""What an edge and a node read and write, their rows of d numbers taken as vectors.

A compiler that goes through a row entry by entry must keep the order of loads and stores, because
it cannot know that head and tail are different nodes, and multiplies to find a row whose length it
does not know; here all entries are loaded before any is stored, several an instruction. The rows of
``z``, of shape (d, edges), belong to coordinates, so that what happens to an edge in between is
vectorized over edges. The twins are in the tests.

Rows of ``nodes`` are as in `gtvcvx.compiled._primal_dual`: extrapolated point, then balance. Arrays
are contiguous, and the dimension is the length of a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from verify._compiled import intrinsic

_DOUBLE = ir.DoubleType()
_ALIGNED = 8  # bytes: rows begin at any entry
_FUSED = ("contract",)  # product and sum may be one instruction


class Rows:
    """Loads and stores rows of d entries in the code of one intrinsic."""

    def __init__(self, context: Any, builder: Any, d: int) -> None:
        self._context, self._builder, self._d = context, builder, d
        self._vector = ir.VectorType(_DOUBLE, d)

    def array(self, kind: Any, value: Any) -> Any:
        """Return an argument that is an array, its rows one after the other."""
        assert kind.layout == "C", "rows are contiguous"
        return self._context.make_array(kind)(self._context, self._builder, value)

    def row(self, array: Any, number: Any, rows: int = 1, at: int = 0) -> Any:
        """Return where row `at` begins, of `rows` rows that lie side by side for each number."""
        builder, count = self._builder, ir.Constant(number.type, rows * self._d)
        first = ir.Constant(number.type, at * self._d)
        entry = builder.gep(array.data, [builder.add(builder.mul(number, count), first)])
        return builder.bitcast(entry, self._vector.as_pointer())

    def load(self, row: Any) -> Any:
        """Return the entries of a row."""
        loaded = self._builder.load(row)
        loaded.align = _ALIGNED
        return loaded

    def store(self, vector: Any, row: Any) -> None:
        """Write them."""
        self._builder.store(vector, row).align = _ALIGNED

    def all_of(self, scalar: Any) -> Any:
        """Return a row whose entries are all the same."""
        row = ir.Constant(self._vector, ir.Undefined)
        for k in range(self._d):
            row = self._builder.insert_element(row, scalar, self.index(k))
        return row

    def zeros(self) -> Any:
        """Return a row of zeros."""
        return self.all_of(ir.Constant(_DOUBLE, 0.0))

    def sum_of(self, vector: Any) -> Any:
        """Return what the entries of a row add up to."""
        total = self._builder.extract_element(vector, self.index(0))
        for k in range(1, self._d):
            entry = self._builder.extract_element(vector, self.index(k))
            total = self._builder.fadd(total, entry)
        return total

    def index(self, k: int) -> Any:
        """Return the number of an entry."""
        return ir.Constant(ir.IntType(32), k)

    def column(self, array: Any, number: Any) -> list[Any]:
        """Return where the entries are of a column of z."""
        builder = self._builder
        width = builder.extract_value(array.shape, 1)
        entries = [number]
        for _ in range(self._d - 1):
            entries.append(builder.add(entries[-1], width))
        return [builder.gep(array.data, [entry]) for entry in entries]


#: What an intrinsic writes: context, builder, signature and arguments.
Code = Callable[[Any, Any, Any, Any], Any]


@intrinsic
def begin_edge(
    typing: Any, dims: Any, z: Any, c: Any, u: Any, e: Any, nodes: Any, i: Any, j: Any, sigma: Any
) -> tuple[Any, Code]:
    """Write ``u[e] + sigma (x[i] - x[j])`` to column c of z; x is the first half of nodes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = Rows(context, builder, len(signature.args[0]))
        _, z, c, u, e, nodes, i, j, sigma = arguments
        points = rows.array(signature.args[5], nodes)
        head, tail = (rows.load(rows.row(points, node, 2)) for node in (i, j))
        flow = rows.load(rows.row(rows.array(signature.args[3], u), e))
        step = builder.fmul(rows.all_of(sigma), builder.fsub(head, tail))
        moved = builder.fadd(flow, step)
        for k, entry in enumerate(rows.column(rows.array(signature.args[1], z), c)):
            builder.store(builder.extract_element(moved, rows.index(k)), entry)
        return context.get_dummy_value()

    return types.void(dims, z, c, u, e, nodes, i, j, sigma), code


@intrinsic
def end_edges(
    typing: Any,
    dims: Any,
    count: Any,
    z: Any,
    u: Any,
    e: Any,
    nodes: Any,
    heads: Any,
    tails: Any,
    share: Any,
) -> tuple[Any, Code]:
    """Move u[e + c] by a share of the way to column c of z, and the balances of both ends along.

    For the columns before count, at least one. What the edges of a head add up to is kept, and not
    read again after each: that would wait for what was just stored. Heads are no edge's tail before
    the last of their own edges.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, rows = signature.args, Rows(context, builder, len(signature.args[0]))
        _, count, z, u, e, nodes, heads, tails, share = arguments
        z, u, nodes, heads, tails = (
            rows.array(kind, value)
            for kind, value in zip(
                (kinds[2], kinds[3], *kinds[5:8]), (z, u, nodes, heads, tails), strict=True
            )
        )

        def end_of(ends: Any, c: Any) -> Any:
            return builder.zext(builder.load(builder.gep(ends.data, [c])), count.type)

        first = end_of(heads, ir.Constant(count.type, 0))
        last_head = cgutils.alloca_once_value(builder, first)
        total = cgutils.alloca_once_value(builder, rows.load(rows.row(nodes, first, 2, 1)))
        with cgutils.for_range(builder, count) as loop:
            c, goal = loop.index, rows.zeros()
            for k, entry in enumerate(rows.column(z, c)):
                goal = builder.insert_element(goal, builder.load(entry), rows.index(k))
            flow = rows.row(u, builder.add(e, c))
            before = rows.load(flow)
            change = builder.fmul(rows.all_of(share), builder.fsub(goal, before))
            rows.store(builder.fadd(before, change), flow)
            number = end_of(heads, c)
            head, tail = (rows.row(nodes, node, 2, 1) for node in (number, end_of(tails, c)))
            same = builder.icmp_unsigned("==", number, builder.load(last_head))
            so_far = builder.select(same, builder.load(total), rows.load(head))
            sum_ = builder.fadd(so_far, change)
            builder.store(number, last_head)
            builder.store(sum_, total)
            rows.store(sum_, head)
            rows.store(builder.fsub(rows.load(tail), change), tail)
        return context.get_dummy_value()

    return types.void(dims, count, z, u, e, nodes, heads, tails, share), code


@intrinsic
def move_node(
    typing: Any,
    dims: Any,
    w: Any,
    nodes: Any,
    i: Any,
    matrix: Any,
    offset: Any,
    tau: Any,
    relaxation: Any,
) -> tuple[Any, Code]:
    """Move node i by its affine prox, as `node_block` does; return what it moved, squared.

    Nodes (copies, n, 2 d), i without a sign; matrices are symmetric, or diagonals (n, d).
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, d = signature.args, len(signature.args[0])
        rows = Rows(context, builder, d)
        i, tau, relaxation = arguments[3], arguments[6], arguments[7]
        w, nodes, matrix, offset = (rows.array(kinds[k], arguments[k]) for k in (1, 2, 4, 5))
        n, copies = (builder.extract_value(nodes.shape, k) for k in (1, 0))
        one = ir.Constant(copies.type, 1)

        def times(a: Any, b: Any) -> Any:
            return builder.fmul(a, b, flags=_FUSED)

        def plus(a: Any, b: Any) -> Any:
            return builder.fadd(a, b, flags=_FUSED)

        def each_other_copy() -> Any:
            return cgutils.for_range_slice(builder, one, copies, one)

        def of_copy(copy: Any, at: int) -> Any:
            return rows.row(nodes, builder.add(builder.mul(copy, n), i), 2, at)

        balance = cgutils.alloca_once_value(builder, rows.load(rows.row(nodes, i, 2, 1)))
        with each_other_copy() as (copy, _):
            more = rows.load(of_copy(copy, 1))
            builder.store(builder.fadd(builder.load(balance), more), balance)
        point = rows.row(w, i)
        before = rows.load(point)
        step = times(rows.all_of(tau), builder.load(balance))
        v = builder.fsub(before, step, flags=_FUSED)
        goal = rows.load(rows.row(offset, i))
        if kinds[4].ndim == 2:
            goal = plus(goal, times(rows.load(rows.row(matrix, i)), v))
        else:
            for k in range(d):
                entry = rows.all_of(builder.extract_element(v, rows.index(k)))
                goal = plus(goal, times(rows.load(rows.row(matrix, i, d, k)), entry))
        change = builder.fsub(goal, before)
        extrapolated = builder.fadd(goal, change)
        rows.store(extrapolated, rows.row(nodes, i, 2))
        with each_other_copy() as (copy, _):
            rows.store(extrapolated, of_copy(copy, 0))
        rows.store(plus(before, times(rows.all_of(relaxation), change)), point)
        return rows.sum_of(times(change, change))

    return types.float64(dims, w, nodes, i, matrix, offset, tau, relaxation), code
