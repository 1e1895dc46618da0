"""Writes docs/reproduction.md and its pictures from the records in results/."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import _catalogue

from gtvcvx.experiments import Experiment, Record, Verdict, cells_of, ends_of, save_picture

RESULTS = _catalogue.HERE / "results"
DOCS = _catalogue.HERE.parents[1] / "docs"
PAGE = DOCS / "reproduction.md"
PICTURES = DOCS / "pictures" / "reproduction"

SIZES = {"paper": "full setting", "default": "default size", "tiny": "size of tests"}

INTRODUCTION = """\
# The papers, run again

Tables and figures of [five papers](papers.md), each run by one command beside the certified
optimum of the problem that it is about. A slow algorithm and a wrong model look alike in a plot;
the optimum tells them apart.

Every number, verdict and picture on this page comes from a run: `python examples/papers --page`
writes it from the records in `examples/papers/results`. A run prints the same table, and writes
JSON, CSV and a picture:

```bash
python examples/papers --list
python examples/papers notes-exercise-4-1 --out papers-out
```

`--paper` runs the full setting; a run that was interrupted goes on where it was when it is started
again with the same `--out`. `--data DIR` takes your own files, where an experiment can use some;
nothing is downloaded, and a stand-in says "synthetic".

| Verdict | What it says about a printed value or statement |
|---|---|
| REPRODUCED | It comes out in the setting as it is printed. |
| REPRODUCED UNDER ANOTHER READING | It comes out once something in the text is read differently. |
| NOT REPRODUCED | It does not come out in the settings that were tried. |
| CANNOT HOLD | A proved bound excludes it. |

Verdicts are computed by rules in the modules, from the numbers beside them. Where a setting is not
given, ours is stated; printed values are compared with, not tuned to. *Ours* is the mean, with the
standard deviation over seeds in parentheses.
"""


def records(known: dict[str, Experiment]) -> dict[str, Record]:
    """Read the records by name, in the order of the catalogue.

    Raises
    ------
    ValueError
        A record of no experiment.
    """
    found = {path.stem: Record.load(path) for path in sorted(RESULTS.glob("*.json"))}
    for stem, record in found.items():
        if stem not in known or record.name != stem:
            raise ValueError(f"results/{stem}.json: no experiment has this name")
    return {name: found[name] for name in known if name in found}


def page(known: dict[str, Experiment], found: dict[str, Record]) -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION, verdicts(found), runs(known, found)]
    for paper in dict.fromkeys(record.paper for record in found.values()):
        parts.append(f"## [{paper}]\n")
        parts += [section(known[n], record) for n, record in found.items() if record.paper == paper]
    return "\n".join(parts)


def write(known: dict[str, Experiment], found: dict[str, Record]) -> list[Path]:
    """Write the page and its pictures; pictures of no experiment are removed."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    pictures = {name: PICTURES / f"{name}.svg" for name in found}
    for old in PICTURES.glob("*.svg"):
        if old not in pictures.values():
            old.unlink()
    for name, path in pictures.items():
        save_picture(found[name], path)
    PAGE.write_text(page(known, found), encoding="utf-8")
    return [PAGE, *pictures.values()]


def verdicts(found: dict[str, Record]) -> str:
    """Return the table of all verdicts, and how many there are of each in a paper."""
    header = ["Experiment", "Row", "Printed", "Ours", "Certified optimum", "Verdict"]
    lines, counts = [], Counter[tuple[str, Verdict]]()
    for record in found.values():
        judged = [row for row in record.outcome.rows if row.verdict is not None]
        counts.update((record.paper, row.verdict) for row in judged)
        lines += [[link(record), *map(escaped, cells_of(row))] for row in judged]
    numbers = [
        [f"[{paper}]", *(str(counts[paper, verdict]) for verdict in Verdict)]
        for paper in dict.fromkeys(record.paper for record in found.values())
    ]
    return (
        f"## All verdicts\n\n{table(header, lines)}\n"
        f"How many there are:\n\n{table(['Paper', *Verdict], numbers)}"
    )


