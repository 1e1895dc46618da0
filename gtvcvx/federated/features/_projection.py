"""Features without the direction that is correlated with a private one."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array
from gtvcvx.federated.features._protocol import fitted_columns, rows, standardized

# A column of which less than this share of its deviation is left is made constant: what is left is
# rounding, which a model that standardizes its input would make large again.
_LEFT_OVER = 1e-9
# Rounding of a number minus its mean, in units of its last place: a few operations on each.
_PLACES = 64


class PrivateProjection:
    r"""Projects out the direction correlated with a private feature [Notes, 13].

    With D the deviations of the columns and :math:`c_j` the correlation of column j with the
    private feature, both on the local data set,

    .. math:: \Phi(x) = \bar x + D (I - c c^T / \|c\|^2) D^{-1} (x - \bar x)

    and no feature of :math:`\Phi(x)` is correlated with it there. Directions are those of
    standardized columns, so that units do not matter; for columns of deviation one this is the
    orthogonal projection of the source. Several private features are taken out together. Columns
    that are constant on the local data set, or of which nothing but rounding would be left, become
    constant.

    What depends on the private feature in another way than linearly stays in, correlations on other
    rows are only near zero, and there is no (eps, delta) for this.
    """

    def __init__(self) -> None:
        self._columns: int | None = None

    def fit(self, X: ArrayLike, private: ArrayLike | None = None) -> Self:
        """Find the direction.

        Parameters
        ----------
        X : array_like of shape (m, d)
            The local data set, m >= 2.
        private : array_like of shape (m,) or (m, q)
            The private feature, or several.

        Raises
        ------
        ValueError
            There is no private feature, or it is constant: nothing is correlated with it here,
            which says nothing about other rows.
        """
        array = rows(X)
        secret = standardized(_private(private, len(array)))
        if (secret[2] == 0).any():
            k = int(np.flatnonzero(secret[2] == 0)[0])
            raise ValueError(f"private: column {k} is constant, no direction is correlated with it")
        unit, self._mean, self._deviation = standardized(array)
        self._directions = _range(unit.T @ secret[0] / len(array))
        self._columns = array.shape[1]
        self._erased = np.zeros(self._columns, dtype=bool)
        left = abs(self.transform(array) - self._mean).max(axis=0)
        rounding = _PLACES * np.finfo(float).eps * abs(array).max(axis=0)
        self._erased = left <= np.maximum(_LEFT_OVER * self._deviation, rounding)
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Rows X (m, d) without the direction, shape (m, d).

        Parameters
        ----------
        X : array_like of shape (m, d)
        """
        array = rows(X, fitted_columns(self._columns))
        varies = self._deviation > 0
        safe = np.where(varies, self._deviation, 1.0)
        unit = (array - self._mean) / safe * varies
        kept = unit - unit @ self._directions @ self._directions.T
        moved = self._mean + kept * safe
        moved[:, self._erased] = self._mean[self._erased]
        return moved


def _private(private: ArrayLike | None, m: int) -> FloatArray:
    if private is None:
        raise ValueError("private: the private feature of each row is expected")
    array = finite_array(private, "private", 2 if np.ndim(private) == 2 else 1)
    if len(array) != m or m < 2:
        raise ValueError(f"private: one for each of the m >= 2 rows is expected, got {len(array)}")
    return array.reshape(m, -1)


def _range(c: FloatArray) -> FloatArray:
    """Orthonormal basis (d, r) of the columns of c (d, q), whose entries are at most one."""
    basis, sizes, _ = np.linalg.svd(c, full_matrices=False)
    # Correlations below rounding are none, and have no direction.
    return basis[:, sizes > _PLACES * np.finfo(float).eps]
