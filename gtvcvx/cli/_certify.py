"""``gtvcvx certify``: prove how far a solution is from optimal, and write the proof."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import verify
from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    check_outputs,
    command_parser,
    load_problem,
    load_solution,
    positive,
)
from gtvcvx.cli._proof import certificate_data, certificate_lines, exact_pair, exit_status
from gtvcvx.cli._report import emit, entry, working

_DESCRIPTION = """\
Build an exact certificate for a solution: a proof, in rational numbers, that its objective is
within RTOL * max(1, |objective|) of the optimum. The certificate is written whatever the verdict.
Where the solution has rational numbers, from the solver EXACT, they are what is certified.
Anyone can check it, with the standard library of Python alone: 'gtvcvx check CERTIFICATE' or
'python -m verify check CERTIFICATE'.

Exit status 0 if CERTIFIED, 1 if UNPROVED or REFUTED."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(commands, "certify", "prove a solution", _DESCRIPTION)
    parser.set_defaults(run=run)
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


def run(args: Namespace) -> int:
    """Load, certify, write, report."""
    check_outputs({"--output": args.output}, {"PROBLEM": args.problem, "SOLUTION": args.solution})
    with working(args, "reading"):
        problem = load_problem(args.problem)
        solution = load_solution(args.solution, problem, args.problem)
    w, u = exact_pair(solution)
    with working(args, "certifying"):
        certificate = verify.certify(
            problem.to_data(),
            w,
            u,
            args.rtol,
            search=args.search,
            time_limit=args.time_limit,
        )
    with working(args, "writing"):
        certificate.save(args.output)
    lines = [
        *certificate_lines(certificate),
        entry("Written", args.output),
    ]
    data = {
        "certificate": certificate_data(certificate),
        "written": {"output": args.output},
    }
    emit(args, lines, data)
    return exit_status(certificate.status)
