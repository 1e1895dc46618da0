"""How much has to be right: the lines of the kernel that a certificate rests on.

Counted are lines on which a statement begins, docstrings and imports of nothing apart: what a tool
for coverage calls executable. The counting of work is told apart, since it can only lead to
UNPROVED: `work.py`, methods that charge, and statements that do nothing but charge.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import verify.kernel

FOLDER = Path(verify.kernel.__file__).parent
#: What a check of a certificate runs, without the command line that prints its answer.
CERTIFICATES = (
    "checker",
    "data",
    "documents",
    "exponentials",
    "grid_powers",
    "losses",
    "matrices",
    "numbers",
    "powers",
    "result",
    "rules",
    "verdict",
)
#: Doors to other kinds of documents, which lead out of these files.
DOORS = ("_about_a_partition", "_in_arrays")
PARTITIONS = ("partitions", "constants", "quadratic_forms")
#: Of the checker before it counted work, and eliminated in matrices. It is to stay below, but for
#: what documents could not state then.
BEFORE = 781
SINCE = {
    "weights of rows and points": 29,
    "rows with several classes": 60,
    "p-norms": 100,
    "powers that large problems can afford": 30,
}


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements, those that only count work left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and is_apart(node.name):
            continue
        if isinstance(node, ast.Expr) and (is_docstring(node) or charges(node.value)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        yield from statements(node)


def is_apart(name: str) -> bool:
    return name in DOORS or name.lstrip("_").startswith("charge")


def is_docstring(node: ast.Expr) -> bool:
    return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def charges(call: ast.expr) -> bool:
    """Whether a statement is one call to `work`, or to a method that charges."""
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
        return False
    of_work = isinstance(call.func.value, ast.Name) and call.func.value.id == "work"
    return of_work or call.func.attr.lstrip("_").startswith("charge")


def lines(name: str) -> int:
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    return len({node.lineno for node in statements(tree)})


def test_a_certificate_rests_on_fewer_lines_than_ever() -> None:
    assert sum(map(lines, CERTIFICATES)) < BEFORE + sum(SINCE.values())


def test_the_page_says_how_many() -> None:
    text = (FOLDER.parents[1] / "docs" / "trust.md").read_text()
    said = {name: int(n) for name, n in re.findall(r"`(\w+)\.py` (\d+)", text)}
    assert {name: lines(name) for name in CERTIFICATES} == said
    large = [f"large/{path.stem}" for path in (FOLDER / "large").glob("[a-z]*.py")]
    for names in (CERTIFICATES, PARTITIONS, large):
        assert f"| {sum(map(lines, names))} |" in text


def test_the_count_leaves_nothing_out() -> None:
    """Every file is either counted or said not to be part of the proof."""
    rest = {"__init__", "command", "work"}
    assert {path.stem for path in FOLDER.glob("*.py")} == {*CERTIFICATES, *PARTITIONS, *rest}
    tree = ast.parse(
        "import a\nwork.charge(3)\nself.charge(1)\nx = 1; y = 2\n'text'\ndef charge(): z"
    )
    assert [node.lineno for node in statements(tree)] == [1, 4, 4]
