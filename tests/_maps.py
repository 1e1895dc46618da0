"""Maps for tests: small areas of shapely, and a stand-in for the frames of geopandas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import shapely

PLANE, DEGREES = SimpleNamespace(is_geographic=False), SimpleNamespace(is_geographic=True)


class Frame:
    """What is read of a GeoDataFrame: geometry, index, crs and columns."""

    def __init__(self, shapes, index=None, crs=None, **columns: Any) -> None:
        self._shapes = list(shapes)
        self.index = np.arange(len(self._shapes)) if index is None else np.array(index)
        self.crs = crs
        self._columns = {**columns, "geometry": self._shapes}

    @property
    def geometry(self):
        return iter(self._shapes)

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, column):
        return self._columns[column]


def squares(rows, columns, size=1.0):
    """Unit squares, row by row from below."""
    return [
        shapely.box(size * c, size * r, size * (c + 1), size * (r + 1))
        for r in range(rows)
        for c in range(columns)
    ]
