"""Linear systems of the balance at all nodes, in potentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.block_cholesky._factor import BlockCholesky, TwofoldCholesky
from gtvcvx.block_cholesky._plan import plan_of
from gtvcvx.duality._class_multipliers import ClassMultipliers
from gtvcvx.duality._dual_points import NONE
from gtvcvx.duality._settings import CORRECTION
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.penalties import Penalty

# Penalties whose edges leave coordinates apart.
SEPARABLE = frozenset({"l1", "squared"})


class Metric(NamedTuple):
    """Weights W of flows and multipliers."""

    u: FloatArray  # (m, d, d)
    a: FloatArray  # (N,)
    t: FloatArray  # (n, d)
    nu: FloatArray  # (n,)
    p: FloatArray = NONE  # (N', K), slopes of rows with several classes


class BalanceRows:
    """All rows that there are in the balance; those with several classes come last, and change.

    Parameters
    ----------
    parts : Parts
    classes : ClassMultipliers

    Attributes
    ----------
    node : ndarray, shape (N + N' K,)
    X : ndarray, shape (N + N' K, d)
    """

    def __init__(self, parts: Parts, classes: ClassMultipliers) -> None:
        self._classes, self._count = classes, len(parts.rows)
        self.node = np.concatenate([parts.owner, classes.rows.node])
        framed = np.zeros((len(classes.rows.node), parts.X.shape[1]))
        self.X = np.concatenate([parts.X, framed]) if len(framed) else parts.X

    def weights(self, metric: Metric) -> FloatArray:
        """Return the weights of all rows, and take those with classes as they are with these."""
        if len(self._classes):
            self.X[self._count :] = self._classes.framed(metric.p)
        return np.concatenate([metric.a, metric.p.ravel()])


class Systems:
    """``B W B^T`` with B the balance: a block for each node and edge, or a number a coordinate.

    Coordinates that neither the penalty nor the losses join are factored one by one.

    Parameters
    ----------
    graph, penalty
        Of the problem.
    parts : Parts
        Of its losses.
    rows : BalanceRows
        Of its losses.
    """

    def __init__(
        self, graph: EmpiricalGraph, parts: Parts, penalty: Penalty, rows: BalanceRows
    ) -> None:
        self._shape, self._rows = parts.coordinates.shape, rows
        self._graph = graph
        d = self._shape[1]
        apart = penalty.to_data()["kind"] in SEPARABLE
        apart = apart and not len(rows.node) and bool(np.isnan(parts.totals).all())
        size = 1 if apart else d
        most = CORRECTION.most_multiplications / (d if apart else 1)
        found = plan_of(graph, size, most)
        self._plan = found
        self._factors: list[BlockCholesky | TwofoldCholesky] = []
        if found is not None:
            self._X = X = rows.X if size == d else np.empty((0, size))
            self._factors = [
                BlockCholesky(found, graph.edges, rows.node, X, CORRECTION.regularization)
                for _ in range(d // size)
            ]

    @property
    def planned(self) -> bool:
        """Whether a factorization takes little enough; if not, there is none."""
        return self._plan is not None

    def sharpen(self) -> bool:
        """Factor in twice the digits from now on; say whether that is something else, and pays."""
        if self._plan is None or isinstance(self._factors[0], TwofoldCholesky):
            return False
        d = self._shape[1] // len(self._factors)
        if self._plan.multiplications(d) > CORRECTION.most_sharp:
            return False
        edges, node, X = self._graph.edges, self._rows.node, self._X
        self._factors = [
            TwofoldCholesky(self._plan, edges, node, X, CORRECTION.sharp_regularization)
            for _ in self._factors
        ]
        return True

    def factorize(self, metric: Metric) -> None:
        """Factor the matrix with other weights."""
        n, d = self._shape
        own = np.zeros((n, d, d))
        own += metric.nu[:, None, None]
        np.einsum("nii->ni", own)[:] += metric.t
        weights = self._rows.weights(metric)
        for here, factor in self._factored():
            P, edges = (np.ascontiguousarray(blocks[:, here, here]) for blocks in (own, metric.u))
            factor.factorize(P, weights, edges)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the potentials (n, d) for what is missing."""
        return np.concatenate([f.solve(right[:, here]) for here, f in self._factored()], axis=1)

    def sent(self, balance: FloatArray) -> FloatArray | None:
        """Return None: there is no other way than by the factors."""
        return None

    def _factored(self) -> Iterator[tuple[slice, BlockCholesky | TwofoldCholesky]]:
        """Yield which coordinates each factor has."""
        size = self._shape[1] // len(self._factors)
        for k, factor in enumerate(self._factors):
            yield slice(k * size, (k + 1) * size), factor
