"""Perturbed features: clients transform their own rows before they train [Notes, Algorithm 6]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import ArrayLike

from gtvcvx.federated._network import Network
from gtvcvx.federated.features import FeatureMap
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import Loss, SquaredLoss


def perturbed_network(
    graph: EmpiricalGraph,
    X: Sequence[ArrayLike],
    y: Sequence[ArrayLike],
    make_map: Callable[[int], FeatureMap],
    *,
    private: Sequence[ArrayLike] | None = None,
    loss: Callable[[Any, Any], Loss] = SquaredLoss,
) -> Network:
    """Return a network of clients whose features were perturbed before they are used.

    Each client fits a map of its own to its own rows, and trains on the rows that come out. With
    `FedRelax` this is Algorithm 6 of [Notes]. The problem is that of the perturbed rows, and so is
    its certificate; there is no (eps, delta) for any of these maps.

    Parameters
    ----------
    graph : EmpiricalGraph
        Links of the n clients.
    X : sequence of n array_like, shapes (m_i, p)
        The clients' own features.
    y : sequence of n array_like, shapes (m_i,)
    make_map : callable
        The map of client i, such as ``lambda i: AdditiveNoise(0.1, seed=i)``; a new one for each.
    private : sequence of n array_like, optional
        The private feature of each row, for maps that need it.
    loss : callable
        Of features and labels, such as `SquaredLoss`, the default.

    Raises
    ------
    ValueError
        Numbers do not fit, or a map refuses a client's rows; naming the client.
    """
    for name, given in (("X", X), ("y", y), ("private", private)):
        if given is not None and len(given) != graph.n_nodes:
            raise ValueError(
                f"{name}: one entry for each of the {graph.n_nodes} clients is expected, "
                f"got {len(given)}"
            )
    models = []
    for i, node in enumerate(graph.nodes):
        own = None if private is None else private[i]
        try:
            rows = make_map(i).fit(X[i], own).transform(X[i])
        except ValueError as error:
            raise ValueError(f"client {node!r}: {error}") from error
        models.append(loss(rows, y[i]))
    return Network(models, graph)
