"""What is public: modules, their names, and the one name under which each object has its page.

Everything comes from ``dir`` of the packages, so that a new public name needs nothing here.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import EnumType
from types import ModuleType
from typing import Any

PACKAGES = ("gtvcvx", "verify")


@dataclass(frozen=True)
class Module:
    """A public module: names of its objects, and of these the ones that have their page here."""

    name: str
    value: ModuleType
    names: tuple[str, ...]
    own: tuple[str, ...]


@dataclass(frozen=True)
class Public:
    """All that is public.

    Attributes
    ----------
    modules : tuple of Module
        A package before what is inside it.
    pages : dict of int to str
        Name of the page of each object, by its identity.
    """

    modules: tuple[Module, ...]
    pages: dict[int, str]
    objects: dict[str, Any] = field(repr=False)


def find(packages: tuple[str, ...] = PACKAGES) -> Public:
    """Import the public modules and list what is in them.

    An object that several modules name has its page where a user imports it from: the module that
    is fewest levels down, the first of those.
    """
    found = list(dict.fromkeys(name for package in packages for name in _modules(package)))
    imported = {name: importlib.import_module(name) for name in found}
    names = {name: public_names(module) for name, module in imported.items()}
    pages: dict[int, str] = {}
    objects: dict[str, Any] = {}
    for module in sorted(found, key=lambda name: name.count(".")):
        for name, value in names[module].items():
            page = pages.setdefault(id(value), f"{module}.{name}")
            objects[page] = value
    modules = tuple(
        Module(
            module,
            imported[module],
            tuple(names[module]),
            tuple(n for n, v in names[module].items() if pages[id(v)] == f"{module}.{n}"),
        )
        for module in found
    )
    return Public(modules, pages, objects)


def _modules(name: str) -> Iterator[str]:
    """Names of a package and of the public modules that it shows, all the way down."""
    yield name
    package = importlib.import_module(name)
    for attribute in dir(package):
        if attribute.startswith("_"):
            continue
        value = getattr(package, attribute)
        if inspect.ismodule(value) and value.__name__ == f"{name}.{attribute}":
            yield from _modules(value.__name__)


def public_names(module: ModuleType) -> dict[str, Any]:
    """Public objects of a module that are no modules, sorted without regard to case."""
    names = sorted(module.__all__, key=str.lower)
    found = {name: getattr(module, name) for name in names}
    return {name: value for name, value in found.items() if not inspect.ismodule(value)}


def parameters(value: Any) -> list[inspect.Parameter]:
    """Parameters of a function or of a class's constructor; protocols and enums have none."""
    if getattr(value, "_is_protocol", False) or isinstance(value, EnumType):
        return []
    if inspect.isclass(value) and issubclass(value, Exception) and "__init__" not in vars(value):
        return []
    return list(inspect.signature(value).parameters.values())
