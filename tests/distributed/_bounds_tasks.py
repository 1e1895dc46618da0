"""What workers do in the tests of bounds: functions of a module, for other processes."""

import numpy as np
import pytest

from gtvcvx._deadline import Expired, until
from gtvcvx.distributed._incumbent import ShardedIncumbent
from gtvcvx.distributed._parts import Parts


def checked(fabric, folders):
    """Return, at rank 0, what updates of incumbents make of noise: numbers, w and u of each."""
    found = [_checked(fabric, folder) for folder in folders]
    return found if fabric.rank == 0 else None


def _checked(fabric, folder):
    parts = Parts.load(fabric, folder)
    rng = np.random.default_rng(11)
    with parts.running():
        incumbent, found = ShardedIncumbent(parts), []
        for size in (1.0, 0.1, 0.01):
            w = size * rng.normal(size=(parts.n_nodes, parts.dim))
            # Flows by the numbers of the ends: the same on both sides of a cut.
            x = size * rng.normal(size=(parts.n_nodes, parts.dim))
            ends = [part.shard.nodes[part.shard.edges] for part in parts]
            flows = [x[pair[:, 0]] + 2.0 * x[pair[:, 1]] for pair in ends]
            points = [w[part.shard.nodes] for part in parts]
            if size > 0.01:
                incumbent.update(points, flows)
            else:
                # Too late for a repair, which all workers give up at the same place.
                with pytest.raises(Expired), until(0.0):
                    incumbent.update(points, flows)
                incumbent.update_point(points)
            found += [incumbent.value, incumbent.gap, incumbent.parts.rounding]
        pairs = zip(incumbent.w, incumbent.u, strict=True)
        arrays = parts.gather([a for pair in pairs for a in pair])
    return np.array(found), arrays
