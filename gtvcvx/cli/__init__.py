"""The commands ``gtvcvx fit``, ``predict``, ``certify``, ``check``, ``report`` and others.

Exit status: 0 done and proved, 1 not proved or refuted (or interrupted, or the backend failed),
2 bad input or usage. Results go to standard output, errors and progress to standard error.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gtvcvx import __version__
from gtvcvx._lazy import cp
from gtvcvx.cli._arguments import ArgumentParser
from gtvcvx.cli._status import BAD_INPUT, NOT_PROVED
from gtvcvx.cli.parsers import add_parsers

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name. Default: those of the process.

    Returns
    -------
    int
        Exit status.
    """
    try:
        args, surplus = _parser().parse_known_args(argv)
        if surplus:
            args.parser.error(f"unrecognized arguments: {' '.join(surplus)}")
    except SystemExit as stop:  # argparse's way to end --help, --version and usage errors
        return stop.code if isinstance(stop.code, int) else BAD_INPUT
    try:
        with _warnings_of(args.command):
            return int(args.run(args))
    except (ValueError, OSError) as error:
        return _failed(args.command, error, BAD_INPUT)
    except KeyboardInterrupt as stop:
        return _failed(args.command, stop.args[0] if stop.args else "interrupted", NOT_PROVED)
    except cp.error.SolverError as error:
        return _failed(args.command, error, NOT_PROVED)


class _Completion(argparse.Action):
    """Print the completion script of a shell and end."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: Any = None
    ) -> None:
        """Print it."""
        print(import_module("gtvcvx.cli._completion").script(parser, values), end="")
        parser.exit()


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="gtvcvx",
        description="Generalized total variation minimization on graphs: solve, certify, check.",
        epilog="Exit status: 0 done and proved, 1 not proved or refuted, 2 bad input or usage.",
    )
    parser.add_argument("--version", action="version", version=f"gtvcvx {__version__}")
    parser.add_argument(
        "--completion",
        action=_Completion,
        choices=("bash", "zsh", "fish"),
        help="print a script that completes commands and options, and exit",
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, title="commands"
    )
    add_parsers(commands)
    return parser


@contextmanager
def _warnings_of(command: str) -> Iterator[None]:
    """Show warnings in one line each, without the place in the source that gives them."""

    def show(message: Warning | str, *rest: Any, **options: Any) -> None:
        print(f"gtvcvx {command}: warning: {' '.join(str(message).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _failed(command: str, problem: object, status: int) -> int:
    """Say in one line on standard error what went wrong."""
    text = " ".join(_message(problem).split())
    print(f"gtvcvx {command}: error: {text}", file=sys.stderr)
    return status


def _message(problem: object) -> str:
    if isinstance(problem, FileNotFoundError):
        return f"{problem.filename}: there is no such file"
    if isinstance(problem, OSError) and problem.strerror:
        where = f"{problem.filename}: " if problem.filename is not None else ""
        return f"{where}{problem.strerror}"
    return str(problem)


def __dir__() -> list[str]:
    return sorted(__all__)
