"""Compiled passes over the arrays of a graph: the seam for another array backend."""

from verify._compiled import compiled

__all__ = ["FAST", "compiled"]

#: Of floating-point arithmetic only the order of operations may change: NaN and infinity keep their
#: meaning.
FAST = frozenset({"contract", "reassoc", "nsz", "arcp"})
