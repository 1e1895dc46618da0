"""``gtvcvx report``: a solution, its certificate and pictures as one HTML page."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

import verify
from gtvcvx.cli import _html as html
from gtvcvx.cli import _html_proof
from gtvcvx.cli import _html_sections as sections
from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._html_federated import federated_section
from gtvcvx.cli._loading import check_outputs, load_problem, load_run, load_solution
from gtvcvx.cli._proof import certificate_data, exact_pair, exit_status, rounded_up
from gtvcvx.cli._report import counted, emit, entry, working
from gtvcvx.federated import SavedRun
from gtvcvx.files._atomic import atomic_write
from gtvcvx.plotting import plot_convergence, plot_gaps, plot_graph
from gtvcvx.plotting._canvas import require_matplotlib
from gtvcvx.plotting._layout import layout
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

# Larger graphs give pictures that show nothing, slowly.
MOST_NODES, MOST_EDGES = 20_000, 150_000
_COEFFICIENT_PICTURES = 2
_SHORTEST_NUMBER = 8  # characters of a flow, "0x0p0" with quotes and a comma


def run(args: Namespace) -> int:
    """Load, prove, draw, write, report."""
    stem = args.solution.removesuffix(".npz")
    problem_path = args.problem or f"{stem}.problem.npz"
    output = args.output or f"{stem}.html"
    files = {"SOLUTION": args.solution, "--problem": problem_path}
    if args.certificate is not None:
        files["--certificate"] = args.certificate
    for path in args.federated:
        if f"--federated {path}" in files:
            raise ValueError(f"--federated: {path} is given twice")
        files[f"--federated {path}"] = path
    check_outputs({"--output": output}, files)
    try:
        require_matplotlib()
    except ImportError as error:
        raise ValueError(str(error)) from None
    if args.problem is None and not os.path.exists(problem_path):
        raise ValueError(f"--problem: {problem_path} is not there, name the file of the problem")
    with working(args, "reading"):
        problem = load_problem(problem_path)
        solution = load_solution(args.solution, problem, problem_path)
        runs = {path: load_run(path, problem, problem_path) for path in args.federated}
    content = _content(args, problem, solution)
    with working(args, "drawing"):
        page = _page(args, content, problem_path, runs)
    with working(args, "writing"), atomic_write(output) as file:
        file.write(page)
    proof = content.proof
    lines = [entry("Certificate", f"{proof['status']}: {proof['reason']}")]
    if sections.is_finite(proof["rel_gap"]):
        lines.append(entry("", f"relative gap at most {rounded_up(proof['rel_gap'])}"))
    lines.append(entry("Written", output))
    emit(args, lines, {"certificate": proof, "written": {"output": output}})
    return exit_status(proof["status"])


def _content(args: Namespace, problem: GTVProblem, solution: Solution) -> sections.Content:
    """Check the certificate that is given, or build one."""
    if args.certificate is not None:
        with working(args, "checking"):
            proof = _checked(args.certificate, problem, solution, args.rtol)
        node, edge = solution.node_gaps, solution.edge_gaps
        text = _embeddable(args.certificate)
        return sections.Content(problem, solution, proof, *_finite(node, edge), "the solver", text)
    with working(args, "certifying"):
        certificate = verify.certify(
            problem.to_data(), *exact_pair(solution), args.rtol or DEFAULT_RTOL, search=False
        )
    proof = certificate_data(certificate)
    shares = _finite(certificate.node_gaps, certificate.edge_gaps)
    text = _text(certificate, problem)
    return sections.Content(problem, solution, proof, *shares, "the certificate", text)


def _text(certificate: verify.Certificate, problem: GTVProblem) -> str | None:
    """Return the document as text, unless its flows alone are too many to be embedded."""
    if problem.graph.n_edges * problem.dim * _SHORTEST_NUMBER > _html_proof.MOST_CHARACTERS:
        return None
    return json.dumps(certificate.document, separators=(",", ":"), allow_nan=False)


def _embeddable(path: str) -> str | None:
    """Return the text of a certificate file as it is, if it has the data in it."""
    with open(path, "rb") as file:
        try:
            text = file.read().decode("utf-8")
            return text if json.loads(text).get("data") is not None else None
        except (ValueError, AttributeError, RecursionError):
            return None


def _finite(node: Any, edge: Any) -> tuple[Any, Any]:
    finite = np.isfinite(node).all() and np.isfinite(edge).all()
    return (node, edge) if finite else (None, None)


def _checked(
    path: str, problem: GTVProblem, solution: Solution, rtol: float | None
) -> Mapping[str, Any]:
    """Let the kernel judge a certificate file that is about this problem and this point."""
    proof = verify.check(path, problem.to_data(), rtol or DEFAULT_RTOL).to_json()
    proved = proof["gap"] is not None
    if proof["status"] == "CERTIFIED" and not proved:
        raise ValueError(f"--certificate: {path} is not about a solution but about a partition")
    if proved and not np.array_equal(_point(path), solution.w):
        raise ValueError(f"--certificate: {path} is about another point than SOLUTION")
    return {**proof, "exact": proved}


def _point(path: str) -> Any:
    """Return the point of a certificate that the kernel has read, rounded to floats."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["w"]
    except UnicodeDecodeError:
        raise ValueError(f"--certificate: {path}: a report takes certificates as JSON") from None
    try:
        return np.array([[_rounded(x) for x in row] for row in rows])
    except OverflowError:  # no point of floats
        return None


