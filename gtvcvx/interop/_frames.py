"""Nodes and edges of a solution as pandas data frames."""

from __future__ import annotations

from typing import Any, NamedTuple

from gtvcvx._extras import extra_module
from gtvcvx.interop._columns import columns
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from verify._display import fields_text


class Frames(NamedTuple):
    """Two pandas data frames; `to_frames` says what is in them.

    Attributes
    ----------
    nodes : pandas.DataFrame
        One row a node.
    edges : pandas.DataFrame
        One row an edge.
    """

    nodes: Any
    edges: Any

    def __repr__(self) -> str:
        return fields_text(self)


def to_frames(solution: Solution, problem: GTVProblem) -> Frames:
    """Nodes and edges with parameters, flows, clusters and gaps, as data frames.

    Parameters
    ----------
    solution : Solution
    problem : GTVProblem
        The one that it solves.

    Returns
    -------
    Frames
        ``nodes``: indexed by node label; columns ``w0``, ..., ``w<d-1>`` (or ``w_<name>`` if the
        solution knows the names of its features), ``cluster``, ``gap``, ``labelled``.
        ``edges``: columns ``head``, ``tail``, ``weight``, ``capacity``, ``flow0``, ... (or
        ``flow_<name>``; positive from the tail to the head), ``slack``, ``saturated``, ``jump``,
        ``gap``. `to_networkx` says what they mean.

    Raises
    ------
    ImportError
        There is no pandas.
    ValueError, TypeError
        The solution is not one of this problem.
    """
    pandas = extra_module("pandas", "table", "data frames")
    node, edge = columns(solution, problem)
    labels = pandas.Index(list(problem.graph.nodes), name="node", tupleize_cols=False)
    heads, tails = problem.graph.edges.T
    ends = {"head": labels[heads], "tail": labels[tails]}
    return Frames(pandas.DataFrame(node, index=labels), pandas.DataFrame({**ends, **edge}))
