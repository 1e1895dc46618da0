"""``gtvcvx shard``: a problem, or two tables, cut into shards."""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from gtvcvx import distributed
from gtvcvx.cli._report import counted, emit, entry, working
from gtvcvx.cli._status import PROVED
from gtvcvx.distributed._efficiency import Expectation, expectation

_TABLES = ("edges", "data", "node", "target")
_MODEL = ("features", "lam", "penalty", "loss", "delta", "level")


def run(args: Namespace) -> int:
    """Read, cut, write, report."""
    source = _source(args)
    _check_output(args.output)
    if args.workers is not None and args.workers > args.shards:
        raise ValueError(f"--workers: at most --shards, {args.shards}, got {args.workers}")
    with working(args, "cutting"):
        manifest = distributed.shard(source, args.output, args.shards, partitioner=args.partitioner)
    expected = expectation(manifest, args.workers or manifest.n_shards)
    emit(args, _lines(args, expected), _data(args, expected))
    return PROVED


def _source(args: Namespace) -> str | distributed.Tables:
    """Return the problem file or the tables; both, neither and half of the tables are refused."""
    given = [name for name in (*_TABLES, *_MODEL) if getattr(args, name) is not None]
    given += ["intercept"] if args.intercept else []
    if args.problem is not None:
        if given:
            raise ValueError(f"--{given[0]}: PROBLEM is given, which says all of that")
        return str(args.problem)
    missing = [name for name in (*_TABLES, "lam") if getattr(args, name) is None]
    if missing:
        what = "PROBLEM or " if not given else ""
        raise ValueError(f"{what}{', '.join(f'--{name}' for name in missing)}: needed")
    _check_parameters(args)
    options = {name: getattr(args, name) for name in _MODEL if getattr(args, name) is not None}
    tables = {name: getattr(args, name) for name in _TABLES}
    return distributed.Tables(**tables, intercept=args.intercept, **options)


def _check_parameters(args: Namespace) -> None:
    """Refuse parameters of other losses, and losses without theirs."""
    for name, losses in (("delta", ("huber", "pseudohuber")), ("level", ("quantile",))):
        given, needed = getattr(args, name) is not None, args.loss in losses
        if given and not needed:
            raise ValueError(f"--{name}: --loss {args.loss or 'squared'} does not take it")
        if needed and not given:
            raise ValueError(f"--{name}: --loss {args.loss} needs it")


def _check_output(path: str) -> None:
    if os.path.exists(path) and not os.path.isdir(path):
        raise ValueError(f"--output: {path} exists and is not a folder")


def _lines(args: Namespace, expected: Expectation) -> list[str]:
    m = expected.manifest
    return [
        entry(
            "Problem",
            f"{counted(m.n_nodes, 'node')}, {counted(m.n_edges, 'edge')}, "
            f"{counted(m.dim, 'coefficient')} each; penalty {m.as_penalty().name}, "
            f"lambda = {m.lam:g}",
        ),
        *expected.lines(),
        entry("Written", args.output),
    ]


def _data(args: Namespace, expected: Expectation) -> dict[str, Any]:
    m = expected.manifest
    return {
        "nodes": m.n_nodes,
        "edges": m.n_edges,
        "dim": m.dim,
        "shards": m.n_shards,
        "partitioner": m.partitioner,
        **expected.data(),
        "written": {"output": args.output},
    }
