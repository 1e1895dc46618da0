"""Solutions and graphs for other programs: NetworkX, GraphML, pandas, polars.

pandas is the extra ``table`` (``pip install "gtvcvx[table]"``), polars the extra ``polars``; they
are imported when they are used.
Problems and solutions have files of their own: ``GTVProblem.save``, ``Solution.save``.
"""

from gtvcvx.interop._frames import Frames, to_frames
from gtvcvx.interop._from_frames import Rows, graph_from_frame, rows_from_frame
from gtvcvx.interop._networkx import read_graphml, to_networkx, write_graphml

__all__ = [
    "Frames",
    "Rows",
    "graph_from_frame",
    "read_graphml",
    "rows_from_frame",
    "to_frames",
    "to_networkx",
    "write_graphml",
]


def __dir__() -> list[str]:
    return sorted(__all__)
