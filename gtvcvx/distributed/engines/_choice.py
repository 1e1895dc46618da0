"""Engines by name."""

from __future__ import annotations

from collections.abc import Callable

from gtvcvx.distributed.engines._fabric import Engine
from gtvcvx.distributed.engines._local import LocalEngine
from gtvcvx.distributed.engines._mpi import MPIEngine
from gtvcvx.distributed.engines._ray import RayEngine

_MAKERS: dict[str, Callable[[], Engine]] = {
    "local": LocalEngine,
    "mpi": MPIEngine,
    "ray": RayEngine,
}
#: Names of the engines; what they need beyond the standard library is imported when they run.
ENGINES = tuple(_MAKERS)


def engine_named(name: str) -> Engine:
    """Return an engine with its usual settings.

    Parameters
    ----------
    name : {"local", "mpi", "ray"}

    Raises
    ------
    ValueError
    """
    if name not in _MAKERS:
        raise ValueError(f"engine: one of {', '.join(ENGINES)} is expected, got {name!r}")
    return _MAKERS[name]()
