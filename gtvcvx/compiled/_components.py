"""Compiled search for connected components; its SciPy twin is in `gtvcvx.graph`."""

from __future__ import annotations

from gtvcvx._arrays import IntArray
from gtvcvx.compiled import compiled


@compiled(small=True, allocates=False)
def label_components(edges: IntArray, labels: IntArray) -> int:
    """Write the component of each node to labels (n,), numbered by its first node.

    Returns how many there are. Every node points to one that is no larger, and leads to the first
    of its tree; an edge (m, 2) joins two trees, and paths are halved as they are gone along.
    """
    n = len(labels)
    for i in range(n):
        labels[i] = i
    for e in range(len(edges)):
        i, j = edges[e, 0], edges[e, 1]
        while labels[i] != i:
            labels[i] = labels[labels[i]]
            i = labels[i]
        while labels[j] != j:
            labels[j] = labels[labels[j]]
            j = labels[j]
        if i < j:
            labels[j] = i
        else:
            labels[i] = j
    count = 0
    for i in range(n):
        if labels[i] == i:
            labels[i] = count
            count += 1
        else:
            # The node that this one points to comes before it, and has its number already.
            labels[i] = labels[labels[i]]
    return count
