"""Names of array types; arrays that users give: converted once, refused by the argument's name."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
UInt32Array = NDArray[np.uint32]
BoolArray = NDArray[np.bool_]
SignArray = NDArray[np.int8]
# Structured arrays: one record of settings a node.
Records = NDArray[np.void]


def real_array(values: Any, name: str) -> FloatArray:
    """Convert to float64; what is not a regular array of real numbers is refused by name.

    Text is refused even where it spells a number, and so are complex numbers. What is masked would
    count as if it were not: NumPy keeps the data under a mask, and drops the mask.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name}: entries are masked; fill them, or take those that are not")
    try:
        raw = np.asarray(values)
        if raw.dtype.kind in "biuf" or raw.size == 0:
            return np.asarray(raw, dtype=np.float64)
        if raw.dtype.kind == "O":
            return np.array([_as_float(x) for x in raw.flat], dtype=np.float64).reshape(raw.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name}: an array of numbers is expected ({error})") from error
    raise TypeError(f"{name}: an array of numbers is expected, got dtype {raw.dtype}")


def _as_float(value: Any) -> float:
    if isinstance(value, (str, bytes)):
        raise TypeError(f"got {value!r}")
    return float(value)


def integer_array(values: Any, name: str) -> NDArray[Any]:
    """Convert to an array of an integer dtype; floats are refused even where they are whole."""
    try:
        raw = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: a regular array is expected ({error})") from error
    if raw.size == 0:
        return raw.astype(np.int64)
    if raw.dtype.kind not in "iu":
        raise TypeError(f"{name}: integers are expected, got dtype {raw.dtype}")
    return raw


def array_of_axes(values: Any, name: str, ndim: int) -> FloatArray:
    """Convert to float64 of some number of axes; refuse others by name."""
    array = real_array(values, name)
    if array.ndim != ndim:
        raise ValueError(f"{name}: {ndim} axes are expected, got shape {array.shape}")
    return array


def finite_array(values: Any, name: str, ndim: int) -> FloatArray:
    """Convert to contiguous float64 of some number of axes; refuse NaN and infinity by name."""
    array = array_of_axes(values, name, ndim)
    if not np.isfinite(array).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name}: entry {where} is {array[where]}, a finite number is expected")
    return np.ascontiguousarray(array)


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether this is an integer of Python or NumPy; truth values are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a real number of Python or NumPy; truth values are none."""
    return is_integer(value) or isinstance(value, (float, np.floating))
