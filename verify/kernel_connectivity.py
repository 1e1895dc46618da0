"""Exact check of the two kinds of witness for Definition 1 (well-connected clusters).

A cluster C is well-connected if some node i0 of it satisfies cut(A, C - A) > d(A) for every
nonempty A in C - {i0}, with the demands

    d_i = b_i + beta_i |dC| / alpha + delta_i / lambda,

b_i the weight of the edges from i to other clusters and |dC| the sum of all b_i.

- "well-connected" is witnessed by i0 and a flow inside the cluster that respects the capacities A_e
  and takes MORE than d_i out of every node i != i0: for any A, d(A) < net flow out of A <= cut(A).
- "not well-connected" is witnessed by violating sets, cut(A) <= d(A), that have no node in common:
  a node i0 lies outside one of them. The sets C - {i} are given by the node i alone.

Cuts, boundaries and demands are recomputed from the problem data in exact arithmetic; whoever found
the witness is not trusted. The constants alpha, beta and delta are part of the claim. Standard
library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel_numbers import Number, Verdict, as_list, malformed, scaled

SCHEMA = "gtv-connectivity/1"
CLAIMS = ("well-connected", "not well-connected")


class Answer(NamedTuple):
    """Status "PROVED" or "REFUTED" of a claim, and why."""

    status: str
    reason: str


class _Cluster(NamedTuple):
    """Inner edges by position in the cluster, their weights times 2^shift, and exact demands."""

    size: int
    position: dict[int, int]
    edges: list[tuple[int, int]]
    weights: list[Number]
    shift: int
    demands: list[Fraction]


def check_cluster(data: Mapping[str, Any], witness: Mapping[str, Any]) -> Answer:
    """Check the claim about one cluster.

    Parameters
    ----------
    data
        Plain data of the problem; ``edges``, ``weights``, ``n_nodes`` and ``lam`` are read.
    witness
        "schema", "claim", "cluster" (node indices), "alpha" (number, or null for infinity), "beta"
        and "delta" (a number for each node of the cluster), and for a positive claim "sink" (a node
        of the cluster), "flow" (an integer for each inner edge, in the order of the data, positive
        from its lower to its higher end) and "scale" (flows are in units of 1 / scale); for a
        negative claim "sets" (lists of nodes) and "left_out" (nodes i that stand for C - {i}).
        Numbers are floats, integers, hexadecimal floats or hexadecimal ratios "0xp/0xq".

    Returns
    -------
    Answer
        "PROVED" if the claim follows from the witness, else "REFUTED" with the first fault.
    """
    try:
        if not isinstance(witness, Mapping) or witness.get("schema") != SCHEMA:
            raise malformed(f"witness.schema must be {SCHEMA!r}")
        claim = witness.get("claim")
        if claim not in CLAIMS:
            raise malformed(f"witness.claim must be one of {CLAIMS}")
        cluster = _cluster(data, witness)
        if claim == "well-connected":
            _check_flow(cluster, witness)
        else:
            _check_sets(cluster, witness)
    except Verdict as verdict:
        return Answer(verdict.status, verdict.reason)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Answer("REFUTED", f"malformed: {type(error).__name__}: {error}")
    return Answer("PROVED", f"the cluster is {claim}")


def _cluster(data: Mapping[str, Any], witness: Mapping[str, Any]) -> _Cluster:
    """Rebuild the cluster and its demands from the raw data."""
    nodes = _nodes(witness["cluster"], int(data["n_nodes"]), "cluster")
    if not nodes:
        raise malformed("the cluster is empty")
    position = {node: p for p, node in enumerate(nodes)}
    rows = as_list(data["edges"], None, "edges")
    values, k = scaled(as_list(data["weights"], len(rows), "weights"))
    outside: list[Number] = [0] * len(nodes)
    edges: list[tuple[int, int]] = []
    weights: list[Number] = []
    for (head, tail), value in zip(rows, values, strict=True):
        if value <= 0 or head == tail:
            raise malformed("weights must be positive and edges join two nodes")
        a, b = position.get(head), position.get(tail)
        if a is not None and b is not None:
            edges.append((a, b))
            weights.append(value)
        elif a is not None:
            outside[a] += value
        elif b is not None:
            outside[b] += value
    cross = [Fraction(x) / (1 << k) for x in outside]
    (lam,) = _numbers([data["lam"]], 1, "lam")
    if lam <= 0:
        raise malformed("lam must be positive")
    boundary = Fraction(sum(outside)) / (1 << k)
    beta = _numbers(witness["beta"], len(nodes), "beta")
    delta = _numbers(witness["delta"], len(nodes), "delta")
    factor = _boundary_factor(boundary, witness["alpha"])
    demands = [c + b * factor + g / lam for c, b, g in zip(cross, beta, delta, strict=True)]
    return _Cluster(len(nodes), position, edges, weights, k, demands)


def _boundary_factor(boundary: Fraction, alpha: object) -> Fraction:
    """|dC| / alpha; 0 without a boundary, whatever alpha."""
    if alpha is None or boundary == 0:
        return Fraction(0)
    (value,) = _numbers([alpha], 1, "alpha")
    if value <= 0:
        raise malformed("alpha must be positive")
    return boundary / value


def _numbers(values: Sequence[object] | object, length: int, name: str) -> list[Fraction]:
    """Read nonnegative witness numbers as Fractions."""
    read, k = scaled(as_list(values, length, name))
    if any(v < 0 for v in read):
        raise malformed(f"{name} must be nonnegative")
    return [Fraction(v) / (1 << k) for v in read]


def _nodes(values: object, n: int, name: str) -> list[int]:
    """Read distinct node indices."""
    nodes = as_list(values, None, name)
    for node in nodes:
        if not isinstance(node, int) or isinstance(node, bool) or not 0 <= node < n:
            raise malformed(f"{name}: {str(node)[:40]!r} is not a node index")
    if len(set(nodes)) != len(nodes):
        raise malformed(f"{name}: a node occurs twice")
    return nodes


def _positions(cluster: _Cluster, values: object, name: str) -> list[int]:
    nodes = as_list(values, None, name)
    try:
        found = [cluster.position[node] for node in nodes]
    except KeyError as missing:
        raise malformed(f"{name}: node {missing} is not in the cluster") from None
    if len(set(found)) != len(found):
        raise malformed(f"{name}: a node occurs twice")
    return found


def _check_flow(cluster: _Cluster, witness: Mapping[str, Any]) -> None:
    """Refuse a flow that exceeds a capacity or does not take out more than every demand."""
    (sink,) = _positions(cluster, [witness["sink"]], "sink")
    flow = as_list(witness["flow"], len(cluster.edges), "flow")
    scale = witness["scale"]
    if any(type(f) is not int for f in flow) or type(scale) is not int or scale < 1:
        raise malformed("flow must be integers, scale a positive integer")
    net = [0] * cluster.size
    for e, ((a, b), w, f) in enumerate(zip(cluster.edges, cluster.weights, flow, strict=True)):
        if abs(f) << cluster.shift > w * scale:
            raise Verdict("REFUTED", f"the flow on inner edge {e} exceeds its capacity")
        net[a] += f
        net[b] -= f
    for p, demand in enumerate(cluster.demands):
        if p != sink and not net[p] * demand.denominator > demand.numerator * scale:
            raise Verdict("REFUTED", f"node {p} of the cluster sends no more than its demand")


def _check_sets(cluster: _Cluster, witness: Mapping[str, Any]) -> None:
    """Refuse sets that do not violate the condition or that have a node in common."""
    common = set(range(cluster.size))
    for k, nodes in enumerate(as_list(witness["sets"], None, "sets")):
        inside = set(_positions(cluster, nodes, f"sets[{k}]"))
        if not inside or len(inside) == cluster.size:
            raise malformed(f"sets[{k}] is empty or the whole cluster")
        cut: Number = 0
        for (a, b), w in zip(cluster.edges, cluster.weights, strict=True):
            if (a in inside) != (b in inside):
                cut += w
        if Fraction(cut) / (1 << cluster.shift) > sum(cluster.demands[p] for p in inside):
            raise Verdict("REFUTED", f"sets[{k}] does not violate the condition")
        common &= inside
    left_out = _positions(cluster, witness["left_out"], "left_out")
    if left_out and cluster.size == 1:
        raise malformed("left_out: a cluster of one node has no violating set")
    degree: list[Number] = [0] * cluster.size
    for (a, b), w in zip(cluster.edges, cluster.weights, strict=True):
        degree[a] += w
        degree[b] += w
    total = sum(cluster.demands, Fraction(0))
    for p in left_out:
        if Fraction(degree[p]) / (1 << cluster.shift) > total - cluster.demands[p]:
            raise Verdict("REFUTED", f"all nodes but position {p} do not violate the condition")
        common.discard(p)
    if common:
        raise Verdict("REFUTED", f"position {min(common)} lies in every violating set")
