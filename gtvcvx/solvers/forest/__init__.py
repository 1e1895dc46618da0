"""Forests: exact solutions by dynamic programming, where coordinates are scalar problems."""

from gtvcvx.solvers.forest._forest import REQUIREMENTS, DynamicProgram
from gtvcvx.solvers.forest._rooted import RootedForest, is_forest, rooted_forest
from gtvcvx.solvers.forest._split import Split

__all__ = [
    "REQUIREMENTS",
    "DynamicProgram",
    "RootedForest",
    "Split",
    "is_forest",
    "rooted_forest",
]
