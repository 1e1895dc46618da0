"""One model for each component that fits all data, where there are fewer rows than coordinates.

Losses of rows depend on the products of rows and parameters alone. Where the rows of a component
are linearly independent some parameters have the products of all nodes' own minimizers at once:
they minimize every loss, without a jump, and the flow zero proves it. Iterations get there slowly,
since one row of data at a node says nothing about most of its coordinates.
"""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.losses.batched._terms import ROW_KINDS
from gtvcvx.problem import GTVProblem

# Products of rows with the parameters that were found are those that were asked for, to within
# this share of them: else rows contradict each other.
ACCURACY = 1e-8
# The squared number of rows over that of edges: solving for all takes so much less than iterations
# do, a hundredth of an iteration for each one.
MOST = 8_000


def interpolating(problem: GTVProblem) -> FloatArray | None:
    """Return parameters (n, d), constant on components, that minimize the loss of every node.

    None where losses are more than rows, or rows more than coordinates, or where rows contradict
    each other. Made once for all values of lambda.
    """
    return problem.cached("interpolation", lambda: _found(problem))


def _found(problem: GTVProblem) -> FloatArray | None:
    graph, losses = problem.graph, problem.losses
    components, d = graph.components, problem.dim
    labelled = np.bincount(components[losses.nodes_with_loss])
    # Every node with a loss has a row: this alone answers for nearly all problems.
    if not graph.n_edges or labelled.max(initial=0) > d:
        return None
    terms = losses.plain
    if not terms or any(term["kind"] not in ROW_KINDS for term in terms):
        return None
    X = terms[0]["X"] if len(terms) == 1 else np.concatenate([term["X"] for term in terms])
    node = np.concatenate([term["node"] for term in terms])
    rows = np.bincount(components[node])
    if rows.max() > d or len(X) ** 2 > MOST * graph.n_edges:
        return None
    own = losses.minimizer(graph.n_nodes)
    products = np.einsum("rj,rj->r", X, own[node])
    out = np.zeros((graph.n_nodes, d))
    for component in np.flatnonzero(rows):
        look()
        some = components[node] == component
        model = _solved(X[some], products[some])
        if model is None:
            return None
        out[components == component] = model
    return out


def _solved(X: FloatArray, products: FloatArray) -> FloatArray | None:
    """Return the least x (d,) with X x = products (r,), for r <= d; None if there is none."""
    import scipy.linalg  # slow to load, and seldom needed

    found = scipy.linalg.lstsq(X, products, lapack_driver="gelsy", check_finite=False)[0]
    missed = np.abs(X @ found - products).max()
    return np.asarray(found) if missed <= ACCURACY * np.abs(products).max() else None
