r"""Exact solutions on forests by dynamic programming, coordinate by coordinate.

Where the graph has no cycles, and every coordinate is a problem of its own, the least cost of a
subtree is a function of one number, the value of the node above it, and its slope is piecewise
linear. One pass from the leaves to the roots finds between which values each node takes that of its
parent, one back finds the values, and sums over subtrees are the optimal flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.duality._scalar_gap import Extent, Slopes, extent
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Limits, Proposal, Requirement
from gtvcvx.solvers.driver._scalar import LARGEST, scalar_capacities, separable_penalty
from gtvcvx.solvers.forest._capacities import effective
from gtvcvx.solvers.forest._chain import Queue
from gtvcvx.solvers.forest._compiled import flows, forest_bounds, values
from gtvcvx.solvers.forest._line import PIECE, line_solution
from gtvcvx.solvers.forest._nodes import Bounds, Nodes, Own
from gtvcvx.solvers.forest._positions import back, origins, positioned
from gtvcvx.solvers.forest._rooted import RootedForest, is_chain, is_forest, rooted_forest
from gtvcvx.solvers.forest._runs import Runs
from gtvcvx.solvers.forest._tree import Changes, ChildSlopes, tree_bounds
from gtvcvx.solvers.scalar._problems import extent_in, scalar_losses, slopes_in
from gtvcvx.solvers.scalar._proof import proved
from gtvcvx.solvers.scalar._slopes import moderate

# Changes are numbered in 32 bits.
_MOST_CHANGES = 2**31 - 1


class DynamicProgram:
    """Dynamic programming on a forest, one coordinate a step.

    Attributes
    ----------
    n_iter : int
        Coordinates so far.
    """

    stride = 1

    def __init__(self, problem: GTVProblem) -> None:
        self._problem = problem
        shape = problem.graph.n_nodes, problem.dim
        self._w = np.zeros(shape)
        self._u = np.zeros((problem.graph.n_edges, problem.dim))
        self._line = False  # whether nodes are a chain as they are numbered
        self.n_iter = 0

    @property
    def finished(self) -> bool:
        """Whether all coordinates are done."""
        return self.n_iter == self._problem.dim

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Look at the shape of the forest."""
        self._line = _is_line(self._problem)

    def due(self) -> bool:
        """Say no: a flow in some of the coordinates bounds nothing."""
        return False

    def proposal(self, final: bool = False) -> Proposal:
        """Return the point and the flow, optimal when finished."""
        if not self.finished:
            return Proposal(self._w, self._u, np.inf)
        found = proved(self._problem, self._w, self._u, self._line)
        return Proposal(self._w, self._u, 0.0, exact=True, proved=found)

    def learn(self, rel_gap: float) -> None:
        """Take no notice."""

    def info(self) -> dict[str, Any]:
        """Return nothing beside the method's name."""
        return {}

    def run(self, n_iter: int) -> None:
        """Do n_iter coordinates."""
        for _ in range(n_iter):
            w, u = self._solved(self.n_iter)
            if self._problem.dim == 1:
                self._w, self._u = w[:, None], u[:, None]
            else:
                self._w[:, self.n_iter], self._u[:, self.n_iter] = w, u
            self.n_iter += 1

    def _solved(self, k: int) -> tuple[FloatArray, FloatArray]:
        """Return the minimizer (n,) and the optimal flow (m,) in coordinate k."""
        problem, capacities = self._problem, scalar_capacities(self._problem)
        slopes, found = slopes_in(problem, k), extent_in(problem, k)
        solved = line_solution(slopes, capacities, found) if self._line else None
        if solved is None:
            forest = problem.cached("rooted forest", lambda: rooted_forest(problem.graph))
            solved = scalar_solution(forest, slopes, capacities, found)
        return solved


