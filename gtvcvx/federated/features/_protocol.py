"""What the maps of features have in common, and the checks that they share."""

from __future__ import annotations

from typing import Protocol, Self, runtime_checkable

from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array


@runtime_checkable
class FeatureMap(Protocol):
    """A map Phi of feature vectors, fitted to the local data set and applied to any rows."""

    def fit(self, X: ArrayLike, private: ArrayLike | None = None) -> Self:
        """Learn the map from the local rows X (m, d), and their private feature (m,) if needed."""

    def transform(self, X: ArrayLike) -> FloatArray:
        """Phi of each row of X (m, d), shape (m, d)."""


def rows(X: ArrayLike, columns: int | None = None) -> FloatArray:
    """Return finite rows (m, d) with d >= 1, or d = columns."""
    array = finite_array(X, "X", 2)
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"X: {columns} columns are expected, as fitted, got {array.shape[1]}")
    if not array.shape[1]:
        raise ValueError("X: a column at least is expected")
    return array


def standardized(columns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return columns (m, d) of mean zero and deviation one, their means and their deviations.

    A column that is constant becomes zero, and its deviation is exactly zero.
    """
    # In units of the largest entry: squares cannot overflow, and equal numbers are ones, whose mean
    # is exact.
    size = abs(columns).max(axis=0)
    size[size == 0] = 1.0
    unit = columns / size
    mean = unit.mean(axis=0)
    away = unit - mean
    deviation = (away**2).mean(axis=0) ** 0.5
    safe = deviation.copy()
    safe[safe == 0] = 1.0
    return away / safe * (deviation > 0), mean * size, deviation * size


def fitted_columns(columns: int | None) -> int:
    """Return the number of columns that a map was fitted to."""
    if columns is None:
        raise ValueError("map: it has not been fitted; call fit")
    return columns
