"""Partitions and Theorem 2: is a partition well-connected, is it recovered, for which lambda."""
