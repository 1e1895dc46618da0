"""What a run of `verify.conformance` found: one row per instance, as a table and as plain data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verify._display import fields_text, fitted, html_report

SCHEMA = "gtv-conformance/1"
STATUSES = ("CERTIFIED", "REFUTED", "UNPROVED", "ERROR")
HEADINGS = ("instance", "n", "m", "d", "status", "rel. gap", "seconds")
SHOWN = 4  # instances by name for one reason


@dataclass(frozen=True)
class Row:
    """One instance and what the solver made of it.

    Attributes
    ----------
    instance : str
        Name: family, penalty, losses.
    n, m, d : int
        Nodes, edges, dimension.
    penalty, losses : str
        Kinds.
    status : str
        "CERTIFIED", "REFUTED" (a better point is known), "UNPROVED" (also: w is good enough but the
        u that came with it proves nothing of the kind), "ERROR" (the solver raised an exception, or
        returned NaN, infinity or another shape).
    rel_gap : float
        Proved relative gap of w, rounded up; infinite if there is none.
    seconds : float
        The solver's wall-clock time.
    reason : str
        One sentence.
    """

    instance: str
    n: int
    m: int
    d: int
    penalty: str
    losses: str
    status: str
    rel_gap: float
    seconds: float
    reason: str

    __repr__ = fields_text


@dataclass(frozen=True)
class ConformanceReport:
    """Rows of the instances that ran, in order.

    Attributes
    ----------
    rows : tuple of Row
        Results.
    planned : int
        Number of instances of the battery.
    rtol, seed : float and int
        As asked for.
    seconds : float
        Wall-clock time of the whole run, proofs included.
    stopped : str
        Why not all instances ran: "time limit", "interrupted", or "".
    """

    rows: tuple[Row, ...]
    planned: int
    rtol: float
    seed: int
    seconds: float
    stopped: str = ""

    @property
    def passed(self) -> bool:
        """Whether every instance of the battery ran and was certified."""
        return len(self.rows) == self.planned and not self.failures

    @property
    def failures(self) -> tuple[Row, ...]:
        """Rows that are not CERTIFIED."""
        return tuple(row for row in self.rows if row.status != "CERTIFIED")

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows of each status."""
        found = Counter(row.status for row in self.rows)
        return {status: found[status] for status in STATUSES}

    @property
    def worst(self) -> float:
        """Largest relative gap among the certified rows, 0 if there is none."""
        return max((row.rel_gap for row in self.rows if row.status == "CERTIFIED"), default=0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as numbers, strings, lists and dicts for JSON; infinite gaps as None."""
        rows = [asdict(row) for row in self.rows]
        for row in rows:
            row["rel_gap"] = row["rel_gap"] if math.isfinite(row["rel_gap"]) else None
        return {
            "schema": SCHEMA,
            "passed": self.passed,
            "planned": self.planned,
            "rtol": self.rtol,
            "seed": self.seed,
            "seconds": self.seconds,
            "stopped": self.stopped,
            "counts": self.counts,
            "worst": self.worst,
            "rows": rows,
        }

    def __str__(self) -> str:
        lines = _table([HEADINGS, *map(_cells, self.rows)])
        if self.failures:
            lines += ["", "Not certified:", *_reasons(self.failures)]
        return "\n".join([*lines, "", *self._verdict()])

    def __repr__(self) -> str:
        """Show the verdict and the first failures; ``str`` is the table of all instances."""
        return fitted(["ConformanceReport:", *self._verdict(), *_reasons(self.failures)])

    def _repr_html_(self) -> str:
        """Show the verdict and the first failures."""
        return html_report(repr(self))

    def _verdict(self) -> list[str]:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        time = f"{sum(row.seconds for row in self.rows):.1f} s of {self.seconds:.1f} s"
        lines = [f"{len(self.rows)} of {self.planned} instances: {counts or 'none'}"]
        if self.stopped:
            lines[0] += f" (stopped: {self.stopped})"
        if self.counts["CERTIFIED"]:
            lines.append(f"worst relative gap certified {self.worst:.1e}, asked for {self.rtol:g}")
        verdict = "PASSED" if self.passed else "FAILED"
        return [*lines, f"{verdict} (seed {self.seed}; the solver took {time})"]


def _reasons(failures: Sequence[Row]) -> list[str]:
    """Return each reason once, with the instances that it holds for."""
    groups: dict[tuple[str, str], list[str]] = {}
    for row in failures:
        groups.setdefault((row.status, row.reason), []).append(row.instance)
    lines = []
    for (status, reason), names in groups.items():
        more = len(names) - SHOWN
        shown = ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
        lines.append(f"  {shown}: {status}: {reason}")
    return lines


def _cells(row: Row) -> Sequence[str]:
    gap = f"{row.rel_gap:.1e}" if math.isfinite(row.rel_gap) else "-"
    sizes = (str(row.n), str(row.m), str(row.d))
    return (row.instance, *sizes, row.status, gap, f"{row.seconds:.3f}")


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns: text to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = {HEADINGS.index("instance"), HEADINGS.index("status")}
    return [
        "  ".join(
            cell.ljust(width) if k in left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
