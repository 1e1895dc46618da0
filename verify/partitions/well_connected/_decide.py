"""Definition 1 for one cluster: verdict, margin, least lambda and witness.

Demands are known up to rounding, as enclosures. The verdict goes through three stages: a flow that
routes more than the upper demands within capacities rounded down proves "yes"; sets that violate
the condition with the lower demands, in exact sums, prove "no"; otherwise rational demands and
exact maximum flows decide. If the constants are irrational and the first two stages fail, the
verdict is "not proved", which counts as "no" and is reported as undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import fsum, inf, isfinite

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify.partitions._rounding import Enclosure, gamma
from verify.partitions.well_connected._best_sink import (
    BestSink,
    ClusterGraph,
    best_sink,
    scale_exponent,
)
from verify.partitions.well_connected._exact import ExactSearch, search

#: Gives the demands as rational enclosures (lower, upper), or None.
RationalDemands = Callable[[], tuple[list[Fraction], list[Fraction]] | None]


@dataclass(frozen=True)
class Decision:
    """Verdict on one cluster.

    Attributes
    ----------
    holds : bool
        Whether the cluster is proved to be well-connected.
    decided : bool
        False if neither verdict could be proved.
    rational : bool
        Whether the rational demands were needed: the witness then refers to those.
    margin : float
        Largest t up to which the demands t d_i can be routed to one sink.
    sink : int or None
        A valid i0, or None.
    tight : ndarray of bool, shape (n_c,)
        The set that limits the margin.
    flow, scale : list of int and int
        Witness of "yes": flow on the inner edges in units of 1 / scale.
    sets, left_out : list of ndarray of bool and ndarray of int
        Witness of "no".
    bounded : bool
        Not decided because it holds with the lower demands, and not with the upper ones.
    """

    holds: bool
    decided: bool
    rational: bool
    margin: float
    sink: int | None
    tight: BoolArray
    flow: list[int] = field(default_factory=list)
    scale: int = 1
    sets: list[BoolArray] = field(default_factory=list)
    left_out: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    bounded: bool = False


def decide(graph: ClusterGraph, demand: Enclosure, rational: RationalDemands) -> Decision:
    """Decide Definition 1 for a cluster with the given demands.

    Parameters
    ----------
    graph : ClusterGraph
        The cluster.
    demand : Enclosure
        (n_c,) enclosures of the demands d_i, nonnegative and finite.
    rational : RationalDemands
        Called near ties only.
    """
    n = graph.n_nodes
    if n == 1:
        return Decision(True, True, False, inf, 0, np.zeros(1, dtype=bool))
    count, component = graph.components
    if count > 1:
        sets = [component == 0, component == 1]
        return Decision(False, True, False, 0.0, None, sets[0], sets=sets)
    best = best_sink(graph, np.zeros(n), demand.hi)
    if best.value > 1.0:
        routed = strict_flow(graph, demand.hi, best.sink)
        if routed is not None:
            flow, scale = routed
            return Decision(True, True, False, best.value, best.sink, best.tight, flow, scale)
    for found in _candidate_sets(graph, demand, best):
        if _all_violated(graph, demand.lo, found):
            out, tight = found.left_out, best.tight
            return Decision(
                False, True, False, best.value, None, tight, sets=found.sets, left_out=out
            )
    decision = _decide_exactly(graph, rational(), best)
    if decision.decided or strict_flow(graph, demand.lo, best.sink) is None:
        return decision
    return replace(decision, bounded=True)


def _candidate_sets(graph: ClusterGraph, demand: Enclosure, best: BestSink) -> Iterator[BestSink]:
    """Yield sets that may violate the condition, of the upper demands, then of the lower ones."""
    if best.value > 1.0:
        return
    yield best
    again = best_sink(graph, np.zeros(graph.n_nodes), demand.lo)
    if again.value <= 1.0:
        yield again


def strict_flow(graph: ClusterGraph, demand: FloatArray, sink: int) -> tuple[list[int], int] | None:
    """Find a flow that takes more than ``demand`` out of every node but the sink, or None.

    Returns
    -------
    tuple or None
        Integer flow on the inner edges and the scale: flows are in units of 1 / scale.
    """
    needed = np.array(demand)
    needed[sink] = 0.0
    total = float(needed.sum())
    # one unit more for each node must stay small against the demand, and fit
    e = scale_exponent(max(total, float(graph.weights.min()))) - 1
    supplies = np.floor(np.ldexp(needed, e)).astype(np.int64) + 1
    limit = np.ldexp(1.0, min(60 - e, 1023))  # more than all demands together: no flow needs more
    capacities = np.floor(np.ldexp(np.minimum(graph.weights, limit), e)).astype(np.int64)
    routing = graph.flows.route(capacities, supplies, sink)
    if routing.unrouted:
        return None
    flow = routing.flow.tolist()
    return (flow, 1 << e) if e >= 0 else ([f << -e for f in flow], 1)


def _all_violated(graph: ClusterGraph, demand: FloatArray, best: BestSink) -> bool:
    """Say whether every set has cut(A) <= demand(A); fsum rounds once, so signs are exact."""
    for inside in best.sets:
        cut = graph.weights[graph.crossing(inside)]
        if fsum(np.concatenate([cut, -demand[inside]]).tolist()) > 0.0:
            return False
    rest = best.left_out
    if not len(rest):
        return True
    total = float(demand.sum())
    slack = total - demand[rest] - graph.degree[rest]
    rounding = gamma(graph.n_nodes + 4) * (total + demand[rest] + graph.degree[rest])
    close = rest[slack <= rounding]
    if not len(close):
        return True
    exact = sum((Fraction(x) for x in demand.tolist()), Fraction(0))
    degree = _exact_degrees(graph, close)
    return all(degree[int(i)] + Fraction(float(demand[i])) <= exact for i in close)


def _exact_degrees(graph: ClusterGraph, nodes: IntArray) -> dict[int, Fraction]:
    degree = dict.fromkeys(nodes.tolist(), Fraction(0))
    for (a, b), w in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True):
        for v in (a, b):
            if v in degree:
                degree[v] += Fraction(w)
    return degree


def _decide_exactly(
    graph: ClusterGraph, demands: tuple[list[Fraction], list[Fraction]] | None, best: BestSink
) -> Decision:
    """Settle a near tie with rational demands."""
    if demands is None:
        return Decision(
            False,
            False,
            False,
            best.value,
            None,
            best.tight,
            sets=best.sets,
            left_out=best.left_out,
        )
    lower, upper = demands
    sharper = np.array([float(x) for x in upper])
    best = best_sink(graph, np.zeros(graph.n_nodes), sharper)
    found = search(graph, upper, best.sink)
    if found.sink is None and lower != upper:
        again = search(graph, lower, best.sink)
        if again.sink is not None:
            return _from_search(found, best, decided=False)
        found = again
    return _from_search(found, best, decided=True)


def _from_search(found: ExactSearch, best: BestSink, decided: bool) -> Decision:
    margin = best.value
    if found.sink is not None:  # the floating-point margin must not contradict the exact verdict
        margin = max(margin, float(np.nextafter(1.0, 2.0)))
    elif decided:
        margin = min(margin, 1.0)
    return Decision(
        found.sink is not None,
        decided,
        True,
        margin,
        found.sink,
        best.tight,
        found.flow,
        found.scale,
        found.sets,
        found.left_out,
    )


def least_lambda(graph: ClusterGraph, base: FloatArray, delta: FloatArray) -> float:
    """Upper bound on the infimum of the good lambdas; inf if there is none (or none is proved).

    Parameters
    ----------
    graph : ClusterGraph
        A connected cluster, or one of a single node.
    base, delta : ndarray, shape (n_c,)
        Upper bounds of b_i + beta_i |dC| / alpha and of delta_i.

    Notes
    -----
    Definition 1 is proved for every lambda above the returned value, which exceeds the infimum (for
    these constants) by a relative 2^-50 to 2^-20.
    """
    if graph.n_nodes == 1:
        return 0.0
    if graph.components[0] > 1:
        return inf
    best = best_sink(graph, base, delta)
    if best.value <= 0.0:
        return inf
    if best.value == inf:
        return 0.0 if strict_flow(graph, base, best.sink) is not None else inf
    for bits in (50, 44, 38, 30, 20):
        lam = (1.0 / best.value) * (1.0 + 2.0**-bits)
        if not (isfinite(lam) and lam > 0.0):
            break
        demand = (base + delta / lam) * (1.0 + gamma(3))
        if strict_flow(graph, demand, best.sink) is not None:
            return lam
    return inf
