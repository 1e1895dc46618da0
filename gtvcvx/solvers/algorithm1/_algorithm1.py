"""Algorithm 1 of [GTV], the paper's primal-dual method, to the letter.

References
----------
.. [1] Y. SarcheshmehPour, Y. Tian, L. Zhang, A. Jung, "Clustered Federated Learning via
   Generalized Total Variation Minimization", Algorithm 1, (32), (33).
.. [2] T. Pock, A. Chambolle, "Diagonal preconditioning for first order primal-dual algorithms in
   convex optimization", ICCV 2011.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers.algorithm1._local_updates import as_local_update
from gtvcvx.solvers.driver._method import Iteration


class Algorithm1(Iteration):
    """Iterations (32), (33) with tau_i = 1/deg_i and sigma_e = 1/2, from w = 0 and u = 0.

    A node without neighbours has no step size: it starts, and stays, at a minimizer of its loss.

    Parameters
    ----------
    problem : GTVProblem
    warm_start : Solution, optional
    local_update : optional
        Takes the place of the exact update (32), see
        `gtvcvx.solvers.algorithm1._local_updates.as_local_update`.
    """

    def __init__(
        self,
        problem: GTVProblem,
        warm_start: Solution | None = None,
        local_update: Any = None,
    ) -> None:
        graph = problem.graph
        self._problem = problem
        self._incidence, self._divergence = graph.incidence, graph.divergence
        self._isolated = np.flatnonzero(graph.degrees == 0)
        self._tau = 1.0 / np.maximum(graph.degrees, 1)
        self._sigma = np.full(graph.n_edges, 0.5)
        self._update = None if local_update is None else as_local_update(local_update, problem)
        exact = self._update is None
        self._affine = problem.losses.affine_prox(self._tau) if exact else None
        self.n_iter = 0
        self.w = np.zeros((graph.n_nodes, problem.dim))
        self.u = np.zeros((graph.n_edges, problem.dim))
        if warm_start is not None:
            self.w = problem.checked_w(warm_start.w, "warm_start.w").copy()
            self.u = problem.checked_u(warm_start.u, "warm_start.u").copy()
        if len(self._isolated):
            minimizer = problem.losses.minimizer(graph.n_nodes)
            self.w[self._isolated] = minimizer[self._isolated]
        self._moved = np.inf

    def run(self, n_iter: int) -> None:
        """Do n_iter iterations."""
        for _ in range(n_iter):
            self._step()
            self.n_iter += 1

    def _step(self) -> None:
        v = self.w - self._tau[:, None] * (self._divergence @ self.u)
        w = self._local_update(v)
        w[self._isolated] = self.w[self._isolated]
        extrapolated = self._incidence @ (2.0 * w - self.w)
        u = self._problem.penalty.prox_conjugate(
            self.u + self._sigma[:, None] * extrapolated, self._sigma, self._problem.capacities
        )
        primal = np.sum((w - self.w) ** 2 / self._tau[:, None])
        self._moved = float(np.sqrt(primal + 2.0 * np.sum((u - self.u) ** 2)))
        self.w, self.u = w, u

    def _local_update(self, v: FloatArray) -> FloatArray:
        """Primal update (32), or what the user has for it."""
        problem = self._problem
        if self._affine is not None:
            return np.einsum("nij,nj->ni", self._affine.matrix, v) + self._affine.offset
        if self._update is None:
            return problem.losses.prox(v, self._tau)
        tau, previous = self._tau.copy(), self.w.copy()
        z = self._update(problem.losses, v, tau, previous, self.n_iter + 1)
        return problem.checked_w(z, "local_update").copy()

    @property
    def weight(self) -> float:
        """Primal weight of the paper."""
        return 1.0

    def move_to(self, w: FloatArray, u: FloatArray) -> None:
        """Go on from another point."""
        self.w, self.u = w.copy(), u.copy()

    def residual(self) -> float:
        """Length of the last step in the method's own metric."""
        return self._moved

    def info(self) -> dict[str, Any]:
        """Return the primal weight of the paper."""
        return {"primal_weight": self.weight}
