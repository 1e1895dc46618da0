"""Modules that take long to load, loaded when something of theirs is first used.

``from gtvcvx._lazy import cp, sp`` stands for ``import cvxpy as cp`` and
``import scipy.sparse as sp``; type checkers see just that. CVXPY takes most of a second and SciPy a
fifth, and whoever evaluates a loss or asks for help on the command line needs neither.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["cp", "names_from", "sp"]


class LazyModule:
    """Stands for a module, and loads it when an attribute is asked for.

    Parameters
    ----------
    name : str
        Dotted name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        # Not kept: whoever replaces an attribute of the module, as tests do, replaces it here.
        if self._module is None:
            self._module = import_module(self._name)  # takes 15 us each time
        return getattr(self._module, attribute)

    def __repr__(self) -> str:
        return f"<{self._name}, loaded when used>"


def names_from(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names are loaded when they are asked for.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : mapping of str to str
        Module, and the names that are there, with blanks between them.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name in home:
            value = getattr(import_module(home[name]), name)
            setattr(sys.modules[package], name, value)
            return value
        own = f"{package}.{name}"
        if not name.startswith("_") and find_spec(own) is not None:
            return import_module(own)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load


if TYPE_CHECKING:
    import cvxpy as cp
    import scipy.sparse as sp
else:
    cp = LazyModule("cvxpy")
    sp = LazyModule("scipy.sparse")
