"""Orthogonal triangularization in pieces between which the deadline is looked at."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look

# Columns that are reduced between two looks.
PANEL = 64


def householder(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Q (d, r) and R (r, N) of A (d, N) = Q R, r = min(d, N), in place of A.

    By Householder's reflections, a panel of columns at a time: between panels there is a look at
    the deadline, which LAPACK's own function for all of them has not: it takes 1.3 s for 1,500
    columns of 5,000, and 17 s for 2,700 of 20,000. In panels that is 1.8 s and 22 s, at most .2 and
    1.2 s of them between two looks.
    """
    from scipy.linalg.lapack import dgeqrf, dormqr  # slow to load, and seldom needed

    d, n = A.shape
    r = min(d, n)
    panels = [(first, min(first + PANEL, r)) for first in range(0, r, PANEL)]
    taus = []
    for first, last in panels:
        look()
        A[first:, first:last], tau, _, _ = dgeqrf(A[first:, first:last])
        taus.append(tau)
        if last < n:
            rest = A[first:, last:]
            rest[:] = dormqr("L", "T", A[first:, first:last], tau, rest, PANEL * n)[0]
    Q = np.eye(d, r, order="F")
    for (first, last), tau in zip(reversed(panels), reversed(taus), strict=True):
        look()
        part = Q[first:, first:]
        part[:] = dormqr("L", "N", A[first:, first:last], tau, part, PANEL * n)[0]
    return Q, np.triu(A[:r])