def _rounded(number: str | float) -> float:
    """Return the float nearest to a number of a certificate, verify/SCHEMA.md section 2."""
    if not isinstance(number, str):
        return float(number)
    numerator, slash, denominator = number.partition("/")
    if not slash:
        return float.fromhex(number)
    return float(Fraction(int(numerator, 16), int(denominator, 16)))


def _page(
    args: Namespace,
    content: sections.Content,
    problem_path: str,
    runs: Mapping[str, SavedRun],
) -> str:
    title = args.title or f"Solution {os.path.basename(args.solution)}"
    certificate = args.certificate or "certificate.json"
    how = f"To check it: gtvcvx check {certificate}, or python -I -m verify check {certificate}."
    if args.certificate is None:
        how = (
            f"To have it as a file: gtvcvx certify {problem_path} {args.solution} "
            f"-o {certificate}. {how}"
        )
    files = {"Solution": args.solution, "Problem": problem_path}
    if args.certificate is not None:
        files["Certificate"] = args.certificate
    files |= {f"Federated run {k}": path for k, path in enumerate(args.federated, 1)}
    graph = _GraphPictures(content)
    tools, scripts = _html_proof.tools(content.certificate, args.rtol or DEFAULT_RTOL)
    clusters, found = sections.clusters_section(content)
    return html.page(
        title,
        [
            sections.proof_section(content, tools, how),
            sections.problem_section(content),
            html.section("The graph and its clusters", *graph.clusters()),
            clusters,
            sections.gaps_section(content, graph.gaps()),
            sections.coefficients_section(
                content, found, args.rows, graph.coefficients(), args.solution
            ),
            html.section("Convergence", *_convergence(content.solution)),
            federated_section(runs, content.problem, content.solution),
            sections.versions_section(files),
        ],
        scripts,
    )


class _GraphPictures:
    """Pictures of one graph, with every node at the same place in all of them."""

    def __init__(self, content: sections.Content) -> None:
        graph = content.problem.graph
        self._content = content
        self._drawn = graph.n_nodes <= MOST_NODES and graph.n_edges <= MOST_EDGES
        if self._drawn:
            clusters = content.solution.clusters()
            self._places = layout(graph.n_nodes, graph.edges, clusters)

    def clusters(self) -> list[str]:
        """Return the picture of the clusters, or a note that says why there is none."""
        if not self._drawn:
            return [
                html.paragraph(
                    f"The graph is not drawn: it has more than {counted(MOST_NODES, 'node')} or "
                    f"{counted(MOST_EDGES, 'edge')}.",
                    "note",
                )
            ]
        caption = (
            "The wider an edge, the larger its flow; the darker, the larger the share of its "
            "capacity that the flow takes. Only saturated edges can join different clusters. "
            "Places of the nodes have no meaning."
        )
        return [html.picture(self._graph("cluster"), caption)]

    def gaps(self) -> list[str]:
        """Return pictures of the shares in the gap."""
        content = self._content
        if content.node_gaps is None:
            return []
        bars = plot_gaps(content.solution, certificate=content)
        pictures = [html.picture(bars, "The largest shares in the duality gap.")]
        if self._drawn:
            pictures.append(html.picture(self._graph("gap"), "Where these shares are."))
        return pictures

    def coefficients(self) -> list[str]:
        """Return pictures of the first coefficients."""
        if not self._drawn:
            return []
        caption = (
            "Coefficient {} of each node; the width of an edge is the flow of this coordinate, "
            "arrows (in small graphs) show its direction, from smaller to larger values."
        )
        names = self._content.names[:_COEFFICIENT_PICTURES]
        return [html.picture(self._graph(k), caption.format(name)) for k, name in enumerate(names)]

    def _graph(self, by: str | int) -> Any:
        content = self._content
        return plot_graph(
            content.solution, content.problem, by, positions=self._places, certificate=content
        )


def _convergence(solution: Solution) -> list[str]:
    """Return pictures of the history, or what there is to say instead."""
    if not solution.history:
        return [html.paragraph("The solver kept no history.")]
    last, checks = solution.history[-1], len(solution.history)
    times = "once" if checks == 1 else f"{checks} times, the last time"
    text = (
        f"The gap was checked {times} after {counted(last.n_iter, 'iteration')} and "
        f"{last.seconds:.3g} s: value {last.value:.12g}, dual value {last.dual_value:.12g}, "
        f"gap {last.gap:.3g}."
    )
    if checks == 1:
        return [html.paragraph(text)]
    gap = plot_convergence(solution, "gap")
    bounds = plot_convergence(solution, "bounds", over="seconds")
    return [
        html.paragraph(text),
        html.picture(gap, "The gap at each check."),
        html.picture(bounds, "The bounds between which the optimum lies."),
    ]
