"""Which problems divide and conquer solves."""

from __future__ import annotations

from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Requirement
from gtvcvx.solvers.driver._scalar import scalar_capacities, separable_penalty
from gtvcvx.solvers.scalar._problems import extent_in, scalar_losses
from gtvcvx.solvers.scalar._slopes import moderate

# Arcs are numbered in 32 bits.
_MOST_EDGES = 2**30 - 1


def numbered_arcs(problem: GTVProblem) -> str | None:
    """Ask for no more edges than there are numbers for."""
    return None if problem.graph.n_edges <= _MOST_EDGES else f"at most {_MOST_EDGES} edges"


def moderate_numbers(problem: GTVProblem) -> str | None:
    """Ask for data whose squares stay far from overflow."""
    total = float(scalar_capacities(problem).sum())
    extents = (extent_in(problem, k) for k in range(problem.dim))
    small = all(moderate(extent, min(total, extent.size)) for extent in extents)
    return None if small else "data of moderate size"


#: What divide and conquer needs of a problem.
REQUIREMENTS: tuple[Requirement, ...] = (
    separable_penalty,
    numbered_arcs,
    scalar_losses,
    moderate_numbers,
)
