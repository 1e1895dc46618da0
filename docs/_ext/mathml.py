"""Sphinx extension: formulas as MathML, which browsers show without any script or network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    writer.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own."""
    formula = node.astext()
    if "\\\\" in formula or "&" in formula:
        formula = rf"\begin{{aligned}}{formula}\end{{aligned}}"
    writer.body.append(f'<div class="formula">{convert(formula, display="block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
