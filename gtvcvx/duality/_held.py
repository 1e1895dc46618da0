"""How large solutions are at most where terms of the losses hold them, and norms what is near.

A solution is no worse than any point w at hand. With all terms counted from their least values, no
term of it is more than

    level = P(w) - sum_i (least values of the terms of L_i),

so ridges, l1 terms and points say how large it is at their nodes, and boxes and simplices do so
whatever the level. All penalties together are no more than that, either: along a path whose edges
have capacities c and more, coordinates differ by no more than level / c. Other than lengths that
are told by targets (`gtvcvx.duality._lengths`) this holds for every solution.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.duality._loose_clusters import widest_forest
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses.batched._terms import FIELDS, WEIGHT, Term, coefficients
from gtvcvx.penalties import Penalty

#: Penalties of a jump that are at least the size of each coordinate.
ABOVE_COORDINATES = frozenset({"l1", "l2", "linf", "pnorm"})
#: Kinds of terms that say how large solutions are.
HOLDING = frozenset({"ridge", "l1", "point", "box", "simplex"})
#: Edges up to which paths are looked for.
MOST_EDGES = 300_000
# What rounding makes of levels and lengths is far less.
ROUNDED_UP = 1.0 + 1e-9


class HeldSizes:
    """Sizes of the solutions of one problem.

    Parameters
    ----------
    terms : iterable of dict
        Of all losses.
    graph : EmpiricalGraph
    penalty : Penalty
    capacities : ndarray, shape (m,)
        lambda A_e.
    dim : int
    """

    def __init__(
        self,
        terms: Iterable[Term],
        graph: EmpiricalGraph,
        penalty: Penalty,
        capacities: FloatArray,
        dim: int,
    ) -> None:
        self._terms, self._graph, self._capacities = list(terms), graph, capacities
        self._shape = graph.n_nodes, dim
        self._known = all(term["kind"] in FIELDS for term in self._terms)
        self._kept = not {term["kind"] for term in self._terms}.isdisjoint(HOLDING)
        self._paths = penalty.to_data()["kind"] in ABOVE_COORDINATES
        self._least = -sum(_least_of_poisson(t) for t in self._terms if t["kind"] == "poisson")

    def of(self, objective: float) -> FloatArray | None:
        """Return how large solutions are at most, (n, d), given the objective at some point.

        Infinite where nothing tells; None if nothing tells anywhere.
        """
        if not (self._known and self._kept and np.isfinite(objective)):
            return None
        level = ROUNDED_UP * max(objective + self._least, 0.0)
        sizes = self._at_nodes(level)
        if not self._paths or len(self._capacities) > MOST_EDGES:
            return sizes
        component, weakest = np.asarray(self._graph.components), self._weakest
        nearest = np.full((len(weakest), self._shape[1]), np.inf)
        np.minimum.at(nearest, component, sizes)
        across = np.full(len(weakest), np.inf)
        np.divide(level, weakest, out=across, where=weakest > 0.0)
        away = nearest + across[:, None]
        return np.asarray(ROUNDED_UP * np.minimum(sizes, away[component]))

    def _at_nodes(self, level: float) -> FloatArray:
        """Return what the terms of each node say by themselves, (n, d)."""
        sizes = np.full(self._shape, np.inf)
        for term in self._terms:
            node, kind = term["node"], term["kind"]
            if kind not in HOLDING:
                continue
            with np.errstate(divide="ignore", invalid="ignore"):  # factors may be zero
                if kind == "ridge":
                    size = np.sqrt(2.0 * level / term["mu"].reshape(len(node), -1))
                elif kind == "l1":
                    size = level / term["kappa"].reshape(len(node), -1)
                elif kind == "point":
                    weight = np.asarray(term.get(WEIGHT, np.ones(len(node))))
                    size = np.abs(term["a"]) + np.sqrt(level / weight)[:, None]
                elif kind == "box":
                    size = np.maximum(np.abs(term["lower"]), np.abs(term["upper"]))
                else:
                    size = np.reshape(term["total"], (-1, 1))
            size = np.where(np.isnan(size), np.inf, size)
            np.minimum.at(sizes, node, np.broadcast_to(size, (len(node), self._shape[1])))
        return sizes

    @cached_property
    def _weakest(self) -> FloatArray:
        """Least capacity, in each component, of paths along which no other is stronger."""
        graph, capacities = self._graph, self._capacities
        component = np.asarray(graph.components)
        weakest = np.full(int(component.max()) + 1, np.inf)
        head = component[graph.edges[:, 0]]
        used = widest_forest(graph.n_nodes, graph.edges, capacities)
        np.minimum.at(weakest, head[used], capacities[used])
        weakest[head[capacities == 0.0]] = 0.0  # which the forest does without
        return weakest


def _least_of_poisson(term: Term) -> float:
    """Return the sum of the least values of ``c (exp(z) - y z)``: other rows have none below 0."""
    y = np.asarray(term["y"])
    logarithm = np.log(np.where(y > 0.0, y, 1.0))
    return float(np.sum(coefficients(term) * (y - y * logarithm)))
