"""Exact recovery: is every solution of the GTV problem constant on the clusters of a partition.

Let w~ solve the problem on the cluster graph. Every solution is constant on the clusters if flows u
exist with, for L_i the local losses and A_e lambda the capacities,

    (D^T u)_i = -grad L_i(w~_c)          for every node i of every cluster c,
    ||u_e||_* <= t lambda A_e             on the edges inside clusters, with t < 1,
    u_e in lambda A_e dphi(w~_a - w~_b)   on the edges between clusters a and b;

some solution is constant there if and only if t <= 1 is possible. The last line fixes u_e (a split
in proportion to A_e, (51)) unless w~_a and w~_b agree, in all or, for l1 and linf, in some
coordinates: then it leaves u_e a face of the dual ball, over which t is minimized as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify._display import few, fitted, html_report, short
from verify.instance._instance import plain_data
from verify.partitions._data import Partition, ProblemData, read_partition, read_problem
from verify.partitions._local_losses import LocalLosses
from verify.partitions.constants._enclosures import dual_norm
from verify.partitions.recovery._cluster_graph import solve_cluster_graph
from verify.partitions.recovery._proof import RecoveryProof, prove_recovery
from verify.partitions.recovery._vector_flow import BetweenClusters, divergence, flows_inside
from verify.partitions.well_connected._best_sink import ClusterGraph, best_sink, cluster_graphs

#: Slacks below this are undecided: the solver's accuracy.
SLACK_TOLERANCE = 1e-6


@dataclass(frozen=True)
class RecoveryReport:
    """Result of :func:`recovers`.

    Attributes
    ----------
    holds : bool
        Whether every solution is constant on every cluster, to the accuracy of the solver;
        :meth:`prove` says what is proved.
    decided : bool
        False if the slack is within 1e-6 of zero or, on large clusters, the bounds on it have
        different signs; or if the test does not apply.
    slack : float
        1 - t, t the minimal congestion max ||u_e||_* / (lambda A_e) over the edges inside clusters;
        -inf if no flow exists at all. On large clusters that of the best flow found, a lower bound.
    slack_upper : float
        Upper bound on the slack; equal to it unless a cluster is large.
    slacks : dict of hashable to float
        The slack by cluster label; clusters joined by undetermined flows share theirs.
    lemma3 : bool
        Whether Lemma 3's scalar relaxation holds: the norms of the actual demands can be routed to
        one node of each cluster. Implied by Definition 1, implies ``holds``.
    lemma3_margin : float
        The least factor, over the clusters, by which those demands could grow.
    merged : list of (hashable, hashable)
        Pairs of neighbouring clusters whose parameters are equal.
    cluster_w : dict of hashable to ndarray
        Parameter vector w~ of each cluster by its label.
    w, u : ndarray
        (n, d) the solution that is constant on clusters, and (m, d) the flow found (zeros inside
        clusters for which none exists); with slack >= 0 they are an optimal pair.
    reason : str
        Why the test does not hold or apply; empty if it holds.
    """

    holds: bool
    decided: bool
    slack: float
    slack_upper: float
    slacks: dict[Hashable, float]
    lemma3: bool
    lemma3_margin: float
    merged: list[tuple[Hashable, Hashable]]
    cluster_w: dict[Hashable, FloatArray]
    w: FloatArray
    u: FloatArray
    reason: str
    _plain: Mapping[str, Any] = field(repr=False)
    _inner: BoolArray = field(repr=False)
    _connected: bool = field(repr=False)

    def prove(self, rtol: float = 1e-6) -> RecoveryProof:
        """Certify (w, u) exactly, and bound how far any solution is from constant on clusters.

        Parameters
        ----------
        rtol : float, default 1e-6
            Tolerance of the certificate; the bound uses the gap that it proves.

        Raises
        ------
        ValueError
            If the test does not apply.
        """
        data = read_problem(self._plain)
        if not self.slacks or not self.cluster_w:
            raise ValueError(f"there is nothing to prove: {self.reason}")
        return prove_recovery(self._plain, data, self.w, self.u, self._inner, self._connected, rtol)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; infinite numbers become strings."""

        def plain(x: float) -> float | str:
            return x if np.isfinite(x) else str(x)

        return {
            "schema": "gtv-recovery/1",
            "holds": self.holds,
            "decided": self.decided,
            "slack": plain(self.slack),
            "slack_upper": plain(self.slack_upper),
            "slacks": [[label, plain(x)] for label, x in self.slacks.items()],
            "lemma3": self.lemma3,
            "lemma3_margin": plain(self.lemma3_margin),
            "merged": [list(pair) for pair in self.merged],
            "cluster_w": [[label, w.tolist()] for label, w in self.cluster_w.items()],
            "reason": self.reason,
        }

    def __str__(self) -> str:
        head = "recovered" if self.holds else f"not recovered: {self.reason}"
        if not self.decided:
            head = f"not decided: {self.reason}"
        apart = self.slack_upper - self.slack > SLACK_TOLERANCE
        slack = f"{self.slack:.6g}" + (f" to {self.slack_upper:.6g}" if apart else "")
        lines = [f"exact recovery: {head}", f"  slack {slack} (needs > 0)"]
        lemma = "holds" if self.lemma3 else "does not hold"
        lines.append(f"  Lemma 3 {lemma}: margin {self.lemma3_margin:.6g} (needs > 1)")
        for k in few(len(self.merged)):
            a, b = ("...", "...") if k is None else map(short, self.merged[k])
            lines.append(f"  clusters {a} and {b} merge")
        return fitted(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show the report."""
        return html_report(str(self))


def recovers(problem: object, partition: object) -> RecoveryReport:
    """Test whether the solutions of a GTV problem are constant on the clusters of a partition.

    Unlike Definition 1 (``well_connected``) the test is not conservative: up to the accuracy of
    the solver it is necessary and sufficient. It solves the problem on the cluster graph with CVXPY
    and Clarabel, and then finds the flows inside each cluster: by maximum flows for the l1 penalty
    or d = 1, else by a cone problem; where that has more than 20,000 unknowns, by electrical flows,
    which bracket the slack and decide unless it is very close to zero.

    ``report.prove()`` turns the answer into an exact certificate.

    Parameters
    ----------
    problem : object or mapping
        A GTV problem with a method ``to_data()``, or its plain data; smooth losses and the l1, l2
        or linf penalty.
    partition : array_like or list of lists
        (n,) labels, one per node in the order of the problem's nodes, or a list of lists of nodes.

    Returns
    -------
    RecoveryReport
        With ``decided`` false and a ``reason`` if a loss is not smooth or the penalty no such norm.

    Raises
    ------
    TypeError, ValueError
        If the data are malformed, or the partition misses or repeats a node.
    cvxpy.SolverError
        If the solver fails.
    """
    plain = plain_data(problem)
    data = read_problem(plain)
    parts = read_partition(partition, data.names)
    losses = LocalLosses(data.n_nodes, data.dim, data.terms)
    rough = np.flatnonzero(losses.nonsmooth != "")
    if data.norm is None or len(rough):
        reason = data.norm_reason or (
            f"the loss of node {data.names[rough[0]]!r} {losses.nonsmooth[rough[0]]}"
        )
        return _not_applicable(plain, data, parts, f"the test does not apply: {reason}")
    cluster = solve_cluster_graph(data, parts, losses)
    w = cluster.w[parts.cluster_of]
    flows = BetweenClusters(data, parts, cluster)
    gradients = losses.gradients(w).value
    slacks, above, u = flows_inside(data, parts, flows, gradients)
    graphs = cluster_graphs(data, parts)
    lemma3_margin = _lemma3_margin(data, graphs, flows, gradients)
    slack, slack_upper = min(slacks), min(above)
    worst = parts.keys[int(np.argmin(slacks))]
    ends = parts.cluster_of[data.edges]
    return RecoveryReport(
        holds=slack > SLACK_TOLERANCE,
        decided=slack > SLACK_TOLERANCE or slack_upper < -SLACK_TOLERANCE,
        slack=slack,
        slack_upper=slack_upper,
        slacks=dict(zip(parts.keys, slacks, strict=True)),
        lemma3=lemma3_margin > 1.0,
        lemma3_margin=lemma3_margin,
        merged=[
            (parts.keys[a], parts.keys[b])
            for (a, b), same in zip(cluster.pairs.tolist(), flows.merged, strict=True)
            if same
        ],
        cluster_w=dict(zip(parts.keys, cluster.w, strict=True)),
        w=w,
        u=u,
        reason=_reason(slack, slack_upper, worst),
        _plain=plain,
        _inner=ends[:, 0] == ends[:, 1],
        _connected=all(graph.components[0] == 1 for graph in graphs),
    )


def _reason(slack: float, slack_upper: float, worst: Hashable) -> str:
    if slack > SLACK_TOLERANCE:
        return ""
    if slack_upper > SLACK_TOLERANCE:
        return f"the slack of cluster {worst!r} is between {slack:.6g} and {slack_upper:.6g}"
    if slack_upper == -inf:
        return f"cluster {worst!r} is disconnected and its parts do not balance"
    if slack_upper >= -SLACK_TOLERANCE:
        return f"cluster {worst!r} is within {SLACK_TOLERANCE:g} of a tie"
    least = "" if slack_upper - slack <= SLACK_TOLERANCE else "at least "
    return f"cluster {worst!r} needs {least}{1 - slack_upper:.6g} times the capacity of its edges"


def _not_applicable(
    plain: Mapping[str, Any], data: ProblemData, parts: Partition, reason: str
) -> RecoveryReport:
    m = len(data.edges)
    return RecoveryReport(
        False, False, -inf, inf, dict.fromkeys(parts.keys, -inf), False, 0.0, [], {},
        np.zeros((data.n_nodes, data.dim)), np.zeros((m, data.dim)), reason,
        plain, np.zeros(m, dtype=bool), False,
    )  # fmt: skip


def _lemma3_margin(
    data: ProblemData, graphs: list[ClusterGraph], flows: BetweenClusters, gradients: FloatArray
) -> float:
    """Least margin over the clusters with the norms of the actual demands."""
    supply = -gradients - divergence(data.edges, flows.flow, data.n_nodes)
    demand = dual_norm(supply, str(data.norm)) / data.lam
    margin = inf
    for graph in graphs:
        if graph.n_nodes == 1:
            continue
        if graph.components[0] > 1:
            return 0.0
        own = demand[graph.nodes]
        margin = min(margin, best_sink(graph, np.zeros(graph.n_nodes), own).value)
    return margin
