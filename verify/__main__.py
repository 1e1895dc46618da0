"""Command line of the exact checker: `python -m verify check certificate.json`.

`check` needs the standard library alone (`python -S -m verify ...` works from a copy of this
folder); `conformance` runs a solver of yours, `python -m verify conformance module:callable`, and
needs NumPy, SciPy and CVXPY. Exit status of `check`: 0 CERTIFIED, 4 REFUTED, 3 UNPROVED, 5 not a
document at all (malformed), 2 bad usage or an unreadable file, 1 an internal error, as for any
Python program that breaks. Of `conformance`: 0 passed, 1 failed, 2 bad usage.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import verify
from verify.kernel import Result, check
from verify.kernel.result import INTERNAL, MALFORMED
from verify.kernel.work import STEPS

STATUSES = """\
exit status:
  0  CERTIFIED: the gap is proved to be within rtol
  4  REFUTED: w is proved not to be, or the document is false
  3  UNPROVED: neither, or the check would exceed its budget of work
  5  malformed: the file is no document of a known schema
  2  bad usage, or a file that cannot be read
  1  internal error: a defect of the checker, which says nothing about the document
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in a file are not always printable here
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    return run(options)


def _check(options: argparse.Namespace) -> int:
    try:
        result = check(options.certificate, options.data, options.rtol, options.budget)
    except OSError as error:
        print(f"verify: cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    figures = result.to_json()
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"{result.status}: {result.reason}")
        for name in ("upper", "lower", "gap", "rel_gap", "distance_bound"):
            if figures[name] is not None:
                print(f"  {name:<15}{figures[name]:.17g}")
    return exit_status(result)


def exit_status(result: Result) -> int:
    """Return what `check` ends with; 1 is left to programs that break."""
    if result.reason.startswith(INTERNAL):
        return 1
    if result.reason.startswith(MALFORMED):
        return 5
    return {"CERTIFIED": 0, "UNPROVED": 3}.get(result.status, 4)


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
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser(
        "check",
        help="check a certificate file",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=_check)
    command.add_argument("certificate", help="JSON file (verify/SCHEMA.md)")
    command.add_argument("--data", help="problem data as JSON, for a certificate without them")
    command.add_argument(
        "--rtol", type=_tolerance, help="tolerance to use instead of the document's own"
    )
    command.add_argument(
        "--budget",
        type=_steps,
        metavar="STEPS",
        help="work after which the answer is UNPROVED; ten million steps take about a second"
        f" (default: {STEPS // 10**6} million for a file of up to 1 MB, in proportion beyond)",
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
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


def _steps(text: str) -> int:
    value = float(text)
    if not 1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of steps, got {text!r}")
    return int(value)


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive finite number, got {text!r}")
    return value


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a finite number >= 0, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
