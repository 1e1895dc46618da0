r"""Residuals of rows as if in twice the precision, rounded once.

``x^T w - y`` of data far from zero is a small difference of large numbers: 1985 times a slope less
an income loses seven digits that a loss of the difference needs. What each product and each sum
loses is a double itself, found by a few more operations, and is added up beside them [1]_:

.. math:: |r - (x^T w - y)| \le u |x^T w - y| + \gamma_{d + 1}^2 (|x|^T |w| + |y|),

with u half a unit in the last place and gamma_k = k u / (1 - k u).

References
----------
.. [1] T. Ogita, S. M. Rump, S. Oishi, "Accurate sum and dot product", SIAM J. Sci. Comput. 26,
   2005, Algorithm 5.3.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, Records
from gtvcvx.compiled import compiled
from gtvcvx.losses.node._scalar import HUBER, KINK, PSEUDO_HUBER, SQUARED

#: Kinds of rows that are functions of the residual; of others it is the prediction that counts.
OF_RESIDUALS = np.array([SQUARED, HUBER, PSEUDO_HUBER, KINK])
# Half of the digits of a double: products of such halves are exact.
SPLIT = 2.0**27 + 1.0


class Centred(NamedTuple):
    """Rows as functions of what `residuals` gives."""

    rows: Records  # (N,), whose targets are zero where residuals count
    targets: FloatArray  # (N,), what predictions lose to be residuals, zero where they count

    @staticmethod
    def of(rows: Records) -> Centred:
        """Return the same functions as the rows (N,) are of predictions."""
        out, counts = rows.copy(), np.isin(rows["kind"], OF_RESIDUALS)
        out["y"][counts] = 0.0
        return Centred(out, np.where(counts, rows["y"], 0.0))

    def at(self, chosen: IntArray | slice) -> Centred:
        """Return some of the rows."""
        return Centred(self.rows[chosen], self.targets[chosen])


def residuals(X: FloatArray, targets: FloatArray, indptr: IntArray, w: FloatArray) -> FloatArray:
    """Return ``x^T w - y`` of all rows at w (k, d), for targets (N,) of `Centred`: (N,)."""
    out = -targets
    add_products(X, indptr, np.ascontiguousarray(w), out)
    return out


@compiled(allocates=False, small=True)
def add_products(X: FloatArray, indptr: IntArray, w: FloatArray, out: FloatArray) -> None:
    """Add <x_r, w_i> to out (N,), for w (k, d)."""
    d = X.shape[1]
    for i in range(len(indptr) - 1):
        for r in range(indptr[i], indptr[i + 1]):
            start = out[r]
            total, rest = start, 0.0
            for j in range(d):
                x, y = X[r, j], w[i, j]
                product = x * y
                # Veltkamp's halves and Dekker's product: the error of the product.
                big = SPLIT * x
                x_high = big - (big - x)
                big = SPLIT * y
                y_high = big - (big - y)
                x_low, y_low = x - x_high, y - y_high
                error = x_low * y_low - (
                    ((product - x_high * y_high) - x_low * y_high) - x_high * y_low
                )
                # Knuth's sum: the error of the sum.
                after = total + product
                part = after - total
                error += (total - (after - part)) + (product - part)
                total, rest = after, rest + error
            total += rest
            if not math.isfinite(total):  # beyond what can be split
                total = start
                for j in range(d):
                    total += X[r, j] * w[i, j]
            out[r] = total
