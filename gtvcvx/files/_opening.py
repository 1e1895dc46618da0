"""Opening a table: text with one of several separators, or a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from gtvcvx.files._csv import CsvFile
from gtvcvx.files._text import open_text, separator


@contextmanager
def open_csv(path: str | os.PathLike[str]) -> Iterator[CsvFile]:
    """Open a table; a file that is missing or unreadable, or no text in UTF-8, is a ValueError.

    The name decides about Parquet files (.parquet, .pq), which need pandas, the content about all
    others: gzipped or not, separated by commas, semicolons or tabs.
    """
    name = os.fspath(path)
    if name.lower().endswith((".parquet", ".pq")):
        # Loaded here, since it and what it loads have no business with text.
        parquet = import_module("gtvcvx.files._parquet")
        yield parquet.ParquetFile(name)
        return
    with open_text(name) as (handle, head):
        yield CsvFile(name, handle, separator(head))
