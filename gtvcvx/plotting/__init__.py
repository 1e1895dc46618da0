"""Pictures of solutions and federated runs, with matplotlib: ``pip install "gtvcvx[plot]"``.

Every function draws on the axes ``ax`` that it is given, or on those of a new figure, and returns
them. Nothing here touches pyplot: figures need no display and are freed like any other object.
matplotlib is imported when something is drawn.
"""

from gtvcvx.plotting._canvas import save_figure
from gtvcvx.plotting._clusterpath import plot_clusterpath
from gtvcvx.plotting._convergence import plot_convergence
from gtvcvx.plotting._cross_validation import plot_cross_validation
from gtvcvx.plotting._dendrogram import plot_dendrogram
from gtvcvx.plotting._federation import plot_federation
from gtvcvx.plotting._gaps import plot_gaps
from gtvcvx.plotting._graph import plot_graph
from gtvcvx.plotting._map import plot_map
from gtvcvx.plotting._path import plot_path
from gtvcvx.plotting._rounds import plot_activity, plot_rounds

__all__ = [
    "plot_activity",
    "plot_clusterpath",
    "plot_convergence",
    "plot_cross_validation",
    "plot_dendrogram",
    "plot_federation",
    "plot_gaps",
    "plot_graph",
    "plot_map",
    "plot_path",
    "plot_rounds",
    "save_figure",
]


def __dir__() -> list[str]:
    return sorted(__all__)
