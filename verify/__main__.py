"""Command line of the exact checker: `python -m verify check certificate.json`.

`check` needs the standard library alone (`python -I -m verify check FILE` keeps the current folder
out of it, and `python -m verify.zipapp` makes one file of it); `conformance` runs a solver of
yours, `python -m verify conformance module:callable`, and needs NumPy, SciPy and CVXPY. Exit
statuses of `check` are in its help; of `conformance`: 0 passed, 1 failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import verify
from verify.kernel import command as command_line


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _conformance(options: argparse.Namespace) -> int:
    if "" not in sys.path:  # modules of the current folder, however this program was started
        sys.path.insert(0, "")
    try:
        battery = verify.conformance
        solver = _resolved(options.solver)
    except (Exception, SystemExit) as error:  # whatever importing somebody's module raises
        text = " ".join(str(error).split()) or type(error).__name__
        if isinstance(error, SystemExit):
            text = "it ends the program when it is imported"
        print(f"verify: cannot use {options.solver!r}: {text}", file=sys.stderr)
        return 2
    report = battery(solver, rtol=options.rtol, seed=options.seed, time_limit=options.time_limit)
    print(json.dumps(report.to_dict()) if options.json else report)
    return 0 if report.passed else 1


def _resolved(name: str) -> Callable[..., Any]:
    """Return the callable that "module:name" or "module:object.name" stands for."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise ValueError("expected module:callable, such as mypackage.solvers:solve")
    found = attrgetter(attribute)(importlib.import_module(module))
    if not callable(found):
        raise TypeError(f"{attribute!r} is not callable, it is of type {type(found).__name__}")
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="verify", description="Exact checks of GTV solutions.")
    parser.add_argument("--version", action="version", version=f"verify {verify.__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser(
        "check",
        help="check a certificate file",
        epilog=command_line.STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=command_line.run)
    command_line.add_arguments(command)
    _add_conformance(commands)
    return parser


def _add_conformance(commands: Any) -> None:
    command = commands.add_parser(
        "conformance", help="run a solver on planted and random instances and prove its answers"
    )
    command.set_defaults(run=_conformance)
    command.add_argument(
        "solver",
        metavar="module:callable",
        help="solver(data) -> w, (w, u) or an object with .w and .u; data as in verify/SCHEMA.md",
    )
    command.add_argument(
        "--rtol", type=_positive, default=1e-6, help="relative gap to prove (default: %(default)g)"
    )
    command.add_argument(
        "--seed", type=_seed, default=0, help="of the instances (default: %(default)d)"
    )
    command.add_argument(
        "--time-limit",
        type=_positive,
        metavar="SECONDS",
        help="start no further instance after that; the run has then not passed",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"expected an integer >= 0, got {text!r}")
    return value


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive finite number, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
