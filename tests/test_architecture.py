"""The floors of the house: imports lead down, never up, sideways or in a circle."""

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]

# Bottom up. A room is a file or a folder, and what is inside it but is no room of its own. Its
# files may import each other, and the rooms on floors below; rooms of one floor are strangers.
GTVCVX = (
    # Names and checks of arrays; the clock that long pieces look at; modules that load slowly;
    # what is made once and kept; processes of our own.
    ("_arrays", "_deadline", "_lazy", "_logging", "_made_once", "_per_thread", "_processes"),
    # Optional packages, factors in panels, row norms, display.
    ("_extras", "_householder", "_norms", "_pieces", "_progress"),
    ("_compiling", "_geometry"),  # compilation, announced; areas and points of shapely
    # CSV and npz; functions of CVXPY in conic form; libpysal's weights as arrays
    ("files", "conic", "_spatial_weights"),
    ("penalties",),
    ("compiled",),  # passes over the arrays of a graph, for every penalty
    ("graph",),
    ("block_cholesky",),
    ("generators", "datasets"),  # graphs with data
    ("losses/node",),  # the convex problem of one node, compiled
    ("losses/batched/_doubt",),  # what rounding leaves open
    ("losses/batched/_base", "losses/batched/_terms"),
    ("losses/batched/_thin", "losses/batched/_spectrum"),  # diagonals and few rows; their spectra
    ("losses/batched/_squared",),  # what quadratic models of others are made of
    ("losses/batched/_ridged",),  # the same beside ridges
    ("losses/batched/composite", "losses/batched/multinomial"),  # sums of terms
    ("losses/batched",),  # the losses of many nodes at once
    ("losses",),  # what users write
    ("duality",),  # flows repaired, valid bounds
    ("network_flow", "solution"),
    ("_callbacks",),  # what callbacks are shown
    ("problem",),
    ("_diagnostics",),  # quantities of a problem and its solution
    # The run, its limits and its incumbent: of any method; what needs none.
    ("solvers/driver", "solvers/_interpolation"),
    # Problems in fewer coordinates; those that fall apart into scalar ones.
    ("solvers/_row_space", "solvers/scalar"),
    ("solvers/primal_dual", "solvers/algorithm1", "solvers/divide", "solvers/forest"),
    # When a method stalls, and its blocks serve polishing; on models of smooth losses.
    ("solvers/interior_point", "solvers/second_order"),
    ("solvers/polishing",),  # around a method
    ("solvers/_auto", "solvers/_reference"),  # which of them runs; conic solvers of CVXPY
    ("solvers/exact",),  # starts from what those two have found
    ("solvers",),  # the choice by name
    ("distributed/engines",),  # who starts the workers of a distributed run
    ("federated/privacy", "federated/selection"),  # sensitivities and noise; tests of edges
    ("federated/models", "federated/features"),  # what clients train, and on which features
    ("federated/wire", "federated/_streams"),  # messages as bytes; independent random numbers
    ("federated/programs",),  # what clients and servers see and do
    ("federated/process",),  # what runs in the process of one client
    ("federated/_network",),  # who takes part
    ("federated/algorithms",),
    ("federated/transport",),  # where programs run
    ("federated/runtime",),  # rounds, faults, what is recorded
    ("federated/flower",),  # the same programs on nodes of Flower
    ("federated",),
    ("distributed",),  # shards, and what works on them
    ("path", "interop", "plotting", "graph_construction"),
    ("model_selection",),
    ("estimators",),
    ("experiments",),  # runs of methods beside printed values and certified optima
    ("__init__",),
    ("cli",),
    ("__main__", "distributed/__main__"),
)
VERIFY = (
    ("kernel", "web"),  # trusted: the standard library and itself alone; the other in JavaScript
    # The clock that compilation stops; how objects show themselves.
    ("_arrays", "_compilation", "_compilers", "_display", "_interrupts"),
    ("_deadline",),
    ("_filling", "_json_file", "_real_numbers"),
    ("_compiled",),
    ("flows", "instance"),  # maximum flow; plain data as arrays
    ("certificates",),  # the builder, which nobody has to trust
    ("partitions",),  # Theorem 2: what its parts share
    ("partitions/constants",),
    ("partitions/well_connected",),  # Definition 1
    ("partitions/recovery",),  # whether solutions are constant on clusters
    ("battery",),  # conformance of any solver
    ("__init__",),  # public names, loaded on first use
    ("pytest_plugin", "__main__", "zipapp"),
)
HOUSES = {"gtvcvx": GTVCVX, "verify": VERIFY}

