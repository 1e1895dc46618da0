"""What the commands share on the way out: text, tables, JSON, progress."""

from __future__ import annotations

import json
import math
import os
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np

_WIDTH = 12


def emit(args: Namespace, lines: Sequence[str], data: Mapping[str, Any]) -> None:
    """Print the lines or, with ``--json``, the data; with ``--quiet`` no lines."""
    if args.json:
        _print(json.dumps(plain({"command": args.command, **data}), allow_nan=False, indent=2))
    elif not args.quiet:
        _print("\n".join(lines))


def _print(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    # A label that the terminal cannot show must not turn a success into an error.
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        print(shown, flush=True)
    except BrokenPipeError:
        # The reader (a pager, head) has seen enough. Nothing must be left to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def plain(value: Any) -> Any:
    """Turn a value into what JSON has; numbers that are not finite become strings such as "inf"."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def entry(name: str, text: str) -> str:
    """Return a line of a report: a name and what there is to say about it."""
    return f"{name:<{_WIDTH}}{text}".rstrip()


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``1 node``, ``2 nodes``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(items: Sequence[Any], limit: int = 8) -> str:
    """Return the first items separated by commas, and how many more there are."""
    shown = ", ".join(str(item) for item in items[:limit])
    rest = len(items) - limit
    return f"{shown}, and {rest} more" if rest > 0 else shown


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: numbers to the right, the last column to the left."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if k == len(widths) - 1 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (header, *rows)
    ]


@contextmanager
def working(args: Namespace, what: str) -> Iterator[None]:
    """Show on a terminal what is being done, for work that has no iterations to count."""
    active = not args.quiet and sys.stderr is not None and sys.stderr.isatty()
    text = f"{what} ..."
    if active:
        print(text, end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if active:
            print("\r" + " " * len(text) + "\r", end="", file=sys.stderr, flush=True)
