"""Nodes and edges of a solution as data frames of pandas or polars."""

from __future__ import annotations

from typing import Any, NamedTuple

from gtvcvx.interop._columns import columns
from gtvcvx.interop._library import check_library, new_frame, polars_labels
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from verify._display import fields_text


class Frames(NamedTuple):
    """Two data frames; `to_frames` says what is in them.

    Attributes
    ----------
    nodes : pandas.DataFrame or polars.DataFrame
        One row a node.
    edges : pandas.DataFrame or polars.DataFrame
        One row an edge.
    """

    nodes: Any
    edges: Any

    def __repr__(self) -> str:
        return fields_text(self)


def to_frames(solution: Solution, problem: GTVProblem, library: str = "pandas") -> Frames:
    """Nodes and edges with parameters, flows, clusters and gaps, as data frames.

    Parameters
    ----------
    solution : Solution
    problem : GTVProblem
        The one that it solves.
    library : {"pandas", "polars"}
        Whose data frames.

    Returns
    -------
    Frames
        ``nodes``: indexed by node label, which is the first column, ``node``, in polars (as text if
        labels are neither all integers nor all text); columns ``w0``, ..., ``w<d-1>`` (or
        ``w_<name>`` if the solution knows the names of its features), ``cluster``, ``gap``,
        ``labelled``.
        ``edges``: columns ``head``, ``tail``, ``weight``, ``capacity``, ``flow0``, ... (or
        ``flow_<name>``; positive from the tail to the head), ``slack``, ``saturated``, ``jump``,
        ``gap``. `to_networkx` says what they mean.
        All there is to say is in columns: nothing is in ``attrs``, which pandas loses on the way.

    Raises
    ------
    ImportError
        The library is not there.
    ValueError, TypeError
        The solution is not one of this problem; no such library.
    """
    module = check_library(library)
    node, edge = columns(solution, problem)
    heads, tails = problem.graph.edges.T
    if library == "polars":
        names = polars_labels(problem.graph.nodes)
        ends = {"head": [names[i] for i in heads], "tail": [names[i] for i in tails]}
        return Frames(
            new_frame({"node": names, **node}, library), new_frame({**ends, **edge}, library)
        )
    labels = module.Index(list(problem.graph.nodes), name="node", tupleize_cols=False)
    ends = {"head": labels[heads], "tail": labels[tails]}
    return Frames(module.DataFrame(node, index=labels), new_frame({**ends, **edge}, library))
