"""The edges of a graph as compiled passes go through them."""

from __future__ import annotations

from typing import NamedTuple

from gtvcvx._arrays import IntArray, UInt32Array


class Arcs(NamedTuple):
    """Edges in the order of their heads: node i is the head of ``starts[i] .. starts[i + 1] - 1``.

    Attributes
    ----------
    starts : ndarray of int64, shape (n + 1,)
        First edge of each head, and the number of edges.
    tails, heads : ndarray of uint32, shape (m,)
        Half as wide as NumPy's integers: passes over many edges wait for memory.
    """

    starts: IntArray
    tails: UInt32Array
    heads: UInt32Array
