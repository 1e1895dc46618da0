"""``gtvcvx check``: run the exact kernel on a certificate file."""

from __future__ import annotations

from argparse import Namespace

import verify
from gtvcvx.cli._loading import load_problem
from gtvcvx.cli._proof import exit_status, rounded_up
from gtvcvx.cli._report import emit, entry, working


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
