"""Sphinx extension: which members of classes are shown, and signs that mean nothing in prose."""

from __future__ import annotations

import inspect
import re
from typing import Any

from public import PACKAGES
from sphinx.application import Sphinx

# Code, formulas and references, which are left as they are.
_MARKED = re.compile(r"(``.+?``|:\w+:`[^`]*`|`[^`]+`_?)")
_BAR = re.compile(r"(?<!\\)\|(?=\S)")
# Attributes that a fit sets end so, and reStructuredText would take them for links.
_UNDERSCORE = re.compile(r"(?<=\w)(?<!\\)_(?=[^\w`]|$)")


def skip_member(
    _app: Sphinx, _what: str, _name: str, value: Any, _skip: bool, _options: Any
) -> bool | None:
    """Leave out members that come from other packages, such as scikit-learn's mixins."""
    # Methods of builtin types, and the fields of named tuples, which the class describes.
    if inspect.isbuiltin(value) or type(value).__name__ == "_tuplegetter":
        return True
    function = getattr(value, "__func__", None) or getattr(value, "fget", None)
    function = function or getattr(value, "func", None) or value
    home = getattr(function, "__module__", None)
    if home is None:  # of builtin types
        home = getattr(getattr(function, "__objclass__", None), "__module__", None)
    if home is None or home.partition(".")[0] in PACKAGES:
        return None
    return True


def escape(
    _app: Sphinx, _what: str, _name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    """Escape bars around words, and final underscores: they mean substitutions and links."""
    directive = -1  # indentation of the directive that a line is inside of
    for k, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent <= directive:
            directive = -1
        if directive < 0 and line.lstrip().startswith((".. math::", ".. code", ">>>")):
            directive = indent
        elif directive < 0:
            lines[k] = "".join(
                part if n % 2 else _UNDERSCORE.sub(r"\\_", _BAR.sub(r"\\|", part))
                for n, part in enumerate(_MARKED.split(line))
            )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.connect("autodoc-skip-member", skip_member)
    # After numpydoc, which knows of the underscores in the heads of its sections.
    app.connect("autodoc-process-docstring", escape, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
