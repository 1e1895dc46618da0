"""The witness of a quadratic penalty: a root of Q, its null space, and x with Q x near u.

On the range of Q the kernel bounds u^T Q^+ u by x^T (u + s) + ||s||^2 / mu, s = u - Q x, for any x:
so x is Q^+ u on a grid, short, and the bound is too large by less than anybody sees. Where u is
rational, and a gap of zero may be hoped for, x is exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify.instance import _integers as integers
from verify.instance._instance import Instance
from verify.instance._integers import Exact
from verify.instance._penalties import QuadraticPenalty
from verify.instance._roots import Semidefinite, texts

#: x is rounded to 2^-80 of its largest entry: the bound loses 2^-160 of its scale, times the
#: condition of Q.
_BITS = 80
#: Corrections by what is left of u: floats leave 2^-50 times the condition of Q each time.
_ROUNDS = 3
#: Share of the conjugate that may be lost to the grid: far below any tolerance of floats.
_LOSS = 1e-13
#: Up to this dimension x is made exact where floats are not enough, which takes an inverse of Q
#: in long rationals.
_SMALL = 40


def quadratic_witness(inst: Instance, u: Exact, k: int, exact: bool) -> dict[str, Any] | None:
    """Return `quadratic` of SCHEMA.md for a flow in units 2^-k; None for other penalties.

    Parameters
    ----------
    inst : Instance
        The problem.
    u : Exact
        (m, d) flow in the range of Q, integers or Fractions in units 2^-k.
    k : int
        Its exponent.
    exact : bool
        Whether Q x = u is wanted with equality.
    """
    penalty = inst.penalty
    if not isinstance(penalty, QuadraticPenalty) or penalty.proof is None:
        return None
    proof = penalty.proof
    x = None if exact else _rounded(proof, inst.cap, u, k)
    if x is None:
        x = _solved(proof, u, k)
    points, k_x = x
    return {
        "root": texts(proof.root),
        "null_space": texts(proof.null_space),
        "x": integers.texts(points, k_x),
    }


def _solved(proof: Semidefinite, u: Exact, k: int) -> tuple[Exact, int]:
    """Return the x with Q x = u that is zero where the sweep has no pivot."""
    swept, pivots = proof.swept
    inverse = np.array([[swept[i][j] for j in pivots] for i in pivots], dtype=object)
    x = np.full(u.shape, Fraction(0), dtype=object)
    if pivots and len(u):
        x[:, pivots] = u[:, pivots] @ inverse
    return x / (1 << k), 0


def _rounded(proof: Semidefinite, caps: FloatArray, u: Exact, k: int) -> tuple[Exact, int] | None:
    """Return x on a grid, None where floats do not come close enough to Q^+ u."""
    q = np.array([[float(v) for v in row] for row in proof.matrix])
    rows, k_null = proof.null_space
    null = integers.to_floats(np.array(rows, dtype=object).reshape(-1, len(q)), k_null)
    units = np.exp2(np.round(np.log2(np.maximum(np.abs(q).max(axis=1), 1e-300)) / 2))
    with np.errstate(all="ignore"):
        inverse = np.linalg.pinv((q + null.T @ null) / units / units[:, None], hermitian=True)
        inverse = inverse / units / units[:, None]
    whole, k_q = integers.dyadic(q)
    flow = integers.to_floats(u, k)
    x = flow @ inverse
    if not np.isfinite(x).all():
        return None
    k_x = integers.grid_exponent(x, _BITS)
    grid, fine = integers.to_grid(x, k_x), max(k, k_x + k_q)
    for _ in range(_ROUNDS):
        rest = u * (1 << (fine - k)) - (grid @ whole) * (1 << (fine - k_x - k_q))
        left = integers.to_floats(rest, fine)
        scale = np.where(caps > 0, caps, 1.0)
        lost = ((left**2).sum(axis=1) / scale).sum() / float(proof.margin)
        if lost <= _LOSS * np.abs((flow * x).sum(axis=1) / scale).sum():
            return grid, k_x
        change = left @ inverse
        if not np.isfinite(change).all():
            break
        grid = grid + integers.to_grid(change, k_x)
    return (grid, k_x) if len(q) > _SMALL else None
