"""Pages of docs/ as programs: their blocks run in order, and what they quote is compared."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Numbers may be quoted with few digits. A gap is small on any machine, but never the same twice.
TOLERANCE, SMALL = 1e-2, 1e-5
GAP_IN_QUOTATION = "..."
_NUMBER = re.compile(r"(?<![\w.])([-+]?\d+\.?\d*(?:e[-+]?\d+)?)(?![\w])")


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and text of each fenced block; blocks with more than a language are not listed."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_page(name: str, folder: Path) -> int:
    """Run the python and bash blocks of a page of docs/; return how many quotations were compared.

    The python blocks share one namespace. A text block quotes the output of the block before it.
    """
    namespace: dict[str, object] = {"__name__": name}
    printed, compared = "", 0
    with contextlib.chdir(folder):
        for language, text in blocks((ROOT / "docs" / name).read_text(encoding="utf-8")):
            if language == "python":
                printed = _python(text, name, namespace)
            elif language == "bash":
                printed = _bash(text, folder)
            elif language == "text":
                compare(text, printed)
                compared += 1
            else:
                raise AssertionError(f"{name}: nothing is known about blocks of {language!r}")
    return compared


def _python(text: str, name: str, namespace: dict[str, object]) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(text, name, "exec"), namespace)
    return output.getvalue()


def _bash(text: str, folder: Path) -> str:
    """Output of a script; this interpreter comes first, and the checkout can be imported."""
    paths = [str(Path(sys.executable).parent), os.environ["PATH"]]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=os.environ | {"PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr + done.stdout
    return done.stdout


def compare(quoted: str, printed: str) -> None:
    """Fail unless the quoted lines were printed, in this order.

    Words must be the same, whole numbers equal, other numbers close. Lines may be left out where
    the quotation says so by a line of three dots.
    """
    lines = printed.splitlines()
    at, skipping = 0, False
    for line in quoted.splitlines():
        if line.strip() == GAP_IN_QUOTATION:
            skipping = True
            continue
        found = next((k for k in range(at, len(lines)) if similar(line, lines[k])), None)
        assert found is not None, f"not printed: {line!r}; printed:\n" + "\n".join(lines[at:])
        assert skipping or found == at, f"lines are missing in the quotation before {line!r}"
        at, skipping = found + 1, False
    assert skipping or at == len(lines), f"lines are missing at the end: {lines[at:]}"


def similar(quoted: str, printed: str) -> bool:
    """Whether a line is what was printed, but for spaces and the last digits of numbers."""
    a, b = (_NUMBER.split(" ".join(line.split())) for line in (quoted, printed))
    if a[0::2] != b[0::2]:
        return False
    return all(map(_close, a[1::2], b[1::2]))


def _close(a: str, b: str) -> bool:
    if a.lstrip("+-").isdigit() and b.lstrip("+-").isdigit():
        return int(a) == int(b)
    x, y = float(a), float(b)
    # One unit of the last digit that is quoted, as in 0.053 for 0.0526918.
    mantissa, _, exponent = a.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(x - y) <= max(TOLERANCE * abs(x), unit) or max(abs(x), abs(y)) <= SMALL
