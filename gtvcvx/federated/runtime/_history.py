"""What was seen of a run, record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx._extras import extra_module

#: Columns that count, in integers.
COUNTS = ("round", "bytes_up", "bytes_down", "bytes_between", "messages", "active")


class History(Mapping[str, NDArray[Any]]):
    """Columns of a run's records; ``history["gap"]`` is an array, one entry a record.

    =============  =================================================================
    round          rounds done; 0 is the start
    value          objective of ``run.problem`` at ``run.w``; of the nearest problem, or the
                   sum of the local losses, where there is none
    gap            value less the best lower bound so far: certified
    distance       largest distance of a node's vector from the reference
    mse            mean squared distance of the clients' models from the truth
    bytes_up       sent by clients so far, headers included
    bytes_down     brought to clients so far
    bytes_between  from server to server so far
    messages       sent so far
    active         clients that took part in the round
    =============  =================================================================

    ``gap``, ``distance`` and ``mse`` are there where a run has them. All entries are finite.

    Parameters
    ----------
    columns : mapping of str to sequence, optional
        Records to begin with.
    """

    def __init__(self, columns: Mapping[str, Any] | None = None) -> None:
        given = columns or {}
        # Row by row: Ctrl-C finds all columns of the same length.
        self._records: list[dict[str, float]] = [
            dict(zip(given, row, strict=True)) for row in zip(*given.values(), strict=True)
        ]

    def add(self, record: Mapping[str, float]) -> None:
        """Append a record; all have the same columns."""
        self._records.append(dict(record))

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in iter(self):
            raise KeyError(name)
        dtype = np.int64 if name in COUNTS else np.float64
        return np.array([record[name] for record in self._records], dtype=dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self._records[0] if self._records else ())

    def __len__(self) -> int:
        return len(self._records[0]) if self._records else 0

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self._records)

    def last(self) -> dict[str, float]:
        """Return the last record."""
        return dict(self._records[-1]) if self._records else {}

    @property
    def mean_active(self) -> float | None:
        """Clients that took part in a recorded round, on average; None where there is no round."""
        # The start, round 0, asks nobody.
        asked = self["round"] > 0 if self.n_records else np.zeros(0, dtype=bool)
        return float(self["active"][asked].mean()) if asked.any() else None

    def to_frame(self) -> Any:
        """Return a pandas DataFrame (extra ``table``)."""
        return extra_module("pandas", "table", "data frames").DataFrame({**self})

    def __repr__(self) -> str:
        rows, names = self.n_records, list(self)
        shown = [*range(min(rows, 5)), *range(max(rows - 5, 5), rows)]
        lines = ["  ".join(f"{name:>10}" for name in names)]
        for k in shown:
            if k == rows - 5 and rows > 10:
                lines.append(f"  ... {rows - 10} more records")
            lines.append("  ".join(_cell(self._records[k][name]) for name in names))
        return "\n".join([f"History of {rows} records", *lines])


def _cell(value: float) -> str:
    return f"{value:>10d}" if isinstance(value, int) else f"{value:>10.3e}"
