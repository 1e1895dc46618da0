"""What the commands share on the way in: argument types, checks of paths, loading of files."""

from __future__ import annotations

import argparse
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from gtvcvx.cli._report import BAD_INPUT
from gtvcvx.penalties import Penalty, PNorm
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

PENALTIES = ("l1", "l2", "linf", "squared")
DEFAULT_RTOL = 1e-6

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


class ArgumentParser(argparse.ArgumentParser):
    """Parser without abbreviations whose usage errors take one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """End with status 2 after one line on standard error."""
        text = " ".join(message.split())
        self.exit(BAD_INPUT, f"{self.prog}: error: {text} (see {self.prog} --help)\n")


def command_parser(commands: Any, name: str, summary: str, description: str) -> ArgumentParser:
    """Add a command with the options that all commands have."""
    parser: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print no report and no progress, only errors (and the JSON, with --json)",
    )
    return parser


def positive(text: str) -> float:
    """Read a positive finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"a positive finite number is expected, got {text!r}")
    return value


def nonnegative(text: str) -> float:
    """Read a finite number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"a finite number >= 0 is expected, got {text!r}")
    return value


def positive_int(text: str) -> int:
    """Read a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a positive integer is expected, got {text!r}")
    return value


def folds(text: str) -> int:
    """Read a number of folds."""
    number = positive_int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"at least 2 folds are expected, got {text!r}")
    return number


def seed(text: str) -> int:
    """Read a seed, an integer that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"an integer >= 0 is expected, got {text!r}")
    return int(text)


def share(text: str) -> float:
    """Read a number between 0 and 1."""
    value = positive(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 is expected, got {text!r}")
    return value


def grid(text: str) -> int | list[float]:
    """Read how many values of lambda there are to be, or the values, separated by commas."""
    if "," in text:
        return [positive(part) for part in text.split(",")]
    number = positive_int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(
            f"at least 2 values, or values separated by commas, are expected, got {text!r}"
        )
    return number


def penalty(text: str) -> str | Penalty:
    """Read the name of a penalty, or pnorm:P."""
    if text in PENALTIES:
        return text
    if not text.startswith("pnorm:"):
        names = ", ".join(PENALTIES)
        raise argparse.ArgumentTypeError(f"one of {names} or pnorm:P is expected, got {text!r}")
    try:
        return PNorm(float(text.removeprefix("pnorm:")))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


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
