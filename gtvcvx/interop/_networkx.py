"""NetworkX graphs with a solution on them, and GraphML files."""

from __future__ import annotations

import os
import re
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from gtvcvx._diagnostics import coefficient_names
from gtvcvx.files._atomic import atomic_write
from gtvcvx.files._csv import as_labels, node_positions
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.interop._columns import Columns, columns, summary
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# What XML 1.0 cannot hold, not even as a character reference.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_networkx(solution: Solution, problem: GTVProblem, *, scalars: bool = False) -> nx.Graph:
    """NetworkX graph with parameters, flows, clusters and gaps as attributes.

    Parameters
    ----------
    solution : Solution
    problem : GTVProblem
        The one that it solves.
    scalars : bool
        Write a vector as one attribute for each entry, ``w0``, ``w1``, ... and ``flow0``, ...
        (or ``w_<name>``, ``flow_<name>`` if the solution knows the names of its features),
        instead of one list. GraphML and most other formats need that.

    Returns
    -------
    networkx.Graph
        Nodes in the order of ``problem.graph.nodes``, each with ``w`` (list of d numbers),
        ``cluster``, ``gap`` (its share in the duality gap) and ``labelled`` (whether it has data).
        Edges with ``head`` and ``tail`` (node labels), ``flow`` (list of d numbers, positive from
        the tail to the head), ``weight`` A_e, ``capacity`` lambda A_e, ``slack`` (capacity left,
        0 for penalties that are no norm), ``saturated``, ``jump`` ||w_head - w_tail||_2 and
        ``gap``. The graph has ``penalty``, ``lam``, ``value``, ``dual_value``, ``gap``,
        ``status`` and ``solver``, and ``features`` if names are known and ``scalars`` is false.

    Raises
    ------
    ValueError, TypeError
        The solution is not one of this problem.

    See Also
    --------
    EmpiricalGraph.from_networkx : The way back, for graph and weights.
    """
    node, edge = columns(solution, problem, scalars=scalars)
    head = summary(solution, problem)
    names = coefficient_names(solution)
    if names is not None and not scalars:
        head["features"] = names
    labels = problem.graph.nodes
    graph = nx.Graph(**head)
    for i, attributes in enumerate(_rows(node)):
        graph.add_node(labels[i], **attributes)
    for (i, j), attributes in zip(problem.graph.edges.tolist(), _rows(edge), strict=True):
        graph.add_edge(labels[i], labels[j], head=labels[i], tail=labels[j], **attributes)
    return graph


def _rows(table: Columns) -> list[dict[str, Any]]:
    """Return one dict of plain Python values for each row of a table of columns."""
    values = zip(*(column.tolist() for column in table.values()), strict=True)
    return [dict(zip(table, row, strict=True)) for row in values]


def write_graphml(path: str | os.PathLike[str], solution: Solution, problem: GTVProblem) -> None:
    """Write the graph with the attributes of ``to_networkx(..., scalars=True)``, atomically.

    Gephi, Cytoscape, igraph, yEd and NetworkX read GraphML.

    Parameters
    ----------
    path : str or path-like
    solution : Solution
    problem : GTVProblem
        The one that it solves.

    Raises
    ------
    TypeError
        A node label is neither a string nor an integer.
    ValueError
        Two labels have the same text, or one has a character that XML cannot hold; the solution
        is not one of this problem.
    """
    labels = problem.graph.nodes
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            raise TypeError(f"problem: node label {label!r} is neither a string nor an integer")
        if _NOT_XML.search(str(label)):
            raise ValueError(f"problem: node label {label!r} has a character that XML cannot hold")
    node_positions(labels)
    graph = to_networkx(solution, problem, scalars=True)
    for _, _, attributes in graph.edges(data=True):
        # One type for the whole column, whatever the labels are.
        attributes.update(head=str(attributes["head"]), tail=str(attributes["tail"]))
    with atomic_write(path, "wb") as file:
        nx.write_graphml_xml(graph, file, encoding="utf-8")


def read_graphml(path: str | os.PathLike[str], weight: str | None = "weight") -> EmpiricalGraph:
    """Read the graph of a GraphML file, of this or another program.

    Parameters
    ----------
    path : str or path-like
        The file. Node labels are the ids of its nodes: integers if all of them are, in their
        usual form, as in CSV files, and strings otherwise.
    weight : str or None
        Edge attribute that holds A_e; edges without it weigh 1. ``None``: all edges weigh 1.

    Raises
    ------
    ValueError
        Naming the file: it is missing, no GraphML, directed, or has no node; a self-loop, a weight
        that is not a positive finite number.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            graph = nx.read_graphml(file)
    except FileNotFoundError:
        raise ValueError(f"{name}: there is no such file") from None
    except OSError as error:
        raise ValueError(f"{name}: the file cannot be read ({error.strerror})") from error
    except (nx.NetworkXError, ParseError, KeyError, ValueError) as error:
        raise ValueError(f"{name}: not a GraphML file ({error})") from error
    labels = dict(zip(graph, as_labels(graph), strict=True))
    try:
        return EmpiricalGraph.from_networkx(nx.relabel_nodes(graph, labels), weight)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: {error}") from error
