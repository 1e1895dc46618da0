"""Results as files: JSON and CSV for machines, Markdown tables for people, all written whole."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import os
import platform
import subprocess
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from measure import Row

from gtvcvx.files._atomic import atomic_write

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"
PACKAGES = ("numpy", "scipy", "numba", "cvxpy", "clarabel", "scs", "osqp", "highspy")
HEAD = (
    "instance | nodes | edges | gap | solver | time (s) | times gtvcvx | backend alone (s) | "
    "times gtvcvx | true gap | certificate | iterations | memory (MB)"
)


def machine() -> dict[str, str]:
    """Describe what the figures were measured on, and of what."""
    installed = {d.name.lower(): d.version for d in importlib.metadata.distributions()}
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return {
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": _line("/proc/meminfo", "MemTotal") or "unknown",
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {installed.get(name, 'absent')}" for name in PACKAGES),
        "commit": subprocess.run(describe, capture_output=True, text=True).stdout.strip(),
    }


def _line(path: str, key: str) -> str:
    lines = Path(path).read_text().splitlines() if Path(path).exists() else []
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(key)), "")


class Results:
    """What was measured so far, kept in a folder; cases that run again replace their old rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "results.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        try:
            self.rows = [Row(**row) for row in known.pop("rows", [])]
        except TypeError as error:
            raise ValueError(f"{path}: written by another version ({error})") from error
        self.facts: dict[str, Any] = known

    def add(self, rows: list[Row]) -> None:
        new = {(row.case, row.target) for row in rows}
        self.rows = [row for row in self.rows if (row.case, row.target) not in new] + rows
        self.rows.sort(key=lambda r: (r.family, r.series, r.n_nodes, -r.target))

    def write(self) -> None:
        """Write results.json, results.csv and results.md."""
        rows = [asdict(row) for row in self.rows]
        text = json.dumps(self.facts | {"rows": rows}, indent=1, allow_nan=False)
        _write(self.folder / "results.json", text + "\n")
        table = io.StringIO()
        names = [f.name for f in fields(Row) if f.name != "trace"]
        writer = csv.DictWriter(table, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        _write(self.folder / "results.csv", table.getvalue())
        _write(self.folder / "results.md", self.markdown())

    def markdown(self) -> str:
        """Return the machine, one table a family, and where gtvcvx is not ahead."""
        parts = [f"- {name}: {value}" for name, value in self.facts.get("machine", {}).items()]
        if call := self.facts.get("first_call"):
            parts.append(
                f"- first call, d = 2: {call['compiling']:.1f} s with nothing compiled, "
                f"{call['cached']:.1f} s with compiled code on disk, {call['second']:.2f} s after"
            )
        for family in dict.fromkeys(row.family for row in self.rows):
            rows = [row for row in self.rows if row.family == family]
            parts += ["", f"### {family}", ""]
            parts += _table(HEAD.split(" | "), [_cells(row) for row in rows])
        if self.rows:
            parts += ["", f"### {BEHIND}", "", *self._behind()]
        titles = {
            "paths": "Paths of lambda against cold solves",
            "bandwidth": "Inner loop against memory bandwidth",
            "proofs": "What a proof costs",
        }
        for name, title in titles.items():
            if lines := self.facts.get(name):
                parts += ["", f"### {title}", ""]
                parts += _table(list(lines[0]), [list(map(_number, x.values())) for x in lines])
        return "\n".join(parts) + "\n"

    def _behind(self) -> list[str]:
        ours = [r for r in self.rows if r.peer == "gtvcvx"]
        missed = dict.fromkeys((r.case, r.target) for r in ours if not r.reached)
        lines = [f"- {case} at {target:g}: gap not proved in time" for case, target in missed]
        for r in self.rows:
            if r.reached and (r.case, r.target) in missed:
                lines.append(f"- {r.case} at {r.target:g}: {r.peer} takes {r.seconds:.3g} s")
            elif r.times is not None and min(r.times, r.own_times) < 1 and r.peer != "gtvcvx":
                alone = f", {r.own_times:.2f} without CVXPY" if r.own_times < r.times else ""
                text = f"{r.peer} takes {r.times:.2f} times our time{alone}"
                lines.append(f"- {r.case} at {r.target:g}: {text}")
        return lines or ["Nowhere in these tables."]

    def write_page(self, page: Path = PAGE) -> None:
        """Replace what was measured here in the generated section of the page.

        Families of other runs stay as they are, and each table that is new says where it is from.
        """
        text = page.read_text(encoding="utf-8")
        if text.count(BEGIN) != 1 or text.count(END) != 1:
            raise ValueError(f"{page}: the lines {BEGIN} and {END} are expected once each")
        before, rest = text.split(BEGIN)
        old, after = rest.split(END)
        _write(page, f"{before}{BEGIN}\n\n{self._joined(old)}\n{END}{after}")

    def _joined(self, old: str) -> str:
        """Return the section with what is here instead of, or beside, what was there."""
        known, new = _blocks(old), _blocks(self.markdown())
        here = {row.family for row in self.rows}
        if not known.keys() & {f"F{k}" for k in range(1, 100)} - here:
            return self.markdown()
        for family in here:
            commit = self.facts.get("machine", {}).get("commit", "unknown")
            note = self.facts.get("note") or f"Measured at commit {commit}."
            new[family] = f"{new[family].rstrip()}\n\n{note}\n"
        new[BEHIND] = _behind_of_both(known.get(BEHIND, ""), new.get(BEHIND, ""), here)
        blocks = known | {name: text for name, text in new.items() if name}
        families = sorted((b for b in blocks if _number_of(b)), key=_number_of)
        others = [name for name in blocks if name and not _number_of(name)]
        parts = [f"### {name}\n\n{blocks[name].strip()}\n" for name in (*families, *others)]
        return "\n".join([known.get("", "").strip() + "\n", *parts])


BEHIND = "Where gtvcvx is not ahead"


def _blocks(text: str) -> dict[str, str]:
    """Return a section's text by heading; what comes before the first one has none."""
    first, *others = f"\n{text}".split("\n### ")
    return {"": first} | {name: body for name, _, body in (x.partition("\n") for x in others)}


def _number_of(heading: str) -> int:
    """Return the number of a family; 0 for other headings."""
    return int(heading[1:]) if heading[:1] == "F" and heading[1:].isdigit() else 0


def _behind_of_both(known: str, new: str, here: set[str]) -> str:
    """Return the lines of the families that are here, and those of all others."""
    kept = [
        line
        for line in known.splitlines()
        if line.startswith("- ") and line[2:].split(" ")[0] not in here
    ]
    added = [line for line in new.splitlines() if line.startswith("- ")]
    return "\n".join([*kept, *added]) or "Nowhere in these tables."


def _cells(row: Row) -> list[str]:
    shown = [row.seconds, row.times, row.own_seconds, row.own_times, row.suboptimality]
    time, times, own, own_times, gap = map(_number, shown)
    return [
        row.series,
        str(row.n_nodes),
        str(row.n_edges),
        f"{row.target:g}",
        row.peer,
        time if row.reached else f"— ({row.status})",
        times,
        own,
        own_times,
        gap,
        row.certificate,
        str(row.n_iter),
        "" if row.memory is None else f"{row.memory:.0f}",
    ]


def _number(x: Any) -> str:
    return "" if x is None else f"{x:.3g}" if isinstance(x, float) else str(x)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(x.replace("|", "/") for x in line) + " |" for line in lines]


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text)
