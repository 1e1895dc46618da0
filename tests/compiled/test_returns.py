"""What compiled functions may hand to Python, and what they may call.

They hand out nothing that numba makes by running Python: Ctrl-C that came while the function ran is
raised there, numba goes on with a null pointer, and the process ends, or a SystemError leaves the
solve.

Where LLVM may change the order of sums they call what goes into them alone. Of a function that
Python calls, too, the process that compiles both has two copies, and runs one; the next, which
finds them on disk, the other: last digits differed.
"""

import ast
import importlib
import re
from pathlib import Path
from types import CodeType

from numba.core.dispatcher import Dispatcher

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"(None|bool|int|float)"
HARMLESS = re.compile(rf"{NUMBER}|tuple\[{NUMBER}(, {NUMBER})*\]")


def definitions():
    """Yield the file, definition and decorator of all compiled functions."""
    for package in ("gtvcvx", "verify"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    for decorator in map(ast.unparse, node.decorator_list):
                        if decorator.startswith("compiled"):
                            yield path, node, decorator


def goes_into_callers(decorator):
    return "inner=True" in decorator or "inline='always'" in decorator


def compiled_functions():
    """Yield the file, name and return type of those that Python may call."""
    for path, node, decorator in definitions():
        if not goes_into_callers(decorator):
            returned = ast.unparse(node.returns) if node.returns else "None"
            yield path.name, node.name, returned


def test_compiled_functions_return_numbers_and_write_arrays_that_they_are_given():
    found = list(compiled_functions())
    assert len(found) > 40
    assert [each for each in found if not HARMLESS.fullmatch(each[2])] == []


def called_by(function):
    """Return the compiled functions that one names, from wherever it has them."""
    code, inside = [function.__code__], []
    while code:
        inside.append(code.pop())
        code += [each for each in inside[-1].co_consts if isinstance(each, CodeType)]
    names = {name for each in inside for name in each.co_names}
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    found = [*(function.__globals__.get(name) for name in names), *cells]
    return [each for each in found if isinstance(each, Dispatcher)]


def test_sums_in_any_order_are_those_of_one_copy():
    files = {path for path, *_ in definitions()}
    names = (path.relative_to(ROOT).with_suffix("").parts for path in files)
    modules = [importlib.import_module(".".join(parts)) for parts in names]
    ours = {
        id(each): each.py_func
        for module in modules
        for each in vars(module).values()
        if isinstance(each, Dispatcher)
    }
    loose = {
        node.name
        for _, node, decorator in definitions()
        if "fastmath" in decorator and not goes_into_callers(decorator)
    }
    called = [
        (function.__module__, function.__name__, other.py_func.__name__)
        for function in ours.values()
        for other in called_by(function)
        if id(other) in ours and other.py_func.__name__ in loose
        if other.targetoptions["inline"] == "never" and not other.targetoptions["forceinline"]
    ]
    assert len(loose) > 20
    assert len(ours) > 100
    assert called == []
