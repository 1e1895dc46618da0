"""Arguments of ``gtvcvx report``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import DEFAULT_RTOL, command_parser, positive, positive_int

# Half a megabyte of page where there are eight coefficients.
SHOWN_ROWS = 2000

_DESCRIPTION = """\
Write one HTML page about a solution: clusters and coefficients in tables and pictures, errors on
held-out data (those of DATA, and of the cross-validation if lambda was chosen by 'fit --cv'), the
solutions for other values of lambda (those of PATH), the certificate with its bounds and the
largest shares in the gap, the problem, federated runs if there are any. The page needs no other
file and no network, can be printed, and turns with light and dark screens. A button in it checks
the proof on the spot, by a second checker that is part of the page, as is the certificate (unless
that is very large). Every node is named, in tables or lists; beyond 3 million characters of names
the page says how many are left out.

The certificate is CERTIFICATE, checked here by the exact kernel against PROBLEM, or else one that
is built from the flow of SOLUTION, without solving anything anew. Pictures need matplotlib, which
is the extra 'plot': pip install "gtvcvx[plot]".

Exit status 0 if CERTIFIED, 1 if UNPROVED or REFUTED (the page is written whatever the verdict)."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "report", "write an HTML page", _DESCRIPTION, "gtvcvx.cli.report._command"
    )
    parser.add_argument("solution", metavar="SOLUTION", help="solution, npz, as 'fit' writes it")
    parser.add_argument(
        "--problem",
        metavar="PROBLEM",
        help="problem, npz (default: beside the solution, solution.problem.npz for solution.npz)",
    )
    parser.add_argument(
        "--certificate", metavar="CERTIFICATE", help="certificate, JSON, as 'certify' writes it"
    )
    parser.add_argument(
        "--federated",
        action="append",
        default=[],
        metavar="RUN",
        help="federated run on the same nodes, npz, as 'federate' writes it, for a section that "
        "compares runs; may be given several times",
    )
    parser.add_argument(
        "--held-out",
        metavar="DATA",
        help="CSV file of rows that the fit has not seen, with its node, feature and target "
        "columns, for their error",
    )
    parser.add_argument(
        "--path", metavar="PATH", help="path on the same nodes, npz, as 'path' writes it"
    )
    parser.add_argument(
        "--areas",
        metavar="AREAS",
        help="GeoJSON file with an area for each node, by the id or a property of its features, "
        "for maps (extra 'geo')",
    )
    parser.add_argument(
        "--rtol",
        type=positive,
        help=f"relative gap to prove (default: {DEFAULT_RTOL:g})",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="page to write (default: beside the solution, solution.html for solution.npz)",
    )
    parser.add_argument("--title", help="heading (default: the name of SOLUTION)")
    parser.add_argument(
        "--rows",
        type=positive_int,
        default=SHOWN_ROWS,
        metavar="N",
        help=f"nodes in the table of coefficients (default: {SHOWN_ROWS})",
    )