def runs(known: dict[str, Experiment], found: dict[str, Record]) -> str:
    """Return the table of how the shown runs were made."""
    header = ["Experiment", "Data", "Setting", "Seeds", "CPU time"]
    lines = [
        [link(r), escaped(r.data), SIZES[r.size], seeds(known[n], r), duration(r.cpu_seconds)]
        for n, r in found.items()
    ]
    return f"## The runs that are shown\n\n{table(header, lines)}"


def link(record: Record) -> str:
    """Return a link to the section of a record."""
    return f"[[{record.paper}] {record.item}](#{record.name})"


def section(experiment: Experiment, record: Record) -> str:
    """Return the section of an experiment."""
    outcome = record.outcome
    name = record.name
    parts = [
        f"### {name}",
        f"**{record.item}: {escaped(experiment.title)}.**",
        prose(experiment.about),
        f"**What should stand there.** {prose(experiment.remark)}" if experiment.remark else "",
        run_line(experiment, record),
        table(["Setting", "Value"], [[escaped(k), escaped(v)] for k, v in outcome.setting.items()]),
        f"Ours: {prose(outcome.measure)}.",
        table(
            ["", "Printed", "Ours", "Certified optimum", "Verdict"],
            [list(map(escaped, cells_of(row))) for row in outcome.rows],
        ),
        bullets(
            f"**{prose(row.name)}**: {prose(row.reason)}" for row in outcome.rows if row.reason
        ),
        f"![{alternative(record)}](pictures/reproduction/{name}.svg)",
        "Where the curves end:\n\n" + bullets(map(prose, ends_of(record)))
        if ends_of(record)
        else "",
        "Notes:\n\n" + bullets(map(prose, outcome.notes)) if outcome.notes else "",
    ]
    return "\n\n".join(part.rstrip() for part in parts if part.strip()) + "\n"


def run_line(experiment: Experiment, record: Record) -> str:
    """Return how the shown run was made: command, data, size, time, code."""
    source = (_catalogue.HERE / _catalogue.source(experiment)).relative_to(DOCS.parent).as_posix()
    repeated = f"{seeds(experiment, record)} seed" + ("s" if record.seeds != 1 else "")
    time = duration(record.cpu_seconds)
    return (
        f"Data: {prose(record.data)}. Shown is the {SIZES[record.size]} with {repeated}, {time} of "
        f"CPU time: `{command(experiment, record)}`, [{source}](../{source})."
    )


def command(experiment: Experiment, record: Record) -> str:
    """Return the command of a run, with the arguments that are not those by default."""
    words = ["python examples/papers", record.name]
    words += ["--paper"] * (record.size == "paper")
    words += [f"--reading {record.reading}"] * (record.reading != experiment.readings[0])
    words += [f"--seeds {record.seeds}"] * (record.seeds != usual_seeds(experiment, record))
    return " ".join(words)


def usual_seeds(experiment: Experiment, record: Record) -> int:
    """Return how many seeds a run of this size has unless told otherwise."""
    return experiment.paper_seeds if record.size == "paper" else experiment.seeds


def seeds(experiment: Experiment, record: Record) -> str:
    """Return the number of seeds, and of how many where some were left out."""
    usual = usual_seeds(experiment, record)
    return f"{record.seeds} of {usual}" if record.seeds < usual else str(record.seeds)


def duration(seconds: float) -> str:
    """Return a time in fitting units."""
    if seconds < 120:
        return f"{max(round(seconds), 1)} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def alternative(record: Record) -> str:
    """Return what a picture shows, for those who do not see it."""
    panels = record.outcome.panels
    if not panels:
        return f"{record.item}: printed values, ours and the certified optimum by row"
    shown = "; ".join(f"{panel.title}, {panel.ylabel} against {panel.xlabel}" for panel in panels)
    return prose(f"{record.item}: {shown}").replace("[", "(").replace("]", ")").replace("\n", " ")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, nothing where there is no row."""
    if not rows:
        return ""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def bullets(texts: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {text}" for text in texts)


def escaped(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(prose(text).split()).replace("|", r"\|")


def prose(text: str) -> str:
    """Return text in which signs are no markup, but for code: indented or in backticks."""
    parts = re.split(r"(`+[^`]+`+|^ {4}.*$)", text, flags=re.MULTILINE)
    parts[::2] = [re.sub(r"([*_<\\#])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
