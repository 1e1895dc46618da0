"""The decorator of this folder's compiled functions, whose cache knows what they call.

numba keeps compiled functions on disk and looks at the file of a function to see whether they are
still valid. What it calls in other files is compiled into it, too, and changes of those go
unnoticed: after an upgrade old code would run. Here the key of the cache has the sources of all
kernels in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba as nb
from numba.core.caching import FunctionCache

#: Files that hold compiled functions.
SOURCES = sorted(Path(__file__).parents[1].glob("losses/node/_*.py"))


def fingerprint() -> str:
    """Return a hash of all sources."""
    digest = hashlib.sha256()
    for path in SOURCES:
        digest.update(path.read_bytes())
    return digest.hexdigest()


FINGERPRINT = fingerprint()


class _SourceCache(FunctionCache):
    """Compiled functions on disk, by their signature and by all sources."""

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), FINGERPRINT)


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is called, and keep the result on disk.

    Division by zero gives infinity or NaN, as in NumPy, instead of an exception.
    """
    dispatcher = nb.njit(error_model="numpy")(function)
    dispatcher._cache = _SourceCache(function)
    return dispatcher
