"""Fixed grids for u and r, chosen for the whole of a problem, which may be in pieces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify.certificates.arrays import _limbs as limbs
from verify.instance._instance import Instance

BITS = 60  # of the largest entry on a grid: one word, and room for corrections
MARGIN = 8  # bits above what is expected of the residuals
ROUNDING = 2.0**-50  # of the summands of a residual, which it is left with


class Rows:
    """The data rows of a term, as odd mantissas times powers of two.

    Attributes
    ----------
    mantissa, exponent : ndarray of int, shape (N, d)
        The entries; `k` is the least such that all are integers in units 2^-k.
    """

    def __init__(self, x: FloatArray) -> None:
        self.mantissa = np.empty(x.shape, dtype=np.int64)
        self.exponent = np.empty(x.shape, dtype=np.int64)
        limbs.split(np.ascontiguousarray(x).ravel(), self.mantissa.ravel(), self.exponent.ravel())
        self.k = int(max(0, -self.exponent.min(initial=0)))

    def integers(self, b: int, k: int) -> np.ndarray:
        """Return row b in units 2^-k, at least as small as its own, as Python integers."""
        pairs = zip(self.mantissa[b].tolist(), self.exponent[b].tolist(), strict=True)
        return np.array([m << (e + k) for m, e in pairs], dtype=object)


def rows_of(inst: Instance) -> list[Rows | None]:
    """Return the data rows of each term; None for identity blocks."""
    return [None if t.x is None else Rows(t.x) for t in inst.terms]


class Sizes(NamedTuple):
    """What grids depend on. Those of a whole are the largest and the sums of its pieces'.

    Attributes
    ----------
    top_u, top_r : float and ndarray, shape (terms,)
        The largest entries.
    k_x : ndarray, shape (terms,)
        That of the data rows of each term, -1 for identity blocks.
    summand : float
        The largest summand of a residual.
    missing, nodes : float
        Sums of the residuals' entries and of the nodes.
    """

    top_u: float
    top_r: FloatArray
    k_x: FloatArray
    summand: float
    missing: float
    nodes: float


def sizes_of(
    inst: Instance,
    rows: list[Rows | None],
    u: FloatArray,
    r: list[FloatArray],
    own: BoolArray | None = None,
) -> Sizes:
    """Measure a dual point in floats; only `own` nodes (n,) have residuals."""
    rho = inst.divergence(u)
    summand = np.abs(rho).max(initial=0.0)
    for term, v in zip(inst.terms, r, strict=True):
        image = term.pull(v)
        summand = max(summand, float(np.abs(image).max(initial=0.0)))
        rho = rho + image
    if own is not None:
        rho = rho[own]
    return Sizes(
        top_u=float(np.abs(u).max(initial=0.0)),
        top_r=np.array([np.abs(v).max(initial=0.0) for v in r]),
        k_x=np.array([-1.0 if x is None else x.k for x in rows]),
        summand=float(summand),
        missing=float(np.abs(rho).sum()),
        nodes=float(len(rho)),
    )


class Grid(NamedTuple):
    """The grids of a dual point.

    Attributes
    ----------
    k_u : int
        Flows are integers in units 2^-k_u.
    k_r : list of int
        Multipliers are, per term, in units 2^-k_r[t].
    k_x : list of int
        Data rows are in units 2^-k_x[t]; 0 for identity blocks.
    k : int
        All products of data and multipliers, and the flow, are multiples of 2^-k.
    words : int
        Words of the residuals in units 2^-k, and of all their sums along a tree.
    """

    k_u: int
    k_r: list[int]
    k_x: list[int]
    k: int
    words: int

    @staticmethod
    def of(sizes: Sizes) -> Grid:
        """Return grids for a point of such sizes."""
        k_u = exponent_of(sizes.top_u)
        k_r = [exponent_of(top) for top in sizes.top_r.tolist()]
        if (sizes.k_x < 0).all():
            # One grid for all: identity blocks then take what arrives in whole units.
            tops = [sizes.top_u, *sizes.top_r.tolist()]
            k_u = min((exponent_of(top) for top in tops if top > 0), default=0)
            k_r = [k_u] * len(k_r)
        k_x = [max(int(k), 0) for k in sizes.k_x.tolist()]
        k = max([k_u, *(a + b for a, b in zip(k_r, k_x, strict=True))])
        # Rounding has left residuals: some units of the last place of the largest summands.
        expected = sizes.missing + sizes.summand * sizes.nodes * ROUNDING
        bits = k + (int(np.frexp(expected)[1]) if expected > 0 else 0) + MARGIN
        return Grid(k_u, k_r, k_x, k, max(1, bits // 64 + 1))

    def some(self, terms: list[int]) -> Grid:
        """Return the grids of a piece that has only some of the terms."""
        return self._replace(k_r=[self.k_r[t] for t in terms], k_x=[self.k_x[t] for t in terms])


def exponent_of(top: float) -> int:
    """Return the k of the grid 2^-k on which a number has `BITS` bits."""
    return max(0, BITS - int(np.frexp(top)[1])) if top > 0 else 0
