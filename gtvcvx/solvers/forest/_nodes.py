"""What passes over the positions of a rooted forest share."""

from __future__ import annotations

from typing import NamedTuple

from gtvcvx._arrays import FloatArray, IntArray


class Nodes(NamedTuple):
    """Slopes of the nodes, and how they meet.

    Attributes
    ----------
    q, b, rise : (n,)
        See above.
    capacity : (n,)
        c of the edge to the parent; at a root it does not count.
    parent : (n,)
        Position of the parent, -1 at a root.
    """

    q: FloatArray
    b: FloatArray
    rise: FloatArray
    capacity: FloatArray
    parent: IntArray


class Bounds(NamedTuple):
    """Between which values a node has its parent's, (n,); at a root both are its own."""

    low: FloatArray
    high: FloatArray


class Own(NamedTuple):
    """Changes of the nodes' own slopes, (K,) each, those of one position after the other's."""

    position: FloatArray
    bend: FloatArray
    jump: FloatArray
