"""Federated averaging: one server model, and what clients make of it.

References
----------
[Notes] A. Jung, "Federated Learning: From Theory to Practice" (lecture notes), Algorithms 3, 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from gtvcvx._arrays import IntArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import positive, positive_integer
from gtvcvx.federated.algorithms._star import StarAlgorithm
from gtvcvx.federated.algorithms._star_programs import ProximalClient
from gtvcvx.federated.programs import ClientProgram


class FedAvg(StarAlgorithm):
    r"""Federated averaging, Algorithms 3 and 4 of [Notes], or with local gradient steps.

    With ``lam`` a client answers the server's c with

    .. math:: w_i = \arg\min_v L_i(v) + \lambda \|v - c\|^2

    and the server takes the mean of the w_i. That is block minimization of
    :math:`\sum_i L_i(w_i) + \lambda \sum_i \|w_i - c\|^2`, a star whose centre has no data, with
    the squared penalty and ``2 lam``: certified for every lam, and exact under absence, too. (The
    text calls the step "RERM (14)", which has lam/2; the display has lam.) The distance to the
    minimizer of the sum of the losses falls, and the number of rounds grows, like lam.

    With ``steps=E`` a client takes E full-batch gradient steps from c. One step is FedSGD, and is
    certified against the sum of the losses. More have a limit that minimizes no such sum: the
    distance from the minimizer of the sum is reported.

    Parameters
    ----------
    lam : float, optional
        lambda > 0; or give steps.
    steps : int, optional
        E.
    lr : float, optional
        Length eta of the steps. Default: 1 / max_i l_i, with l_i the Lipschitz constant of a
        client's gradient, which the server asks for when it first meets a client. E > 1 needs
        ``eta < 2 / max_i l_i``, less than what one step stands: there is a warning.
    weights : {"uniform", "rows"}
        "rows": client i counts m_i times, its number of rows. The problem is then that of
        ``sum p_i L_i``, p_i = m_i / sum m, the mean over all rows; with lam ``sum p_i (L_i + lam
        ||w_i - c||^2)``, p_i = m_i / mean m.
    absence : {"keep", "skip"}
        Whether the server takes the mean of the last vectors of all clients (ours, default: exact
        under absence and sampling, too), or of those that take part in the round, as usual, which
        has no limit.
    initial : array_like, shape (d,), optional
        Start of the server. Default: zero.

    Notes
    -----
    What leaves a client: its vector, to the server; once its l_i or its number of rows, where they
    are needed. A client and round take 8 d + 20 bytes up and as many down, with steps 8 more down.
    """

    guarantee = (
        "lam: the star's optimum, squared penalty 2 lam; steps=1: the minimizer of the sum of "
        "losses; more steps: none, biased"
    )
    leaves = "w_i to the server, 8d + 20 bytes a round; once l_i or m_i where needed"

    def __init__(
        self,
        lam: float | None = None,
        *,
        steps: int | None = None,
        lr: float | None = None,
        weights: str = "uniform",
        absence: str = "keep",
        initial: ArrayLike | None = None,
    ) -> None:
        if (lam is None) == (steps is None):
            raise ValueError("lam, steps: one of them is expected")
        if lam is not None and lr is not None:
            raise ValueError("lr: with lam no gradient steps are taken")
        super().__init__(weights, absence, initial, steps, lr)
        self.lam = None if lam is None else positive(lam, "lam")

    @property
    def biased(self) -> str:  # type: ignore[override]
        """Why several steps have no problem."""
        return biased_steps(self.steps)

    @property
    def coupling(self) -> float | None:  # type: ignore[override]
        """Lambda of the star, whose penalty is one half of the squared norm."""
        return None if self.lam is None else 2.0 * self.lam

    def client(self) -> ClientProgram:
        """Return the client program."""
        return super().client() if self.lam is None else ProximalClient()

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return lambda as well."""
        return {**super().parameters(net, i), "lam": self.lam}


class ClusteredFedAvg(StarAlgorithm):
    """Federated averaging in each cluster, which an oracle tells: C_FedAvg of the papers.

    The clusters are those of the network. With one step a round the problem is the sum of the
    losses of each cluster, one node a cluster and no edge.

    Parameters
    ----------
    steps : int
        Gradient steps E of a client.
    lr, weights, absence, initial
        As in `FedAvg`; the default of lr is one for each cluster.

    Notes
    -----
    What leaves a client, and how many bytes: as in `FedAvg`. A server that knows who belongs
    together is told more than the server of `FedAvg`.
    """

    guarantee = "steps=1: the minimizer of the sum of losses of each cluster; more: none, biased"
    leaves = "w_i to the server, 8d + 20 bytes a round; once l_i or m_i where needed"

    def __init__(
        self,
        steps: int = 1,
        lr: float | None = None,
        *,
        weights: str = "uniform",
        absence: str = "keep",
        initial: ArrayLike | None = None,
    ) -> None:
        steps = positive_integer(steps, "steps")
        super().__init__(weights, absence, initial, steps, lr)

    @property
    def biased(self) -> str:  # type: ignore[override]
        """Why several steps have no problem."""
        return biased_steps(self.steps)

    def groups(self, net: Network) -> IntArray:
        """Return the clusters.

        Raises
        ------
        ValueError
            The network has none.
        """
        if net.clusters is None:
            raise ValueError(f"net: {self.name} needs a network with clusters")
        return net.clusters


def biased_steps(steps: int | None) -> str:
    """Say why E > 1 local steps have no problem; "" for fewer."""
    if steps is None or steps == 1:
        return ""
    return f"{steps} local steps between two means have a biased limit: clients drift apart"
