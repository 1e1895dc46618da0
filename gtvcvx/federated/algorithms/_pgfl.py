r"""PGFL: personalized graph federated learning, as printed.

Clients k of cluster q at server s, N_s the servers linked to s and s itself, C_{s,q} the clients of
cluster q at s that take part in round n:

.. math::
    w_k &= \arg\min_w f_k(w) - \langle \phi_k, w - w_{q,s} \rangle
        + \tfrac\rho2 \lVert w - w_{q,s} \rVert^2 &(4)\\
    \tilde w_{q,s} &= \operatorname{mean}_{k \in C_{s,q}} (w_k - \phi_k / \rho) &(8)\\
    \hat w_{q,s} &= \operatorname{mean}_{p \in N_s} \tilde w_{q,p} &(9)\\
    w_{q,s} &= (1 - \tau_n) \hat w_{q,s} + \frac{\tau_n}{Q - 1} \sum_{r \ne q} \hat w_{r,s} &(10)\\
    \phi_k &\leftarrow \phi_k + \rho (w_{q,s} - w_k) &(5)

References
----------
[PGFL] "Personalized Graph Federated Learning with Differential Privacy": (1), (4), (5), (8)-(10).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, finite_array, is_number
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, one_of, positive
from gtvcvx.federated.algorithms._pgfl_clients import PGFLClient
from gtvcvx.federated.algorithms._pgfl_privacy import PrivateClient, PrivateReleases
from gtvcvx.federated.algorithms._pgfl_report import privacy_report
from gtvcvx.federated.algorithms._pgfl_roles import (
    MODELS,
    NOT_ADDED,
    Roles,
    pooled_problem,
    roles_of,
)
from gtvcvx.federated.algorithms._pgfl_server import PGFLServer
from gtvcvx.federated.algorithms._pgfl_stability import smallest_stable_rho
from gtvcvx.federated.algorithms._pgfl_tau import Schedule, as_schedule
from gtvcvx.federated.models._checks import nonnegative
from gtvcvx.federated.privacy import PrivacyReport
from gtvcvx.federated.programs import ClientProgram, LocalLoss, Report, ServerProgram
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.problem import GTVProblem


class PGFL(Algorithm):
    r"""PGFL, multi-step form (8) to (10), on clients of Q clusters around linked servers.

    Parameters
    ----------
    rho : float
        Penalty parameter, > 0.
    tau : float, sequence or callable
        Inter-cluster learning tau_n in [0, 1], n = 1, 2, ...; see `GeometricTau`. A sequence goes
        on with its last number. Nothing to learn from where there is one cluster.
    ridge : float
        lambda of (4): ``f_k(w) = L_k(w) + (ridge / |C_s|) ||w||^2``, with |C_s| clients at the
        server of client k. In the pooled problem of cluster q it counts
        ``sum_s |C_{s,q}| / |C_s|`` times, where (1) has it once.
    empty : {"keep", "skip"}
        What a server without released vectors of a cluster puts for its (8), which the paper leaves
        open: the last w_qs, or nothing, so that (9) is the mean over those that have one. Measured
        with 3 of 15 clients a round, "keep" ends nearer to the truth, by a factor of 1.7.
    start : array_like, shape (d,), optional
        Common start of all models. Default: zero, as printed. Networks need another one.
    privacy : PrivateReleases, optional
        Clients release w_k with noise, and multipliers follow what was released.

    Notes
    -----
    Problem: none exactly. A fixed point for tau = 0 satisfies
    ``w_qs = mean_{p in N_s} (w_qp - (1/rho) mean_k grad f_k(w_qp))``. If servers agreed, every
    server's mean gradient would have to vanish by itself: so they disagree, and weights are by
    server, not by client; Theorem I fails for (8) to (10). Measured (10 servers, 150 clients),
    largest relative distance from the pooled optimum and between servers: .040 and .031 for
    rho = 1, .0063 and .0045 for rho = 20; a bias stays as rho grows. One server, or servers without
    links, are ordinary ADMM: then, with tau = 0, it solves ``min sum_k f_k`` for each cluster, and
    is certified. With sampled clients there is no fixed point either, but noise of the rounds.

    There is a smallest stable rho, of which the paper does not speak. For quadratic losses with one
    Hessian at all clients, of largest eigenvalue h, it is ``h p / (1 + p)`` with -p the smallest
    eigenvalue of the matrix of (9), and none if that is not negative. In general it is not known:
    for other Hessians this number, from their mean, was .9 to 3 times the true one. A run with a
    smaller rho warns.

    Guarantee: see `guarantee`. ``run.w`` has for each cluster the vector of the server that is
    farthest from the mean of all servers; ``run.models`` each client's w_k.

    What leaves a client: w_k, d numbers a round in which it takes part. phi_k is never sent, since
    the server computes it from what it sent and received; nor is it secret. Without ``privacy`` no
    guarantee comes with that. With it ``run.privacy_report()`` states (eps, delta) for each client,
    local and for single rows; ``run.models`` are the clients' own vectors, which do not leave them.
    Bytes a round, of n clients there: ``n (8 d + 20)`` up and as many down, and ``8 Q d + 20``
    from each server to each neighbour (``8 Q`` more with empty="skip"). A client that was not there
    in the round before is sent one vector more.
    """

    guarantee: ClassVar[str] = (
        "none for several linked servers: a biased fixed point, at a distance that is reported; "
        "for single servers and tau = 0 the pooled optimum of each cluster, certified"
    )
    leaves: ClassVar[str] = (
        "w_k to its server, 8d + 20 bytes a round in which it takes part; noisy in private runs"
    )
    schema: ClassVar[Schema] = Schema(
        {
            "start": (Field("w"),),
            "release": (Field("w"),),
            "shown": (Field("w"), Field("phi")),
            "estimates": (Field("w", MODELS),),
            "some_estimates": (Field("w", MODELS), Field("have", ("Q",), "<i8")),
            "aggregate": (Field("w"),),
            "state": (Field("w"), Field("phi")),
        }
    )

    def __init__(
        self,
        rho: float = 1.0,
        tau: Schedule = 0.0,
        *,
        ridge: float = 0.0,
        empty: str = "keep",
        start: ArrayLike | None = None,
        privacy: PrivateReleases | None = None,
    ) -> None:
        self.rho = positive(rho, "rho")
        self._schedule = as_schedule(tau)
        self.tau = tau
        self.ridge = nonnegative(ridge, "ridge")
        self.empty = one_of(empty, ("keep", "skip"), "empty")
        self.start = None if start is None else finite_array(start, "start", 1)
        if not (privacy is None or isinstance(privacy, PrivateReleases)):
            raise TypeError(f"privacy: PrivateReleases is expected, got {type(privacy).__name__}")
        self.privacy = privacy

    def client(self) -> ClientProgram:
        """Return the client program."""
        return PGFLClient() if self.privacy is None else PrivateClient()

    def server(self) -> ServerProgram:
        """Return the server program."""
        return PGFLServer()

    def network(self, net: Network) -> Network:
        """Return the network; refuse one without servers, or with clients of several.

        A private run is refused if a client's loss has no known sensitivity, by the client's name.
        """
        ridges = self._ridges(net)
        if self.privacy is not None:
            for k, model in enumerate(net.models):
                self.privacy.answer(model, self.rho, float(ridges[k]), net.label(k))
        if self.start is not None and self.start.shape != (net.dim,):
            raise ValueError(f"start: shape ({net.dim},) is expected, got {self.start.shape}")
        return net

    def _roles(self, net: Network) -> Roles:
        return roles_of(net, self.name)

    def _ridges(self, net: Network) -> FloatArray:
        """Weight of ``||w||^2`` at each client, (n,)."""
        roles = self._roles(net)
        return np.asarray(self.ridge / roles.served[roles.server])

    def phases(self, net: Network) -> list[IntArray]:
        """Return servers, clients (4), servers (8), servers (9) and (10)."""
        servers = net.server_ids
        return [servers, net.clients, servers, servers]

    def sizes(self, net: Network) -> Mapping[str, int]:
        """Return d and Q."""
        return {"d": net.dim, "Q": self._roles(net).n_clusters}

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return rho, tau and the common start; a server knows the clusters of its clients."""
        start = np.zeros(net.dim) if self.start is None else self.start
        told: dict[str, Any] = {"rho": self.rho, "start": start}
        roles, n = self._roles(net), net.n_clients
        if i < n:
            return told | {"ridge": float(self._ridges(net)[i]), "privacy": self.privacy}
        told |= {"tau": self._schedule, "empty": self.empty, "n": n}
        own = roles.cluster[roles.server == i - n]
        return told | {"clusters": own, "n_clusters": roles.n_clusters}

    def problem(self, net: Network) -> GTVProblem | None:
        """Return the pooled problems, where (8) to (10) are ordinary ADMM; else None."""
        return None if self.reason(net) else self.target(net)

    def reason(self, net: Network) -> str:
        """Say why the pooled optimum is not reached."""
        roles = self._roles(net)
        if not net.convex:
            return "a client's model is not convex"
        if self.privacy is not None:
            return "clients release noisy vectors, and noise does not settle"
        # With one cluster there is no other to learn from.
        if roles.n_clusters > 1 and not (is_number(self.tau) and self.tau == 0.0):
            return "inter-cluster learning pulls models towards those of other clusters"
        if len(set(roles.component.tolist())) < roles.n_servers:
            return (
                "servers average before their own clients agree: at the fixed point they disagree "
                "and weigh clients by server, so that Theorem I of [PGFL] fails"
            )
        return "" if self.target(net) else NOT_ADDED

    def target(self, net: Network) -> GTVProblem | None:
        """Return ``min sum_k f_k`` of each cluster: one node for each, and no edges.

        In private runs with a row_bound, of the clipped losses; a radius is left out.
        """
        models = net.models
        if self.privacy is not None and self.privacy.clip is None:
            clipped = [self.privacy.clipped(model, 0.0).losses.terms() for model in models]
            models = [LocalLoss(terms, net.dim) for terms in clipped]
        return pooled_problem(models, net.dim, self._roles(net), self.ridge)

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return for each cluster the vector of the server farthest from the mean of all."""
        estimates = np.array([report.w for report in reports[net.n_clients :]])
        return self._roles(net).farthest(estimates)

    def warnings(self, net: Network) -> list[str]:
        """Warn of a rho that is likely to be below the smallest stable one."""
        smallest = smallest_stable_rho(self.target(net), net, self._roles(net))
        if self.rho >= smallest:
            return []
        return [
            f"rho: {self.rho:g} may be too small: were all clients' Hessians equal to their mean, "
            f"the smallest stable rho would be {smallest:.3g}; PGFLExact is stable for any"
        ]

    def privacy_report(self, run: Any) -> PrivacyReport:
        """Return what each client has lost in a run, by `Run.privacy_report`."""
        if self.privacy is None:
            raise ValueError("privacy: clients release w_k without noise, there is nothing to tell")
        return privacy_report(self.privacy, run.net, self.rho, self._ridges(run.net), run)

    def steps_of(self, net: Network) -> str:
        """Say what rho is."""
        return f"rho = {self.rho:g}: there is a smallest stable one"
