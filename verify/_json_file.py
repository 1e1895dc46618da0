"""Files that are written whole or not at all, JSON among them."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO


def write_json(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a document as JSON, whole or not at all; see `writing`."""
    text = json.dumps(dict(document), separators=(",", ":"), allow_nan=False) + "\n"
    with writing(path) as file:
        file.write(text.encode())


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a temporary file in the folder of the (linked) file, and rename it in the end.

    An existing file keeps its mode; a new one gets what the umask allows.

    Raises
    ------
    ValueError
        The path names something that is not a regular file.
    OSError
        What the system says when it cannot write; an earlier file stays as it was.
    """
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"path: {str(target)!r} exists and is not a regular file")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:  # unlike tempfile's, not private
            yield file
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
