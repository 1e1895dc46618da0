"""Problems cut into shards: the door, and those that are in memory."""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.distributed._external import shard_files
from gtvcvx.distributed._folder import Folder, checked_count, node_bytes
from gtvcvx.distributed._manifest import Manifest
from gtvcvx.distributed._partition import partitioned
from gtvcvx.distributed._shard import Shard
from gtvcvx.distributed._sources import Tables
from gtvcvx.losses.batched._terms import FIELDS, Term, fields_of
from gtvcvx.problem import GTVProblem, check_labels


def shard(
    source: GTVProblem | Tables | str | os.PathLike[str],
    out: str | os.PathLike[str],
    shards: int = 16,
    *,
    partitioner: str | ArrayLike = "auto",
) -> Manifest:
    """Cut a problem into shards, and write them into a folder.

    Each shard holds its own nodes with their losses, and all edges that end there. The folder is
    whole once its manifest is there, which is written last.

    Parameters
    ----------
    source : GTVProblem, Tables, str or path-like
        A problem in memory; tables; or a file that `GTVProblem.save` wrote. Files are read piece
        by piece: memory holds one shard at a time, and some numbers a node. Temporary files as
        large as the data are made in the folder.
    out : str or path-like
        The folder. A sharding that is in it is replaced.
    shards : int
        Their number, at most one for each node: at least that of the processes that will work on
        them, and the same for all runs that are to give the same bits. Fewer are made where some
        would be empty.
    partitioner : {"auto", "metis", "order", "blocks"} or array_like of int, shape (n,)
        Which shard a node goes to. "metis": few edges between shards, by pymetis (extras ``mpi``
        and ``ray``). "order": consecutive pieces in reverse Cuthill-McKee order, less good.
        "blocks": of the nodes as they are numbered, where neighbours are near each other already.
        "auto": METIS where it is installed, "order" where it is not; both need the edges in memory,
        50 bytes each, so that files with more than 20 million are cut into blocks. An array is a
        partition of one's own.

    Returns
    -------
    Manifest

    Raises
    ------
    TypeError
        Naming a loss or a penalty that is a Python callable and cannot be written down.
    ValueError
        Naming the argument, or the file and the line.
    """
    if isinstance(source, GTVProblem):
        return _shard_problem(source, out, shards, partitioner)
    return shard_files(source, out, shards, partitioner)


def _shard_problem(
    problem: GTVProblem, out: str | os.PathLike[str], shards: int, partitioner: object
) -> Manifest:
    terms = _writable(problem)
    graph, n = problem.graph, problem.graph.n_nodes
    count = checked_count(shards, n)
    sizes = _sizes(graph.edges, terms, n, problem.dim)
    labels, count, name = partitioned(n, graph.edges, sizes, count, partitioner)
    folder = Folder(out)
    labelled = not isinstance(graph.nodes, range)
    for number in range(count):
        chosen = np.flatnonzero((labels == number)[graph.edges].any(axis=1))
        given = folder.sharding, number, problem.dim, labels
        edges, weights = graph.edges[chosen], graph.weights[chosen]
        folder.add(Shard.cut(*given, edges, weights, terms, graph.nodes if labelled else None))
    return folder.finish(
        dim=problem.dim,
        penalty=problem.penalty.to_data(),
        lam=problem.lam,
        partitioner=name,
        labelled=labelled,
    )


def _writable(problem: GTVProblem) -> list[Term]:
    """Return the losses as plain data; refuse what cannot be written down, by its name."""
    check_labels(problem.graph.nodes)
    terms = problem.losses.terms()
    for term in terms:
        if term["kind"] not in FIELDS:
            label = problem.graph.nodes[int(term["node"][0])]
            raise TypeError(
                f"losses: node {label!r} has a {term.get('name', term['kind'])}, which cannot be "
                "written down"
            )
    if problem.penalty.to_data()["kind"] == "opaque":
        raise TypeError(f"penalty: {problem.penalty!r} cannot be written down")
    return terms


def _sizes(edges: IntArray, terms: list[Term], n_nodes: int, dim: int) -> FloatArray:
    """Return the bytes (n,) that come with each node."""
    degrees = np.bincount(edges.ravel(), minlength=n_nodes)
    sizes = node_bytes(degrees.astype(np.float64), dim)
    for term in terms:
        a_row = sum(term[name][:1].nbytes for name in ("node", *fields_of(term)))
        sizes += a_row * np.bincount(term["node"], minlength=n_nodes)
    return sizes
