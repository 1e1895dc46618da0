"""Personalized federated learning with Moreau envelopes.

References
----------
[pFedMe] C. T. Dinh, N. H. Tran, T. D. Nguyen, "Personalized Federated Learning with Moreau
Envelopes", Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import positive, positive_integer
from gtvcvx.federated.algorithms._pfedme_client import MoreauClient
from gtvcvx.federated.algorithms._star import StarAlgorithm
from gtvcvx.federated.programs import ClientProgram


class PFedMe(StarAlgorithm):
    r"""pFedMe with an exact inner problem.

    A client begins with w_i = c, and R times

    .. math:: \theta_i = \arg\min_\theta L_i(\theta) + \tfrac\lambda2 \|\theta - w_i\|^2, \qquad
        w_i \leftarrow w_i - \eta \lambda (w_i - \theta_i);

    the server takes ``c <- (1 - beta) c + beta mean w_i``. With R = 1 it reaches the optimum of the
    star :math:`\sum_i L_i(\theta_i) + \tfrac\lambda2 \sum_i \|\theta_i - c\|^2`, and is certified.
    More local rounds have a biased limit: the distance from that optimum is reported. With
    ``eta lam = beta = 1`` and R = 1 it is `FedAvg` with lam/2.

    Parameters
    ----------
    lam : float
        lambda > 0.
    eta : float, optional
        Default: 1 / lam.
    beta : float
        > 0. Steps with ``eta lam beta > 2`` may diverge: there is a warning.
    local_rounds : int
        R.
    weights, absence, initial
        As in `FedAvg`.

    Notes
    -----
    What leaves a client: w_i, to the server, 8 d + 20 bytes a round, and as many come down. The
    client's model is theta_i, which stays with it, though at eta = 1/lam it is w_i.
    """

    guarantee = "local_rounds=1: the star's optimum, squared penalty lam; more: none, biased"
    leaves = "w_i to the server, 8d + 20 bytes a round; once m_i where needed"

    def __init__(
        self,
        lam: float,
        eta: float | None = None,
        beta: float = 1.0,
        local_rounds: int = 1,
        *,
        weights: str = "uniform",
        absence: str = "keep",
        initial: ArrayLike | None = None,
    ) -> None:
        super().__init__(weights, absence, initial)
        self.lam = positive(lam, "lam")
        self.eta = 1.0 / self.lam if eta is None else positive(eta, "eta")
        self.beta = positive(beta, "beta")
        self.local_rounds = positive_integer(local_rounds, "local_rounds")

    @property
    def biased(self) -> str:  # type: ignore[override]
        """Why several local rounds have no problem."""
        if self.local_rounds == 1:
            return ""
        return f"{self.local_rounds} local rounds between two means have a biased limit"

    @property
    def coupling(self) -> float:  # type: ignore[override]
        """Lambda of the star."""
        return self.lam

    def warnings(self, net: Network) -> list[str]:
        """Warn of steps along the Moreau envelopes above their bound."""
        length = self.eta * self.lam * self.beta
        if length <= 2.0:
            return []
        return [f"eta, beta: eta lam beta = {length:.3g} is above 2: steps may diverge"]

    def steps_of(self, net: Network) -> str:
        """Say how long the steps are."""
        return f"eta lam beta = {self.eta * self.lam * self.beta:.3g}"

    def client(self) -> ClientProgram:
        """Return the client program."""
        return MoreauClient()

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return lambda, the steps and beta."""
        told = {"lam": self.lam, "step": self.eta * self.lam, "beta": self.beta}
        return {**super().parameters(net, i), **told, "local_rounds": self.local_rounds}
