"""Who takes part in a federated run, and who has a link to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, finite_array, is_integer
from gtvcvx.graph import connected_components
from gtvcvx.plotting import _network as network
from gtvcvx.plotting._canvas import FAINT, INK, VALUES, axes_to_draw_on, drawn_on_axes
from gtvcvx.plotting._layout import place_nodes

# Jumps up to this share of the spread of the models are none, as in `Solution.clusters`.
_SAME = 1e-3
# Least area of a server in square points: it must not drown among thousands of clients.
_SERVER = 40.0


@drawn_on_axes
def plot_federation(
    net: Any,
    by: str | int | None = None,
    *,
    positions: ArrayLike | None = None,
    names: bool | None = None,
    ax: Any = None,
) -> Any:
    """Draw clients as points, servers as black squares, and the links between them.

    Parameters
    ----------
    net : federated.Network or federated.Run
        Links that a run did not use are not in it.
    by : "cluster" or int, optional
        What colours the clients: the clusters that the network was told or else those that a run
        has found, or one coefficient of a run's models, 0, ..., d-1. Default: clusters, where the
        network was told some.
    positions : array_like, shape (n, 2 or more), optional
        Places of the participants, clients first, or of the clients alone: a server is then put
        amid those it has links to. Default: as in `plot_graph`.
    names : bool, optional
        Whether to write labels. Default: with up to 40 participants.
    {ax}
    """
    run, net = (net, net.net) if hasattr(net, "net") else (None, net)
    if not all(hasattr(net, part) for part in ("graph", "n_clients", "server_ids", "clusters")):
        raise TypeError(f"net: a Network or a Run is expected, got {type(net).__name__}")
    models = None if run is None else np.asarray(run.models)
    clusters = net.clusters
    if by == "cluster" and clusters is None:
        clusters = _fused(net, models)
    _check(by, models)
    places = place_nodes(net.graph, _all_places(net, positions), _near(net, clusters))
    ax = axes_to_draw_on(ax, (8.0, 5.0))
    handles, colours = _draw_clients(ax, places[: net.n_clients], by, clusters, models)
    handles += _draw_others(ax, places, net)
    if names or (names is None and len(places) <= network.NAMED_NODES):
        network.name_nodes(ax, places, net.graph.nodes, [*colours, *[INK] * net.n_servers])
    network.finish(ax, _title(net))
    if handles:
        ax.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False
        )
    return ax


def _check(by: str | int | None, models: FloatArray | None) -> None:
    if by is None or by == "cluster":
        return
    if models is None:
        raise ValueError(f"by: 'cluster' is expected, got {by!r}: coefficients take a Run")
    if not (is_integer(by) and models.ndim == 2 and 0 <= int(by) < models.shape[1]):
        d = models.shape[-1]
        raise ValueError(f"by: 'cluster' or a number in 0..{d - 1} is expected, got {by!r}")


def _fused(net: Any, models: FloatArray | None) -> IntArray:
    """Return clusters of clients by the models that a run has found, over links of clients."""
    n = net.n_clients
    ends = net.graph.edges[(net.graph.edges < n).all(axis=1)]
    if models is None or models.ndim != 2 or not len(ends):
        raise ValueError(
            "by: the network was told no clusters, and there is no run on links between clients "
            "to see them from"
        )
    jumps = np.linalg.norm(models[ends[:, 0]] - models[ends[:, 1]], axis=1)
    same = jumps <= _SAME * float(np.ptp(models, axis=0).max())
    return connected_components(n, ends[same])


def _all_places(net: Any, positions: ArrayLike | None) -> ArrayLike | None:
    """Return places of all participants, from those of the clients if need be."""
    if positions is None or np.shape(positions)[:1] != (net.n_clients,) or not net.n_servers:
        return positions
    places = finite_array(positions, "positions", 2)
    amid = []
    for server in net.server_ids.tolist():
        own = net.links(server)
        own = own[own < net.n_clients]
        amid.append(places[own].mean(axis=0) if len(own) else places.mean(axis=0))
    return np.vstack([places, amid])


def _near(net: Any, clusters: IntArray | None) -> IntArray:
    near = np.zeros(net.graph.n_nodes, dtype=np.int64)
    near[: net.n_clients] = 0 if clusters is None else clusters
    return near


def _draw_clients(
    ax: Any,
    places: FloatArray,
    by: str | int | None,
    clusters: IntArray | None,
    models: FloatArray | None,
) -> tuple[list[Any], Sequence[Any]]:
    """Draw them; return handles for a legend and the colour of each."""
    if models is not None and by is not None and by != "cluster":
        values = models[:, int(by)]
        shown = network.draw_values(ax, places, values, VALUES, None)
        network.value_bar(ax, shown, f"coefficient w{by}")
        return [], shown.to_rgba(values)
    told = np.zeros(len(places), dtype=np.int64) if clusters is None else clusters
    names = [str(q) for q in range(int(told.max()) + 1)]
    handles = network.draw_clusters(ax, places, told, names)
    return [] if clusters is None else handles, network.node_colours(told)


def _draw_others(ax: Any, places: FloatArray, net: Any) -> list[Any]:
    """Draw servers and links; return handles for a legend."""
    from matplotlib.colors import to_rgba
    from matplotlib.lines import Line2D

    edges = net.graph.edges
    network.draw_edges(
        ax, places, edges, np.zeros(len(edges)), np.tile(to_rgba(FAINT), (len(edges), 1))
    )
    if not net.n_servers:
        return []
    area = max(1.5 * network.node_area(ax, places), _SERVER)
    ax.scatter(*places[net.n_clients :].T, s=area, c=INK, marker="s", zorder=4)
    label = f"servers ({net.n_servers})"
    return [Line2D([], [], color="none", marker="s", markerfacecolor=INK, label=label)]


def _title(net: Any) -> str:
    counts = ((net.n_clients, "client"), (net.n_servers, "server"), (net.graph.n_edges, "link"))
    return ", ".join(f"{k} {noun}{'' if k == 1 else 's'}" for k, noun in counts if k)
