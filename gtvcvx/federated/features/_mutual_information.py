"""How much shared features tell about a private one, if all are jointly Gaussian."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import finite_array
from gtvcvx.federated.features._protocol import rows, standardized


def gaussian_mutual_information(private: ArrayLike, shared: ArrayLike) -> float:
    r"""Mutual information between a private feature and the shared vector, in nats.

    For jointly Gaussian s and z it is :math:`I(s; z) = -\frac{1}{2} \log(1 - R^2)`, with R^2 the
    coefficient of determination of the linear regression of s on z, here that of the sample.
    Otherwise it only measures linear dependence: s may be a function of z and this be zero.

    Parameters
    ----------
    private : array_like of shape (m,)
    shared : array_like of shape (m, d)
        Released rows, m > d + 1.

    Returns
    -------
    float
        >= 0; +inf where s is a linear function of z up to rounding.

    Raises
    ------
    ValueError
        There are so few rows that any private feature would fit, or it is constant.

    Notes
    -----
    Samples overestimate: of independent features R^2 is d/(m - 1) on average.
    """
    z = rows(shared)
    m, d = z.shape
    s = finite_array(private, "private", 1)
    if len(s) != m:
        raise ValueError(f"private: {m} numbers are expected, one a row, got {len(s)}")
    if m <= d + 1:
        raise ValueError(f"shared: more than d + 1 = {d + 1} rows are expected, got {m}")
    secret, _, deviation = standardized(s[:, None])
    if deviation[0] == 0:
        raise ValueError("private: it is constant")
    basis, sizes, _ = np.linalg.svd(standardized(z)[0], full_matrices=False)
    rounding = max(m, d) * np.finfo(float).eps
    kept = basis[:, sizes > rounding * max(sizes[0], 1.0)]
    left = secret[:, 0] - kept @ (kept.T @ secret[:, 0])
    unexplained = float(left @ left) / m
    # Squares of rounding: the rest of a regression that fits exactly.
    if unexplained <= rounding**2:
        return float("inf")
    return max(0.0, -0.5 * float(np.log(unexplained)))
