"""The cache of compiled functions does not outlive what was compiled into them."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numba as nb
import numpy as np
import pytest
from numba.core.caching import NullCache

import gtvcvx
import verify
from gtvcvx.compiled import compiled
from verify import _compiled

FOLDERS = [Path(package.__file__).parent for package in (gtvcvx, verify)]
# Where numba is told to compile.
DECORATOR = "verify/_compiled.py"

MODULES = {
    "caller": """
from constants import OFFSET, Pair
import callee
from verify._compiled import compiled

@compiled
def outer(pair):
    slope = [callee.settings.SLOPE * x for x in (1.0,)][0]
    return callee.inner(pair.first) + OFFSET + slope

print(outer(Pair(1.0, 3.0)), sum(outer.stats.cache_hits.values()))
""",
    "callee": """
from verify._compiled import compiled
from constants import Kind
import settings

SIGNS = (1, int(Kind.PLUS))

def plus(x, by=1.0):
    return x + SIGNS[1] * by

plus = compiled(plus)

@compiled
def inner(x):
    return plus(2.0 * x)
""",
    "constants": """
from enum import IntEnum
from typing import NamedTuple

OFFSET = 10.0

class Kind(IntEnum):
    PLUS = 1

class Pair(NamedTuple):
    first: float
    second: float
""",
    "settings": "SLOPE = 1000.0",
}


def _run(folder: Path) -> tuple[float, int]:
    """Run the caller in a new process; return its result, and whether its code was kept."""
    path = os.pathsep.join([str(folder), str(FOLDERS[0].parent)])
    environment = {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder / "kept")}
    # No bytecode: of an edit within the same second, to as many bytes, Python would not know.
    done = subprocess.run(
        [sys.executable, "-B", "-m", "caller"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    result, hits = done.stdout.split()
    return float(result), int(hits)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Modules whose functions were compiled in another process."""
    folder = tmp_path_factory.mktemp("modules")
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    assert _run(folder) == (1013.0, 0)
    return folder


@pytest.fixture
def edit(folder):
    """Replace text in a module for as long as a test takes."""
    edited = []

    def edit(name, old, new):
        edited.append(name)
        assert old in MODULES[name]
        (folder / f"{name}.py").write_text(MODULES[name].replace(old, new))

    yield edit
    for name in edited:
        (folder / f"{name}.py").write_text(MODULES[name])


def test_what_has_not_changed_is_kept(folder):
    assert _run(folder) == (1013.0, 1)


@pytest.mark.parametrize(
    ("name", "old", "new", "result"),
    [
        ("callee", "2.0 * x", "20.0 * x", 1031.0),
        ("callee", "by=1.0", "by=2.0", 1014.0),
        ("callee", "compiled(plus)", "compiled(lambda x: x)", 1012.0),
        ("callee", "(1, int(Kind.PLUS))", "(int(Kind.PLUS), 5)", 1017.0),
        ("constants", "10.0", "20.0", 1023.0),
        ("constants", "PLUS = 1", "PLUS = -1", 1011.0),
        ("constants", "first: float\n    second", "second: float\n    first", 1017.0),
        ("settings", "1000.0", "2000.0", 2013.0),
    ],
    ids=lambda value: str(value).split("\n")[0],
)
def test_what_has_changed_is_compiled_anew(folder, edit, name, old, new, result):
    edit(name, old, new)
    assert _run(folder) == (result, 0)


def test_comments_of_a_callee_do_not_count(folder, edit):
    edit("callee", "SIGNS =", "# A comment.\nSIGNS =")
    assert _run(folder) == (1013.0, 1)


@nb.vectorize
def half(x):
    return 0.5 * x


class Dark:
    """An object that may lead anywhere."""


dark = Dark()


def test_functions_that_reach_what_nobody_knows_depend_on_all_files(monkeypatch):
    def clear(x):
        return np.sqrt(abs(x)) + SIZE

    def calls(x):
        return half(x)

    def holds(x):
        return dark is x

    def found(function):
        walk = _compiled._Walk()
        walk.visit("", compiled(function))
        return walk.files()

    assert not found(clear)
    assert len(found(calls)) == len(found(holds)) == 2  # of this module and of the decorator's
    before = _compiled.fingerprint(compiled(calls))
    monkeypatch.setattr(_compiled, "_files", lambda package: "edited")
    assert _compiled.fingerprint(compiled(calls)) != before


