"""Asks checker.js about many documents at once: one process of Node for each call."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CHECKER = ROOT / "verify" / "web" / "checker.js"
Question = Mapping[str, Any]
Answer = dict[str, Any]


@pytest.fixture(scope="session")
def node() -> str:
    """Return the path of Node; skip the test where there is none."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("checker.js is run by Node, which is not installed")
    return found


@pytest.fixture(scope="session")
def javascript(node: str) -> Callable[[Iterable[Question]], list[Answer]]:
    """Return a function: documents and options as bytes and numbers, in; answers, out."""

    def ask(questions: Iterable[Question]) -> list[Answer]:
        lines = [json.dumps({key: _text(value) for key, value in q.items()}) for q in questions]
        done = subprocess.run(
            [node, str(Path(__file__).with_name("answers.js"))],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(found) == len(lines)
        return found

    return ask


def _text(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
