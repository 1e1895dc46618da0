"""Packages that only some users need: imported where they are used, and named when missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def extra_module(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module of an optional dependency.

    Parameters
    ----------
    module : str
        Dotted name, such as "matplotlib.figure".
    extra : str
        The extra of the distribution that installs it.
    purpose : str
        What needs it, in the plural, as the message begins.

    Raises
    ------
    ImportError
        It is not there; the message names the extra.
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"{purpose} need {module.partition('.')[0]}: install it, or gtvcvx with the extra "
            f'{extra!r} (pip install "gtvcvx[{extra}]")'
        ) from None
