"""What workers do in the tests of bounds: functions of a module, for other processes."""

import numpy as np

from gtvcvx.distributed._incumbent import ShardedIncumbent
from gtvcvx.distributed._parts import Parts


def checked(fabric, folder):
    """Return, at rank 0, what two updates of an incumbent make of noise: numbers, w and u."""
    parts = Parts.load(fabric, folder)
    rng = np.random.default_rng(11)
    with parts.running():
        incumbent, found = ShardedIncumbent(parts), []
        for size in (1.0, 0.1):
            w = size * rng.normal(size=(parts.n_nodes, parts.dim))
            # Flows by the numbers of the ends: the same on both sides of a cut.
            x = size * rng.normal(size=(parts.n_nodes, parts.dim))
            nodes = [part.shard.nodes for part in parts]
            ends = [part.shard.nodes[part.shard.edges] for part in parts]
            flows = [x[pair[:, 0]] + 2.0 * x[pair[:, 1]] for pair in ends]
            incumbent.update([w[at] for at in nodes], flows)
            found += [incumbent.value, incumbent.gap, incumbent.parts.rounding]
        arrays = parts.gather(
            [a for pair in zip(incumbent.w, incumbent.u, strict=True) for a in pair]
        )
    return (np.array(found), arrays) if fabric.rank == 0 else None
