"""Features with noise."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, real_array
from gtvcvx.federated.features._protocol import fitted_columns, rows


class AdditiveNoise:
    """Adds independent normal noise, ``Phi(x) = x + sigma e`` with e ~ N(0, I) [Notes, 13].

    Each call of `transform` draws anew, from a generator that is made with the object: the same
    calls in the same order give the same results. Rows that are released twice have noise that
    averages out, so release them once. There is no (eps, delta) for this.

    Parameters
    ----------
    sigma : float or array_like of shape (d,)
        Deviation >= 0 of the noise, for all columns or for each: in units of the columns.
    seed : int or numpy.random.Generator
        Whoever knows it can take the noise off again: it is as private as the rows.

    Raises
    ------
    ValueError, TypeError
        sigma is no finite number >= 0 or array of such; there is no seed.
    """

    def __init__(self, sigma: ArrayLike, seed: int | np.random.Generator) -> None:
        self.sigma = real_array(sigma, "sigma").copy()
        if self.sigma.ndim > 1 or not (np.isfinite(self.sigma) & (self.sigma >= 0)).all():
            raise ValueError(f"sigma: a finite number >= 0, or one a column: got {sigma!r}")
        if seed is None:
            raise ValueError("seed: an integer or a generator is expected, got None")
        self._rng = np.random.default_rng(seed)
        self._columns: int | None = None

    def fit(self, X: ArrayLike, private: ArrayLike | None = None) -> Self:
        """Note the number of columns.

        Parameters
        ----------
        X : array_like of shape (m, d)
        private : array_like, optional
            Not used.
        """
        d = rows(X).shape[1]
        if self.sigma.ndim and len(self.sigma) != d:
            raise ValueError(f"sigma: {d} deviations are expected, got {len(self.sigma)}")
        self._columns = d
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Rows X (m, d) with fresh noise.

        Parameters
        ----------
        X : array_like of shape (m, d)
        """
        array = rows(X, fitted_columns(self._columns))
        noisy: FloatArray = array + self.sigma * self._rng.standard_normal(array.shape)
        return noisy
