"""Write the corpus: `python tests/verify/corpus/make.py`, which always gives the same files (into
another folder, if one is named).

`documents/` has a file for each case, and one for the data where they are given apart; `index.json`
says what both checkers must answer: the exit status, words of the reason, and the tolerance or the
budget of the check where they are not the usual ones.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _accepted import accepted
from _arrays import arrays
from _cases import STATUSES, Case
from _false import false
from _malformed import malformed
from _partition_cases import partitions

FOLDER = Path(__file__).parent


def cases() -> Iterator[Case]:
    """All cases; names are distinct."""
    seen: set[str] = set()
    for part, made in (
        ("", accepted),
        ("", malformed),
        ("", false),
        ("about-", partitions),
        ("", arrays),
    ):
        for found in made():
            name = part + found.name
            assert name not in seen, name
            seen.add(name)
            yield Case(**{**vars(found), "name": name})


def entry(case: Case) -> dict[str, Any]:
    """Return what the index says about a case."""
    found: dict[str, Any] = {"status": STATUSES[case.answer], "reason": case.answer}
    if case.data is not None:
        found["data"] = f"{case.name}.data.json"
    for key in ("rtol", "budget"):
        if getattr(case, key) is not None:
            found[key] = getattr(case, key)
    return found


def files() -> dict[str, bytes]:
    """Return the contents of all files by their paths in the folder."""
    found: dict[str, bytes] = {}
    index = {}
    for case in cases():
        name = case.name if case.name.endswith(".gtvc") else f"{case.name}.json"
        index[name] = entry(case)
        found[f"documents/{name}"] = case.content
        if case.data is not None:
            found[f"documents/{case.name}.data.json"] = case.data
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(e)}" for name, e in index.items())
    return {"index.json": f"{{\n{lines}\n}}\n".encode("ascii"), **found}


def main(folder: Path = FOLDER) -> None:
    """Write all files, and remove those that were."""
    shutil.rmtree(folder / "documents", ignore_errors=True)
    (folder / "documents").mkdir()
    for name, content in files().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
