"""``gtvcvx well-connected``: does Theorem 2 say that a partition is recovered."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import replace
from typing import Any

import verify
from gtvcvx._csv import read_labels
from gtvcvx.cli._arguments import command_parser, load_problem
from gtvcvx.cli._report import NOT_PROVED, PROVED, counted, emit, working

SHOWN_CLUSTERS = 20

_DESCRIPTION = """\
Check whether every cluster of a partition is well-connected (Definition 1 of the paper). If so,
every solution of the problem is constant on each cluster (Theorem 2). The condition is sufficient,
not necessary: partitions that are recovered can fail it.

LABELS is a CSV file of two columns, node and cluster, that names every node of the problem once.

Exit status 0 if it is proved that all clusters are well-connected, 1 if not."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(
        commands, "well-connected", "check a partition of the nodes", _DESCRIPTION
    )
    parser.set_defaults(run=run)
    parser.add_argument("problem", metavar="PROBLEM", help="problem, npz, as 'fit' writes it")
    parser.add_argument(
        "--partition", required=True, metavar="LABELS", help="node and cluster of each, CSV"
    )


def run(args: Namespace) -> int:
    """Load, check, report."""
    with working(args, "reading"):
        problem = load_problem(args.problem)
        clusters = read_labels(args.partition, problem.graph.nodes)
    with working(args, "checking"):
        report = verify.well_connected(problem.to_data(), list(clusters.values()))
    emit(args, _lines(report), report.to_dict())
    return PROVED if report.holds else NOT_PROVED


def _lines(report: Any) -> list[str]:
    """Return the verdict and the clusters, those that matter most first."""
    order = sorted(report.clusters.values(), key=lambda c: (c.holds, len(c.nodes) == 1, c.margin))
    shown = {cluster.label: cluster for cluster in order[:SHOWN_CLUSTERS]}
    lines = str(replace(report, clusters=shown)).splitlines()
    rest = order[SHOWN_CLUSTERS:]
    if rest:
        proved = sum(cluster.holds for cluster in rest)
        lines.append(f"... {counted(len(rest), 'cluster')} more, {proved} of them well-connected")
    if math.isfinite(report.lam_min):
        lines.append(f"all clusters are well-connected for every lambda > {report.lam_min:.6g}")
    else:
        lines.append("no lambda is known for which all clusters are well-connected")
    return lines