def test_what_writes_code_itself_depends_on_its_file(monkeypatch):
    @_compiled.intrinsic
    def writes(typing, x):
        return x(x), lambda context, builder, signature, arguments: arguments[0]

    def calls(x):
        return writes(x)

    walk = _compiled._Walk()
    walk.visit("", compiled(calls))
    assert not walk.files()
    assert compiled(calls)(3.0) == 3.0
    before = _compiled.fingerprint(compiled(calls))
    monkeypatch.setattr(_compiled, "_files", lambda module: f"edited {module}")
    after = _compiled.fingerprint(compiled(calls))
    assert after != before


SIZE = 1


def test_names_that_change_places_count(monkeypatch):
    """Not only the set of values, but which name has which."""

    def three():
        return A, B, C

    def of(*values):
        for name, value in zip("ABC", values, strict=True):
            monkeypatch.setitem(globals(), name, value)
        return _compiled.fingerprint(compiled(three))

    assert of(1, 1, 2) == of(1, 1, 2)
    assert len({of(1, 1, 2), of(1, 2, 2), of(2, 1, 1), of(1.0, 1, 2), of(True, 1, 2)}) == 5
    one, other = np.zeros(1), np.ones(1)
    assert len({of(one, one, other), of(one, other, other), of(other, one, other)}) == 3


A = B = C = 0


def test_options_count():
    def function(x):
        return x

    fingerprints = {
        _compiled.fingerprint(compiled(**options)(function))
        for options in ({}, {"nogil": True}, {"error_model": "python"}, {"fastmath": True})
    }
    assert len(fingerprints) == 4


def test_division_by_zero_is_infinite_unless_asked_otherwise():
    def inverse(x):
        return 1.0 / x

    assert compiled(inverse)(0.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        compiled(error_model="python")(inverse)(0.0)


@pytest.mark.parametrize("small", [False, True])
def test_inner_functions_are_optimized_and_translated_in_their_callers_only(small):
    """At each level of calls it would be done again, and all but the last thrown away."""

    @compiled(inner=True, small=small, allocates=False)
    def square(x):
        return x * x

    @compiled(inner=True, small=small, allocates=False)
    def fourth(x):
        return square(x) * square(x)

    @compiled
    def outer(x):
        return fourth(x) + 1.0

    outer._cache = NullCache()
    assert outer(3.0) == 82.0
    engine = outer.overloads[outer.signatures[0]].library.codegen._engine
    for function, whole in ((square, False), (fourth, False), (outer, True)):
        (found,) = function.overloads.values()
        assert engine.is_symbol_defined(found.fndesc.llvm_func_name) == whole


def _names_numba_compiles(path: Path) -> list[str]:
    """Return what a file takes from numba to compile functions with."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] == "numba":
            found += [name.name for name in node.names]
            # The key does not see what stands behind an overload.
            found += ["jit"] if node.module == "numba.extending" else []
        elif isinstance(node, ast.Attribute):
            found += [node.attr]
    return [name for name in found if name in {"njit", "jit", "vectorize", "guvectorize", "cfunc"}]


def test_all_compiled_functions_have_this_cache():
    """And there are some: the test looks at the right folders."""
    for folder in FOLDERS:
        files = sorted(folder.rglob("*.py"))
        assert files
        for path in files:
            if path.relative_to(folder.parent).as_posix() != DECORATOR:
                assert not _names_numba_compiles(path), path
    files = [path for folder in FOLDERS for path in folder.rglob("*.py")]
    using = {path.parent.name for path in files if "\n@compiled" in path.read_text()}
    assert using >= {"compiled", "node", "divide", "flows"}
    assert _names_numba_compiles(Path(_compiled.__file__))


BITS = """
import numpy as np
import gtvcvx as gtv
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual

rng = np.random.default_rng(5)
X = rng.normal(size=(60, 3, 3)) * [1.0, 2000.0, 0.1]
graph = gtv.generators.nearest_neighbours(rng.random((60, 2)), 4)
losses = gtv.SquaredLoss.stack(X, rng.normal(size=(60, 3)))
# Columns in different units: a weight for each, and ellipsoids to be projected on.
method = PrimalDual(gtv.GTVProblem(graph, losses, "l2", 0.1))
method.run(300)
print(method.w.tobytes().hex())
"""


def test_what_is_on_disk_computes_the_same_bits(tmp_path):
    """Functions called by others must be their own copies, not any that is loaded already."""
    root = str(Path(gtvcvx.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", BITS]
    found = [subprocess.check_output(command, env=environment) for _ in range(2)]
    assert found[0] == found[1]
