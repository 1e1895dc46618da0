"""What compiled functions may hand to Python: nothing that numba makes by running Python.

Ctrl-C that came while the function ran is raised there, numba goes on with a null pointer, and the
process ends, or a SystemError leaves the solve.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"(None|bool|int|float)"
HARMLESS = re.compile(rf"{NUMBER}|tuple\[{NUMBER}(, {NUMBER})*\]")


def compiled_functions():
    """Yield the file, name and return type of those that Python may call."""
    for package in ("gtvcvx", "verify"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.FunctionDef):
                    continue
                for decorator in map(ast.unparse, node.decorator_list):
                    inner = "inner=True" in decorator or "inline='always'" in decorator
                    if decorator.startswith("compiled") and not inner:
                        returned = ast.unparse(node.returns) if node.returns else "None"
                        yield path.name, node.name, returned


def test_compiled_functions_return_numbers_and_write_arrays_that_they_are_given():
    found = list(compiled_functions())
    assert len(found) > 40
    assert [each for each in found if not HARMLESS.fullmatch(each[2])] == []
