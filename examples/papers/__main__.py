"""Tables and figures of five papers, run again beside the certified optimum.

    python examples/papers --list
    python examples/papers gtv-table-1
    python examples/papers gtv-table-1 --paper --out runs

A run prints, for each row: printed value, ours (mean and deviation over seeds), certified optimum,
verdict and reason; and writes NAME.json, NAME.csv and NAME.svg. Interrupted runs go on where they
were when they are started again with the same ``--out``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import _catalogue
import _page

from gtvcvx.experiments import Experiment, run_experiment, text_of, write_record


def parser() -> argparse.ArgumentParser:
    """Arguments of the command."""
    made = argparse.ArgumentParser(
        prog="python examples/papers", description=(__doc__ or "").partition("\n")[0]
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="experiments; see --list")
    made.add_argument("--list", action="store_true", help="show all experiments")
    made.add_argument("--paper", action="store_true", help="the paper's full setting: long runs")
    made.add_argument("--reading", help="how the text is read, where it can be read in two ways")
    made.add_argument("--seeds", type=int, metavar="N", help="repetitions")
    made.add_argument("--out", type=Path, default=Path("papers-out"), help="folder to write to")
    made.add_argument("--data", type=Path, help="folder with your own files, such as MNIST")
    made.add_argument(
        "--page", action="store_true", help="write docs/reproduction.md from results/"
    )
    made.add_argument("--verbose", action="store_true", help="a line for each finished cell")
    return made


def listing(known: dict[str, Experiment]) -> str:
    """Give a line for each experiment."""
    rows = [
        (e.name, f"[{e.paper}] {e.item}", e.title, e.data + _choices(e)) for e in known.values()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _choices(experiment: Experiment) -> str:
    several = len(experiment.readings) > 1
    return f"; readings {', '.join(experiment.readings)}" if several else ""


def run(experiment: Experiment, arguments: argparse.Namespace) -> None:
    """Run one, print its table and write its files."""
    record = run_experiment(
        experiment,
        "paper" if arguments.paper else "default",
        reading=arguments.reading,
        seeds=arguments.seeds,
        data=arguments.data,
        out=arguments.out,
        verbose=True if arguments.verbose else None,
    )
    other = record.reading != experiment.readings[0]
    paths = write_record(
        record, arguments.out, f"{record.name}-{record.reading}" if other else None
    )
    print(text_of(record))
    print("written:", *(str(path) for path in paths))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 2 where it was called in a wrong way."""
    made = parser()
    arguments = made.parse_args(argv)
    known = _catalogue.experiments()
    if arguments.list:
        print(listing(known))
        return 0
    if not arguments.names and not arguments.page:
        made.error("name at least one experiment, or ask for --list")
    try:
        if arguments.page:
            print("written:", *map(str, _page.write(known, _page.records(known))), sep="\n")
        for experiment in _catalogue.chosen(arguments.names, known):
            run(experiment, arguments)
    except ImportError as error:
        return failed(f'{error}; some experiments need: python -m pip install ".[plot,ml]"')
    except (ValueError, FileNotFoundError) as error:
        return failed(str(error))
    except KeyboardInterrupt:
        return failed("interrupted; the same command goes on where it was", 130)
    return 0


def failed(reason: str, status: int = 2) -> int:
    """Say what went wrong and return the exit status."""
    print(f"python examples/papers: {reason}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