# What one package may import of the other; `verify` itself stands for its public names.
DOORS = {
    "gtvcvx": (
        *("verify", "verify.flows", "verify.web", "verify.certificates.pieces"),
        *(
            "verify._compiled",
            "verify._compilation",
            "verify._deadline",
            "verify._display",
            "verify._filling",
            "verify._interrupts",
        ),
    ),
    "verify": (),
}

# The imports that lead back up: users say `problem.solve()`, and the choice of a solver is three
# floors above, and runs of several processes further up. They are made when it is called.
DOORS_FOR_USERS = [("gtvcvx.problem", "gtvcvx.solvers"), ("gtvcvx.problem", "gtvcvx.distributed")]

Floors = Sequence[Sequence[str]]


def modules(root: Path, packages: Sequence[str]) -> dict[str, Path]:
    """Return the file of each module by its dotted name."""
    found = {}
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def parsed(path: Path) -> list[ast.AST]:
    """Return all that a file's text is made of."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imported(nodes: Iterable[ast.AST], path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of every import, at the top or inside; "" for the module itself."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from ((str(node.module), alias.name) for alias in node.names)


def strings(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the strings with a dot in them: lazy tables name modules by such."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield node.value


def import_graph(files: dict[str, Path]) -> nx.DiGraph:
    """Which module imports which; a name taken from a package is an import of the package."""
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for module, path in files.items():
        nodes = parsed(path)
        for source, name in imported(nodes, path):
            target = f"{source}.{name}" if f"{source}.{name}" in files else source
            if target in files:
                graph.add_edge(module, target)
        graph.add_edges_from((module, name) for name in strings(nodes) if name in files)
    return graph


def room(module: str, floors: Floors) -> str | None:
    """Return the innermost room that a module is in."""
    inside = "/".join(module.split(".")[1:]) or "__init__"
    rooms = [name for floor in floors for name in floor if f"{inside}/".startswith(f"{name}/")]
    return max(rooms, key=len, default=None)


def wrong_imports(graph: nx.DiGraph, floors: Floors, package: str) -> list[str]:
    """Say which imports inside a package do not lead down, and which files have no room."""
    height = {name: k for k, floor in enumerate(floors) for name in floor}
    own = [module for module in graph if module.split(".")[0] == package]
    rooms = {module: room(module, floors) for module in own}
    wrong = [f"{module} has no room" for module in own if rooms[module] is None]
    for module, target in graph.subgraph(own).edges:
        here, there = rooms[module], rooms[target]
        if None in (here, there) or here == there:
            continue
        if height[there] >= height[here]:
            wrong.append(f"{module} ({here}) imports {target} ({there})")
    return wrong


def circles(graph: nx.DiGraph) -> list[list[str]]:
    """Return the groups of files that import each other in a circle."""
    loops = [[module] for module in nx.nodes_with_selfloops(graph)]
    return loops + [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]


def empty_rooms(files: dict[str, Path], floors: Floors, package: str) -> list[str]:
    """Return the rooms of the table that no file of the package is in."""
    used = {room(module, floors) for module in files if module.split(".")[0] == package}
    return [name for floor in floors for name in floor if name not in used]


FILES = modules(ROOT, tuple(HOUSES))


@cache
def whole() -> nx.DiGraph:
    """Return the imports of the house; made by the one process that asks, not by all that read."""
    return import_graph(FILES)


@cache
def strict() -> nx.DiGraph:
    """Return them but for the doors for users."""
    graph = whole().copy()
    graph.remove_edges_from(DOORS_FOR_USERS)
    return graph


def test_there_is_a_house() -> None:
    assert sum(name.startswith("gtvcvx.") for name in FILES) > 100
    assert sum(name.startswith("verify.") for name in FILES) > 40
    assert whole().number_of_edges() > 500


@pytest.mark.parametrize("package", HOUSES)
def test_every_room_of_the_table_is_there_and_none_is_named_twice(package: str) -> None:
    rooms = [name for floor in HOUSES[package] for name in floor]
    assert len(rooms) == len(set(rooms))
    assert empty_rooms(FILES, HOUSES[package], package) == []


@pytest.mark.parametrize("package", HOUSES)
def test_imports_lead_down(package: str) -> None:
    assert wrong_imports(strict(), HOUSES[package], package) == []


def test_no_file_is_part_of_a_circle() -> None:
    assert circles(strict()) == []


def test_the_doors_for_users_open_when_they_are_called() -> None:
    tree = ast.parse(FILES["gtvcvx.problem"].read_text(encoding="utf-8"))
    (problem,) = (
        node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "GTVProblem"
    )
    doors = [
        function.name
        for function in problem.body
        for node in ast.walk(function)
        if isinstance(function, ast.FunctionDef) and isinstance(node, ast.ImportFrom)
    ]
    assert doors == ["solve"] * len(DOORS_FOR_USERS)
    assert all(whole().has_edge(*door) for door in DOORS_FOR_USERS)


@pytest.mark.parametrize("package", HOUSES)
def test_packages_meet_at_the_doors(package: str) -> None:
    def may(target: str) -> bool:
        inside = tuple(f"{door}." for door in DOORS[package] if door != "verify")
        return target in DOORS[package] or target.startswith(inside)

    across = [
        (module, target)
        for module, target in whole().edges
        if module.split(".")[0] == package and target.split(".")[0] != package
    ]
    assert bool(across) == bool(DOORS[package])
    assert [edge for edge in across if not may(edge[1])] == []


def test_the_kernel_imports_the_standard_library_and_itself() -> None:
    kernel = {name: path for name, path in FILES.items() if name.startswith("verify.kernel")}
    assert len(kernel) >= 5
    for path in kernel.values():
        for source, _ in imported(parsed(path), path):
            own = source.startswith("verify.kernel")
            assert own or source.split(".")[0] in sys.stdlib_module_names, (path, source)


def test_tests_lie_as_the_packages_do() -> None:
    packages = {path.parent for path in FILES.values()}
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.glob("*/**/test_*.py")}
    of_gtvcvx = {folder for folder in folders if ROOT / "gtvcvx" / folder in packages}
    of_verify = {folder for folder in folders if ROOT / folder in packages}
    assert len(of_gtvcvx) >= 10
    assert folders - of_gtvcvx - of_verify == {Path("docs"), Path("docs/papers")}


# The checker, on a house of three floors.
SMALL = (("_base",), ("low", "beside"), ("__init__",))


def small_house(root: Path, **extra: str) -> nx.DiGraph:
    texts = {
        "small/__init__.py": "from small.low import work\n",
        "small/_base.py": "import math\n",
        "small/low/__init__.py": "from small.low._work import work\n",
        "small/low/_work.py": "from small._base import x\n",
        "small/beside.py": "from small import _base\n",
    }
    for name, text in (texts | extra).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return import_graph(modules(root, ("small",)))


def test_a_sound_house_has_nothing_wrong(tmp_path: Path) -> None:
    graph = small_house(tmp_path)
    assert graph.number_of_edges() == 4
    assert wrong_imports(graph, SMALL, "small") == []
    assert circles(graph) == []
    assert empty_rooms(modules(tmp_path, ("small",)), SMALL, "small") == []


@pytest.mark.parametrize(
    "text",
    [
        "from small.low import work\n",
        "from small.low._work import work\n",
        "import small.low._work as w\n",
        "from small import low\n",
        "def late():\n    from small.low import work\n",
        "if TYPE_CHECKING:\n    from small.low import work\n",
        'LAZY = {"work": "small.low._work"}\n',
        "from small import work\n",
    ],
)
def test_an_import_back_up_is_found(tmp_path: Path, text: str) -> None:
    graph = small_house(tmp_path, **{"small/_base.py": text})
    assert len(wrong_imports(graph, SMALL, "small")) == 1
    assert len(circles(graph)) == 1


def test_an_import_sideways_is_found(tmp_path: Path) -> None:
    graph = small_house(tmp_path, **{"small/beside.py": "from small.low import work\n"})
    assert len(wrong_imports(graph, SMALL, "small")) == 1
    assert circles(graph) == []


def test_a_circle_inside_a_room_is_found(tmp_path: Path) -> None:
    graph = small_house(tmp_path, **{"small/low/_work.py": "from small.low import work\n"})
    assert wrong_imports(graph, SMALL, "small") == []
    assert circles(graph) == [["small.low", "small.low._work"]]


def test_a_file_without_a_room_and_a_room_without_a_file_are_found(tmp_path: Path) -> None:
    graph = small_house(tmp_path, **{"small/new.py": ""})
    assert wrong_imports(graph, SMALL, "small") == ["small.new has no room"]
    files = modules(tmp_path, ("small",))
    assert empty_rooms(files, (*SMALL, ("gone",)), "small") == ["gone"]
