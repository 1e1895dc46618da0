"""The text of the reference's pages of modules; those of objects are made by autosummary."""

from __future__ import annotations

import inspect
from typing import Any

import public


def _is_warning(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Warning)


_SECTIONS = {
    "Classes": lambda value: inspect.isclass(value) and not _is_warning(value),
    "Functions": inspect.isfunction,
    "Types": lambda value: not inspect.isclass(value) and not inspect.isfunction(value),
    "Warnings": _is_warning,
}


def index(found: public.Public) -> str:
    """Return the page that lists the modules."""
    rows = [f"   * - :doc:`{m.name}`\n     - {first_line(m.value)}" for m in found.modules]
    inside = "\n".join(f"   {module.name}" for module in found.modules)
    return (
        _title("Reference")
        + "Every public name has a page, made from its docstring. The papers behind abbreviations\n"
        "such as [GTV] are listed under :doc:`/papers`.\n\n"
        ".. list-table::\n   :widths: 30 70\n\n" + "\n".join(rows) + "\n\n"
        ".. toctree::\n   :hidden:\n\n" + inside + "\n"
    )


def module(module: public.Module, found: public.Public) -> str:
    """Return the page of a module: its docstring, and tables of what is in it."""
    text = _title(module.name) + f".. automodule:: {module.name}\n\n"
    for title, belongs in _SECTIONS.items():
        names = [n for n in module.own if belongs(getattr(module.value, n))]
        if names:
            text += f".. rubric:: {title}\n\n.. currentmodule:: {module.name}\n\n"
            text += ".. autosummary::\n   :toctree: .\n\n" + _lines(names)
    elsewhere = [
        found.pages[id(getattr(module.value, name))]
        for name in module.names
        if name not in module.own
    ]
    if elsewhere:
        text += ".. rubric:: Also here\n\n.. autosummary::\n\n" + _lines(
            [f"~{name}" for name in elsewhere]
        )
    return text


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _lines(names: list[str]) -> str:
    return "".join(f"   {name}\n" for name in names) + "\n"


def first_line(value: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(value) or "").partition("\n")[0]