def scalar_solution(
    forest: RootedForest,
    slopes: Slopes,
    capacities: FloatArray,
    found: Extent | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the minimizer (n,) and the optimal flow (m,) of one scalar problem.

    Parameters
    ----------
    forest : RootedForest
    slopes : Slopes
        Of the losses of the n nodes.
    capacities : (m,)
    found : Extent, optional
        Of the slopes, if it is there already.
    """
    look()
    capacity = effective(forest, slopes, found or extent(slopes), capacities)
    shift = origins(forest, slopes)
    nodes = positioned(forest, slopes, capacity, shift)
    indptr, own = _own(forest, slopes, shift)
    bounds = _clipped(forest, nodes, indptr, own)
    look()
    x, sent = np.empty(len(shift)), np.empty(len(shift))
    values(forest.parent, bounds, x)
    flows(x, nodes, indptr, own, sent)
    return back(forest, x, shift, sent)


def _own(forest: RootedForest, slopes: Slopes, shift: FloatArray) -> tuple[IntArray, Own]:
    """Return the nodes' own changes by position, and where those of each begin, (n + 1,)."""
    n = len(forest.node)
    indptr = np.zeros(n + 1, np.int64)
    if not len(slopes.node):
        none = np.empty(0)
        return indptr, Own(none, none, none)
    place = np.empty(n, np.int64)
    place[forest.node] = np.arange(n)
    order = np.argsort(place[slopes.node], kind="stable")
    where = place[slopes.node[order]]
    indptr[1:] = np.cumsum(np.bincount(where, minlength=n))
    return indptr, Own(
        slopes.position[order] - shift[where], slopes.bend[order], slopes.jump[order]
    )


def _clipped(forest: RootedForest, nodes: Nodes, indptr: IntArray, own: Own) -> Bounds:
    """Clip the slopes from the leaves to the roots, with looks at the clock."""
    n = len(forest.node)
    lengths = np.diff(forest.stops, prepend=0)
    plain = forest.chain & (np.diff(indptr[forest.stops], prepend=0) == 0)
    queue = Queue.of(int(lengths[plain].max(initial=0)))
    runs = Runs.of(int(lengths[~plain].max(initial=0)), len(own.position))
    bounds, tree = Bounds(np.empty(n), np.empty(n)), 0
    for start in range(0, n, PIECE):
        look()
        tree, heaps = forest_bounds(
            start,
            min(start + PIECE, n),
            tree,
            forest.stops,
            forest.chain,
            nodes,
            indptr,
            own,
            queue,
            runs,
            bounds,
        )
        if heaps:
            first = int(forest.stops[tree - 1]) if tree else 0
            clipped_by_heaps(first, nodes, indptr, own, bounds)
            break
    return bounds


def clipped_by_heaps(first: int, nodes: Nodes, indptr: IntArray, own: Own, bounds: Bounds) -> None:
    """Clip the slopes from a position on, the first one of a tree."""
    n = len(nodes.q)
    changes, slopes = Changes.of(n, own), ChildSlopes.of(n)
    for start in range(first, n, PIECE):
        look()
        tree_bounds(start, min(start + PIECE, n), nodes, indptr, changes, slopes, bounds)


def _is_line(problem: GTVProblem) -> bool:
    """Say whether nodes are a chain as they are numbered; looked at once."""
    return problem.cached("is a line", lambda: is_chain(problem.graph))


def no_cycles(problem: GTVProblem) -> str | None:
    """Ask for a graph without cycles."""
    forest = _is_line(problem) or problem.cached("is a forest", lambda: is_forest(problem.graph))
    return None if forest else "a graph without cycles"


def moderate_numbers(problem: GTVProblem) -> str | None:
    """Ask for data whose squares, and sums, stay far from overflow."""
    with np.errstate(over="ignore"):
        small = float(scalar_capacities(problem).sum()) < LARGEST
    if small and all(moderate(extent_in(problem, k)) for k in range(problem.dim)):
        return None
    return "data of moderate size"


def countable_changes(problem: GTVProblem) -> str | None:
    """Ask for no more changes of slopes than there are numbers for."""
    n = problem.graph.n_nodes
    most = max(2 * n + len(slopes_in(problem, k).node) for k in range(problem.dim))
    return None if most <= _MOST_CHANGES else f"at most {_MOST_CHANGES} changes of slopes"


#: What dynamic programming needs of a problem.
REQUIREMENTS: tuple[Requirement, ...] = (
    separable_penalty,
    no_cycles,
    scalar_losses,
    moderate_numbers,
    countable_changes,
)
