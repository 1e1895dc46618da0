"""``gtvcvx certify``: prove how far a solution is from optimal, and write the proof."""

from __future__ import annotations

from argparse import Namespace

import verify
from gtvcvx.cli._loading import check_outputs, load_problem, load_solution
from gtvcvx.cli._proof import certificate_data, certificate_lines, exact_pair, exit_status
from gtvcvx.cli._report import emit, entry, working


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
