r"""FedADMM: linearized ADMM on the edges, with clients that come and go.

With ``u_ij = -alpha_ij`` the steps (14) to (16) of [FedADMM] are

.. math::
    \theta_i &\leftarrow \theta_i - \eta_i \{ g_i + \sum_{j \in N_i} (2 u_{ij} - u_{ij}^-) \} \\
    u_{ij} &\leftarrow \operatorname{prox}^{\rho/2}_{\lambda A_{ij} \phi^*(\cdot/\lambda A_{ij})}
        \bigl(u_{ij} + \tfrac\rho2 (\theta_i - \theta_j)\bigr)

with u^- the multiplier before its last update: beta_ij = theta_i - (u_ij - u_ij^-)/rho. Both ends
of an edge compute the same flow but for its sign, to the last bit, and it is within the edge's
capacity at all times, so that every round has a certified gap.

References
----------
[FedADMM] "FedADMM" of the four companion papers: (5), (10) to (17), Algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, is_integer
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import (
    Algorithm,
    flag,
    gtv_problem,
    link_flows,
    one_of,
    own_problem,
    positive,
    stacked_models,
)
from gtvcvx.federated.algorithms._fedadmm_clients import (
    EdgeClient,
    GradientClient,
    OwnerClient,
    Steps,
)
from gtvcvx.federated.algorithms._fedadmm_server import InverseServer
from gtvcvx.federated.algorithms._step_bounds import scale_warning
from gtvcvx.federated.models._checks import probabilities
from gtvcvx.federated.programs import ClientProgram, Program, Report
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.penalties import Penalty, as_penalty
from gtvcvx.problem import GTVProblem

STEPS = ("adaptive", "linearized", "printed", "exact")
OUTPUTS = ("last", "average", "tail")

EDGE_STATE = (Field("held"), Field("u"), Field("before"), Field("own"), Field("w"))
SCHEMA = Schema(
    {
        "theta": (Field("w"),),
        "sync": (),
        "state": (*EDGE_STATE, Field("known", (), "<i8")),
        "edge": (Field("beta"), Field("beta_other"), Field("alpha"), Field("alpha_other")),
        "gradient": (Field("g"), Field("lipschitz", ())),
    }
)


class FedADMM(Algorithm):
    r"""Federated ADMM, Algorithms 1 and 2 of [FedADMM].

    Solves ``sum_i (1/2) L_i(w_i) + lam sum_e A_e phi(w_head - w_tail)``, (5) of the paper, which
    writes squared errors with one half: as `GTVProblem` that is the penalty weight ``2 lam``.
    Without ``lam`` it is the problem that the network is from.

    Parameters
    ----------
    lam : float, optional
        Penalty weight of (5). Default: that of the network's problem, without the half.
    rho : float
        ADMM's penalty parameter, > 0.
    penalty : str or Penalty, optional
        phi. Default: that of the network's problem, or "l1" as in the paper.
    half : bool
        Whether ``lam`` belongs to losses with the factor one half.
    step : {"adaptive", "linearized", "printed", "exact"}
        eta_i(t): ``1 / (l_i + rho deg_i)`` with l_i the Lipschitz constant of the gradient;
        ``s / (1 + rho deg_i s)`` with s = scale / t, (17) without its projection; ``scale / t`` as
        printed, which grows without bound unless scale is small or a radius is given. "exact"
        solves for theta_i in place of a gradient step, and takes losses with kinks.
    scale : float
        Factor of "linearized" and "printed".
    decay : float, optional
        t0: steps of "adaptive" are shortened by ``t0 / (t0 + t)``, for stochastic gradients.
    radius : float, optional
        Every theta_i is projected on the ball of this radius, as the paper's theorem assumes.
    batch : int, optional
        Rows of a mini-batch, drawn with replacement from the client's own. Default: all rows.
    output : {"last", "average", "tail"}
        What a client answers with: the last iterate; the average of theta(0), ..., theta(t - 1) as
        printed; the average over the second half of the rounds.
    absence : {"freeze", "inverse", "ignore"}
        What becomes of an absent client. "freeze" (ours; no theorem of the paper covers it): it
        does nothing, and its neighbours keep its last vector. "inverse": Algorithm 2, a server
        holds everything, and gradients are weighted by the inverse probability of presence.
        "ignore": the same without the weights, which solves another problem.
    presence : array_like, shape (n,), or float, optional
        Probabilities of presence for "inverse". Default: estimated, (1 + count)/(1 + t).
    exchange : {"both", "owner"}
        Whether both ends of an edge compute its flow from the vectors that they exchange, 2 d
        numbers an edge and round; or the end of the larger number does and sends the result, 6 d
        numbers, as printed. The second stands messages that are late or lost.

    Notes
    -----
    What leaves a client: its vector, to each neighbour; after a crash of a neighbour, what it knows
    of their edge. With a server: gradients, and the Lipschitz constant of its gradient. None of
    that is private: see `gtvcvx.federated.privacy`.
    """

    schema: ClassVar[Schema] = SCHEMA
    guarantee = "the optimum of (5), with a certified gap at every record; absence='ignore': none"
    leaves = (
        "theta_i to each neighbour, 8d + 20 bytes each and round (exchange='owner': 32d + 20 more "
        "an edge); with a server gradients, 8d + 28 bytes a round"
    )

    def __init__(
        self,
        lam: float | None = None,
        rho: float = 1.0,
        *,
        penalty: str | Penalty | None = None,
        half: bool = True,
        step: str = "adaptive",
        scale: float = 1.0,
        decay: float | None = None,
        radius: float | None = None,
        batch: int | None = None,
        output: str = "last",
        absence: str = "freeze",
        presence: ArrayLike | None = None,
        exchange: str = "both",
    ) -> None:
        self.lam = None if lam is None else positive(lam, "lam")
        self.rho = positive(rho, "rho")
        self.penalty = penalty
        self.half = flag(half, "half")
        self.step = one_of(step, STEPS, "step")
        self.scale = positive(scale, "scale")
        self.decay = None if decay is None else positive(decay, "decay")
        self.radius = None if radius is None else positive(radius, "radius")
        if batch is not None and not (is_integer(batch) and batch >= 1):
            raise ValueError(f"batch: a positive integer is expected, got {batch!r}")
        self.batch = None if batch is None else int(batch)
        self.output = one_of(output, OUTPUTS, "output")
        self.absence = one_of(absence, ("freeze", "inverse", "ignore"), "absence")
        self.presence = None if presence is None else probabilities(presence, "presence")
        self.exchange = one_of(exchange, ("both", "owner"), "exchange")
        if step == "exact" and (batch is not None or absence != "freeze"):
            raise ValueError("step: 'exact' knows neither mini-batches nor a server")
        if exchange == "owner" and absence != "freeze":
            raise ValueError("exchange: with a server there is nothing to exchange")

    @property
    def fragile(self) -> str:  # type: ignore[override]
        """What a lost or late message does."""
        if self.exchange == "owner" or self.absence != "freeze":
            return ""
        return "the two ends of an edge keep different flows for good; exchange='owner' stands it"

    @property
    def scaling(self) -> float:
        """Factor of the losses."""
        return 0.5 if self.lam is not None and self.half else 1.0

    def _penalty(self, net: Network) -> Penalty:
        if self.penalty is not None:
            return as_penalty(self.penalty, net.dim)
        return as_penalty("l1", net.dim) if net.source is None else net.source.penalty

    def _lam(self, net: Network) -> float:
        return own_problem(net, self.name).lam if self.lam is None else self.lam

    def client(self) -> ClientProgram:
        """Return the client program."""
        if self.absence != "freeze":
            return GradientClient()
        return OwnerClient() if self.exchange == "owner" else EdgeClient()

    def server(self) -> Program:
        """Return the server of Algorithm 2, or a node without data like any other."""
        return self.client() if self.absence == "freeze" else InverseServer()

    def network(self, net: Network) -> Network:
        """Return the links: those of the graph, or a star where a server holds everything.

        Raises
        ------
        ValueError
            The network has servers of its own; a chance of presence for each client is missing.
        """
        if self.absence == "freeze" or net.peers is not None:
            return net
        if net.n_servers:
            raise ValueError(
                f"absence: {self.absence!r} brings its own server, which knows the graph of the "
                f"clients; a network without servers is expected, got {net!r}"
            )
        if self.presence is not None and self.presence.shape not in ((), (net.n_clients,)):
            raise ValueError(
                f"presence: one probability for each of {net.n_clients} clients is expected, got "
                f"{len(self.presence)}"
            )
        star = net.as_star()
        # The server knows the graph, and the graph alone.
        star.peers = net.graph
        return star

    def phases(self, net: Network) -> list[IntArray]:
        """Return all at once, twice where owners answer; or clients between two server steps."""
        if self.absence != "freeze":
            return [net.server_ids, net.clients, net.server_ids]
        everybody = np.arange(net.n_participants)
        return [everybody, everybody] if self.exchange == "owner" else [everybody]

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return lambda, the penalty and the steps; for the server the graph."""
        steps = Steps(self.step, self.rho, self.scale, self.decay, self.radius)
        told = {"steps": steps, "scaling": self.scaling, "batch": self.batch, "output": self.output}
        told |= {"lam": self._lam(net), "penalty": self._penalty(net)}
        if i >= net.n_clients and self.absence != "freeze":
            graph = net.graph if net.peers is None else net.peers
            told |= {"edges": graph.edges, "weights": graph.weights, "n": net.n_clients}
            told |= {"presence": self.presence, "inverse": self.absence == "inverse"}
        return told

    def problem(self, net: Network) -> GTVProblem | None:
        """Return (5) as a `GTVProblem`."""
        if self.absence == "ignore":
            return None
        return self._problem(net)

    def _problem(self, net: Network) -> GTVProblem | None:
        if self.lam is None and self.penalty is None and net.source is not None:
            return net.source
        graph = net.graph if net.peers is None else net.peers
        return gtv_problem(net, self._penalty(net), self._lam(net) / self.scaling, graph)

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        if self.absence == "ignore":
            return (
                "absent clients without inverse weights: the limit is the optimum of losses "
                "weighted by the probabilities of presence"
            )
        return "" if net.convex else "a client's model is not convex"

    def target(self, net: Network) -> GTVProblem | None:
        """Return (5)."""
        return self._problem(net)

    def warnings(self, net: Network) -> list[str]:
        """Warn of steps above their bound of stability, and of columns that no step fits."""
        return [*self._scale_warning(net), *self._step_warning(net)]

    def _scale_warning(self, net: Network) -> list[str]:
        return [] if self.step == "exact" else scale_warning(net, "use step='exact'")

    def _step_warning(self, net: Network) -> list[str]:
        if self.step != "adaptive" or self.absence == "freeze" or self.presence is None:
            return []
        graph = net.graph if net.peers is None else net.peers
        chance = np.broadcast_to(self.presence, (net.n_clients,))
        slope = self.scaling * np.array([m.lipschitz for m in net.models])
        pull = self.rho * graph.degrees[: net.n_clients]
        bound = (slope / chance + pull) / (slope + pull)
        worst = int(np.argmax(bound))
        if bound[worst] < 2 or self.decay is not None:
            return []
        return [
            f"{net.label(worst)}: eta (l/p + rho deg) = {bound[worst]:.2g} is above 2: inverse "
            "weights of rare clients are likely to diverge with steps of constant length; give "
            "decay, or absence='freeze'"
        ]

    def steps_of(self, net: Network) -> str:
        """Say how long the steps of the first round are."""
        if self.step == "exact":
            return ""
        graph = net.graph if net.peers is None else net.peers
        slopes = self.scaling * np.array([getattr(m, "lipschitz", np.inf) for m in net.models])
        steps = Steps(self.step, self.rho, self.scale, self.decay, self.radius)
        lengths = np.asarray(steps.length(1, slopes, graph.degrees[: net.n_clients]))
        return f"steps eta from {lengths.min():.3g} to {lengths.max():.3g}, rho = {self.rho:g}"

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the vectors of all nodes, servers without data among them."""
        return self.models(net, reports) if self.absence != "freeze" else stacked_models(reports)

    def models(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the clients' vectors, which the server holds in Algorithm 2."""
        if self.absence != "freeze":
            return reports[net.n_clients].w
        return super().models(net, reports)

    def flow(
        self, net: Network, problem: GTVProblem, w: FloatArray, reports: Sequence[Report]
    ) -> FloatArray:
        """Return -alpha, scaled as the losses of the problem are."""
        if self.absence != "freeze":
            flows = reports[net.n_clients].flows
            assert flows is not None
            return flows / self.scaling
        return link_flows(net, reports) / self.scaling
