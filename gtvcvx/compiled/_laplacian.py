"""Products with the Laplacian of a graph, for conjugate gradients; the twin is in the tests.

Rows of d numbers are taken as vectors, as in `gtvcvx.compiled._edge_rows`, and what a head has been
told so far is kept, not read again after each edge: that would wait for what was just stored. An
iteration with 48,000 edges takes 54 microseconds instead of 103 at d = 1, 94 instead of 166 at 2.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, UInt32Array
from gtvcvx.compiled import FAST, Dims, compiled
from gtvcvx.compiled._edge_rows import Code, Rows
from verify._compiled import intrinsic


@intrinsic
def _conduct(
    typing: Any,
    dims: Any,
    i: Any,
    first: Any,
    last: Any,
    x: Any,
    out: Any,
    tails: Any,
    conductance: Any,
    normals: Any,
) -> tuple[Any, Code]:
    """Add what edges first .. last - 1, of head i, conduct of x (n, d) to both ends' rows of out.

    That is ``c_e (I - a_e a_e^T) (x_i - x_j)``, with normals a_e (m, d), which may be None. No edge
    leads from a head to itself.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, rows = signature.args, Rows(context, builder, len(signature.args[0]))
        _, i, first, last, *arrays, normals = arguments
        x, out, tails, conductance = (
            rows.array(kind, value) for kind, value in zip(kinds[4:8], arrays, strict=True)
        )
        normals = None if kinds[8] == types.none else rows.array(kinds[8], normals)
        own = rows.load(rows.row(x, i))
        total = cgutils.alloca_once_value(builder, rows.zeros())
        with cgutils.for_range_slice(builder, first, last, first.type(1), first.type) as (e, _):
            tail = builder.zext(builder.load(builder.gep(tails.data, [e])), first.type)
            step = builder.fsub(own, rows.load(rows.row(x, tail)))
            if normals is not None:
                normal = rows.load(rows.row(normals, e))
                along = rows.sum_of(builder.fmul(normal, step))
                step = builder.fsub(step, builder.fmul(rows.all_of(along), normal))
            conducted = builder.load(builder.gep(conductance.data, [e]))
            step = builder.fmul(rows.all_of(conducted), step)
            builder.store(builder.fadd(builder.load(total), step), total)
            told = rows.row(out, tail)
            rows.store(builder.fsub(rows.load(told), step), told)
        told = rows.row(out, i)
        rows.store(builder.fadd(rows.load(told), builder.load(total)), told)
        return context.get_dummy_value()

    return types.void(dims, i, first, last, x, out, tails, conductance, normals), code


@compiled(fastmath=FAST, allocates=False, inner=True)
def _conduct_wide(
    dims: Dims,
    x: FloatArray,
    out: FloatArray,
    difference: FloatArray,
    turned: BoolArray | None,
    starts: IntArray,
    tails: UInt32Array,
    conductance: FloatArray,
    normals: FloatArray | None,
) -> None:
    """Do what `_conduct` does for all heads, in high dimension: an edge is a loop of its own."""
    n, d = len(x), len(dims)
    for i in range(n):
        for e in range(starts[i], starts[i + 1]):
            j, c = tails[e], conductance[e]
            if normals is not None and turned is not None and turned[e]:
                along = 0.0
                for k in range(d):
                    difference[k] = x[i, k] - x[j, k]
                    along += normals[e, k] * difference[k]
                for k in range(d):
                    step = c * (difference[k] - along * normals[e, k])
                    out[i, k] += step
                    out[j, k] -= step
                continue
            for k in range(d):
                step = c * (x[i, k] - x[j, k])
                out[i, k] += step
                out[j, k] -= step


@compiled(fastmath=FAST, allocates=False, inner=True)
def laplacian(
    dims: Dims,
    x: FloatArray,
    out: FloatArray,
    difference: FloatArray,
    turned: BoolArray | None,
    starts: IntArray,
    tails: UInt32Array,
    conductance: FloatArray,
    allowed: FloatArray | None,
    normals: FloatArray | None,
) -> None:
    """Write ``D^T C R D x`` to out (n, d), or ``D^T C (I - a a^T) D x`` with normals a_e (m, d)."""
    n, d = len(x), len(dims)
    for i in range(n):
        for k in range(d):
            out[i, k] = 0.0
    if allowed is None:
        # The compiler leaves out the branch that is not taken.
        if difference.ndim == 2:
            for i in range(n):
                first, last = starts[i], starts[i + 1]
                _conduct(dims, i, first, last, x, out, tails, conductance, normals)
        else:
            _conduct_wide(dims, x, out, difference, turned, starts, tails, conductance, normals)
    else:
        room = difference.reshape(d)
        for i in range(n):
            for e in range(starts[i], starts[i + 1]):
                j, c = tails[e], conductance[e]
                for k in range(d):
                    room[k] = c * (x[i, k] - x[j, k])
                for k in range(d):
                    step = 0.0
                    for q in range(d):
                        step += allowed[k, q] * room[q]
                    out[i, k] += step
                    out[j, k] -= step
