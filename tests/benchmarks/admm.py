"""The network lasso by ADMM, the classical distributed method, as a peer.

D. Hallac, J. Leskovec, S. Boyd, "Network Lasso: clustering and optimization in large graphs",
KDD 2015: every edge {i, j} keeps copies of w_i and w_j. S. Boyd et al., "Distributed optimization
and statistical learning via ADMM", 2011: penalty parameter by residual balancing (section 3.4.1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gtvcvx import GTVProblem

BALANCE_EVERY, BALANCE_RATIO = 20, 10.0
LAST_BALANCE = 2_000  # convergence needs a parameter that is fixed in the end


class NetworkLassoADMM:
    """State: nodes w (n, d); copies z and scaled duals s at both ends of the edges, (2, m, d)."""

    def __init__(self, problem: GTVProblem, rho: float = 1.0) -> None:
        graph, shape = problem.graph, (2, problem.graph.n_edges, problem.dim)
        self.problem, self.n_iter = problem, 0
        self.degrees = np.maximum(graph.degrees, 1).astype(float)
        self.isolated = np.flatnonzero(graph.degrees == 0)
        self.minimizer = problem.losses.minimizer(graph.n_nodes)
        # Sums over the edges that a node is the head of, and over those it is the tail of.
        self.gather = [graph.divergence.maximum(0), (-graph.divergence).maximum(0)]
        self.w = np.zeros((graph.n_nodes, problem.dim))
        self.z, self.s = np.zeros(shape), np.zeros(shape)
        self._set_rho(rho)

    def _set_rho(self, rho: float) -> None:
        self.rho = rho
        self.prox = self.problem.losses.affine_prox(1.0 / (rho * self.degrees))

    def step(self) -> None:
        """Nodes, then edges, then scaled duals."""
        total = sum(g @ x for g, x in zip(self.gather, self.z - self.s, strict=True))
        v = total / self.degrees[:, None]
        if self.prox is None:
            self.w = self.problem.losses.prox(v, 1.0 / (self.rho * self.degrees))
        else:
            self.w = np.einsum("nij,nj->ni", self.prox.matrix, v) + self.prox.offset
        self.w[self.isolated] = self.minimizer[self.isolated]
        ends = self.problem.graph.edges
        copies = np.stack([self.w[ends[:, 0]], self.w[ends[:, 1]]])
        before, self.z = self.z, self._edges(copies + self.s)
        self.s += copies - self.z
        self.n_iter += 1
        if self.n_iter % BALANCE_EVERY == 0 and self.n_iter <= LAST_BALANCE:
            self._balance(np.linalg.norm(copies - self.z), np.linalg.norm(self.z - before))

    def _edges(self, target: np.ndarray) -> np.ndarray:
        """Copies that minimize cap phi(z_0 - z_1) + (rho / 2) ||z - target||^2.

        The sum of the two stays; their difference is a prox of phi, by Moreau's identity.
        """
        tau = 2.0 / self.rho
        mean, jump = 0.5 * (target[0] + target[1]), target[0] - target[1]
        sigma = np.full(len(jump), 1.0 / tau)
        flow = self.problem.penalty.prox_conjugate(jump / tau, sigma, self.problem.capacities)
        jump = jump - tau * flow
        return np.stack([mean + 0.5 * jump, mean - 0.5 * jump])

    def _balance(self, primal: float, moved: float) -> None:
        dual = self.rho * moved
        factor = 2.0 if primal > BALANCE_RATIO * dual else 0.5
        if factor == 2.0 or dual > BALANCE_RATIO * primal:
            self.s /= factor
            self._set_rho(self.rho * factor)

    def run(self, stop: Callable[[float], bool]) -> list[float]:
        """Iterate, and show the objective to stop at growing intervals; returns what was shown."""
        values, due = [], 10
        while True:
            self.step()
            if self.n_iter >= due:
                due = int(1.1 * due) + 1
                values.append(self.problem.value(self.w))
                if stop(values[-1]):
                    return values
