"""Where conjugates are finite, beside few rows whose slopes are not bounded.

Squared errors with an l1 term, say: their rows let s_i move freely in few directions, and every
coordinate has a generator, projected off these. Projected ones would be as many matrices as there
are nodes; so bases of the free directions are kept, and the coordinates as they are.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx.losses.batched._base import DualDomain, RangeRows
from gtvcvx.losses.batched._thin import pays
from gtvcvx.losses.batched.composite._domain import BESIDE, bounded, ends
from gtvcvx.losses.batched.composite._null_space import beside
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.node._segments import images, weighted

# Squared lengths of projected coordinates are one less a sum; what is below this is taken from the
# projection itself, since the difference has lost digits.
CLOSE = 1e-4


def fits(parts: Parts) -> bool:
    """Say whether few rows, and nothing else, let s_i move freely, and matrices would be large.

    With none of those, but coordinates that are bounded: hinges with an l1 term.
    """
    low, high = parts.intervals
    free = np.isinf(low) & np.isinf(high) | ~np.isnan(parts.totals)[:, None]
    rows, coordinates = bounded(parts)
    unbounded = int(np.count_nonzero(~rows))
    some = unbounded > 0 or bool(coordinates.any())
    return some and not free.any() and pays(unbounded, *free.shape)


def thin_domain(parts: Parts) -> tuple[DualDomain, BoolArray] | None:
    """Return what `dual_domain` does, as rows and coordinates."""
    rows, coordinates = bounded(parts)
    basis = beside(parts, ~rows)
    node, j = np.nonzero(coordinates)
    owner = np.concatenate([parts.owner[rows], node])
    own = _projected(basis, parts.X[rows], parts.owner[rows])
    squares = np.concatenate([np.sum(own**2, axis=1), _squares(basis, coordinates.shape)[node, j]])
    original = np.concatenate([np.linalg.norm(parts.X[rows], axis=1), np.ones(len(node))])
    chosen = np.sqrt(squares) > BESIDE * original
    if not chosen.any():
        return None
    single = sp.csr_array((np.ones(len(j)), j, np.arange(len(j) + 1)), (len(j), own.shape[1]))
    vectors = sp.vstack([sp.csr_array(own), single], format="csr")[np.flatnonzero(chosen)]
    low, high, scale = (values[chosen] for values in ends(parts, rows, coordinates))
    return DualDomain(basis, owner[chosen], vectors, low, high, scale, squares[chosen]), chosen


def of_free_rows(parts: Parts, s: FloatArray, a: FloatArray) -> None:
    """Write multipliers of the rows that have none yet, NaN, so that all rows give s (k, d).

    As nearly as they can: by least squares, node by node.
    """
    free = np.isnan(a)
    rest = s - weighted(parts.indptr, np.where(free, 0.0, a), parts.X)
    along = images(parts.X, parts.indptr, rest)
    for first, end in pairwise(parts.indptr):
        some = first + np.flatnonzero(free[first:end])
        X = parts.X[some]
        a[some] = np.linalg.lstsq(X @ X.T, along[some], rcond=None)[0]


def _of(basis: RangeRows, i: int) -> FloatArray:
    """Return the rows (r, d) of a node."""
    return basis.rows[basis.indptr[i] : basis.indptr[i + 1]]


def _projected(basis: RangeRows, X: FloatArray, owner: IntArray) -> FloatArray:
    """Return rows (q, d) of some nodes off the free directions of these."""
    out = X.copy()
    for i in np.unique(owner):
        V, at = _of(basis, i), owner == i
        out[at] -= (X[at] @ V.T) @ V
    return out


def _squares(basis: RangeRows, shape: tuple[int, int]) -> FloatArray:
    """Return the squared lengths (k, d) of the coordinates' projections."""
    out = np.ones(shape)
    for i in range(shape[0]):
        V = _of(basis, i)
        out[i] -= np.sum(V**2, axis=0)
        for j in np.flatnonzero(out[i] < CLOSE):
            rest = -(V[:, j] @ V)
            rest[j] += 1.0
            out[i, j] = np.sum(rest**2)
    return out
