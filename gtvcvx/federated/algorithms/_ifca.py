"""IFCA: k models at a server, and clients that choose the one that fits them.

References
----------
[IFCA] A. Ghosh, J. Chung, D. Yin, K. Ramchandran, "An Efficient Framework for Clustered Federated
Learning", Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, real_array
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, one_of, positive, positive_integer
from gtvcvx.federated.algorithms._ifca_programs import IfcaClient, IfcaServer
from gtvcvx.federated.algorithms._step_bounds import known_lipschitz, scale_warning
from gtvcvx.federated.programs import ClientProgram, Report, ServerProgram
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.problem import GTVProblem


class IFCA(Algorithm):
    r"""Iterative federated clustering: k models, of which each client trains the one it chooses.

    In a round the server sends all k models; client i chooses the one of least local loss,
    :math:`j = \arg\min_j L_i(\theta_j)`, the first of equal ones, and sends j with its gradient
    there, or with the model after some local steps; the server moves :math:`\theta_j`:

    .. math:: \theta_j \leftarrow \theta_j - \frac{\eta}{N_j} \sum_{i \in S_j} g_i

    with S_j those who chose j, and N_j their number ("cluster") or that of all who take part in the
    round ("all", as printed for gradients). With models, g_i stands for what client i has moved.

    The objective, :math:`\sum_i \min_j L_i(\theta_j)`, is not convex: nothing is certified. The
    result depends on the start, so the method runs several times at once, from starts of its own
    seed, and answers with the one of least objective as far as clients have told. The number of
    starts and the seed of the run are part of the result.

    Parameters
    ----------
    k : int
        Number of models.
    lr : float, optional
        eta. Default: 1 / max_i l_i, with l_i the Lipschitz constant of a client's gradient, which
        clients send along.
    average : {"cluster", "all"}
        What the sum of updates is divided by.
    update : {"gradients", "models"}
        What clients send.
    steps : int
        Local steps, with "models".
    restarts : int
        Number of starts, all run at once: traffic is so many times as large.
    spread : float
        Standard deviation of the entries of the starts, which are normal.
    initial : array_like, shape (k, d) or (restarts, k, d), optional
        Starts in place of random ones.

    Notes
    -----
    What leaves a client, for each start: the number of its choice, its loss there, and a gradient
    or model; and l_i. A client and round take 8 R (d + 2) + 28 bytes up for R starts, and
    8 (R k d + 2) + 20 down. `assignment` tells who belongs to which model; what client i itself has
    chosen last is ``run.reports[i].choice``.
    """

    schema: ClassVar[Schema] = Schema(
        {
            "models": (
                Field("models", ("restarts", "k", "d")),
                Field("lr", ()),
                Field("best", (), "<i8"),
            ),
            "update": (
                Field("choice", ("restarts",), "<i8"),
                Field("loss", ("restarts",)),
                Field("update", ("restarts", "d")),
                Field("lipschitz", ()),
            ),
        }
    )
    guarantee = "none: the objective is not convex"
    leaves = "choice, loss and gradient or model for each start, 8R(d + 2) + 28 bytes a round"

    def __init__(
        self,
        k: int,
        lr: float | None = None,
        average: str = "cluster",
        update: str = "gradients",
        *,
        steps: int = 1,
        restarts: int = 1,
        spread: float = 1.0,
        initial: ArrayLike | None = None,
    ) -> None:
        self.k = positive_integer(k, "k")
        self.lr = None if lr is None else positive(lr, "lr")
        self.average = one_of(average, ("cluster", "all"), "average")
        self.update = one_of(update, ("gradients", "models"), "update")
        self.steps = positive_integer(steps, "steps")
        if self.steps > 1 and update == "gradients":
            raise ValueError("steps: several local steps need update='models'")
        self.restarts = positive_integer(restarts, "restarts")
        self.spread = positive(spread, "spread")
        self.initial = None if initial is None else self._checked(initial)

    def _checked(self, initial: ArrayLike) -> FloatArray:
        array = real_array(initial, "initial")
        if array.ndim == 2:
            array = np.broadcast_to(array, (self.restarts, *array.shape))
        if array.shape[:2] != (self.restarts, self.k) or array.ndim != 3:
            raise ValueError(
                f"initial: shape ({self.k}, d) or ({self.restarts}, {self.k}, d) is expected, got "
                f"{np.shape(initial)}"
            )
        if not np.isfinite(array).all():
            raise ValueError("initial: finite numbers are expected")
        return array.copy()

    def network(self, net: Network) -> Network:
        """Return the star of the clients."""
        return net.as_star()

    def phases(self, net: Network) -> list[IntArray]:
        """Return the server, which asks; the clients; the server, which takes the answers."""
        return [net.server_ids, net.clients, net.server_ids]

    def sizes(self, net: Network) -> Mapping[str, int]:
        """Return d, k and the number of starts."""
        return {"d": net.dim, "k": self.k, "restarts": self.restarts}

    def client(self) -> ClientProgram:
        """Return the client program."""
        return IfcaClient()

    def server(self) -> ServerProgram:
        """Return the server program."""
        return IfcaServer()

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return the steps; for the server also the starts."""
        told: dict[str, Any] = {"update": self.update, "steps": self.steps, "lr": self.lr}
        told |= {"k": self.k, "restarts": self.restarts}
        if i >= net.n_clients:
            if self.initial is not None and self.initial.shape[2] != net.dim:
                raise ValueError(f"initial: d = {net.dim} is expected, got {self.initial.shape[2]}")
            told |= {"n": net.n_clients, "average": self.average}
            told |= {"initial": self.initial, "spread": self.spread}
        return told

    def problem(self, net: Network) -> GTVProblem | None:
        """Return None."""
        return None

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        return (
            f"the sum over clients of the least of {self.k} losses is not convex; best of "
            f"{self.restarts} start{'s' if self.restarts > 1 else ''}"
        )

    def warnings(self, net: Network) -> list[str]:
        """Warn of steps above the bound that holds whoever chooses what."""
        texts = scale_warning(net, "use models that need no gradient steps")
        slopes = known_lipschitz(net)
        if self.lr is not None and slopes is not None and self.lr * slopes.max() > 2.0:
            texts.append(
                f"lr: {self.lr:.4g} is above 2 / max l_i = {2.0 / slopes.max():.4g}: steps may "
                "diverge"
            )
        return texts

    def steps_of(self, net: Network) -> str:
        """Say how long the steps are."""
        return "lr = 1 / max l_i" if self.lr is None else f"lr = {self.lr:.3g}"

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the clients' vectors."""
        return self.models(net, reports)

    def models(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return for each client the server's model of least local loss."""
        return np.asarray(reports[net.n_clients].w[self.assignment(net, reports)])

    def assignment(self, net: Network, reports: Sequence[Report]) -> IntArray:
        """Return the number (n,) of the model that fits each client best, as it would choose now.

        Parameters
        ----------
        net : Network
        reports : sequence of Report
            Such as ``run.reports``, with ``run.net``.
        """
        models = reports[net.n_clients].w
        losses = np.array([[model.value(w) for w in models] for model in net.models])
        return losses.argmin(axis=1).astype(np.int64)
