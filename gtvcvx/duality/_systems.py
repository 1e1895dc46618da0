"""Linear systems of the balance at all nodes, in potentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.block_cholesky._factor import BlockCholesky
from gtvcvx.block_cholesky._plan import plan_of
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


class Systems:
    """``B W B^T`` with B the balance: a block for each node and edge, or a number a coordinate.

    Coordinates that neither the penalty nor the losses join are factored one by one.

    Parameters
    ----------
    graph, penalty
        Of the problem.
    parts : Parts
        Of its losses.

    Attributes
    ----------
    planned : bool
        Whether a factorization takes little enough; if not, there is none.
    """

    def __init__(self, graph: EmpiricalGraph, parts: Parts, penalty: Penalty) -> None:
        self._shape = parts.coordinates.shape
        d = self._shape[1]
        apart = penalty.to_data()["kind"] in SEPARABLE
        apart = apart and not len(parts.rows) and bool(np.isnan(parts.totals).all())
        size = 1 if apart else d
        most = CORRECTION.most_multiplications / (d if apart else 1)
        found = plan_of(graph, size, most)
        self.planned = found is not None
        self._factors: list[BlockCholesky] = []
        if found is not None:
            X = np.ascontiguousarray(parts.X[:, :size])
            self._factors = [
                BlockCholesky(found, graph.edges, parts.owner, X, CORRECTION.regularization)
                for _ in range(d // size)
            ]

    def factorize(self, metric: Metric) -> None:
        """Factor the matrix with other weights."""
        n, d = self._shape
        own = np.zeros((n, d, d))
        own += metric.nu[:, None, None]
        np.einsum("nii->ni", own)[:] += metric.t
        for here, factor in self._factored():
            P, edges = (np.ascontiguousarray(blocks[:, here, here]) for blocks in (own, metric.u))
            factor.factorize(P, metric.a, edges)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the potentials (n, d) for what is missing."""
        return np.concatenate([f.solve(right[:, here]) for here, f in self._factored()], axis=1)

    def sent(self, balance: FloatArray) -> FloatArray | None:
        """Return None: there is no other way than by the factors."""
        return None

    def _factored(self) -> Iterator[tuple[slice, BlockCholesky]]:
        """Yield which coordinates each factor has."""
        size = self._shape[1] // len(self._factors)
        for k, factor in enumerate(self._factors):
            yield slice(k * size, (k + 1) * size), factor
