"""Arrays of real numbers from whatever somebody passes: nothing is dropped, nothing is guessed."""

from __future__ import annotations

from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def real_numbers(value: Any, name: str) -> NDArray[Any]:
    """Return the value as an array of real numbers, of a numeric type or of objects.

    Raises
    ------
    TypeError
        Complex numbers, whose imaginary part would get lost, texts, dates or other objects.
    ValueError
        A masked array with masked entries, whose mask would get lost; rows of different lengths.
    """
    if np.ma.is_masked(value):
        raise ValueError(f"{name} is masked: fill it, or take what is not masked")
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array of numbers, its rows of one length") from None
    if array.dtype.kind == "O":
        for x in array.flat:
            if not isinstance(x, Real | Decimal):
                raise TypeError(f"{name} must be real numbers, got an entry of {type(x).__name__}")
    elif array.dtype.kind not in "fiub":
        kind = "text" if array.dtype.kind in "US" else array.dtype.name
        raise TypeError(f"{name} must be real numbers, got {kind}")
    return array
