"""What workers do in the tests of certificates: functions of a module."""

import numpy as np

from gtvcvx.distributed._certificate import certify_parts
from gtvcvx.distributed._parts import Parts


def certify(fabric, given):
    """Certify a pair of the whole, of which each worker takes what its shards have."""
    folder, edges, w, u, path = given
    parts = Parts.load(fabric, folder)
    key = edges @ [parts.n_nodes, 1]
    nodes, flows = [], []
    for part in parts:
        ends = part.shard.nodes[part.shard.edges]
        node, flow = w[part.shard.nodes], u[np.searchsorted(key, ends @ [parts.n_nodes, 1])]
        # Whatever others have to say is not known here.
        node[part.ghosts] = np.nan
        flow[~part.counted] = np.nan
        nodes.append(node)
        flows.append(flow)
    with parts.running():
        return certify_parts(parts, nodes, flows, path)
