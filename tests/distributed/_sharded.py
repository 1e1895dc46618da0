"""Sharded twins of what a problem in memory has, in one process."""

import numpy as np

from gtvcvx.distributed import shard
from gtvcvx.distributed._parts import Parts
from gtvcvx.distributed.engines import LocalEngine


def parts_of(problem, folder, shards=16, partitioner="order"):
    """Return all shards of a problem, in this process."""
    shard(problem, folder, shards, partitioner=partitioner)
    return LocalEngine().run(load, str(folder), 1)


def load(fabric, folder):
    return Parts.load(fabric, folder)


def spread_nodes(parts, w):
    """Return an array of all nodes by part, fresh."""
    return [w[part.shard.nodes] for part in parts]


def edge_numbers(parts, problem):
    """Return the numbers, in the whole problem, of the edges of each part."""
    n = problem.graph.n_nodes
    keys = problem.graph.edges @ [n, 1]
    return [np.searchsorted(keys, p.shard.nodes[p.shard.edges] @ [n, 1]) for p in parts]


def spread_edges(parts, problem, u):
    """Return an array of all edges by part."""
    return [u[at] for at in edge_numbers(parts, problem)]


def joined_nodes(parts, rows):
    """Return the array of all nodes."""
    out = np.full((parts.n_nodes, *rows[0].shape[1:]), np.nan)
    for part, array in zip(parts, rows, strict=True):
        out[part.shard.nodes[part.own]] = array[part.own]
    return out


def joined_edges(parts, problem, rows):
    """Return the array of all edges; both sides of a cut have to be equal."""
    out = np.full((parts.n_edges, *rows[0].shape[1:]), np.nan)
    numbers = edge_numbers(parts, problem)
    for part, at, array in zip(parts, numbers, rows, strict=True):
        out[at[part.counted]] = array[part.counted]
    for at, array in zip(numbers, rows, strict=True):
        assert out[at].tobytes() == array.tobytes()
    return out
