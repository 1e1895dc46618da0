"""What the commands share on the way in: checks of paths, and loading of files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from gtvcvx._arrays import finite_array
from gtvcvx.federated import SavedRun
from gtvcvx.path import LambdaPath
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# What the readers of damaged npz files can run into beyond ValueError and OSError.
_DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    zlib.error,
)


def check_outputs(outputs: Mapping[str, str | None], inputs: Mapping[str, str]) -> None:
    """Refuse before any work what could not be written after it, or would destroy an input.

    Both map an argument's name to the path given for it; an output may be None.
    """
    taken = {os.path.realpath(path): argument for argument, path in inputs.items()}
    for argument, path in outputs.items():
        if path is None:
            continue
        if not os.path.basename(path):
            raise ValueError(f"{argument}: a file name is expected, got {path!r}")
        real = os.path.realpath(path)
        folder = os.path.dirname(real)
        if real in taken:
            raise ValueError(f"{argument}: {path} is already given for {taken[real]}")
        if not os.path.isdir(folder):
            raise ValueError(f"{argument}: there is no folder {folder} to write {path} into")
        if os.path.exists(real) and not os.path.isfile(real):
            raise ValueError(f"{argument}: {path} exists and is not a regular file")
        if not os.access(folder, os.W_OK):
            raise ValueError(f"{argument}: the folder {folder} is not writable")
        taken[real] = argument


def load_problem(path: str) -> GTVProblem:
    """Load a problem file; whatever is wrong with it is a ValueError that names it."""
    with _reading(path):
        return GTVProblem.load(path)


def load_solution(path: str, problem: GTVProblem, problem_path: str) -> Solution:
    """Load a solution file and check that it fits the problem."""
    with _reading(path):
        solution = Solution.load(path)
        solution.w = problem.checked_w(solution.w, f"{path}: w")
        solution.u = problem.checked_u(solution.u, f"{path}: u")
        if list(solution.nodes) != list(problem.graph.nodes):
            raise ValueError(f"{path}: its node labels are not those of {problem_path}")
    return solution


def load_run(path: str, problem: GTVProblem, problem_path: str) -> SavedRun:
    """Load a federated run and check that its clients are the nodes of the problem."""
    with _reading(path):
        run = SavedRun.load(path)
        if list(run.nodes) != list(problem.graph.nodes):
            raise ValueError(f"{path}: its clients are not the nodes of {problem_path}")
        if run.models.size and run.models.shape[1] != problem.dim:
            d = run.models.shape[1]
            raise ValueError(
                f"{path}: its models have {d} coefficients, those of {problem_path} {problem.dim}"
            )
    return run


def load_path(path: str, problem: GTVProblem, problem_path: str) -> LambdaPath:
    """Load a path and check that it is one of the problem's nodes and coefficients."""
    with _reading(path):
        found = LambdaPath.load(path)
        if not len(found) or list(found[0].nodes) != list(problem.graph.nodes):
            raise ValueError(f"{path}: its nodes are not those of {problem_path}")
        if found.w.shape[1:] != (problem.graph.n_nodes, problem.dim):
            raise ValueError(
                f"{path}: its solutions have {found.w.shape[2]} coefficients, those of "
                f"{problem_path} {problem.dim}"
            )
    return found


def load_fitted(path: str) -> Solution:
    """Load a solution file that stands alone; its parameters are one finite row a node."""
    with _reading(path):
        solution = Solution.load(path)
        w = finite_array(solution.w, f"{path}: w", 2)
        if len(w) != len(solution.nodes):
            raise ValueError(
                f"{path}: the file is damaged (it has {len(solution.nodes)} nodes and "
                f"{len(w)} rows of parameters)"
            )
    return solution


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise ValueError(f"{path}: there is no such file") from None
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be read ({error.strerror})") from error
    except _DAMAGE as error:
        raise ValueError(f"{path}: the file is damaged ({error})") from error
