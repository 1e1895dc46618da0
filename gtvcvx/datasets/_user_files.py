"""Files that users bring: found, or named in an error that says what to put where."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path


def user_file(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path of a file that a user has to bring.

    Parameters
    ----------
    path : str or path-like
        Where it should be.
    what : str
        What it is and where it comes from, as the error says it.

    Raises
    ------
    FileNotFoundError
        It is not there.
    """
    found = Path(path)
    if not found.is_file():
        raise FileNotFoundError(
            f"{found}: there is no such file; put there {what}. Nothing is downloaded."
        )
    return found


def table_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line number and cells by column name of a CSV file; names in lower case.

    Raises
    ------
    ValueError
        The file is empty, or a row has more or fewer cells than the header.
    """
    with path.open(encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle)
        header = [name.strip().lower() for name in next(reader, [])]
        if not header:
            raise ValueError(f"{path}: the file is empty; a header is expected")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise ValueError(
                    f"{path}, line {reader.line_num}: {len(header)} cells are expected as in the "
                    f"header, got {len(cells)}"
                )
            yield reader.line_num, dict(zip(header, cells, strict=True))


def header_of(path: Path) -> list[str]:
    """Return the names of the columns of a CSV file as they are written."""
    with path.open(encoding="utf-8-sig", newline="") as handle:
        return [name.strip() for name in next(csv.reader(handle), [])]


def number(text: str, path: Path, line: int, column: str) -> float:
    """Read a number; one that is none is named with its place."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        raise ValueError(
            f"{path}, line {line}: column {column!r}: a number is expected, got {text!r}"
        ) from None


def first_of(names: Sequence[str], header: Sequence[str]) -> str | None:
    """Return the first name that a header has."""
    return next((name for name in names if name in header), None)
