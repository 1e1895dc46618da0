"""FedRelax without parameters: what is shared are predictions on public points.

References
----------
[Notes] A. Jung, "Federated Learning: From Theory to Practice" (lecture notes), (47) to (50), (56),
Algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._algorithm import Algorithm, positive
from gtvcvx.federated.algorithms._nonparametric_client import PublicRegressor, RegressorClient
from gtvcvx.federated.models import RegressorModel
from gtvcvx.federated.programs import ClientProgram, Report
from gtvcvx.federated.wire import Field, Schema
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.problem import GTVProblem


class FedRelaxNonparametric(Algorithm):
    r"""Model-agnostic FedRelax, Algorithm 2 of [Notes]: regressors of any kind, one a client.

    Clients share m' public points X'. In a round a client refits its regressor to its own rows, of
    weight 1/m_i each, and to the public points as each neighbour has labelled them last, of weight
    :math:`\lambda A_{ij} / m'` each, and sends its predictions on X'. That is minimization in turn,
    all at once, of (50):

    .. math:: \sum_i \frac{1}{m_i} \sum_r (y_{ir} - h_i(x_{ir}))^2
        + \frac{\lambda}{m'} \sum_{\{i, j\}} A_{ij} \sum_{x \in X'} (h_i(x) - h_j(x))^2

    The source has three factors for one thing: (47) counts both directions, (50) prints lam/m',
    and (56) lam/(2 m').

    Regressors are not convex in parameters, if they have any: the history shows the value of (50),
    and nothing is certified. Clients begin with a fit to their own rows. Those that are absent do
    nothing, and their neighbours keep their last predictions.

    Parameters
    ----------
    lam : float
        lambda > 0 of (50).
    as_printed : bool
        Weights ``lam A_ij / (2 m')`` as in (56). The history still has the value for lam.

    Notes
    -----
    Networks for it are made by `regressor_network`. What leaves a client: m' predictions, to each
    neighbour, 8 m' + 20 bytes for each of them and round. A regressor that memorizes its rows, such
    as a deep tree, tells labels of rows that are near public points.
    """

    schema: ClassVar[Schema] = Schema({"predictions": (Field("h"),)})
    guarantee = "none: regressors are not convex; the value of (50) is shown"
    leaves = "m' predictions to each neighbour, 8m' + 20 bytes each and round"

    def __init__(self, lam: float, as_printed: bool = False) -> None:
        self.lam = positive(lam, "lam")
        self.as_printed = bool(as_printed)

    def client(self) -> ClientProgram:
        """Return the client program."""
        return RegressorClient()

    def network(self, net: Network) -> Network:
        """Return the links between clients.

        Raises
        ------
        TypeError, ValueError
            A client has no regressor, or there are servers.
        """
        if net.n_servers:
            raise ValueError(f"net: {self.name} knows links between clients alone, no servers")
        for i, model in enumerate(net.models):
            if not isinstance(model, PublicRegressor):
                raise TypeError(
                    f"net: {net.label(i)} has {model!r}, {self.name} needs a network made by "
                    "regressor_network"
                )
        return net

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return lambda."""
        return {"lam": self.lam, "as_printed": self.as_printed}

    def report_size(self, net: Network) -> int:
        """Return the number of predictions, and one more for the error on own rows."""
        return net.dim + 1

    def problem(self, net: Network) -> GTVProblem | None:
        """Return None."""
        return None

    def reason(self, net: Network) -> str:
        """Say why there is no certificate."""
        return "regressors are not convex in parameters"

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the clients' predictions on the public points (n, m')."""
        return self.models(net, reports)

    def models(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the clients' predictions on the public points (n, m')."""
        return np.array([report.w[:-1] for report in reports])

    def value(self, net: Network, reports: Sequence[Report]) -> float:
        """Return the value of (50)."""
        predictions = self.models(net, reports)
        head, tail = net.graph.edges.T
        across = np.mean((predictions[head] - predictions[tail]) ** 2, axis=1)
        own = sum(float(report.w[-1]) for report in reports)
        return float(own + self.lam * net.graph.weights @ across)


def regressor_network(
    graph: EmpiricalGraph, models: Sequence[RegressorModel], X_public: ArrayLike
) -> Network:
    """Return a network of clients with regressors, for `FedRelaxNonparametric`.

    Parameters
    ----------
    graph : EmpiricalGraph
        Links of the n clients.
    models : sequence of n RegressorModel
        With the clients' own rows.
    X_public : array_like, shape (m', p)
        The public points, which all clients know.
    """
    return Network([PublicRegressor(model, X_public) for model in models], graph)
