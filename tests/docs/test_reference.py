"""The site's reference has every public name, and docstrings that say what it needs."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types

import pytest
from _documents import ROOT

pytest.importorskip("sklearn")
sys.path.append(str(ROOT / "docs" / "_ext"))
import pages
import public

PUBLIC = public.find()
OBJECTS = sorted(PUBLIC.objects)


def members():
    """Public methods and properties of ours, each once, with the class that has them."""
    found = {}
    for name, cls in PUBLIC.objects.items():
        for base in inspect.getmro(cls) if inspect.isclass(cls) else ():
            if not base.__module__.startswith(public.PACKAGES):
                continue
            for member, item in vars(base).items():
                function = getattr(item, "__func__", None) or getattr(item, "fget", None) or item
                if not member.startswith("_") and inspect.isfunction(function):
                    found.setdefault(function, f"{name}.{member}")
    return found


def test_every_name_of_every_public_module_has_one_page():
    modules = {module.name for module in PUBLIC.modules}
    top = "estimators federated generators interop losses model_selection path plotting solvers"
    assert modules >= {"gtvcvx", "verify", *(f"gtvcvx.{name}" for name in top.split())}
    assert modules >= {f"gtvcvx.federated.{name}" for name in ("flower", "models", "privacy")}
    for name in modules:
        module = importlib.import_module(name)
        for inner in module.__all__:
            value = getattr(module, inner)
            known = value.__name__ in modules if inspect.ismodule(value) else id(value)
            assert known is True or PUBLIC.pages[known] in PUBLIC.objects
    assert len(PUBLIC.objects) == len(set(PUBLIC.pages.values())) > 200


def test_tables_list_every_object_once():
    text = {module.name: pages.module(module, PUBLIC) for module in PUBLIC.modules}
    listed = [
        f"{name}.{inner}"
        for name, page in text.items()
        for table in re.findall(r":toctree: \.\n\n((?:   \w+\n)+)", page)
        for inner in table.split()
    ]
    assert sorted(listed) == OBJECTS
    assert "\n   ~gtvcvx.cross_validate\n" in text["gtvcvx.model_selection"]
    index = pages.index(PUBLIC)
    assert all(f"\n   {name}\n" in index and f":doc:`{name}`" in index for name in text)


def test_a_new_name_is_found_by_itself(monkeypatch):
    def loss():
        """Tell nothing."""

    module = types.ModuleType("gtvcvx.novelty", "A new module.")
    module.loss, module.__all__ = loss, ["loss"]
    monkeypatch.setitem(sys.modules, "gtvcvx.novelty", module)
    monkeypatch.setattr(importlib.import_module("gtvcvx"), "novelty", module, raising=False)
    monkeypatch.setattr("gtvcvx.__dir__", lambda: ["GTVProblem", "novelty"])
    found = public.find()
    assert found.objects["gtvcvx.novelty.loss"] is loss
    assert "   loss\n" in pages.module(found.modules[1], found)


@pytest.mark.parametrize("name", OBJECTS)
def test_docstrings_name_every_parameter(name):
    value = PUBLIC.objects[name]
    if not callable(value) or isinstance(value, types.GenericAlias):
        pytest.skip("a name for a type")
    doc = inspect.getdoc(value)
    heads = re.findall(r"^(\S.*?)(?: : .*)?$", _sections(doc), re.MULTILINE)
    documented = {word.strip().lstrip("*") for head in heads for word in head.split(",")}
    given = public.parameters(value)
    assert {p.name for p in given if p.kind is not p.VAR_KEYWORD} <= documented
    assert doc.splitlines()[0].endswith((".", "``.", "``", ":"))


def _sections(doc):
    """Text below the headings Parameters and Attributes."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", doc, flags=re.MULTILINE)
    wanted = ("Parameters", "Attributes")
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return "\n".join(body for title, body in pairs if title in wanted)


def test_every_public_method_and_property_has_a_docstring():
    found = members()
    assert len(found) > 400
    assert [name for function, name in found.items() if not inspect.getdoc(function)] == []
