"""What was seen of a run, record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx._extras import extra_module
from verify._display import aligned, few, fitted, html_block, html_table

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
        title = f"History of {self.n_records} records"
        return fitted([title, *aligned(*self._table())] if len(self) else [title])

    def _repr_html_(self) -> str:
        """Show the first and last records."""
        return html_block(f"History of {self.n_records} records", html_table(*self._table()))

    def _table(self) -> tuple[list[str], list[list[str] | None]]:
        """Return the names of the columns, and rows of text."""
        rows: list[list[str] | None] = [
            None if k is None else [_cell(value) for value in self._records[k].values()]
            for k in few(self.n_records)
        ]
        return list(self), rows


def _cell(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.3g}"
