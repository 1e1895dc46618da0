"""Checks that federated rooms share: tables, vectors and settings, refused by name."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, is_integer, is_number


def table(X: ArrayLike, name: str, columns: int | None = None) -> FloatArray:
    """Return a copy of a finite table (m, p) with m >= 1 and p >= 1, or p = columns."""
    array = finite_array(X, name, 2)
    if array.shape[0] < 1 or array.shape[1] < 1:
        raise ValueError(f"{name}: a row and a column at least are expected, got {array.shape}")
    if columns is not None and array.shape[1] != columns:
        raise ValueError(f"{name}: {columns} columns are expected, got {array.shape[1]}")
    return array.copy()


def vector(w: ArrayLike, name: str, length: int) -> FloatArray:
    """Return a finite vector of this length."""
    array = finite_array(w, name, 1)
    if len(array) != length:
        raise ValueError(f"{name}: a vector of length {length} is expected, got {len(array)}")
    return array


def count(value: object, name: str) -> int:
    """Return an integer >= 1."""
    if not is_integer(value) or value < 1:
        raise ValueError(f"{name}: an integer >= 1 is expected, got {value!r}")
    return int(value)


def positive(value: object, name: str) -> float:
    """Return a finite number > 0."""
    if not is_number(value) or not 0 < value < float("inf"):
        raise ValueError(f"{name}: a positive finite number is expected, got {value!r}")
    return float(value)


def nonnegative(value: object, name: str) -> float:
    """Return a finite number >= 0."""
    if not is_number(value) or not 0 <= value < float("inf"):
        raise ValueError(f"{name}: a finite number >= 0 is expected, got {value!r}")
    return float(value)


def probabilities(values: ArrayLike, name: str) -> FloatArray:
    """Return one number in (0, 1], shape (), or one for each client, (n,)."""
    given = finite_array(values, name, np.ndim(values)).reshape(np.shape(values))
    if given.ndim > 1 or not ((given > 0) & (given <= 1)).all():
        raise ValueError(f"{name}: probabilities in (0, 1] are expected, one number or (n,)")
    return given
