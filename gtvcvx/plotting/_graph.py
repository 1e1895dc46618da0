"""The graph of a problem with a solution on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._diagnostics import check_pair, edge_load, saturated
from gtvcvx.plotting import _network as network
from gtvcvx.plotting._canvas import (
    FAINT,
    OTHER,
    STRONG,
    VALUES,
    axes_to_draw_on,
    drawn_on_axes,
)
from gtvcvx.plotting._coefficients import coefficient_number, coefficient_title
from gtvcvx.plotting._layout import place_nodes
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# Gaps below this share of the largest one are drawn like it.
_GAP_RANGE = 1e-6


@drawn_on_axes
def plot_graph(
    solution: Solution,
    problem: GTVProblem,
    by: str | int = "cluster",
    *,
    positions: ArrayLike | None = None,
    names: bool | None = None,
    certificate: Any = None,
    ax: Any = None,
) -> Any:
    """Draw the graph: nodes by cluster, coefficient or gap, edges by their flow.

    The wider an edge, the larger its flow ||u_e||_2; the darker, the larger the share of its
    capacity lambda A_e that the flow takes. Edges between two clusters are orange. With a
    coefficient k, the width shows that coordinate of the flow alone, and arrows (in graphs of up
    to 250 edges) show where it goes: from the nodes whose losses push the coefficient down to
    those that push it up, and so from smaller values to larger ones.

    Parameters
    ----------
    solution : Solution
    problem : GTVProblem
        The one that it solves.
    by : "cluster", "gap", int or str
        What colours the nodes: the clusters of `Solution.clusters`, the shares of the duality gap
        (which colour the edges as well), or one coefficient, by its number 0, ..., d-1 or by its
        name in ``solution.info["features"]``.
    positions : array_like, shape (n, 2 or more), optional
        Places of the nodes, of which the first two columns count. Default: those of the graph
        (``problem.graph.positions``); without any, springs along the edges, or eigenvectors of
        the Laplacian for graphs of more than 400 nodes.
    names : bool, optional
        Whether to write node labels. Default: in graphs of up to 40 nodes.
    certificate : object with node_gaps (n,) and edge_gaps (m,), such as verify.Certificate
        With ``by="gap"``: show its gaps instead of the solver's.
    {ax}
    """
    check_pair(solution, problem)
    special = by in ("cluster", "gap")
    coefficient = None if special else coefficient_number(solution, by, "'cluster', 'gap'")
    clusters = solution.clusters()
    places = place_nodes(problem.graph, positions, clusters)
    ax = axes_to_draw_on(ax, _figure_size(places))
    if coefficient is not None:
        handles, colours = _by_coefficient(ax, places, solution, problem, coefficient)
        title = _count(problem, coefficient_title(solution, coefficient))
    elif by == "gap":
        node, edge = gap_shares(solution, certificate)
        handles, colours = _by_gap(ax, places, problem, node, edge)
        title = _count(problem, f"duality gap {node.sum() + edge.sum():.2g}")
    else:
        handles = _by_cluster(ax, places, solution, problem, clusters)
        colours = network.node_colours(clusters)
        title = _count(problem, network.counted(clusters.max() + 1, "cluster"))
    if names or (names is None and problem.graph.n_nodes <= network.NAMED_NODES):
        network.name_nodes(ax, places, problem.graph.nodes, colours)
    network.finish(ax, title)
    if handles:
        ax.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9, frameon=False
        )
    return ax


def _figure_size(places: FloatArray) -> tuple[float, float]:
    """Width and height in inches: as the nodes need them, with room for the legend."""
    width, height = np.ptp(places, axis=0).tolist()
    return 8.5, float(np.clip(5.8 * height / width, 3.6, 6.5)) if width > 0 else 5.0


def gap_shares(solution: Solution, certificate: Any = None) -> tuple[FloatArray, FloatArray]:
    """Return the shares of nodes and edges in the gap, (n,) and (m,), checked.

    Raises
    ------
    ValueError
        The certificate is one of another problem, or has no finite gap.
    """
    source = solution if certificate is None else certificate
    shares = []
    for name, length in (("node_gaps", len(solution.w)), ("edge_gaps", len(solution.u))):
        found = np.asarray(getattr(source, name), dtype=np.float64)
        argument = "solution" if certificate is None else "certificate"
        if found.shape != (length,):
            raise ValueError(f"{argument}: {length} {name} are expected, got {found.shape}")
        if not np.isfinite(found).all():
            raise ValueError(f"{argument}: its {name} are not finite, there is no gap to draw")
        shares.append(found)
    return shares[0], shares[1]


def _count(problem: GTVProblem, more: str) -> str:
    n, m = problem.graph.n_nodes, problem.graph.n_edges
    return f"{network.counted(n, 'node')}, {network.counted(m, 'edge')}, {more}"


def _flow_width(flow: FloatArray) -> FloatArray:
    """Widths (m,) in [0, 1] of flows (m,) >= 0."""
    return flow / max(float(flow.max(initial=0.0)), np.finfo(float).tiny)


def _by_cluster(
    ax: Any,
    places: FloatArray,
    solution: Solution,
    problem: GTVProblem,
    clusters: IntArray,
) -> list[Any]:
    from matplotlib.colors import to_rgba

    edges = problem.graph.edges
    load = edge_load(problem, solution.u)
    crossing = clusters[edges[:, 0]] != clusters[edges[:, 1]]
    colours = network.load_colours(load)
    colours[crossing] = to_rgba(STRONG)
    flow = np.linalg.norm(solution.u, axis=1)
    network.draw_edges(ax, places, edges, _flow_width(flow), colours, crossing)
    names = [str(c) for c in range(int(clusters.max()) + 1)]
    handles = network.draw_clusters(ax, places, clusters, names)
    return [*handles, *_edge_handles(problem, load, flow), network.boundary_handle(crossing)]


def _edge_handles(problem: GTVProblem, load: FloatArray, flow: FloatArray) -> list[Any]:
    """Lines for a legend: what width and darkness of an edge mean."""
    if not len(flow):
        return []
    most = network.edge_handle(f"flow {flow.max():.3g}, the largest", colour=FAINT, width=3.5)
    if not problem.penalty.is_norm:
        return [most]
    full = int(saturated(problem, load).sum())
    return [
        most,
        network.edge_handle("flow at half the capacity", colour=FAINT),
        network.edge_handle(f"saturated edges ({full})"),
    ]


def _by_coefficient(
    ax: Any, places: FloatArray, solution: Solution, problem: GTVProblem, k: int
) -> tuple[list[Any], Sequence[Any]]:
    load = edge_load(problem, solution.u)
    flow = solution.u[:, k]
    size = np.abs(flow)
    edges = problem.graph.edges
    network.draw_edges(ax, places, edges, _flow_width(size), network.load_colours(load))
    network.draw_arrows(ax, places, edges, flow)
    shown = network.draw_values(ax, places, solution.w[:, k], VALUES, None)
    network.value_bar(ax, shown, coefficient_title(solution, k))
    return _edge_handles(problem, load, size), shown.to_rgba(solution.w[:, k])


def _by_gap(
    ax: Any, places: FloatArray, problem: GTVProblem, node: FloatArray, edge: FloatArray
) -> tuple[list[Any], Sequence[Any]]:
    from matplotlib import colormaps
    from matplotlib.colors import LogNorm, to_rgba

    most = max(float(node.max()), float(edge.max(initial=0.0)))
    least = _GAP_RANGE * most
    norm = LogNorm(least, most, clip=True) if most > 0.0 else LogNorm(_GAP_RANGE, 1.0)
    colours = colormaps[VALUES].with_extremes(bad=OTHER)
    lines = np.tile(to_rgba(OTHER), (len(edge), 1))
    lines[edge > 0] = colours(norm(edge[edge > 0]))
    width = np.zeros(len(edge))
    width[edge > 0] = norm(edge[edge > 0])
    network.draw_edges(ax, places, problem.graph.edges, width, lines)
    values = np.where(node > 0, node, np.nan)
    shown = network.draw_values(ax, places, values, colours, norm)
    if most > 0.0:
        network.value_bar(ax, shown, "share of the gap")
    return [network.edge_handle("no share", colour=OTHER)], shown.to_rgba(
        np.ma.masked_invalid(values)
    )
