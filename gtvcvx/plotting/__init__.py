"""Pictures of solutions, with matplotlib: ``pip install "gtvcvx[plot]"``.

Every function draws on the axes ``ax`` that it is given, or on those of a new figure, and returns
them. Nothing here touches pyplot: figures need no display and are freed like any other object.
matplotlib is imported when something is drawn.
"""

from gtvcvx.plotting._canvas import save_figure
from gtvcvx.plotting._clusterpath import plot_clusterpath
from gtvcvx.plotting._convergence import plot_convergence
from gtvcvx.plotting._dendrogram import plot_dendrogram
from gtvcvx.plotting._gaps import plot_gaps
from gtvcvx.plotting._graph import plot_graph
from gtvcvx.plotting._path import plot_path

__all__ = [
    "plot_clusterpath",
    "plot_convergence",
    "plot_dendrogram",
    "plot_gaps",
    "plot_graph",
    "plot_path",
    "save_figure",
]


def __dir__() -> list[str]:
    return sorted(__all__)
