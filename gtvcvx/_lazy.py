"""Modules that take long to load, loaded when something of theirs is first used.

``from gtvcvx._lazy import cp, sp`` stands for ``import cvxpy as cp`` and
``import scipy.sparse as sp``; type checkers see just that. CVXPY takes most of a second and SciPy a
fifth, and whoever evaluates a loss or asks for help on the command line needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["cp", "sp"]


class LazyModule:
    """Stands for a module, and loads it when an attribute is asked for.

    Parameters
    ----------
    name : str
        Dotted name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Not kept: whoever replaces an attribute of the module, as tests do, replaces it here.
        return getattr(import_module(self._name), attribute)

    def __repr__(self) -> str:
        return f"<{self._name}, loaded when used>"


if TYPE_CHECKING:
    import cvxpy as cp
    import scipy.sparse as sp
else:
    cp = LazyModule("cvxpy")
    sp = LazyModule("scipy.sparse")
