"""``gtvcvx solve-shards``: the default solver on shards, by several processes."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

import verify
from gtvcvx import distributed
from gtvcvx.cli._loading import check_outputs
from gtvcvx.cli._proof import exit_status, rounded_up
from gtvcvx.cli._report import counted, emit, entry, working
from gtvcvx.cli._status import NOT_PROVED, PROVED
from gtvcvx.distributed import Manifest, Run
from gtvcvx.distributed._efficiency import Expectation, expectation
from gtvcvx.distributed.engines import WorkerError, WorkerLostError, mpi_world

_WORKERS = 2
# As in ``fit``: rounding outwards in the certificate cannot cost the verdict.
_SOLVER_SHARE = 0.9
_REACHED = "optimal"


def run(args: Namespace) -> int:
    """Say what to expect, solve, collect, certify, report."""
    check_outputs({"--output": args.output, "--certificate": args.certificate}, {})
    if args.resume and args.checkpoint is None:
        raise ValueError("--resume: there is no --checkpoint to go on from")
    rank, there = mpi_world() if args.engine == "mpi" else (0, _WORKERS)
    workers = there if args.workers is None else args.workers
    expected = expectation(Manifest.load(args.folder), workers)
    if rank:
        args.json, args.quiet = False, True
    elif not args.json:
        emit(args, expected.lines(), {})
    try:
        return _run(args, expected, rank)
    except (WorkerError, WorkerLostError) as error:
        # Nothing that other arguments would have prevented.
        print(f"gtvcvx {args.command}: error: {error}", file=sys.stderr)
        return NOT_PROVED


def _run(args: Namespace, expected: Expectation, rank: int) -> int:
    found = _solved(args, expected)
    if args.output is not None and rank == 0:
        # Written before the certificate is: an interrupt there costs only the verdict.
        found.gather().save(args.output)
    result = None
    if args.certificate is not None:
        with working(args, "certifying"):
            result = found.certificate(args.certificate, args.rtol)
    if rank:
        return PROVED
    emit(args, _lines(args, found, result), _data(args, expected, found, result))
    if result is not None:
        return exit_status(result.status)
    return PROVED if found.status == _REACHED else NOT_PROVED


def _solved(args: Namespace, expected: Expectation) -> Run:
    return distributed.solve(
        args.folder,
        engine=args.engine,
        workers=expected.workers,
        rtol=_SOLVER_SHARE * args.rtol,
        max_iter=args.max_iter,
        time_limit=args.time_limit,
        checkpoint=args.checkpoint,
        every=args.every,
        resume=args.resume,
        verbose=False if args.quiet else None,
        timeout=args.timeout,
        replace=args.replace,
    )


def _lines(args: Namespace, found: Run, result: verify.Result | None) -> list[str]:
    lines = [
        entry(
            "Solved",
            f"{found.status.replace('_', ' ')}, {counted(found.n_iter, 'iteration')}, "
            f"{found.seconds:.3g} s, {counted(found.workers, 'worker')} ({args.engine})",
        ),
        entry("Value", f"{found.value:.12g}"),
        entry("Gap", f"{rounded_up(found.gap)}, relative {rounded_up(found.rel_gap)}"),
    ]
    if result is not None:
        lines.append(entry("Certificate", f"{result.status}: {result.reason}"))
    paths = [str(found.out), args.output, args.certificate]
    return [*lines, entry("Written", ", ".join(path for path in paths if path))]


def _data(
    args: Namespace, expected: Expectation, found: Run, result: verify.Result | None
) -> dict[str, Any]:
    return {
        "engine": args.engine,
        "workers": found.workers,
        "status": found.status,
        "iterations": found.n_iter,
        "seconds": found.seconds,
        "value": found.value,
        "dual_value": found.dual_value,
        "gap": found.gap,
        "rel_gap": found.rel_gap,
        **expected.data(),
        "certificate": None if result is None else result.to_json(),
        "written": {
            "parts": str(found.out),
            "output": args.output,
            "certificate": args.certificate,
        },
    }
