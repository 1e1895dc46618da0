"""Arguments of ``gtvcvx check``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import DEFAULT_RTOL, command_parser, positive

_DESCRIPTION = """\
Check a certificate with the exact kernel: no number in it is believed. A malformed or false
certificate is REFUTED. 'python -m verify check CERTIFICATE' does the same where only the folder
'verify' and Python are there.

Exit status 0 if CERTIFIED, 1 if UNPROVED or REFUTED, 2 if the file cannot be read."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "check", "check a certificate", _DESCRIPTION, "gtvcvx.cli._check"
    )
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
