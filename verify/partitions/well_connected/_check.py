"""Theorem 2 of [GTV]: is a partition well-connected, for which lambda, and is it recovered.

[GTV] Y. SarcheshmehPour, Y. Tian, L. Zhang, A. Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization", Theorem 2 and Definition 1.
"""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from math import inf

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.instance._instance import plain_data
from verify.kernel.constants import SIGN_DIMENSION
from verify.partitions._cluster_report import ClusterReport, NodeSets
from verify.partitions._data import Partition, ProblemData, read_partition, read_problem
from verify.partitions._local_losses import LocalLosses
from verify.partitions._report import WellConnectedReport
from verify.partitions._rounding import Enclosure, gamma
from verify.partitions.constants._rational import RationalConstants, rational_constants
from verify.partitions.constants._theorem import TheoremConstants, theorem_constants
from verify.partitions.well_connected._best_sink import ClusterGraph, cluster_graphs
from verify.partitions.well_connected._compare import compare
from verify.partitions.well_connected._decide import Decision, decide, least_lambda
from verify.partitions.well_connected._demands import (
    ClusterDemands,
    boundary_weights,
    demands_of,
    exact_demands,
    single_node_witness,
    witness_document,
)
from verify.partitions.well_connected._roots import LocalHessians

#: Relative width of demands that is put down to rounding, ill-conditioned losses included.
_ROUNDING = 1e-3


def well_connected(
    problem: object, partition: object, solution: object = None
) -> WellConnectedReport:
    """Check whether every cluster of a partition is well-connected (Definition 1 of [GTV]).

    A cluster C is well-connected if some node i0 of it satisfies, for every nonempty A in C - {i0},

        sum over i in A of  b_i + beta_i |dC| / alpha + delta_i / lambda  <  cut(A, C - A),

    b_i being the weight of the edges from i to other clusters, |dC| the sum of the b_i, alpha the
    strong convexity of the sum of C's losses, w_bar its minimizer, beta_i the smoothness of the
    local loss and delta_i the dual norm of its gradient at w_bar; all in the penalty's own norm. If
    every cluster is well-connected, every GTV solution is constant on each cluster, and
    ||w_hat_i - w_bar|| <= |dC| lambda / alpha (half of (36), which is enough).

    The verdicts are exact: the constants are enclosed with outward rounding, flows and cuts are
    compared in integers, and ties (which do not hold, the inequality being strict) are decided with
    rational numbers. For l1 and linf in more than 8 dimensions the constants are known from two
    sides only, and a verdict is given where it does not depend on which. Each verdict carries a
    witness; ``report.save(path)`` writes them to a file that ``verify.check(path)`` proves or
    refuses in exact arithmetic, constants included.

    The condition is sufficient, not necessary: partitions that are recovered can fail it. With a
    solution the report says first whether the partition is recovered. The solution is certified,
    and its clusters are compared with those of the partition. Every solution is proved to have one
    model on a cluster, up to gap / room, where edges with room for the certified flow join its
    nodes; elsewhere the tolerance of ``Solution.clusters`` decides, and the report says so.

    What a solver found is checked back by ``well_connected(problem, solution.clusters(),
    solution)``: whether the clusters are no artefact of that tolerance.

    Parameters
    ----------
    problem : object or mapping
        A GTV problem with a method ``to_data()``, or its plain data.
    partition : array_like or list of lists
        (n,) labels, one per node in the order of the problem's nodes (such as those of
        ``solution.clusters()``), or a list of lists of nodes.
    solution : object, optional
        What a solver found: an object with ``w`` (n, d) and perhaps the flow ``u`` (m, d), such as
        a ``Solution``; the pair (w, u); or an array w. It need not be trusted.

    Returns
    -------
    WellConnectedReport
        If the theorem does not apply to a cluster (a loss that is not smooth, alpha = 0) or at all
        (the penalty is not the l1, l2 or linf norm), the report says so in ``reason``.

    Raises
    ------
    TypeError, ValueError
        If the data are malformed, the partition misses or repeats a node, or the solution has
        another shape.
    """
    plain = plain_data(problem)
    data = read_problem(plain)
    parts = read_partition(partition, data.names)
    graphs = cluster_graphs(data, parts)
    if data.norm is None:
        clusters = [
            _inapplicable(parts, c, data.norm_reason, boundary_weights(data, parts))
            for c in range(parts.n_clusters)
        ]
    else:
        clusters = _check_clusters(data, parts, graphs, LocalHessians(plain))
    failing = [cluster for cluster in clusters if not cluster.holds]
    return WellConnectedReport(
        not failing and data.norm is not None,
        {cluster.label: cluster for cluster in clusters},
        _summary(failing, data, len(clusters)),
        data.lam,
        data.norm or "",
        plain,
        None if solution is None else compare(problem, data, parts, solution),
    )


def _check_clusters(
    data: ProblemData, parts: Partition, graphs: list[ClusterGraph], hessians: LocalHessians
) -> list[ClusterReport]:
    losses = LocalLosses(data.n_nodes, data.dim, data.terms)
    constants = theorem_constants(data, parts, losses)
    boundary = boundary_weights(data, parts)
    return [
        _check_cluster(data, parts, graph, constants, boundary, hessians, c)
        for c, graph in enumerate(graphs)
    ]


