"""Files that are either written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, Any, BinaryIO, Literal, TextIO, overload


@overload
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["w"] = "w"
) -> AbstractContextManager[TextIO]: ...


@overload
def atomic_write(
    path: str | os.PathLike[str], mode: Literal["wb"]
) -> AbstractContextManager[BinaryIO]: ...


def atomic_write(
    path: str | os.PathLike[str], mode: Literal["w", "wb"] = "w"
) -> AbstractContextManager[Any]:
    """Open a file that appears under its name only when the ``with`` block has succeeded.

    The block writes to a temporary file in the same folder, which is flushed to the disk and then
    renamed over ``path`` in one step. When the block raises, Ctrl-C included, the temporary file
    is removed and an earlier ``path`` stays as it was. A link is followed: the file it points to
    is the one replaced. An existing file keeps its permissions.

    Parameters
    ----------
    path : str or path-like
        Name of the file to write.
    mode : {"w", "wb"}
        Text (UTF-8, lines end in a line feed on every system) or bytes.

    Returns
    -------
    context manager
        Gives the open file. The block need not close it, and must not.

    Raises
    ------
    ValueError
        Another mode, a folder that does not exist, or a ``path`` that is there but is not a
        regular file (a folder, a device, a pipe), because renaming would replace it.
    OSError
        What the system says when it cannot write.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode: 'w' or 'wb' is expected, got {mode!r}")
    return _replacing(os.path.realpath(os.fspath(path)), mode)


@contextmanager
def _replacing(target: str, mode: str) -> Iterator[IO[Any]]:
    folder, name = os.path.split(target)
    if not os.path.isdir(folder):
        raise ValueError(f"path: there is no folder {folder!r} to write {name!r} into")
    permissions = _permissions(target)
    # The name is chosen before the file exists, so that an interrupt at any point finds it below.
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    encoding, newline = (None, None) if mode == "wb" else ("utf-8", "\n")
    try:
        # os.open applies the process's umask, which tempfile (0600) would not.
        descriptor = os.open(temporary, flags, 0o666)
        with os.fdopen(descriptor, mode, encoding=encoding, newline=newline) as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if permissions is not None:
            os.chmod(temporary, permissions)
        os.replace(temporary, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)


def _permissions(target: str) -> int | None:
    """Permission bits of an existing regular file, None where there is no file yet."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"path: {target!r} exists and is not a regular file")
    return stat.S_IMODE(status.st_mode)
