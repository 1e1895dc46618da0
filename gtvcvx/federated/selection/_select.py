"""Edges that a multiple test does not reject: equal parameters at both ends are plausible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from gtvcvx._arrays import BoolArray, FloatArray, IntArray, is_number
from gtvcvx.federated.selection._local_estimate import (
    LocalEstimate,
    estimate_of_terms,
    message_shapes,
)
from gtvcvx.graph import EmpiricalGraph, differences
from gtvcvx.losses import Losses, stacked
from gtvcvx.losses.batched._terms import terms_by_node

# Covariances of this many edges are factored at a time: 32 MB of them at p = 30.
_CHUNK = 4096


@dataclass(frozen=True, repr=False)
class EdgeSelection:
    """Which candidate edges are kept, and why.

    Parameters
    ----------
    graph : EmpiricalGraph
        All nodes and the kept edges, with the weights of the given graph; edges of the complete
        graph weigh 1.
    candidates : ndarray of int, shape (m, 2)
        Tested edges, ends (head, tail).
    statistics : ndarray, shape (m,)
        W_e^2.
    p_values : ndarray, shape (m,)
        Upper tail of the chi-squared distribution at W_e^2, not corrected for their number.
    threshold : float
        Edges with a statistic above it are dropped; +inf without candidates.
    kept : ndarray of bool, shape (m,)
    alpha : float
        Nominal probability that any edge between equal parameters is dropped.
    covariance : str
        Which one was used.
    degrees_of_freedom : int
        p.
    status : {"asymptotic", "heuristic"}
        Whether the threshold has its nominal level for large n; with a ridge at any node it has
        not.
    floats_per_message : int
        Numbers that a device sends to each of its candidate neighbours, once.
    """

    graph: EmpiricalGraph
    candidates: IntArray
    statistics: FloatArray
    p_values: FloatArray
    threshold: float
    kept: BoolArray
    alpha: float
    covariance: str
    degrees_of_freedom: int
    status: str
    floats_per_message: int

    @property
    def floats_sent(self) -> IntArray:
        """Numbers that each device sends in all, (n,): 8 bytes each, headers not counted."""
        degrees = np.bincount(self.candidates.ravel(), minlength=self.graph.n_nodes)
        return degrees.astype(np.int64) * self.floats_per_message

    def __repr__(self) -> str:
        return (
            f"EdgeSelection({int(self.kept.sum())} of {len(self.kept)} edges kept, "
            f"covariance {self.covariance}, alpha {self.alpha:g}, {self.status})"
        )


def select_edges(
    graph: EmpiricalGraph,
    losses: Losses,
    *,
    alpha: float = 0.05,
    covariance: str = "HC3",
    candidates: str = "graph",
    ridge: float = 0.0,
) -> EdgeSelection:
    r"""Drop edges whose ends differ by more than chance ([FedADMM] (10)-(11)).

    .. math:: W_e^2 = (\theta_i - \theta_j)^T (\Omega_i / n_i + \Omega_j / n_j)^{-1}
              (\theta_i - \theta_j)

    with the local minimizers theta and their covariances (`local_estimate`); the edge is kept if
    W_e^2 is at most the upper alpha/|E| quantile of the chi-squared distribution with p degrees of
    freedom. Each device sends theta and Omega, ``p + p (p + 1) / 2`` numbers, once to each
    candidate neighbour: summaries of its rows, for which no privacy is claimed.

    The covariance as printed, HC0, is far too small where n is a few p: at n = 50 and p = 20 it
    drops nearly half of the right edges, HC3 hardly any.

    Parameters
    ----------
    graph : EmpiricalGraph
    losses : StackedLoss, sequence of Loss or mapping of node label to Loss
        Of all nodes, see `local_estimate`.
    alpha : float, default 0.05
        Level, in (0, 1); the paper gives none.
    covariance : {"HC3", "HC1", "HC0", "ols"}, default "HC3"
        See `local_estimate`.
    candidates : {"graph", "complete"}, default "graph"
        Edges of the graph (the paper's ES), or all pairs of nodes (Local-ES).
    ridge : float, default 0.0
        See `local_estimate`; > 0 makes the status "heuristic".

    Returns
    -------
    EdgeSelection

    Raises
    ------
    ValueError
        A node without an estimate, by its name, see `local_estimate`; options out of range.
    """
    check_options(alpha, candidates)
    tested = graph if candidates == "graph" else complete(graph)
    each = terms_by_node(stacked(losses, graph).terms(), graph.n_nodes)
    estimates = [
        estimate_of_terms(terms, covariance, ridge, node)
        for terms, node in zip(each, graph.nodes, strict=True)
    ]
    statistics = wald_statistics(estimates, tested.edges)
    heuristic = "heuristic" in {e.status for e in estimates}
    return judged(tested, statistics, estimates[0].theta.size, alpha, covariance, heuristic)


def judged(
    tested: EmpiricalGraph,
    statistics: FloatArray,
    p: int,
    alpha: float,
    covariance: str,
    heuristic: bool,
) -> EdgeSelection:
    """Keep the edges of a graph whose statistics (m,) are within the corrected quantile."""
    m = tested.n_edges
    threshold = float(chi2.isf(alpha / m, p)) if m else np.inf
    kept = statistics <= threshold
    return EdgeSelection(
        graph=_kept(tested, kept),
        candidates=tested.edges,
        statistics=statistics,
        p_values=np.asarray(chi2.sf(statistics, p)),
        threshold=threshold,
        kept=kept,
        alpha=float(alpha),
        covariance=covariance,
        degrees_of_freedom=p,
        status="heuristic" if heuristic else "asymptotic",
        floats_per_message=sum(int(np.prod(shape)) for shape in message_shapes(p).values()),
    )


def wald_statistics(estimates: Sequence[LocalEstimate], edges: IntArray) -> FloatArray:
    """Wald statistics W_e^2 (m,) of edges (m, 2) between nodes with these estimates.

    Parameters
    ----------
    estimates : sequence of LocalEstimate
        One a node.
    edges : ndarray of int, shape (m, 2)
        Numbers of their ends; which one comes first does not matter.

    Raises
    ------
    ValueError
        The covariance of a difference has no inverse, by the edge.
    """
    theta = np.stack([estimate.theta for estimate in estimates])
    covariance = np.stack([estimate.covariance for estimate in estimates])
    parts = [
        _wald(differences(some, theta), covariance[some[:, 0]] + covariance[some[:, 1]], some)
        for some in np.array_split(edges, max(1, -(-len(edges) // _CHUNK)))
    ]
    return np.concatenate(parts)


def _wald(difference: FloatArray, total: FloatArray, edges: IntArray) -> FloatArray:
    """Squared lengths of differences (k, p) in the metrics of their covariances (k, p, p)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        units = np.sqrt(np.einsum("kii->ki", total))
        scaled = total / units[:, :, None] / units[:, None, :]
        wrong = np.flatnonzero(~np.isfinite(scaled).all(axis=(1, 2)))
    try:
        if wrong.size:
            raise np.linalg.LinAlgError
        factors = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError as error:
        edge = edges[wrong[0]] if wrong.size else edges[_first_singular(scaled)]
        raise ValueError(
            f"estimates: the covariances of edge {tuple(edge.tolist())} have no inverse"
        ) from error
    halves = np.linalg.solve(factors, (difference / units)[:, :, None])[:, :, 0]
    return np.asarray(np.sum(halves**2, axis=1))


def _first_singular(matrices: FloatArray) -> int:
    return int(np.argmin(np.linalg.eigvalsh(matrices)[:, 0]))


def check_options(alpha: float, candidates: str) -> None:
    """Refuse a level that is none, and unknown candidates."""
    if not is_number(alpha) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha: a number strictly between 0 and 1 is expected, got {alpha!r}")
    if candidates not in ("graph", "complete"):
        raise ValueError(f"candidates: 'graph' or 'complete' is expected, got {candidates!r}")


def complete(graph: EmpiricalGraph) -> EmpiricalGraph:
    """Return all pairs of a graph's nodes as edges."""
    pairs = np.column_stack(np.triu_indices(graph.n_nodes, 1))
    return EmpiricalGraph(graph.n_nodes, pairs, nodes=graph.nodes)


def _kept(graph: EmpiricalGraph, kept: BoolArray) -> EmpiricalGraph:
    return EmpiricalGraph(graph.n_nodes, graph.edges[kept], graph.weights[kept], graph.nodes)
