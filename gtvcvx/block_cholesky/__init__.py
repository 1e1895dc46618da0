"""Cholesky factorization of matrices with a block d x d for each node and edge of a graph."""
