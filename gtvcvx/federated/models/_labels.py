"""Class labels: the same list at all clients, each label known by its position in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx._arrays import IntArray


class Classes:
    """The classes, in the order in which they were given.

    Parameters
    ----------
    labels : iterable of integers or strings

    Raises
    ------
    ValueError
        Fewer than two, or one given twice.
    """

    def __init__(self, labels: Iterable[Hashable]) -> None:
        self.labels = tuple(_plain(labels, "classes"))
        self._index = {label: k for k, label in enumerate(self.labels)}
        if len(self.labels) < 2:
            raise ValueError(f"classes: two at least are expected, got {list(self.labels)}")
        if len(self._index) < len(self.labels):
            raise ValueError(f"classes: distinct labels are expected, got {list(self.labels)}")

    def __len__(self) -> int:
        return len(self.labels)

    def positions(self, y: Iterable[Hashable], rows: int) -> IntArray:
        """Position of the label of each row, shape (rows,)."""
        labels = _plain(y, "y")
        if len(labels) != rows:
            raise ValueError(f"y: one label for each of the {rows} rows is expected, {len(labels)}")
        for r, label in enumerate(labels):
            if label not in self._index:
                known = ", ".join(repr(known) for known in self.labels)
                raise ValueError(f"y: row {r} has label {label!r}, the classes are {known}")
        return np.array([self._index[label] for label in labels], dtype=np.int64)

    def at(self, positions: IntArray) -> NDArray[Any]:
        """Labels at these positions; of dtype object where they are of several types."""
        one_type = len({type(label) for label in self.labels}) == 1
        return np.array(self.labels, dtype=None if one_type else object)[positions]


def _plain(labels: Iterable[Hashable], name: str) -> Sequence[Any]:
    """Return labels as Python's own objects; refuse what is neither integer nor string."""
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name}: a sequence of labels is expected, got {labels!r}")
    found = [x.item() if isinstance(x, np.generic) else x for x in labels]
    for x in found:
        if not isinstance(x, (int, str)):
            raise TypeError(f"{name}: integers or strings are expected, got {x!r}")
    return found
