"""Compiled passes over the arrays of a graph: the seam for another array backend."""
