"""Empirical graphs made from data, where none is given.

Nodes are joined when they are near each other: their feature vectors, coordinates or geometries
(`knn_graph`, `radius_graph`), the models that each of them fits alone (`model_graph`), or the
distributions that their local datasets were drawn from (`kl_graph`); or when their areas adjoin
(`contiguity_graph`, extra ``geo``). `connect_components` joins what is left apart.
"""

from gtvcvx.graph_construction._connect import Connection, connect_components
from gtvcvx.graph_construction._contiguity import contiguity_graph
from gtvcvx.graph_construction._divergence import kl_divergences, kl_graph
from gtvcvx.graph_construction._models import local_models, model_graph
from gtvcvx.graph_construction._neighbours import knn_graph, radius_graph

__all__ = [
    "Connection",
    "connect_components",
    "contiguity_graph",
    "kl_divergences",
    "kl_graph",
    "knn_graph",
    "local_models",
    "model_graph",
    "radius_graph",
]


def __dir__() -> list[str]:
    return sorted(__all__)
