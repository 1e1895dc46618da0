"""Sphinx extension: a reference page for every public object, and links from prose to them.

Pages of modules are written from what `public.find` lists, those of objects by autosummary.
In docstrings, a name between single backticks links to what it names, or else is shown as code;
a name that begins with ``gtvcvx.`` or ``verify.`` must lead somewhere.
"""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path
from typing import Any

import pages
import public
from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

logger = logging.getLogger(__name__)
FOLDER = "reference"
#: How pages and docstrings abbreviate.
_ALIASES = {"gtv": "gtvcvx", "fed": "gtvcvx.federated", "flower": "gtvcvx.federated.flower"}
_NAME = re.compile(r"~?([A-Za-z_][\w.]*)(?:\(.*\))?", re.DOTALL)
_KIND = "known"
_KINDS = {"class", "data", "exception", "function"}
_MEMBERS = {"attribute", "method", "property"}


def write_pages(app: Sphinx, _: Any = None) -> None:
    """Write the pages of the reference's start and of all modules, before documents are listed."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    found = public.find()
    texts = {"index": pages.index(found)} | {m.name: pages.module(m, found) for m in found.modules}
    known = {*texts, *found.objects}
    for old in folder.glob("*.rst"):
        if old.stem not in known:
            old.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


def name_role(
    role: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Return what stands between single backticks in a docstring, to be linked if it can be."""
    env = inliner.document.settings.env
    shown = text.removeprefix("~")
    reference = pending_xref(
        "",
        nodes.literal("", shown.rpartition(".")[2] if text.startswith("~") else shown),
        refdomain="",
        reftype=_KIND,
        reftarget=text,
        refdoc=env.docname,
        module=env.ref_context.get("py:module") or "",
        **{"class": env.ref_context.get("py:class") or ""},
    )
    reference.line = lineno
    return [reference], []


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Any) -> Any:
    """Link a name to its object's page, if it has one; one that nothing has is warned of."""
    if node.get("reftype") != _KIND and node.get("refdomain") != "py":
        return None
    name = _match(node["reftarget"])
    module, inside = (node.get(key) or node.get(f"py:{key}") or "" for key in ("module", "class"))
    page = name and _lookup(env, name, module, inside)
    if page:
        return _linked(app, env, node["refdoc"], page, content)
    if node.get("refdomain") == "py":
        return None  # Sphinx's own warning
    if name and name.startswith(tuple(f"{package}." for package in public.PACKAGES)):
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            logger.warning("nothing is called %s", name, location=node, type="ref")
    return content


def link_code(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Link code of a page that is the name of something public."""
    if docname.startswith(f"{FOLDER}/"):
        return
    for literal in list(doctree.findall(nodes.literal)):
        name = _match(literal.astext())
        distinct = name and (re.search(r"[a-z][A-Z]|_|^(gtv|gtvcvx|verify|fed|flower)\.", name))
        if not distinct or isinstance(literal.parent, (nodes.reference, nodes.title)):
            continue
        page = _lookup(app.env, name, "", "")
        if page:
            literal.replace_self(_linked(app, app.env, docname, page, literal.deepcopy()))


def _match(text: str) -> str | None:
    found = _NAME.fullmatch(text)
    return found[1] if found else None


def _lookup(env: BuildEnvironment, name: str, module: str, inside: str) -> str | None:
    """Full name of the described object that is meant, or None."""
    objects = env.get_domain("py").objects
    head, dot, tail = name.partition(".")
    full = _ALIASES.get(head, head) + dot + tail
    # From the place where it is said outwards, then the packages.
    places = [f"{module}.{inside}", module, *public.PACKAGES, "gtvcvx.federated"]
    for candidate in (f"{place}.{name}" for place in places if place):
        if candidate in objects:
            return candidate
    if full in objects and (dot or not inside):
        return full
    if not re.search(r"[A-Z_.]", name):
        return None  # a word such as `path`: too little to go by
    # A name alone may be that of a class or function; methods and attributes are many of a name.
    kinds = _KINDS | (_MEMBERS if dot else set())
    endings = {
        key
        for key, entry in objects.items()
        if key.endswith(f".{name}") and entry.objtype in kinds and not entry.aliased
    }
    return endings.pop() if len(endings) == 1 else None


def _linked(app: Sphinx, env: BuildEnvironment, docname: str, page: str, content: Any) -> Any:
    entry = env.get_domain("py").objects[page]
    return make_refnode(app.builder, docname, entry.docname, entry.node_id, content, page)


def check_pages(app: Sphinx, error: Exception | None) -> None:
    """Fail unless every public name has a page with its docstring on it."""
    if error or app.builder.format != "html":
        return
    for name, value in public.find().objects.items():
        page = Path(app.outdir) / FOLDER / f"{name}.html"
        html = page.read_text("utf-8") if page.is_file() else ""
        words = re.findall(r"\w+", pages.first_line(value))[:3]
        text = re.sub(r"<[^>]+>", "", html)
        if not words or not all(word in text for word in words):
            logger.warning("%s has no page with its docstring", name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.add_role("name", name_role)
    app.connect("config-inited", write_pages)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link_code)
    app.connect("build-finished", check_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
