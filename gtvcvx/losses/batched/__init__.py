"""Losses of many nodes at once: what solvers, bounds and CVXPY models ask of them."""
