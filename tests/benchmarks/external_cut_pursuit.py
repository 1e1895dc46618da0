"""Run by external.py in an environment that has pycut-pursuit: one problem in, one w out."""

import sys
import time

import numpy as np
from external_answer import write
from pycut_pursuit.cp_d1_ql1b import cp_d1_ql1b
from pycut_pursuit.cp_prox_tv import cp_prox_tv

# Its default, 10, stops before the tolerance is met.
ITERATIONS = 1000

given, answer = sys.argv[1:]
data = dict(np.load(given))
edges, n, d = data["edges"], int(data["n_nodes"]), data["centre"].shape[1]
start = time.perf_counter()
order = np.lexsort((edges[:, 1], edges[:, 0]))
first = np.searchsorted(edges[order, 0], np.arange(n + 1)).astype(np.int32)
options = {
    "edge_weights": data["capacities"][order],
    "cp_dif_tol": float(data["tolerance"]),
    "cp_it_max": ITERATIONS,
    "verbose": 0,
}
graph = first, edges[order, 1].astype(np.int32)
if d == 1:
    found = cp_d1_ql1b(data["centre"][:, 0].copy(), data["curvature"], *graph, **options)
    w = np.asarray(found[1])[found[0]][:, None]
else:
    target = np.asfortranarray((data["centre"] / data["curvature"][:, None]).T)
    # One weight a node is documented too, but then version 0.1.4 reads beyond the array.
    metric = np.asfortranarray(np.broadcast_to(data["curvature"], target.shape))
    found = cp_prox_tv(target, *graph, l22_metric=metric, d1p=int(data["norm"]), **options)
    w = np.asarray(found[1])[:, found[0]].T
seconds = time.perf_counter() - start
write(answer, w, seconds)
