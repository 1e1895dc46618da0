"""Parquet files in the place of text, through pandas (extra ``table``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gtvcvx._extras import extra_module
from gtvcvx.files._csv import Chunk, CsvFile

_CHUNK_ROWS = 4096


class ParquetFile(CsvFile):
    """A table whose columns have names and types; its cells are given as text all the same.

    So all checks are those of text, and numbers come back to the last digit. Missing values are
    empty cells. The row after the names is number 1.

    Parameters
    ----------
    path : str
        Name of the file.
    """

    named = True

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            pandas = extra_module("pandas", "table", "Parquet files")
            self._frame = pandas.read_parquet(path, dtype_backend="numpy_nullable")
        except ImportError as error:  # pandas has no reader of its own
            problem = str(error).split(".")[0]
            raise ValueError(
                f'{path}: {problem}; Parquet files need pandas and pyarrow (pip install "gtvcvx'
                '[table]" pyarrow)'
            ) from None
        except FileNotFoundError:
            raise ValueError(f"{path}: there is no such file") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{path}: no Parquet file, or a damaged one ({error})") from error

    def first(self) -> tuple[int, list[str]]:
        """Give the names of the columns."""
        return 0, [str(name).strip() for name in self._frame.columns]

    def chunks(self, n_fields: int) -> Iterator[Chunk]:
        """Give all rows."""
        for start in range(0, len(self._frame), _CHUNK_ROWS):
            part = self._frame.iloc[start : start + _CHUNK_ROWS]
            columns = [_cells(part.iloc[:, k]) for k in range(n_fields)]
            yield Chunk(list(range(start + 1, start + len(part) + 1)), columns)

    def error(self, line: int, column: str | None, problem: str) -> ValueError:
        """Error that says where in the file the problem is."""
        place = f", row {line}" if line else ""
        place += f", column {column}" if column is not None else ""
        return ValueError(f"{self.path}{place}: {problem}")


def _cells(column: Any) -> list[str]:
    """Text of the values of a column; repr() of a float is read back as the same number."""
    missing = column.isna().tolist()
    return [
        "" if absent else repr(x) if isinstance(x, float) else str(x).strip()
        for x, absent in zip(column.tolist(), missing, strict=True)
    ]
