"""``gtvcvx fit``: from CSV files to a certified solution and its clusters."""

from __future__ import annotations

from argparse import Namespace

import verify
from gtvcvx.cli import _fit_cv, _fit_report
from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._clusters import (
    Clusters,
    find_clusters,
    write_coefficients,
    write_partition,
)
from gtvcvx.cli._design import Design, read_design
from gtvcvx.cli._loading import check_outputs
from gtvcvx.cli._proof import certificate_data, certificate_lines, certify_reached, exit_status
from gtvcvx.cli._report import emit, entry, working
from gtvcvx.solution import Solution

# The solver stops a little below the tolerance, so that rounding outwards in the certificate
# cannot cost the verdict.
_SOLVER_SHARE = 0.9
# The methods that do not stop at a tolerance of their own.
_NEED_RTOL = ("AUTO", "PDHG")


def run(args: Namespace) -> int:
    """Choose lambda if asked to, fit, write, certify, report."""
    _fit_cv.check(args)
    written = _outputs(args)
    rtol = args.rtol or DEFAULT_RTOL
    with working(args, "reading"):
        design = read_design(args)
    chosen = None
    if args.cv is not None:
        chosen = _fit_cv.cross_validate(args, design, _SOLVER_SHARE * rtol, _atol(args))
        design = design.with_lam(chosen.lam)
    solution = _solve(args, design) if chosen is None else chosen.solution
    solution.info.update(design.info_of(solution.w))
    if chosen is not None:
        solution.info["cross_validation"] = _fit_cv.summary(args, chosen)
    clusters = find_clusters(solution)
    original = _fit_report.Original.of(design, solution, clusters)
    # Written before the certificate is computed: an interrupt there costs only the verdict.
    _write(written, args, design, solution, clusters)
    certificate = _certify(args, design, solution, rtol)
    lines = [
        *_fit_report.problem_lines(design),
        *(_fit_cv.lines(args, chosen, rtol) if chosen is not None else []),
        *_fit_report.solution_lines(design, solution),
        *certificate_lines(certificate),
        entry("Clusters", str(len(clusters.members))),
        *clusters.lines(design.features),
        *(original.lines(clusters) if original is not None else []),
        entry("Written", ", ".join(path for path in written.values() if path)),
    ]
    data = {
        **_fit_report.problem_data(design),
        "cross_validation": _fit_cv.data(args, design, chosen) if chosen is not None else None,
        **_fit_report.solution_data(design, solution),
        "certificate": certificate_data(certificate),
        "clusters": clusters.data(),
        "original_units": original.data() if original is not None else None,
        "written": {argument.removeprefix("--"): path for argument, path in written.items()},
    }
    emit(args, lines, data)
    return exit_status(certificate.status)


def _certify(
    args: Namespace, design: Design, solution: Solution, rtol: float
) -> verify.Certificate:
    try:
        return certify_reached(args, design.problem, solution, rtol)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted during certification; the solution is in {args.output}"
        ) from None


def _outputs(args: Namespace) -> dict[str, str | None]:
    """Paths of all output files by argument, checked."""
    stem = args.output.removesuffix(".npz")
    outputs = {
        "--output": args.output,
        "--problem": args.problem or f"{stem}.problem.npz",
        "--coefficients": args.coefficients,
        "--clusters": args.clusters,
    }
    check_outputs(outputs, {"--edges": args.edges, "--data": args.data})
    return outputs


def _atol(args: Namespace) -> float | None:
    return None if args.atol is None else _SOLVER_SHARE * float(args.atol)


def _solve(args: Namespace, design: Design) -> Solution:
    rtol = args.rtol
    if rtol is None and args.solver.upper() in _NEED_RTOL:
        rtol = DEFAULT_RTOL
    return design.problem.solve(
        args.solver,
        rtol=None if rtol is None else _SOLVER_SHARE * rtol,
        max_iter=args.max_iter,
        time_limit=args.time_limit,
        atol=_atol(args),
        verbose=False if args.quiet else None,
    )


def _write(
    written: dict[str, str | None],
    args: Namespace,
    design: Design,
    solution: Solution,
    clusters: Clusters,
) -> None:
    design.problem.save(str(written["--problem"]))
    solution.save(str(written["--output"]))
    if args.coefficients:
        converted = design.in_original_units(solution.w)
        write_coefficients(
            args.coefficients, args.node, design.features, solution, clusters.labels, converted
        )
    if args.clusters:
        write_partition(args.clusters, args.node, solution, clusters.labels)
