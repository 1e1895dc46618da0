"""Command line of the exact checker, alone: what `python -m verify check` and gtv-check.pyz run.

Standard library only.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Sequence

from verify.kernel import __version__
from verify.kernel.checker import RTOL
from verify.kernel.documents import check
from verify.kernel.result import INTERNAL, MALFORMED, Result
from verify.kernel.work import STEPS

STATUSES = """\
exit status:
  0  CERTIFIED: the gap is proved to be within rtol
  4  REFUTED: w is proved not to be, or the document is false
  3  UNPROVED: neither, or the check would exceed its budget of work
  5  malformed: the file is no document of a known schema
  2  bad usage, or a file that cannot be read
  1  internal error: a defect of the checker, which says nothing about the document

Run it isolated, python -I, so that no file of the current folder and no environment variable
takes part in the check.
"""
#: Figures in the order in which they are printed, and what they are.
_FIGURES = {
    "rel_gap": "gap / max(1, |upper|)",
    "plain_gap": "gap / |upper|",
    "gap": "upper - lower",
    "upper": "P(w) is at most that",
    "lower": "the optimum is at least that",
    "distance_bound": "the solution is at most that far away",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the file that the arguments name; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gtv-check",
        description="Check a certificate of a GTV solution, or a document about a partition.",
        epilog=STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gtv-check {__version__}")
    add_arguments(parser)
    return run(parser.parse_args(arguments))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what `run` reads."""
    parser.add_argument("certificate", help="JSON or .gtvc file (verify/SCHEMA.md)")
    parser.add_argument("--data", help="problem data as JSON, for a certificate without them")
    parser.add_argument(
        "--rtol",
        type=_tolerance,
        default=RTOL,
        help="relative gap to prove (default: %(default)g; the document's own decides nothing)",
    )
    parser.add_argument(
        "--budget",
        type=_steps,
        metavar="STEPS",
        help="work after which the answer is UNPROVED; ten million steps take about a second"
        f" (default: {STEPS // 10**6} million for a file of up to 1 MB, in proportion beyond)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> int:
    """Check, print the answer and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in a file are not always printable here
            stream.reconfigure(errors="backslashreplace")
    try:
        result = check(options.certificate, options.data, options.rtol, options.budget)
    except OSError as error:
        print(f"verify: cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    if options.json:
        _say(json.dumps(result.to_json(), allow_nan=False))
    else:
        _say("\n".join(_lines(result)))
    return exit_status(result)


def _say(text: str) -> None:
    """Print, to whoever still reads: the status says the same."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # What is left in the buffer would be written, and fail, at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _lines(result: Result) -> list[str]:
    figures = result.to_json()
    lines = [f"{result.status}: {result.reason}"]
    for name, meaning in _FIGURES.items():
        if figures[name] is not None:
            lines.append(f"  {name:<15}{figures[name]:<25.17g}{meaning}")
    return lines + ([f"  warning: {result.warning}"] if result.warning else [])


def exit_status(result: Result) -> int:
    """Return what a program that checks ends with; 1 is left to programs that break."""
    if result.reason.startswith(INTERNAL):
        return 1
    if result.reason.startswith(MALFORMED):
        return 5
    return {"CERTIFIED": 0, "UNPROVED": 3}.get(result.status, 4)


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a finite number >= 0, got {text!r}")
    return value


def _steps(text: str) -> int:
    value = float(text)
    if not 1 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of steps, got {text!r}")
    return int(value)
