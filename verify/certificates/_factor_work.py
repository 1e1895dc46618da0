"""How long a sparse factorization over a graph takes, foretold."""

from __future__ import annotations

from verify._arrays import IntArray
from verify._filling import growth

# Squares of widths a second, as growth adds them up: 1.3e11 in 7.7 s on the machine of
# docs/benchmarks.md.
SPEED = 1.7e10


def factor_seconds(edges: IntArray, n: int, d: int) -> float:
    """Return about the seconds that a Cholesky factor of blocks (d, d) over a graph takes."""
    return growth(n, edges) * d**3 / SPEED
