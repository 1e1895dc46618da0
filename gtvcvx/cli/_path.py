"""``gtvcvx path``: the solutions of a fit for many values of lambda."""

from __future__ import annotations

import csv
from argparse import Namespace
from typing import Any

from gtvcvx.cli import _fit_report
from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._design import Design, read_design
from gtvcvx.cli._loading import check_outputs
from gtvcvx.cli._partition_picture import check_picture
from gtvcvx.cli._report import counted, emit, entry, table, working
from gtvcvx.cli._status import NOT_PROVED, PROVED
from gtvcvx.files._atomic import atomic_write
from gtvcvx.path import LambdaPath, lambda_path
from gtvcvx.plotting import plot_path, save_figure

_PANELS = 3  # coefficients that are drawn, beside the number of clusters


def run(args: Namespace) -> int:
    """Read, solve, write, draw, report."""
    if args.lambda_ratio is not None and isinstance(args.lams, list):
        raise ValueError("--lambda-ratio: not with the values of --lams")
    outputs = {"--output": args.output, "--picture": args.picture}
    check_outputs(outputs, {"--edges": args.edges, "--data": args.data})
    if args.picture is not None:
        check_picture(args.picture)
    args.lam = None
    with working(args, "reading"):
        design = read_design(args)
    rtol = args.rtol or DEFAULT_RTOL
    path = _solve(args, design, rtol)
    rows = _rows(design, path)
    with working(args, "writing"):
        _write(args.output, path, rows)
    if args.picture is not None:
        with working(args, "drawing"):
            save_figure(_figure(design, path), args.picture)
    atol = rtol if args.atol is None else args.atol
    missed = [not s.gap <= max(atol, rtol * abs(s.value)) for s in path]
    complete = path.status == "complete" and not any(missed)
    lines = [
        *_fit_report.problem_lines(design, lam=False),
        *table(list(rows[0]), [[f"{x:.6g}" for x in row.values()] for row in rows]),
        *_notes(path, sum(missed), rtol),
        entry("Written", ", ".join(name for name in outputs.values() if name)),
    ]
    data = {
        **_fit_report.problem_data(design, lam=False),
        "path": {"status": path.status, "missing": path.missing, "nested": path.nested},
        "rows": rows,
        "written": {name.removeprefix("--"): name_given for name, name_given in outputs.items()},
    }
    emit(args, lines, data)
    return PROVED if complete else NOT_PROVED


def _solve(args: Namespace, design: Design, rtol: float) -> LambdaPath:
    given = isinstance(args.lams, list)
    return lambda_path(
        design.problem,
        lams=args.lams if given else None,
        n_lams=len(args.lams) if given else args.lams,
        min_ratio=args.lambda_ratio or 1e-3,
        rtol=rtol,
        atol=args.atol,
        solver=args.solver,
        max_iter=args.max_iter,
        time_limit=args.time_limit,
        verbose=False if args.quiet else None,
    )


def _rows(design: Design, path: LambdaPath) -> list[dict[str, Any]]:
    """Return what there is to say about each value of lambda."""
    rows = []
    for lam, clusters, solution in zip(path.lams, path.n_clusters, path, strict=True):
        quality = design.fit_quality(solution.w)
        if "mean_squared_error" in quality:
            quality.pop("mean_loss")
        rows.append(
            {
                "lambda": float(lam),
                "clusters": int(clusters),
                **{name.replace("_", " "): value for name, value in quality.items()},
                "objective": solution.value,
                "relative gap": solution.rel_gap,
            }
        )
    return rows


def _notes(path: LambdaPath, missed: int, rtol: float) -> list[str]:
    notes = []
    if path.status != "complete":
        reason = {"time_limit": "the time limit"}.get(path.status, "Ctrl-C")
        left = counted(len(path.missing), "smaller value")
        notes.append(entry("", f"{reason} has ended the path, {left} of lambda left out"))
    if missed:
        notes.append(entry("", f"{counted(missed, 'solution')} missed the gap, rtol {rtol:g}"))
    return notes


def _write(output: str, path: LambdaPath, rows: list[dict[str, Any]]) -> None:
    if not output.lower().endswith(".csv"):
        path.save(output)
        return
    with atomic_write(output) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(row.values() for row in rows)


def _figure(design: Design, path: LambdaPath) -> Any:
    """Draw the first coefficients and the number of clusters, side by side."""
    # Loaded here: check_picture has told whether it is there.
    from matplotlib.figure import Figure

    shown = design.features[:_PANELS]
    figure = Figure(figsize=(4.6 * (len(shown) + 1), 4.2), layout="constrained")
    axes = figure.subplots(1, len(shown) + 1, squeeze=False)[0]
    for k, name in enumerate(shown):
        plot_path(path, "coefficients", coefficient=k, ax=axes[k])
        axes[k].set_title(name)
        axes[k].set_ylabel("coefficient of each node")
    plot_path(path, "clusters", ax=axes[-1])
    return figure
