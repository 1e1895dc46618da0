"""Arguments of ``gtvcvx certify``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import DEFAULT_RTOL, command_parser, positive

_DESCRIPTION = """\
Build an exact certificate for a solution: a proof, in rational numbers, that its objective is
within RTOL * max(1, |objective|) of the optimum. The certificate is written whatever the verdict.
Where the solution has rational numbers, from the solver EXACT, they are what is certified.
Anyone can check it, with the standard library of Python alone: 'gtvcvx check CERTIFICATE' or
'python -m verify check CERTIFICATE'.

Exit status 0 if CERTIFIED, 1 if UNPROVED or REFUTED."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "certify", "prove a solution", _DESCRIPTION, "gtvcvx.cli._certify"
    )
    parser.add_argument("problem", metavar="PROBLEM", help="problem, npz, as 'fit' writes it")
    parser.add_argument("solution", metavar="SOLUTION", help="solution, npz, as 'fit' writes it")
    parser.add_argument(
        "--rtol",
        type=positive,
        default=DEFAULT_RTOL,
        help=f"relative gap to certify (default: {DEFAULT_RTOL:g})",
    )
    parser.add_argument(
        "--no-search",
        dest="search",
        action="store_false",
        help="use the flow of SOLUTION only: do not solve the dual problem if that flow does not "
        "suffice, nor look for a better point, so that the verdict is CERTIFIED or UNPROVED",
    )
    parser.add_argument(
        "--time-limit",
        type=positive,
        metavar="SECONDS",
        help="seconds after which nothing new is begun: what is not proved by then is UNPROVED",
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="CERTIFICATE",
        help="certificate: JSON, or raw arrays where the name ends in .gtvc, for large problems",
    )
