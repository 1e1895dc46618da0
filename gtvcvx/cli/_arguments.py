"""What the parsers share: the class, and types of arguments.

Nothing here, nor in `gtvcvx.cli.parsers`, loads NumPy: ``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import math
from argparse import Namespace
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from gtvcvx.cli._status import BAD_INPUT

if TYPE_CHECKING:
    from gtvcvx.penalties import Penalty

PENALTIES = ("l1", "l2", "linf", "squared")
DEFAULT_RTOL = 1e-6
_ANY_ROWS = {"ridge": False, "kappa": False}
#: Losses of ``fit`` and the options that each takes; true: it cannot do without.
LOSSES: dict[str, dict[str, bool]] = {
    "squared": _ANY_ROWS,
    "lasso": {"ridge": False, "kappa": True},
    "logistic": _ANY_ROWS,
    "multinomial": {"ridge": False},
    "poisson": _ANY_ROWS,
    "huber": {"delta": True, **_ANY_ROWS},
    "pseudohuber": {"delta": True, **_ANY_ROWS},
    "absolute": _ANY_ROWS,
    "quantile": {"level": True, **_ANY_ROWS},
    "hinge": _ANY_ROWS,
    "point": {},
}

#: Losses of rows in tables that are read piece by piece, see `gtvcvx.distributed.Tables`.
ROW_LOSSES = (
    *("squared", "logistic", "poisson", "huber", "pseudohuber", "absolute", "quantile", "hinge"),
)
PARTITIONERS = ("auto", "metis", "order", "blocks")
#: Who starts the workers of a distributed run, see `gtvcvx.distributed.engines`.
ENGINES = ("local", "mpi", "ray")


class ArgumentParser(argparse.ArgumentParser):
    """Parser without abbreviations whose usage errors take one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **options})

    def error(self, message: str) -> NoReturn:
        """End with status 2 after one line on standard error."""
        text = " ".join(message.split())
        self.exit(BAD_INPUT, f"{self.prog}: error: {text} (see {self.prog} --help)\n")


def command_parser(
    commands: Any, name: str, summary: str, description: str, module: str
) -> ArgumentParser:
    """Add a command with the options that all commands have.

    Parameters
    ----------
    commands
        Where argparse keeps them.
    name, summary, description : str
    module : str
        Module whose function ``run`` is the command; it is loaded when that is called.
    """

    def run(args: Namespace) -> int:
        return int(import_module(module).run(args))

    parser: ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(parser=parser, run=run)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print no report and no progress, only errors (and the JSON, with --json)",
    )
    return parser


def positive(text: str) -> float:
    """Read a positive finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError(f"a positive finite number is expected, got {text!r}")
    return value


def nonnegative(text: str) -> float:
    """Read a finite number that is not negative."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"a finite number >= 0 is expected, got {text!r}")
    return value


def positive_int(text: str) -> int:
    """Read a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"a positive integer is expected, got {text!r}")
    return value


def count(text: str) -> int:
    """Read an integer that is not negative."""
    return seed(text)


def folds(text: str) -> int:
    """Read a number of folds."""
    number = positive_int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"at least 2 folds are expected, got {text!r}")
    return number


def seed(text: str) -> int:
    """Read a seed, an integer that is not negative."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"an integer >= 0 is expected, got {text!r}")
    return int(text)


def share(text: str) -> float:
    """Read a number between 0 and 1."""
    value = positive(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"a number between 0 and 1 is expected, got {text!r}")
    return value


def probability(text: str) -> float:
    """Read a number from 0 to 1, both included."""
    value = nonnegative(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"a probability is expected, got {text!r}")
    return value


def grid(text: str) -> int | list[float]:
    """Read how many values of lambda there are to be, or the values, separated by commas."""
    if "," in text:
        return [positive(part) for part in text.split(",")]
    number = positive_int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(
            f"at least 2 values, or values separated by commas, are expected, got {text!r}"
        )
    return number


def penalty(text: str) -> str | Penalty:
    """Read the name of a penalty, or pnorm:P."""
    if text in PENALTIES:
        return text
    if not text.startswith("pnorm:"):
        names = ", ".join(PENALTIES)
        raise argparse.ArgumentTypeError(f"one of {names} or pnorm:P is expected, got {text!r}")
    from gtvcvx.penalties import PNorm  # with NumPy

    try:
        return PNorm(float(text.removeprefix("pnorm:")))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None
