"""Which graphs are not ordered, since what they fill in would not fit."""

from __future__ import annotations

from gtvcvx._arrays import IntArray
from verify._filling import growth

# Graphs of fewer nodes are ordered in no time, whatever they are.
ORDERED = 5_000
# What is told of how much is filled in may be so many times too much, or too little.
DOUBT = 4.0


def hopeless(n: int, edges: IntArray, most: float) -> bool:
    """Say whether n nodes with edges (m, 2) fill in more than so much, without doubt.

    What is compared are squares of the numbers of columns that each column has an effect on.
    """
    if n <= ORDERED or not len(edges):
        return False
    return growth(n, edges) > DOUBT * most
