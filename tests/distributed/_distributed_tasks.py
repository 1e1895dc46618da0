"""What workers do in the tests: functions of a module, since they go to other processes."""

import numpy as np

from gtvcvx.distributed._parts import Parts


def copies_and_sums(fabric, folder):
    """Return, at rank 0, refreshed arrays of all shards and sums over them."""
    parts = Parts.load(fabric, folder)
    with parts.running():
        nodes, edges, found = [], [], []
        for part in parts:
            # What nobody but the owner can know: the numbers of nodes and ends, with their shard.
            ends = part.shard.nodes[part.shard.edges]
            number = float(part.number)
            node = np.column_stack([part.shard.nodes, np.full(len(part.own), number)])
            edge = np.column_stack([ends, np.full(len(ends), number)]).astype(float)
            node = node.astype(float)
            node[part.ghosts] = np.nan
            edge[~part.counted] = np.nan
            nodes.append(node)
            edges.append(edge)
        parts.refresh(nodes)
        parts.refresh_edges(edges)
        rng = np.random.default_rng(7)
        noise = rng.normal(size=parts.n_nodes)
        some = [noise[part.shard.nodes] for part in parts]
        found.append(parts.add_nodes(some))
        found.append(parts.add_edges([np.ones(len(p.counted)) for p in parts]))
        found.extend(parts.most([[p.number, -p.number] for p in parts]))
        told = parts.broadcast([np.arange(3)] if fabric.rank == 0 else None)
        found.append(float(told[0].sum()))
        gathered = parts.gather([a for pair in zip(nodes, edges, strict=True) for a in pair])
    return (gathered, np.array(found)) if fabric.rank == 0 else None
