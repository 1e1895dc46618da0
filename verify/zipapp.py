"""Build gtv-check.pyz, the exact checker as one file: `python -m verify.zipapp [FILE]`.

The file runs wherever Python does, with nothing installed:

    python -I gtv-check.pyz certificate.json

It holds the files of `verify/kernel` and nothing else, and is the same, byte for byte, whoever
builds it from the same sources, so that its SHA-256 can be compared. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

NAME = "gtv-check.pyz"
_START = """\
import sys

from verify.kernel.command import main

sys.exit(main())
"""
_PACKAGE = '"""The exact kernel of the package verify, alone."""\n'
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file knows


def build(target: str | Path = NAME) -> str:
    """Write the file and return its SHA-256.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    kernel = Path(__file__).parent / "kernel"
    files = {
        f"verify/kernel/{path.relative_to(kernel).as_posix()}": path.read_text("utf-8")
        for path in sorted(kernel.rglob("*.py"))
    }
    files |= {"__main__.py": _START, "verify/__init__.py": _PACKAGE}
    target = Path(target)
    with open(target, "wb") as out:
        out.write(b"#!/usr/bin/env -S python3 -I\n")
        with zipfile.ZipFile(out, "w") as archive:
            for name, text in sorted(files.items()):
                entry = zipfile.ZipInfo(name, _DATE)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, text)
    target.chmod(0o755)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the file that the arguments name; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m verify.zipapp", description=__doc__.splitlines()[0]
    )
    parser.add_argument("file", nargs="?", default=NAME, help="to write (default: %(default)s)")
    target = parser.parse_args(arguments).file
    try:
        print(f"{build(target)}  {target}")
    except OSError as error:
        print(f"verify.zipapp: cannot write {target}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
