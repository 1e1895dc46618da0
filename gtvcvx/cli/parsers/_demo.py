"""Arguments of ``gtvcvx demo``."""

from __future__ import annotations

from typing import Any

from gtvcvx.cli._arguments import command_parser

_DESCRIPTION = """\
Solve two embedded instances with an exact solver (CLARABEL) and with the fast one (AUTO), certify
both solutions, and check partitions: per-capita income of the US states 1929-2009, and a stochastic
block model with planted clusters.

Exit status 0 if all solutions are certified and the planted partition is proved well-connected."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    command_parser(commands, "demo", "embedded instances", _DESCRIPTION, "gtvcvx.cli._demo")
