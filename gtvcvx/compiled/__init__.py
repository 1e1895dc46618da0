"""Compiled passes over the arrays of a graph: the seam for another array backend."""

import numpy as np
from numpy.typing import NDArray

from verify._compiled import compiled

__all__ = ["FAST", "Dims", "compiled", "dims_of", "unrolled"]

#: A dimension d, as the length of something: see `dims_of`.
Dims = tuple[int, ...] | NDArray[np.int8]
# Beyond this many rounds a loop gains nothing by being unrolled, and takes long to compile: 8 s for
# the iteration at d = 16, where the one for all d takes half the time with l2 and diagonal maps,
# four fifths with matrices. At 14 and below unrolled loops take two thirds of its time.
_UNROLLED = 15


def dims_of(d: int) -> Dims:
    """Return something of length d, for compiled functions that go through d coordinates.

    The length of a tuple is a constant to the compiler: loops over it are unrolled, and a function
    is compiled once for each small d. One version, with an array, does for all others.
    """
    return (0,) * d if unrolled(d) else np.zeros(d, np.int8)


def unrolled(d: int) -> bool:
    """Say whether loops over d coordinates are unrolled."""
    return d <= _UNROLLED


#: Of floating-point arithmetic only the order of operations may change: NaN and infinity keep their
#: meaning.
FAST = frozenset({"contract", "reassoc", "nsz", "arcp"})
