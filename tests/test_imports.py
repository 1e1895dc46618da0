"""What is loaded when, and that every public name is there all the same.

Loaded modules are counted, not seconds: each of the slow ones takes longer than all of ours.
"""

import ast
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import cvxpy
import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx._lazy import LazyModule, cp

SLOW = {"cvxpy", "jinja2", "matplotlib", "networkx", "numba", "pandas", "scipy", "sklearn"}

# Folders that users have no business in; what they hold is public by the names of `gtvcvx`.
INTERNAL = {"block_cholesky", "cli", "compiled", "conic", "duality", "files"}
FILES = {"graph", "network_flow", "problem", "solution"}

HELP = "from gtvcvx.cli import main; assert main([*'{}'.split()]) == 0"
LOSS = """
import numpy as np
from gtvcvx.losses import SquaredLoss
loss = SquaredLoss(np.eye(2), [1.0, 2.0])
assert np.array_equal(loss.gradient([0.0, 0.0]), [-1.0, -2.0])
assert np.allclose(loss.prox([0.0, 0.0], 1.0), [0.5, 1.0])
assert loss.value([1.0, 2.0]) == 0.0
assert loss.conjugate([0.0, 0.0]) == 0.0
stacked = SquaredLoss.stack(np.ones((3, 2, 2)), np.ones((3, 2)))
assert stacked.gradient(np.zeros((3, 2))).shape == (3, 2)
"""
PENALTY = """
import gtvcvx as gtv
assert gtv.L2Norm().value([[3.0, 4.0]]) == 5.0
assert gtv.PNorm(3).value([[1.0, 0.0]]) == 1.0
"""
SOLVE = """
import gtvcvx as gtv
losses = gtv.PointLoss.stack([[0.0], [1.0]])
assert gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]]), losses, lam=10.0).solve().gap < 1e-6
"""


def loaded_by(code: str) -> set[str]:
    """Return the packages that a fresh process has loaded in the end."""
    report = "import sys; print(*{name.split('.')[0] for name in sys.modules}, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import gtvcvx; dir(gtvcvx); hasattr(gtvcvx, 'nothing')", {*SLOW, "numpy"}),
        (HELP.format("--help"), {*SLOW, "numpy"}),
        (HELP.format("fit --help"), {*SLOW, "numpy"}),
        (HELP.format("federate --help"), {*SLOW, "numpy"}),
        (HELP.format("--version"), {*SLOW, "numpy"}),
        (LOSS, SLOW),
        (PENALTY, SLOW),
        # Graphs are compiled code; but a solve needs no model of CVXPY.
        (SOLVE, SLOW - {"numba", "networkx", "scipy"}),
    ],
)
def test_slow_packages_are_loaded_when_they_are_used(code, unwanted):
    loaded = loaded_by(code)
    assert "gtvcvx" in loaded
    assert loaded & unwanted == set()


def test_a_loaded_package_would_be_seen():
    assert "numpy" in loaded_by("import gtvcvx; gtvcvx.SquaredLoss")


def test_every_public_name_is_there():
    for name in gtv.__all__:
        assert getattr(gtv, name).__name__ in (name, f"gtvcvx.{name}")
    space = {}
    exec("from gtvcvx import *", space)
    assert set(gtv.__all__) < space.keys()
    assert space["SquaredLoss"] is gtv.losses.SquaredLoss


def test_a_name_that_is_not_there_is_an_attribute_error(monkeypatch):
    for name in ("SquaredLos", "federatd", "_nothing"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(gtv, name)

    def broken(name):
        raise ModuleNotFoundError("No module named 'missing'", name="missing")

    monkeypatch.setattr(gtv, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="missing"):  # a module that fails is no misprint
        getattr(gtv, "somewhere")  # noqa: B009


def test_type_checkers_see_the_names_that_are_loaded():
    """The block for them, the table that is used and ``__all__`` say the same."""
    tree = ast.parse(Path(gtv.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = {name for name, home in seen.items() if home == "gtvcvx"}
    assert modules == set(gtv._MODULES)
    assert {name: home for name, home in seen.items() if name not in modules} == gtv._HOME
    assert set(gtv._HOME) == set(gtv.__all__) - modules
    # Seen by type checkers, this function would make every misprint a name.
    assert [node.name for node in block.orelse if isinstance(node, ast.FunctionDef)] == [
        "__getattr__"
    ]


def test_every_public_folder_is_listed():
    found = {each.name for each in pkgutil.iter_modules(gtv.__path__) if each.name[0] != "_"}
    assert found - INTERNAL - FILES == set(gtv._MODULES)
    assert set(dir(gtv)) == {*gtv.__all__, *gtv._MODULES}


@pytest.mark.parametrize("name", ["", *gtv._MODULES, "cli"])
def test_dir_shows_public_names_only(name):
    module = importlib.import_module(f"gtvcvx.{name}".rstrip("."))
    names = dir(module)
    assert names
    for each in names:
        assert not each.startswith("_")
        value = getattr(module, each)
        assert not inspect.ismodule(value) or value.__name__.startswith("gtvcvx.")
    assert dir(verify) == sorted(verify.__all__)


def test_a_module_that_is_loaded_late_is_that_module(monkeypatch):
    assert cp.Variable is cvxpy.Variable
    assert repr(LazyModule("cvxpy")) == "<cvxpy, loaded when used>"
    monkeypatch.setattr(cvxpy, "Variable", None)
    assert cp.Variable is None
    with pytest.raises(AttributeError, match="nothing"):
        getattr(cp, "nothing")  # noqa: B009


def test_an_unpickled_problem_finds_its_classes(tmp_path):
    graph = gtv.EmpiricalGraph(2, [[0, 1]])
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(np.ones((2, 1, 1)), np.ones((2, 1))))
    (tmp_path / "p").write_bytes(pickle.dumps(problem))
    code = "import pathlib, pickle; p = pickle.loads(pathlib.Path({!r}).read_bytes()); p.graph"
    assert "cvxpy" not in loaded_by(code.format(str(tmp_path / "p")))
