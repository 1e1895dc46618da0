"""The rows of a run as text for a terminal and as CSV."""

from __future__ import annotations

import csv
import io
import os
import textwrap
from collections.abc import Sequence

from numpy.typing import ArrayLike

from gtvcvx.experiments._outcome import Row, deviation_of, mean_of
from gtvcvx.experiments._record import Record
from gtvcvx.files._atomic import atomic_write

HEADER = ("", "printed", "ours", "certified optimum", "verdict")
# Of the columns with statements in words, so that tables stay readable on a terminal.
_WIDTH = 36
#: What stands where the paper prints nothing to judge.
FINDING = "(a finding of ours)"


def number_text(value: float | str) -> str:
    """Write a number with three digits; words as they are."""
    return value if isinstance(value, str) else f"{value:.3g}"


def values_text(values: ArrayLike | str | None) -> str:
    """Write mean and deviation of one value a seed; words as they are; "-" for None."""
    mean = mean_of(values)
    if mean is None:
        return values if isinstance(values, str) else "-"
    deviation = deviation_of(values)
    return number_text(mean) + ("" if deviation is None else f" ({number_text(deviation)})")


def cells_of(row: Row) -> tuple[str, str, str, str, str]:
    """Give the texts of a row of the table: name, printed, ours, certified optimum, verdict.

    Parameters
    ----------
    row : Row
    """
    verdict = FINDING if row.verdict is None else str(row.verdict)
    printed = number_text(row.printed)
    return row.name, printed, values_text(row.ours), values_text(row.optimum), verdict


def headings(record: Record) -> tuple[str, str]:
    """Return the first two lines of every output: what was run; on which data, and how."""
    seeds = f"{record.seeds} seed" + ("s" if record.seeds != 1 else "")
    return (
        f"[{record.paper}] {record.item}: {record.title}",
        f"data: {record.data}; {record.size} size, reading {record.reading!r}, {seeds}",
    )


def text_of(record: Record) -> str:
    """Give the table of a run as a terminal shows it, then reasons, setting and notes.

    Parameters
    ----------
    record : Record
    """
    rows = record.outcome.rows
    parts = [
        record.name,
        *headings(record),
        f"ours: mean (deviation over seeds) of {record.outcome.measure}",
        _table([HEADER, *map(cells_of, rows)]),
        *(_wrapped(f"{row.name}: {row.reason}") for row in rows if row.reason),
    ]
    parts += [
        _wrapped(f"Setting, {name}: {value}") for name, value in record.outcome.setting.items()
    ]
    parts += [_wrapped(f"Curve {text}") for text in ends_of(record)]
    parts += [_wrapped(f"Note: {note}") for note in record.outcome.notes]
    return "\n".join(parts)


def ends_of(record: Record) -> list[str]:
    """Give what is said of the last point of every curve, each text once.

    Parameters
    ----------
    record : Record
    """
    panels = record.outcome.panels
    several = len(panels) > 1
    found = [
        f"{curve.label}{f' ({panel.title})' if several else ''}: {curve.final}"
        for panel in panels
        for curve in panel.curves
        if curve.final
    ]
    return list(dict.fromkeys(found))


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, subsequent_indent="    ")


def _table(rows: Sequence[Sequence[str]]) -> str:
    wrapped = [[textwrap.wrap(cell, _WIDTH) or [""] for cell in row] for row in rows]
    widths = [max(len(line) for row in wrapped for line in row[k]) for k in range(len(HEADER))]
    lines = []
    for row in wrapped:
        for depth in range(max(map(len, row))):
            cells = [cell[depth] if depth < len(cell) else "" for cell in row]
            line = "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True))
            lines.append(line.rstrip())
    return "\n".join(lines)


def csv_of(record: Record) -> str:
    """Give the rows of a run as CSV, each with its seeds, its data and its reason.

    Parameters
    ----------
    record : Record
    """
    rows = [_csv_row(record, row) for row in record.outcome.rows]
    output = io.StringIO()
    writer = csv.DictWriter(output, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return output.getvalue()


def _csv_row(record: Record, row: Row) -> dict[str, object]:
    return {
        "experiment": record.name,
        "paper": record.paper,
        "item": record.item,
        "row": row.name,
        "printed": row.printed,
        "mean": _or_words(row.mean, row.ours),
        "deviation": _or_words(row.deviation, None),
        "optimum": _or_words(row.optimum_mean, row.optimum),
        "verdict": "" if row.verdict is None else str(row.verdict),
        "reason": row.reason,
        "seeds": record.seeds,
        "size": record.size,
        "reading": record.reading,
        "data": record.data,
    }


def _or_words(number: float | None, words: ArrayLike | str | None) -> float | str:
    if number is not None:
        return number
    return words if isinstance(words, str) else ""


def write_csv(record: Record, path: str | os.PathLike[str]) -> None:
    """Write `csv_of` a run to a file, whole or not at all."""
    with atomic_write(path) as file:
        file.write(csv_of(record))