def _check_cluster(
    data: ProblemData,
    parts: Partition,
    graph: ClusterGraph,
    constants: TheoremConstants,
    boundary: Enclosure,
    hessians: LocalHessians,
    c: int,
) -> ClusterReport:
    members = graph.nodes
    own = demands_of(data, graph, constants, boundary, c)
    reason = constants.reasons[c]
    if not reason and not (_sums_fit(own.demand.hi) and _sums_fit(graph.weights)):
        reason = "the weights or demands are too large for floating point"
    if reason:
        return _inapplicable(parts, c, reason, boundary, own)
    found: list[RationalConstants] = []

    def rational_demands() -> tuple[list[Fraction], list[Fraction]] | None:
        assert data.norm is not None
        if data.dim > SIGN_DIMENSION and not _nearly_exact(own.demand):
            return None  # maxima over sign vectors whose bounds differ: rationals bring no more
        exact = rational_constants(data, members, data.norm)
        if exact is None:
            return None
        found.append(exact)
        return exact_demands(data, parts, graph, exact)

    decision = decide(graph, own.demand, rational_demands)
    return _report_of(data, parts, graph, own, decision, found[0] if found else None, hessians, c)


def _report_of(
    data: ProblemData,
    parts: Partition,
    graph: ClusterGraph,
    own: ClusterDemands,
    decision: Decision,
    exact: RationalConstants | None,
    hessians: LocalHessians,
    c: int,
) -> ClusterReport:
    """Report of a cluster to which the theorem applies."""
    lam_min = least_lambda(graph, own.base_hi, own.delta.hi)
    if decision.holds:  # it holds here and the demands only fall with lambda
        lam_min = min(lam_min, float(np.nextafter(data.lam, 0.0)))
    bound = float(own.factor_hi * data.lam * (1.0 + gamma(2)))
    names = [parts.names[i] for i in graph.nodes]
    refuted = decision.decided and not decision.holds
    make = partial(witness_document, graph, own, decision, exact, hessians)
    return ClusterReport(
        label=parts.keys[c],
        nodes=names,
        holds=decision.holds,
        decided=decision.decided,
        reason=_verdict(decision, graph),
        applies=True,
        i0=None if decision.sink is None else names[decision.sink],
        margin=decision.margin,
        tightest_set=[names[p] for p in np.flatnonzero(decision.tight)],
        violating_sets=NodeSets(
            names,
            decision.sets if refuted else [],
            decision.left_out if refuted else np.zeros(0, np.int64),
        ),
        lam_min=lam_min,
        error_bound=bound,
        error_bound_printed=2.0 * bound,
        alpha=own.alpha_lo,
        beta=own.beta.hi,
        delta=own.delta.hi,
        boundary=float(own.cross.hi.sum()),
        _make_witness=make if decision.decided else None,
    )


def _nearly_exact(demand: Enclosure) -> bool:
    """Say whether nothing but rounding can keep the bounds of the demands apart."""
    return bool((demand.hi - demand.lo <= _ROUNDING * demand.hi).all())


def _sums_fit(values: FloatArray) -> bool:
    """Say whether sums of the values, and twice that, stay finite."""
    return float(values.max(initial=0.0)) * len(values) < 1e307


def _verdict(decision: Decision, graph: ClusterGraph) -> str:
    """One sentence on the verdict."""
    if graph.n_nodes == 1:
        return "a single node is vacuously well-connected"
    if decision.holds:
        return "all demands can be routed to i0 with slack"
    if graph.components[0] > 1:
        return f"the cluster is not connected ({graph.components[0]} components)"
    if not decision.decided:
        if decision.bounded:
            return "the condition lies between the bounds of the constants, which are not tight"
        return "the condition is within rounding of a tie and the constants are irrational"
    if decision.rational:
        return "a tie, or too near one for floats: exactly, some set has cut(A) <= d(A) for any i0"
    return "whatever i0, some set without it has cut(A) <= d(A)"


def _inapplicable(
    parts: Partition, c: int, reason: str, boundary: Enclosure, own: ClusterDemands | None = None
) -> ClusterReport:
    """Report of a cluster to which the theorem does not apply; a single node still holds."""
    members: IntArray = parts.members[c]
    names = [parts.names[i] for i in members]
    single = len(names) == 1 and own is not None
    unknown = np.full(len(names), inf)
    return ClusterReport(
        label=parts.keys[c],
        nodes=names,
        holds=single,
        decided=True,
        reason=f"a single node is vacuously well-connected; no error bound: {reason}"
        if single
        else reason,
        applies=False,
        i0=names[0] if single else None,
        margin=inf if single else 0.0,
        tightest_set=[],
        violating_sets=NodeSets(names, [], np.zeros(0, np.int64)),
        lam_min=0.0 if single else inf,
        error_bound=inf,
        error_bound_printed=inf,
        alpha=0.0 if own is None else own.alpha_lo,
        beta=unknown if own is None else own.beta.hi,
        delta=unknown,
        boundary=float(boundary.hi[members].sum()),
        _make_witness=partial(single_node_witness, int(members[0])) if single else None,
    )


def _summary(failing: list[ClusterReport], data: ProblemData, count: int) -> str:
    if data.norm is None:
        return f"the theorem does not apply: {data.norm_reason}"
    if not failing:
        return ""
    first = failing[0]
    return (
        f"{len(failing)} of {count} clusters are not proved well-connected;"
        f" cluster {first.label!r}: {first.reason}"
    )
