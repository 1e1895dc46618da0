"""``gtvcvx check``: run the exact kernel on a certificate file."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import verify
from gtvcvx.cli._arguments import DEFAULT_RTOL, command_parser, load_problem, positive
from gtvcvx.cli._proof import exit_status, rounded_up
from gtvcvx.cli._report import emit, entry, working

_DESCRIPTION = """\
Check a certificate with the exact kernel: no number in it is believed. A malformed or false
certificate is REFUTED. 'python -m verify check CERTIFICATE' does the same where only the folder
'verify' and Python are there.

Exit status 0 if CERTIFIED, 1 if UNPROVED or REFUTED, 2 if the file cannot be read."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(commands, "check", "check a certificate", _DESCRIPTION)
    parser.set_defaults(run=run)
    parser.add_argument("certificate", metavar="CERTIFICATE", help="certificate, JSON")
    parser.add_argument(
        "--problem",
        metavar="PROBLEM",
        help="problem, npz: for a certificate without the problem's data, or to compare them",
    )
    parser.add_argument(
        "--rtol",
        type=positive,
        default=DEFAULT_RTOL,
        help="relative gap to prove (default: %(default)g; the certificate's own decides nothing)",
    )


def run(args: Namespace) -> int:
    """Check and report."""
    data = None if args.problem is None else load_problem(args.problem).to_data()
    with working(args, "checking"):
        result = verify.check(args.certificate, data, args.rtol)
    figures = result.to_json()
    lines = [entry(result.status, result.reason)]
    if figures["gap"] is not None:
        lines += [
            entry(
                "",
                f"gap at most {rounded_up(figures['gap'])}, relative "
                f"{rounded_up(figures['rel_gap'])} (asked for: {figures['rtol']:g})",
            ),
            entry("", f"{figures['lower']!r} <= optimum <= {figures['upper']!r}"),
        ]
    if figures["distance_bound"] is not None:
        lines.append(
            entry("", f"distance to the solution at most {rounded_up(figures['distance_bound'])}")
        )
    emit(args, lines, {"certificate": args.certificate, **figures})
    return exit_status(result.status)
