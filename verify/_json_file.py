"""JSON files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_json(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a document through a temporary file in the folder of the (linked) file, and rename it.

    An existing file keeps its mode; a new one gets what the umask allows.

    Raises
    ------
    ValueError
        The path names something that is not a regular file.
    OSError
        What the system says when it cannot write; an earlier file stays as it was.
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"
    target = Path(os.path.realpath(path))
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        raise ValueError(f"path: {str(target)!r} exists and is not a regular file")
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8") as file:  # unlike tempfile's, not private
            file.write(text)
        if mode is not None:
            temporary.chmod(stat.S_IMODE(mode))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
