"""``gtvcvx well-connected``: is a partition recovered, and does Theorem 2 say so."""

from __future__ import annotations

import json
import math
import sys
from argparse import Namespace
from dataclasses import replace
from typing import Any

import cvxpy as cp

import verify
from gtvcvx.cli._loading import check_outputs, load_problem, load_solution
from gtvcvx.cli._partition_picture import check_picture, write_picture
from gtvcvx.cli._report import counted, emit, entry, working
from gtvcvx.cli._status import NOT_PROVED, PROVED
from gtvcvx.files._atomic import atomic_write
from gtvcvx.files._tables import read_labels
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

SHOWN_CLUSTERS = 20


def run(args: Namespace) -> int:
    """Load, check, draw, report."""
    inputs = {"PROBLEM": args.problem, "--partition": args.partition}
    inputs |= {} if args.solution is None else {"--solution": args.solution}
    check_outputs({"--picture": args.picture, "--output": args.output}, inputs)
    if args.picture is not None:
        check_picture(args.picture)
    with working(args, "reading"):
        problem = load_problem(args.problem)
        labels = list(read_labels(args.partition, problem.graph.nodes).values())
    if args.picture is not None:
        check_picture(args.picture, problem)
    data, solution = problem.to_data(), _solution(args, problem)
    with working(args, "checking"):
        report = verify.well_connected(data, labels, solution)
    lines, result = _lines(report), report.to_dict()
    written: dict[str, str] = {}
    if args.output is not None:
        lines += ["", _save(report, args.output, written)]
    if args.recovery:
        with working(args, "testing recovery"):
            recovery = verify.recovers(data, labels)
        lines += ["", *str(recovery).splitlines()]
        result["recovery"] = recovery.to_dict()
        if recovery.slack >= 0.0:
            with working(args, "proving recovery"):
                proof = recovery.prove()
            lines += [f"  {line.strip()}" for line in str(proof).splitlines()]
            result["recovery"]["proof"] = proof.to_dict()
    if args.critical_lambda:
        with working(args, "bounding lambda"):
            critical = verify.critical_lambda(data, labels)
        lines += ["", *str(critical).splitlines()]
        result["critical_lambda"] = critical.to_dict()
    if args.picture is not None:
        with working(args, "drawing"):
            write_picture(args.picture, problem, labels, report, solution=solution)
        written["picture"] = args.picture
        lines += ["", entry("Written", args.picture)]
    emit(args, lines, result | ({"written": written} if written else {}))
    return PROVED if report.holds else NOT_PROVED


def _solution(args: Namespace, problem: GTVProblem) -> Solution | None:
    """Return the solution that is given, or found; None where none is to be found, or can be."""
    if args.solution is not None:
        return load_solution(args.solution, problem, args.problem)
    if args.no_solve:
        return None
    try:
        return problem.solve(verbose=False if args.quiet else None)
    except cp.error.SolverError as error:  # Theorem 2 can be checked all the same
        print(f"gtvcvx well-connected: warning: not solved: {error}", file=sys.stderr)
        return None


def _save(report: Any, path: str, written: dict[str, str]) -> str:
    """Write the proof if there is one; the line that says so."""
    try:
        if path.lower().endswith(".gtvc"):
            report.save(path)
        else:
            _save_json(report.document(), path)
    except ValueError as error:
        return entry("Not written", f"{path}: {error}")
    written["output"] = path
    return entry("Written", path)


def _save_json(document: Any, path: str) -> None:
    with atomic_write(path) as file:
        json.dump(document, file, separators=(",", ":"), allow_nan=False)


def _lines(report: Any) -> list[str]:
    """Return the verdict and the clusters, those that matter most first."""
    order = sorted(report.clusters.values(), key=lambda c: (c.holds, len(c.nodes) == 1, c.margin))
    shown = {cluster.label: cluster for cluster in order[:SHOWN_CLUSTERS]}
    lines = str(replace(report, clusters=shown)).splitlines()
    rest = order[SHOWN_CLUSTERS:]
    if rest:
        proved = sum(cluster.holds for cluster in rest)
        lines.append(f"... {counted(len(rest), 'cluster')} more, {proved} of them well-connected")
    if report.lam_min == 0.0:
        lines.append("all clusters are well-connected for every lambda")
    elif math.isfinite(report.lam_min):
        lines.append(f"all clusters are well-connected for every lambda > {report.lam_min:.6g}")
    else:
        lines.append("no lambda is known for which all clusters are well-connected")
    return lines
