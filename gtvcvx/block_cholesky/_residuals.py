"""Generalized conjugate residuals: directions that a bad factor is good enough for.

Where the weights of a matrix differ by more than its digits, its factor solves for a share of what
is asked for, and plain refinement may never end. Directions whose images are orthogonal make the
most of each solve: what is left, in a norm of one's choice, never grows.

References
----------
S. C. Eisenstat, H. C. Elman, M. H. Schultz, Variational iterative methods for nonsymmetric systems
of linear equations, SIAM Journal on Numerical Analysis 20 (1983).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray

# Once more makes up for what cancels when images are nearly dependent; more often changes nothing.
SWEEPS = 2


class Direction(NamedTuple):
    """A direction as the arrays that are linear in it, and its image, scaled to length one."""

    image: FloatArray
    parts: tuple[FloatArray, ...]


class ConjugateResiduals:
    """Directions so far, with images that are orthonormal once multiplied by a scale.

    Parameters
    ----------
    scale : ndarray
        What each entry of an image counts; of a shape that goes with it.
    """

    def __init__(self, scale: FloatArray) -> None:
        self._scale = scale
        self._found: list[Direction] = []

    def add(self, image: FloatArray, *parts: FloatArray) -> bool:
        """Take a direction, less those before; False if that leaves nothing."""
        image = image * self._scale
        for _ in range(SWEEPS):
            for other in self._found:
                share = _product(other.image, image)
                image = image - share * other.image
                parts = _plus(parts, -share, other.parts)
        norm = np.sqrt(_product(image, image))
        if not 0.0 < norm < np.inf:
            return False
        parts = tuple(part / norm for part in parts)
        self._found.append(Direction(image / norm, parts))
        return True

    def moved(self, left: FloatArray, *parts: FloatArray) -> tuple[FloatArray, ...]:
        """Return the parts after the best step along the last direction, for what is left."""
        last = self._found[-1]
        return _plus(parts, _product(left * self._scale, last.image), last.parts)


def _plus(
    parts: tuple[FloatArray, ...], length: float, others: tuple[FloatArray, ...]
) -> tuple[FloatArray, ...]:
    return tuple(a + length * b for a, b in zip(parts, others, strict=True))


def _product(a: FloatArray, b: FloatArray) -> float:
    # Without threads of BLAS, which wait busily.
    return float(np.einsum("i,i->", a.ravel(), b.ravel()))
