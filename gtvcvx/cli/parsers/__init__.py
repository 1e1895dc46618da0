"""The arguments of each command, apart from the command itself: help loads nothing else."""

from typing import Any

from gtvcvx.cli.parsers import (
    _certify,
    _check,
    _cluster,
    _demo,
    _federate,
    _fit,
    _path,
    _predict,
    _report,
    _shard,
    _solve_shards,
    _well_connected,
)


def add_parsers(commands: Any) -> None:
    """Add all commands, in the order in which help lists them."""
    for module in (
        *(_demo, _fit, _predict, _path, _cluster),
        *(_certify, _check, _report, _federate, _shard, _solve_shards, _well_connected),
    ):
        module.add_parser(commands)
