"""Sphinx extension: a page for each script of examples/, with what it prints and draws.

A script is run with the arguments of its line ``# gallery: ARGUMENTS``, in a folder of its own,
when it has changed since its page was made. Pictures are the PNG files that it writes.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

logger = logging.getLogger(__name__)
FOLDER = "gallery"
_ARGUMENTS = re.compile(r"^# gallery:(.*)$", re.MULTILINE)
_SECONDS = 120  # of one script; more is no example


def write_pages(app: Sphinx, _: Any = None) -> None:
    """Run what has changed and write all pages, before documents are listed."""
    scripts = sorted((Path(app.srcdir).parent / "examples").glob("*.py"))
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    # Two at a time: each is a process, and compiled code takes both cores anyway.
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda script: write_page(script, folder), scripts))
    names = [script.stem for script in scripts]
    for old in folder.iterdir():
        if old.stem.partition("-")[0] not in {*names, "index"}:
            old.unlink()
    _write(folder / "index.md", index(scripts, folder))


def write_page(script: Path, folder: Path) -> None:
    """Write the page of a script, its pictures beside it, unless they are there."""
    source = script.read_text("utf-8")
    mark = f"<!-- {hashlib.sha256(source.encode()).hexdigest()} -->"
    page = folder / f"{script.stem}.md"
    if page.exists() and page.read_text("utf-8").endswith(f"{mark}\n"):
        return
    logger.info("[gallery] running %s", script.name)
    with tempfile.TemporaryDirectory() as scratch:
        printed = run(script, Path(scratch))
        pictures = []
        for k, picture in enumerate(sorted(Path(scratch).glob("*.png"))):
            pictures.append(f"{script.stem}-{k}.png")
            shutil.copy(picture, folder / pictures[-1])
    _write(page, text(script, printed, pictures) + f"\n{mark}\n")


def run(script: Path, folder: Path) -> str:
    """Return what a script prints with its arguments for the gallery; fail if it fails."""
    done = subprocess.run(
        [sys.executable, str(script), *shlex.split(arguments(script))],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(script.parent.parent)},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if done.returncode:
        raise ExtensionError(f"{script.name} failed:\n{done.stderr}")
    return done.stdout


def arguments(script: Path) -> str:
    """Return the arguments with which a script is run here."""
    found = _ARGUMENTS.search(script.read_text("utf-8"))
    return found[1].strip() if found else ""


def text(script: Path, printed: str, pictures: list[str]) -> str:
    """Return the page of a script."""
    doc = ast.get_docstring(ast.parse(script.read_text("utf-8"))) or ""
    title, _, about = doc.partition("\n")
    command = f"python examples/{script.name} {arguments(script)}".rstrip()
    shown = "\n\n".join(f"![What {script.name} draws]({picture})" for picture in pictures)
    return f"""\
# {title.rstrip(".")}

{about.strip()}

{shown}

## What it prints

```bash
{command}
```

```text
{printed.strip()}
```

## The script

```{{literalinclude}} ../../examples/{script.name}
:language: python
:start-at: from __future__
```
"""


def index(scripts: list[Path], folder: Path) -> str:
    """Return the page with a card for each script."""
    cards = "\n".join(_card(script, folder) for script in scripts)
    inside = "\n".join(script.stem for script in scripts)
    return f"""\
# Gallery

The scripts of `examples/`, each run when this site was made, some with less work than by default.

::::{{grid}} 1 2 2 3
:gutter: 3

{cards}
::::

```{{toctree}}
:hidden:

{inside}
```
"""


def _card(script: Path, folder: Path) -> str:
    title = (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("\n")[0]
    picture = f"{script.stem}-0.png"
    image = f":img-top: {picture}\n" if (folder / picture).exists() else ""
    lines = [f"{{grid-item-card}} {script.stem}", f":link: {script.stem}", ":link-type: doc"]
    return ":::" + "\n".join(lines) + f"\n{image}\n{title}\n:::\n"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
