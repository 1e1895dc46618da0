"""Command line of the exact checker: `python -m verify check certificate.json`.

Needs the standard library alone (`python -S -m verify ...` works from a copy of this folder).
Exit status: 0 certified, 1 not proved or refuted, 2 bad usage or unreadable input.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from verify.kernel import check


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        data = None
        if options.data is not None:
            with open(options.data, encoding="utf-8") as file:
                data = json.load(file)
        result = check(options.certificate, data=data, rtol=options.rtol)
    except OSError as error:
        print(f"verify: cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:  # only the data file: `check` answers REFUTED to such documents
        print(f"verify: {options.data} is not a JSON text: {error}", file=sys.stderr)
        return 2
    figures = result.to_json()
    if options.json:
        print(json.dumps(figures))
    else:
        print(f"{result.status}: {result.reason}")
        for name in ("upper", "lower", "gap", "rel_gap", "distance_bound"):
            if figures[name] is not None:
                print(f"  {name:<15}{figures[name]:.17g}")
    return 0 if result.status == "CERTIFIED" else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="verify", description="Exact checks of GTV solutions.")
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("check", help="check a certificate file")
    command.add_argument("certificate", help="JSON file (verify/SCHEMA.md)")
    command.add_argument("--data", help="problem data as JSON, for a certificate without them")
    command.add_argument(
        "--rtol", type=_tolerance, help="tolerance to use instead of the document's own"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _tolerance(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a finite number >= 0, got {text!r}")
    return value


if __name__ == "__main__":
    sys.exit(main())
