"""Exact check of the two kinds of witness for Definition 1 (well-connected clusters).

A cluster C is well-connected if some node i0 of it satisfies cut(A, C - A) > d(A) for every
nonempty A in C - {i0}, with the demands

    d_i = b_i + beta_i |dC| / alpha + delta_i / lambda,

b_i the weight of the edges from i to other clusters and |dC| the sum of all b_i.

- "well-connected" is witnessed by i0 and a flow inside the cluster that respects the capacities A_e
  and takes MORE than d_i out of every node i != i0: for any A, d(A) < net flow out of A <= cut(A).
- "not well-connected" is witnessed by violating sets, cut(A) <= d(A), that have no node in common:
  a node i0 lies outside one of them. The sets C - {i} are given by the node i alone.

Cuts, boundaries and demands are recomputed from the problem data in exact arithmetic, and the
constants alpha, beta and delta of the witness are verified against the data
(`verify.kernel.constants`). The file format is in docs/theorem2.md. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from verify.kernel import work
from verify.kernel.constants import Constants, Quadratics, check_constants, norm_of
from verify.kernel.data import CONNECTIVITY, canonical, keys, stated
from verify.kernel.matrices import Root
from verify.kernel.numbers import Number, as_list, scaled, table, unit
from verify.kernel.quadratic_forms import common_denominator
from verify.kernel.verdict import Verdict, malformed, shown

SCHEMA = CONNECTIVITY
YES, NO = CLAIMS = ("well-connected", "not well-connected")
_COMMON = {"claim", "cluster", "alpha", "beta", "delta", "center", "modulus"}
_PROOF = {YES: {"sink", "flow", "scale"}, NO: {"sets", "left_out"}}
_OPTIONAL = {YES: {"roots"}, NO: {"roots", "directions"}}


class Answer(NamedTuple):
    """Status of a claim and the reason for it.

    The status is CERTIFIED (it follows from the witness), REFUTED (the document is malformed or
    false) or UNPROVED (there is no rule for a loss or the penalty).
    """

    status: str
    reason: str


class _Cluster(NamedTuple):
    """A cluster: inner edges by position in it, their weights and the b_i times 2^shift."""

    nodes: list[int]
    position: dict[int, int]
    edges: list[tuple[int, int]]
    weights: list[Number]
    outside: list[Number]
    shift: int


def check_document(document: Mapping[str, Any], data: Mapping[str, Any] | None = None) -> Answer:
    """Check a document about a partition.

    Parameters
    ----------
    document : mapping
        "schema", "sha256" (of the canonical data), "claim", "clusters" (a witness each, as
        :func:`check_cluster` takes it), optionally "data" and "producer". The claim
        "well-connected" needs witnesses that all clusters of a partition of the nodes are
        well-connected, the opposite claim one cluster that is not.
    data : mapping, optional
        Plain data of the problem, if the document does not embed them; otherwise both must agree.
    """

    def run() -> str:
        doc = keys(
            document, {"schema", "sha256", "claim", "clusters"}, {"data", "producer"}, "document"
        )
        if doc["schema"] != SCHEMA:
            raise malformed(f"schema must be {SCHEMA!r}")
        return _checked(doc["claim"], stated(doc, data), as_list(doc["clusters"], None, "clusters"))

    return _answer(run)


def check_witnesses(claim: object, data: Mapping[str, Any], witnesses: list[Any]) -> Answer:
    """Check the claim about a partition by the witnesses of its clusters, on canonical data."""
    return _answer(lambda: _checked(claim, data, witnesses))


def _checked(value: object, data: Mapping[str, Any], witnesses: list[Any]) -> str:
    claim = _claim(value)
    clusters = _check_all(data, witnesses)
    if claim == NO and all(witness["claim"] == YES for witness in witnesses):
        raise Verdict("REFUTED", "false document: no cluster is claimed not well-connected")
    if claim == YES:
        if any(witness["claim"] == NO for witness in witnesses):
            raise Verdict("REFUTED", "false document: a cluster is not well-connected")
        if sum(len(cluster.nodes) for cluster in clusters) < data["n_nodes"]:
            raise Verdict("REFUTED", "false document: a node is in no cluster")
        return "every cluster of the partition is well-connected"
    return "a cluster of the partition is not well-connected"


def check_cluster(data: Mapping[str, Any], witness: Mapping[str, Any]) -> Answer:
    """Check the claim about one cluster.

    Parameters
    ----------
    data : mapping
        Plain data of the problem.
    witness : mapping
        "claim", "cluster" (node indices), "alpha" (number, or null for infinity), "beta" and
        "delta" (a number for each node of the cluster), "center" (d numbers: about the minimizer of
        the cluster's losses) and "modulus" (a lower bound on alpha), either of them null where
        nothing depends on it; for a positive claim "sink" (a node of the cluster), "flow" (an
        integer for each inner edge, in the order of the data, positive from its lower to its higher
        end) and "scale" (flows are in units of 1 / scale); for a negative claim "sets" (lists of
        nodes), "left_out" (nodes i that stand for C - {i}) and, where the constants need them,
        "directions" ("alpha": d numbers, "beta": d numbers or null for each node of the cluster).
        "roots" ("total": rows of d numbers, "inverse": d rows of d numbers, "local": rows of d
        numbers or null for each node of the cluster) bound matrices where the constants need it.
        Numbers are floats, integers, hexadecimal floats or hexadecimal ratios "0xp/0xq".
    """

    def run() -> str:
        _check_all(canonical(data), [witness])
        return f"the cluster is {witness['claim']}"

    return _answer(run)


def _answer(run: Any) -> Answer:
    try:
        return Answer("CERTIFIED", run())
    except Verdict as verdict:
        return Answer(verdict.status, verdict.reason)


def _claim(value: object) -> str:
    if value not in CLAIMS:
        raise malformed(f"claim must be one of {CLAIMS}")
    return str(value)


def _check_all(data: Mapping[str, Any], witnesses: list[Any]) -> list[_Cluster]:
    """Check every witness; what can be false without the constants is looked at first."""
    found = []
    for k, witness in enumerate(witnesses):
        if not isinstance(witness, Mapping):
            raise malformed(f"clusters[{k}] must be an object")
        claim = _claim(witness.get("claim"))
        found.append(keys(witness, _COMMON | _PROOF[claim], _OPTIONAL[claim], f"clusters[{k}]"))
    clusters = _clusters(data, [entry["cluster"] for entry in found])
    (lam,), k_lam = scaled([data["lam"]])
    norm, losses = norm_of(data["penalty"]), Quadratics(data)
    for cluster, entry in zip(clusters, found, strict=True):
        constants = _constants(entry, len(cluster.nodes), data["dim"])
        demands = _demands(cluster, constants, lam * unit(k_lam))
        if entry["claim"] == YES:
            _check_flow(cluster, demands, entry)
        else:
            _check_sets(cluster, demands, entry)
        # a cluster of one node has no set A: the constants do not matter
        if len(cluster.nodes) > 1:
            check_constants(losses, cluster.nodes, norm, constants, entry["claim"] == YES)
    return clusters


def _clusters(data: Mapping[str, Any], lists: list[object]) -> list[_Cluster]:
    """Rebuild the clusters from the raw data, in one pass over the edges."""
    weights, shift = scaled(data["weights"])
    where: dict[int, int] = {}
    clusters = []
    for c, values in enumerate(lists):
        nodes = _nodes(values, data["n_nodes"], f"clusters[{c}].cluster")
        if not nodes:
            raise malformed(f"clusters[{c}].cluster is empty")
        if any(node in where for node in nodes):
            raise malformed(f"clusters[{c}].cluster: a node is in two clusters")
        where.update(dict.fromkeys(nodes, c))
        position = {node: p for p, node in enumerate(nodes)}
        clusters.append(_Cluster(nodes, position, [], [], [0] * len(nodes), shift))
    for (head, tail), weight in zip(data["edges"], weights, strict=True):
        a, b = where.get(head), where.get(tail)
        if a is not None and a == b:
            own = clusters[a]
            own.edges.append((own.position[head], own.position[tail]))
            own.weights.append(weight)
            continue
        for node, owner in ((head, a), (tail, b)):
            if owner is not None:
                clusters[owner].outside[clusters[owner].position[node]] += weight
    return clusters


def _nodes(values: object, n: int, name: str) -> list[int]:
    """Read distinct node indices."""
    nodes = as_list(values, None, name)
    for node in nodes:
        if not isinstance(node, int) or isinstance(node, bool) or not 0 <= node < n:
            raise malformed(f"{name}: {shown(node)} is not a node index")
    if len(set(nodes)) != len(nodes):
        raise malformed(f"{name}: a node occurs twice")
    return nodes


def _constants(entry: Mapping[str, Any], size: int, d: int) -> Constants:
    def one(name: str) -> Fraction | None:
        return None if entry[name] is None else _numbers([entry[name]], 1, name)[0]

    if (alpha := one("alpha")) == 0:
        raise malformed("alpha must be positive")
    beta, delta = (_numbers(entry[name], size, name) for name in ("beta", "delta"))
    center = _vector(entry["center"], d, "center")
    along = keys(entry.get("directions", {}), set(), {"alpha", "beta"}, "directions")
    alpha_along = _direction(along.get("alpha"), d, "directions.alpha")
    rows = as_list(along.get("beta", [None] * size), size, "directions.beta")
    beta_along = [_direction(row, d, f"directions.beta[{k}]") for k, row in enumerate(rows)]
    roots = keys(entry.get("roots", {}), set(), {"total", "inverse", "local"}, "roots")
    total = _root(roots.get("total"), d, "roots.total")
    guess = roots.get("inverse")
    inverse = None if guess is None else table(guess, d, d, "roots.inverse")
    lists = as_list(roots.get("local", [None] * size), size, "roots.local")
    local = [_root(rows, d, f"roots.local[{k}]") for k, rows in enumerate(lists)]
    return Constants(
        alpha, beta, delta, center, one("modulus"),
        alpha_along, beta_along, total, inverse, local,
    )  # fmt: skip


def _root(rows: object, d: int, name: str) -> Root | None:
    return None if rows is None else table(rows, None, d, name)


def _vector(values: object, d: int, name: str) -> list[Fraction] | None:
    return None if values is None else _numbers(values, d, name, signed=True)


def _direction(values: object, d: int, name: str) -> list[Fraction] | None:
    """Read a vector that is not zero, whose quotient v^T H v / ||v||^2 says something."""
    vector = _vector(values, d, name)
    if vector is not None and not any(vector):
        raise malformed(f"{name} must not be zero")
    return vector


def _numbers(values: object, length: int, name: str, signed: bool = False) -> list[Fraction]:
    """Read witness numbers as Fractions, not negative unless they are ``signed``."""
    read, k = scaled(as_list(values, length, name))
    if not signed and any(v < 0 for v in read):
        raise malformed(f"{name} must not be negative")
    return [v * unit(k) for v in read]


def _demands(cluster: _Cluster, constants: Constants, lam: Fraction) -> list[Fraction]:
    """d_i = b_i + beta_i |dC| / alpha + delta_i / lambda."""
    boundary = sum(cluster.outside) * unit(cluster.shift)
    factor = Fraction(0)
    if constants.alpha is not None and boundary:
        factor = boundary / constants.alpha
    work.rows(len(cluster.nodes), 2)
    return [
        b * unit(cluster.shift) + beta * factor + delta / lam
        for b, beta, delta in zip(cluster.outside, constants.beta, constants.delta, strict=True)
    ]


def _positions(cluster: _Cluster, values: object, name: str) -> list[int]:
    nodes = _nodes(values, 1 << 62, name)
    for node in nodes:
        if node not in cluster.position:
            raise malformed(f"{name}: node {node} is not in the cluster")
    return [cluster.position[node] for node in nodes]


def _check_flow(cluster: _Cluster, demands: Sequence[Fraction], entry: Mapping[str, Any]) -> None:
    """Refuse a flow that exceeds a capacity or does not take out more than every demand."""
    (sink,) = _positions(cluster, [entry["sink"]], "sink")
    flow = as_list(entry["flow"], len(cluster.edges), "flow")
    scale = entry["scale"]
    if any(type(f) is not int for f in flow) or type(scale) is not int or scale < 1:
        raise malformed("flow must be integers, scale a positive integer")
    longest = max((f.bit_length() for f in flow), default=0) + scale.bit_length()
    work.operations(4 * len(flow))
    work.charge((len(flow) + len(demands)) * (8 + work.product(longest)))
    net = [0] * len(cluster.nodes)
    for (a, b), w, f in zip(cluster.edges, cluster.weights, flow, strict=True):
        if abs(f) << cluster.shift > w * scale:
            ends = cluster.nodes[a], cluster.nodes[b]
            raise Verdict("REFUTED", f"false flow: above the capacity of the edge {ends}")
        net[a] += f
        net[b] -= f
    for p, demand in enumerate(demands):
        if p != sink and not net[p] * demand.denominator > demand.numerator * scale:
            node = cluster.nodes[p]
            raise Verdict("REFUTED", f"false flow: node {node} sends no more than its demand")


def _check_sets(cluster: _Cluster, demands: Sequence[Fraction], entry: Mapping[str, Any]) -> None:
    """Refuse sets that do not violate the condition or that have a node in common."""
    scale = common_denominator(demands)
    longest = max(work.length(x) for x in demands)
    work.charge(2 * len(demands) * work.addition(scale.bit_length(), longest))
    needs = [x.numerator * (scale // x.denominator) for x in demands]  # in units of 1 / scale
    longest = max(x.bit_length() for x in needs) + scale.bit_length() + cluster.shift
    common = set(range(len(cluster.nodes)))
    for k, nodes in enumerate(as_list(entry["sets"], None, "sets")):
        inside = set(_positions(cluster, nodes, f"sets[{k}]"))
        if not inside or len(inside) == len(cluster.nodes):
            raise malformed(f"sets[{k}] is empty or the whole cluster")
        work.charge(4 * len(cluster.edges) + len(inside) * (2 + (longest >> 9)))
        work.operations(4)
        ends = zip(cluster.edges, cluster.weights, strict=True)
        cut: Number = sum(w for (a, b), w in ends if (a in inside) != (b in inside))
        if cut * scale > sum(needs[p] for p in inside) << cluster.shift:
            raise Verdict("REFUTED", f"false set: sets[{k}] does not violate the condition")
        common &= inside
    left_out = _positions(cluster, entry["left_out"], "left_out")
    if left_out and len(cluster.nodes) == 1:
        raise malformed("left_out: a cluster of one node has no violating set")
    degree: list[Number] = [0] * len(cluster.nodes)
    for (a, b), w in zip(cluster.edges, cluster.weights, strict=True):
        degree[a] += w
        degree[b] += w
    total = sum(needs)
    work.charge(2 * len(left_out) * work.product(longest))
    for p in left_out:
        if degree[p] * scale > (total - needs[p]) << cluster.shift:
            node = cluster.nodes[p]
            raise Verdict("REFUTED", f"false set: all but node {node} do not violate the condition")
        common.discard(p)
    if common:
        node = cluster.nodes[min(common)]
        raise Verdict("REFUTED", f"false sets: node {node} lies in every one of them")
