"""Sums of row losses, regularizers and constraints, many nodes at once."""
