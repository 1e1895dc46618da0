"""``gtvcvx fit``: from CSV files to a certified solution and its clusters."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import replace
from typing import Any

import verify
from gtvcvx.cli import _fit_cv, _fit_report
from gtvcvx.cli._arguments import (
    DEFAULT_RTOL,
    ArgumentParser,
    check_outputs,
    command_parser,
    folds,
    nonnegative,
    penalty,
    positive,
    positive_int,
)
from gtvcvx.cli._clusters import (
    Clusters,
    find_clusters,
    write_coefficients,
    write_partition,
)
from gtvcvx.cli._design import Design, read_design
from gtvcvx.cli._proof import certificate_data, certificate_lines, certify, exit_status, rounded_up
from gtvcvx.cli._report import emit, entry, working
from gtvcvx.solution import Solution

# The solver stops a little below the tolerance, so that rounding outwards in the certificate
# cannot cost the verdict.
_SOLVER_SHARE = 0.9
# The methods that do not stop at a tolerance of their own.
_NEED_RTOL = ("AUTO", "PDHG")

_DESCRIPTION = """\
Fit one linear model per node, y = <x, w_i>, by GTV minimization:

  minimize  sum_i (1/m_i) ||X_i w_i - y_i||^2  +  lam sum_{i,j} A_ij phi(w_i - w_j)

EDGES is a CSV file of two node columns and an optional weight column. DATA is a CSV file with a
header, one row a data point: the node column, the target column, and feature columns, which are
used in file order and as they are. A node without rows, or whose target cells are empty, is
unlabelled: it gets its parameters from its neighbours. lam is given, or chosen by cross-validation
(--cv).

The solution is written to SOLUTION, and the problem beside it (see --problem), which is what
'gtvcvx certify' and 'gtvcvx well-connected' read. Exit status 0 if the solution is certified.
Ctrl-C ends the iteration: the best solution so far is certified and written."""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = command_parser(commands, "fit", "solve from CSV files", _DESCRIPTION)
    parser.set_defaults(run=run)
    _add_files(parser)
    _add_model(parser)
    _fit_cv.add_arguments(parser)
    _add_solver(parser)
    _add_output(parser)


def _add_files(parser: ArgumentParser) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("--edges", required=True, metavar="EDGES", help="edge list, CSV")
    files.add_argument("--data", required=True, metavar="DATA", help="data points, CSV")
    files.add_argument("--node", required=True, metavar="NAME", help="node column of DATA")
    files.add_argument("--target", required=True, metavar="NAME", help="target column of DATA")
    files.add_argument(
        "--features",
        nargs="+",
        metavar="NAME",
        help="feature columns of DATA (default: all but the node and the target column)",
    )
    files.add_argument(
        "--isolated",
        action="store_true",
        help="take nodes of DATA that EDGES does not name as nodes without neighbours "
        "(default: an error, because it is often a misspelling)",
    )


def _add_model(parser: ArgumentParser) -> None:
    model = parser.add_argument_group("model")
    choice = model.add_mutually_exclusive_group(required=True)
    choice.add_argument("--lam", type=positive, help="lambda, > 0")
    choice.add_argument(
        "--cv",
        type=folds,
        metavar="K",
        help="choose lambda by K-fold cross-validation, see below",
    )
    model.add_argument(
        "--penalty",
        type=penalty,
        default="l2",
        metavar="PHI",
        help="l2 (default), l1, linf, squared (half the squared norm) or pnorm:P with P >= 1 "
        "(for which there is no exact certificate unless P is 1, 2 or inf)",
    )
    model.add_argument("--intercept", action="store_true", help="add a column of ones, the last")
    model.add_argument(
        "--standardize",
        action="store_true",
        help="scale the feature columns to mean 0 and variance 1 over all rows; a constant column "
        "is left as it is; the coefficients are those of the scaled features, and mean and scale "
        "are kept in the solution's info['standardized']",
    )


def _add_solver(parser: ArgumentParser) -> None:
    solver = parser.add_argument_group("solver")
    solver.add_argument(
        "--solver",
        default="AUTO",
        metavar="NAME",
        help="AUTO (default), PDHG (Algorithm 1 of the paper), or a conic solver of CVXPY such as "
        "CLARABEL",
    )
    solver.add_argument(
        "--rtol",
        type=positive,
        help=f"relative gap to reach and to certify (default: {DEFAULT_RTOL:g}; a conic solver "
        "keeps its own tolerance unless this is given)",
    )
    solver.add_argument(
        "--atol",
        type=nonnegative,
        help="gap that will do whatever the objective is (default: RTOL); 0 for a gap relative to "
        "the objective alone. What is certified is relative to max(1, |objective|) all the same",
    )
    solver.add_argument("--max-iter", type=positive_int, metavar="N", help="iteration limit")
    solver.add_argument(
        "--time-limit",
        type=positive,
        metavar="SECONDS",
        help="time limit of the solve, or of all of a cross-validation, which then leaves out the "
        "values of lambda that some fold did not reach",
    )


def _add_output(parser: ArgumentParser) -> None:
    output = parser.add_argument_group("output")
    output.add_argument("-o", "--output", required=True, metavar="SOLUTION", help="solution, npz")
    output.add_argument(
        "--problem",
        metavar="FILE",
        help="problem, npz (default: beside the solution, solution.problem.npz for solution.npz)",
    )
    output.add_argument(
        "--coefficients", metavar="FILE", help="CSV of node, cluster and coefficients"
    )
    output.add_argument(
        "--clusters",
        metavar="FILE",
        help="CSV of node and cluster, for 'gtvcvx well-connected --partition'",
    )


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
    solution.info.update(design.info())
    clusters = find_clusters(solution)
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
        entry("Written", ", ".join(path for path in written.values() if path)),
    ]
    data = {
        **_fit_report.problem_data(design),
        "cross_validation": _fit_cv.data(args, design, chosen) if chosen is not None else None,
        **_fit_report.solution_data(design, solution),
        "certificate": certificate_data(certificate),
        "clusters": clusters.data(),
        "written": {argument.removeprefix("--"): path for argument, path in written.items()},
    }
    emit(args, lines, data)
    return exit_status(certificate.status)


def _certify(
    args: Namespace, design: Design, solution: Solution, rtol: float
) -> verify.Certificate:
    """Certify to the tolerance asked for or, if the solver stopped before it, what it reached.

    A tolerance that the solution is known to miss would have the certifier solve the problem anew.
    """
    reached = solution.rel_gap
    missed = rtol < reached < math.inf
    try:
        certificate = certify(args, design.problem, solution, 2.0 * reached if missed else rtol)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted during certification; the solution is in {args.output}"
        ) from None
    if certificate.status != "CERTIFIED" or certificate.rel_gap <= rtol:
        return certificate
    proved = rounded_up(certificate.rel_gap)
    reason = f"relative gap {proved} is proved, but {rtol:g} was asked for"
    return replace(certificate, status="UNPROVED", reason=reason, rtol=rtol)


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
        write_coefficients(args.coefficients, args.node, design.features, solution, clusters.labels)
    if args.clusters:
        write_partition(args.clusters, args.node, solution, clusters.labels)
