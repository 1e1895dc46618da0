"""Smooth losses by quadratic models of them, one after the other."""
