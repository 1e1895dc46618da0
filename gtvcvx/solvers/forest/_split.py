"""A problem split into the trees of its graph and the rest, and the answers put together."""

from __future__ import annotations

import copy
import dataclasses
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._callbacks import Progress, SolveCallback
from gtvcvx._deadline import look
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses.batched._stacked import stacked_from_terms
from gtvcvx.losses.batched._terms import FIELDS, Term, selected
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.forest._rooted import tree_nodes
from gtvcvx.solvers.scalar._slopes import piecewise

# Splitting costs about a millisecond, as much as other methods need for so many nodes.
FEWEST_NODES = 100


class Piece(NamedTuple):
    """Some components of a problem's graph as a problem of their own."""

    problem: GTVProblem
    nodes: IntArray  # (k,), their numbers in the whole
    edges: IntArray

    def start(self, whole: Solution) -> Solution:
        """Return these components' part of a point and a flow; its value is still the whole's."""
        return dataclasses.replace(whole, w=whole.w[self.nodes], u=whole.u[self.edges])


class Split:
    """Trees that can be solved by dynamic programming, and the rest.

    Attributes
    ----------
    trees, rest : Piece
    """

    trees: Piece
    rest: Piece

    def __init__(self, problem: GTVProblem, terms: list[Term], among_trees: np.ndarray) -> None:
        self._problem = problem
        self.trees = _piece(problem, terms, np.flatnonzero(among_trees))
        look()
        self.rest = _piece(problem, terms, np.flatnonzero(~among_trees))

    @staticmethod
    def of(problem: GTVProblem) -> Split | None:
        """Return the split of a problem, made once for all values of lambda; None without one."""
        made = problem.cached("split", lambda: _split(problem))
        if made is None:
            return None
        split = copy.copy(made)
        split._problem = problem
        split.trees = made.trees._replace(problem=made.trees.problem.with_lam(problem.lam))
        split.rest = made.rest._replace(problem=made.rest.problem.with_lam(problem.lam))
        return split

    def joined(self, trees: Solution, rest: Solution, limits: Limits) -> Solution:
        """Return the solutions of both as one of the whole problem."""
        problem, pieces = self._problem, ((self.trees, trees), (self.rest, rest))
        n, m, d = problem.graph.n_nodes, problem.graph.n_edges, problem.dim
        w, u = np.empty((n, d)), np.empty((m, d))
        node_gaps, edge_gaps, slack = np.empty(n), np.empty(m), np.empty(m)
        for piece, solution in pieces:
            w[piece.nodes], u[piece.edges] = solution.w, solution.u
            node_gaps[piece.nodes], edge_gaps[piece.edges] = solution.node_gaps, solution.edge_gaps
            slack[piece.edges] = solution.slack
        value, gap = trees.value + rest.value, trees.gap + rest.gap
        done = limits.relative(gap, value) <= limits.rtol
        status = "optimal" if done else rest.status if trees.status == "optimal" else trees.status
        shift, bound = trees.value, trees.dual_value
        history = [
            dataclasses.replace(
                record, value=record.value + shift, dual_value=record.dual_value + bound
            )
            for record in rest.history
        ]
        methods = dict.fromkeys(f"{trees.info['method']}, {rest.info['method']}".split(", "))
        info = {**rest.info, "method": ", ".join(methods)}
        return dataclasses.replace(
            rest,
            w=w,
            u=u,
            value=value,
            dual_value=value - gap,
            gap=gap,
            status="user_limit" if status == "optimal" and not done else status,
            n_iter=trees.n_iter + rest.n_iter,
            seconds=limits.seconds,
            nodes=problem.graph.nodes,
            node_gaps=node_gaps,
            edge_gaps=edge_gaps,
            edges=problem.graph.edges,
            slack=slack,
            history=history,
            info=info,
        )

    def watching(self, callback: SolveCallback | None, trees: Solution) -> SolveCallback | None:
        """Return a callback for the rest that shows the given one the whole."""
        if callback is None:
            return None

        def shown(progress: Progress, /) -> object:
            value, dual = progress.value + trees.value, progress.dual_value + trees.dual_value
            gap = progress.gap + trees.gap
            return callback(
                dataclasses.replace(
                    progress,
                    w=self._together(trees.w, progress.w, self.trees.nodes, self.rest.nodes),
                    u=self._together(trees.u, progress.u, self.trees.edges, self.rest.edges),
                    value=value,
                    dual_value=dual,
                    gap=gap,
                    rel_gap=gap / max(1.0, abs(value)),
                )
            )

        return shown

    @staticmethod
    def _together(a: FloatArray, b: FloatArray, at: IntArray, bt: IntArray) -> FloatArray:
        out = np.empty((len(a) + len(b), a.shape[1]))
        out[at], out[bt] = a, b
        return out


def _split(problem: GTVProblem) -> Split | None:
    graph, trees = problem.graph, tree_nodes(problem.graph)
    # Nodes that are alone cost no method anything.
    connected = np.zeros(graph.n_nodes, np.bool_)
    connected[graph.edges.ravel()] = True
    if np.count_nonzero(trees & connected) < FEWEST_NODES:
        return None
    look()
    terms = problem.losses.terms()
    if not {term["kind"] for term in terms} <= FIELDS.keys():
        return None
    place = np.where(trees, np.cumsum(trees) - 1, -1)
    if not piecewise(_of(terms, place)):
        return None
    return Split(problem, terms, trees)


def _of(terms: list[Term], place: IntArray) -> list[Term]:
    chosen = [selected(term, place) for term in terms]
    return [term for term in chosen if len(term["node"])]


def _piece(problem: GTVProblem, terms: list[Term], nodes: IntArray) -> Piece:
    graph = problem.graph
    place = np.full(graph.n_nodes, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    look()
    edges = np.flatnonzero(place[graph.edges[:, 0]] >= 0)
    own = EmpiricalGraph(len(nodes), place[graph.edges[edges]], graph.weights[edges])
    look()
    losses = stacked_from_terms(_of(terms, place), problem.dim).completed(len(nodes))
    return Piece(GTVProblem(own, losses, problem.penalty, problem.lam), nodes, edges)
