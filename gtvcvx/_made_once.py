"""What is made once, by name, and kept with what it was made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


def made_once(kept: dict[str, Any], name: str, make: Callable[[], _T]) -> _T:
    """Return what is kept under a name, or make it; what fails is tried again by who asks next."""
    if name not in kept:
        kept[name] = make()
    value: _T = kept[name]
    return value
