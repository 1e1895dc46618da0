"""``gtvcvx report``: read, prove, draw, write."""

from __future__ import annotations

import os
import platform
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._loading import check_outputs, load_path, load_problem, load_run, load_solution
from gtvcvx.cli._proof import exit_status, rounded_up
from gtvcvx.cli._report import counted, emit, entry, working
from gtvcvx.cli.report import _along_lambda, _certificate
from gtvcvx.cli.report._areas import Areas, maps, read_areas
from gtvcvx.cli.report._content import Content
from gtvcvx.cli.report._embedded import embedded
from gtvcvx.cli.report._federated import federated
from gtvcvx.cli.report._gaps import gaps
from gtvcvx.cli.report._held_out import HeldOut, held_out
from gtvcvx.cli.report._nodes import cluster_section, node_section
from gtvcvx.cli.report._page import render, source
from gtvcvx.cli.report._pictures import GraphPictures, history
from gtvcvx.cli.report._problem import Facts, is_finite, losses, penalty, problem_facts, proof_facts
from gtvcvx.federated import SavedRun
from gtvcvx.files._atomic import atomic_write
from gtvcvx.path import LambdaPath
from gtvcvx.plotting._canvas import require_matplotlib

_PACKAGES = ("gtvcvx", "numpy", "scipy", "cvxpy", "matplotlib")
_LOOKS = {"CERTIFIED": "proved", "REFUTED": "refuted"}


@dataclass(frozen=True)
class _Read:
    """What was read besides the problem and its solution."""

    runs: Mapping[str, SavedRun]
    path: LambdaPath | None
    areas: Areas | None
    problem_path: str


def run(args: Namespace) -> int:
    """Load, prove, draw, write, report."""
    stem = args.solution.removesuffix(".npz")
    problem_path = args.problem or f"{stem}.problem.npz"
    output = args.output or f"{stem}.html"
    check_outputs({"--output": output}, _inputs(args, problem_path))
    try:
        require_matplotlib()
    except ImportError as error:
        raise ValueError(str(error)) from None
    if args.problem is None and not os.path.exists(problem_path):
        raise ValueError(f"--problem: {problem_path} is not there, name the file of the problem")
    content, read = _read(args, problem_path)
    errors = held_out(content, args.solution, args.held_out)
    with working(args, "drawing"):
        page = _page(args, content, read, errors)
    with working(args, "writing"), atomic_write(output) as file:
        file.write(page)
    proof = content.proof
    lines = [entry("Certificate", f"{proof['status']}: {proof['reason']}")]
    if is_finite(proof["rel_gap"]):
        lines.append(entry("", f"relative gap at most {rounded_up(proof['rel_gap'])}"))
    if errors is not None:
        lines.append(entry("Held out", errors.headline))
    lines.append(entry("Written", output))
    emit(args, lines, {"certificate": proof, "written": {"output": output}})
    return exit_status(proof["status"])


def _inputs(args: Namespace, problem_path: str) -> dict[str, str]:
    """Return the input files by argument."""
    files = {"SOLUTION": args.solution, "--problem": problem_path}
    for name in ("certificate", "held_out", "path", "areas"):
        if getattr(args, name) is not None:
            files[f"--{name.replace('_', '-')}"] = getattr(args, name)
    for path in args.federated:
        if f"--federated {path}" in files:
            raise ValueError(f"--federated: {path} is given twice")
        files[f"--federated {path}"] = path
    return files


def _read(args: Namespace, problem_path: str) -> tuple[Content, _Read]:
    """Load all files, and check the certificate that is given or build one."""
    with working(args, "reading"):
        problem = load_problem(problem_path)
        solution = load_solution(args.solution, problem, problem_path)
        runs = {path: load_run(path, problem, problem_path) for path in args.federated}
        path = None if args.path is None else load_path(args.path, problem, problem_path)
        areas = None if args.areas is None else read_areas(args.areas, problem.graph.nodes)
    read = _Read(runs, path, areas, problem_path)
    if args.certificate is None:
        with working(args, "certifying"):
            return _certificate.built(problem, solution, args.rtol), read
    with working(args, "checking"):
        return _certificate.given(args.certificate, problem, solution, args.rtol), read


def _page(args: Namespace, content: Content, read: _Read, errors: HeldOut | None) -> str:
    graph = GraphPictures(content)
    of_clusters, of_coefficients = maps(content, read.areas)
    proof = embedded(content.certificate, args.rtol or DEFAULT_RTOL)
    convergence, courses = history(content.solution)
    sections: dict[str, Any] = {
        "summary": _summary(content, errors),
        "not_drawn": graph.why_not,
        "cluster_pictures": [*of_clusters, *graph.clusters()],
        "clusters": cluster_section(content),
        "coefficient_pictures": [*of_coefficients, *graph.coefficients()],
        "nodes": node_section(content, args.rows, args.solution),
        "held_out": errors,
        "path_pictures": _along_lambda.pictures(content, read.path),
        "verdict": content.proof,
        "look": _LOOKS.get(content.proof["status"], "unproved"),
        "proof_facts": proof_facts(content),
        "proof": proof,
        "how_to_check": _how_to_check(args, read.problem_path),
        "gaps": gaps(content),
        "gap_pictures": graph.gaps(),
        "problem_facts": problem_facts(content),
        "convergence": convergence,
        "convergence_pictures": courses,
        "federated": federated(read.runs, content.problem, content.solution),
        "files": _files(args, read.problem_path),
    }
    title = args.title or f"Solution {os.path.basename(args.solution)}"
    return render(title, sections, [source("find_nodes.js"), *proof.scripts])


def _summary(content: Content, errors: HeldOut | None) -> Facts:
    """Return what a reader wants to know first, in a line each."""
    problem, proof = content.problem, content.proof
    sizes = content.clusters.sizes
    found = f"{counted(len(sizes), 'cluster')} among {counted(len(content.labels), 'node')}"
    rows = [
        (
            "Found",
            f"{found}, the largest of {max(sizes)}",
        ),
        ("Model", f"{'; '.join(losses(problem))}; penalty {penalty(problem)}"),
    ]
    if errors is not None:
        rows.append(("Held-out error", errors.headline))
    bound = ""
    if is_finite(proof["rel_gap"]):
        bound = f", relative gap at most {rounded_up(proof['rel_gap'])}"
    return [*rows, ("Proof", f"{proof['status']}{bound}")]


def _how_to_check(args: Namespace, problem_path: str) -> str:
    certificate = args.certificate or "certificate.json"
    how = f"To check it: gtvcvx check {certificate}, or python -I -m verify check {certificate}."
    if args.certificate is not None:
        return how
    made = f"gtvcvx certify {problem_path} {args.solution} -o {certificate}"
    return f"To have it as a file: {made}. {how}"


def _files(args: Namespace, problem_path: str) -> Facts:
    """Return the files that the report was made from, and versions."""
    named = {
        "Solution": args.solution,
        "Problem": problem_path,
        "Certificate": args.certificate,
        "Path": args.path,
        "Held-out data": args.held_out,
        "Areas": args.areas,
    }
    rows = [(name, path) for name, path in named.items() if path is not None]
    rows += [(f"Federated run {k}", path) for k, path in enumerate(args.federated, 1)]
    packages = ", ".join(f"{name} {import_module(name).__version__}" for name in _PACKAGES)
    return [*rows, ("Versions", f"{packages}, Python {platform.python_version()}")]
