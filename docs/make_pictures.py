"""Draw what pages show, from real solves: ``python docs/make_pictures.py`` in a checkout.

Writes docs/pictures/tutorial-*.png, pictures that the tutorial's own blocks draw, and overview.png,
of README.md and the start page: trends of income of the US states, each fitted to four years of its
own, and then with their neighbours; and the errors of both, and of one trend for all, on the years
that nobody was shown. All are in the repository, to be seen wherever pages are read.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import gtvcvx as gtv
import verify
from gtvcvx.datasets import load_us_income

FOLDER = Path(__file__).parent / "pictures"
YEARS, SEED = 4, 0
SIZE, DOTS = (12.0, 3.0), 110  # inches; dots an inch, for a page 900 pixels wide on fine screens
MAP = "RdBu_r"  # of signed values: white is zero

FloatArray = NDArray[np.float64]


class Few:
    """A few years of each state for the fits, the others for the errors."""

    def __init__(self) -> None:
        data = load_us_income()
        self._X, self._y = data.trend_regression()
        order = np.argsort(np.random.default_rng(SEED).random(self._y.shape), axis=1)
        shown, self._unseen = order[:, :YEARS], order[:, YEARS:]
        self.X = np.take_along_axis(self._X, shown[:, :, None], axis=1)
        self.y = np.take_along_axis(self._y, shown, axis=1)
        problem = gtv.GTVProblem(data.graph(), gtv.SquaredLoss.stack(self.X, self.y), penalty="l2")
        chosen = gtv.cross_validate(problem, cv=YEARS, n_lams=12, verbose=False)
        self.problem = problem.with_lam(chosen.lam)

    @property
    def unseen(self) -> int:
        """Number of the years of a state that no fit has seen."""
        return int(self._unseen.shape[1])

    def error(self, w: FloatArray) -> float:
        """Root mean squared error of models w (n, 2) on the unseen years."""
        missed = np.einsum("nyd,nd->ny", self._X, w) - self._y
        return float(np.sqrt(np.mean(np.take_along_axis(missed, self._unseen, axis=1) ** 2)))

    def pooled(self) -> FloatArray:
        """One model for all states, (n, 2)."""
        w, *_ = np.linalg.lstsq(self.X.reshape(-1, 2), self.y.ravel())
        return np.tile(w, (len(self.y), 1))


def draw_states(
    ax: Any, graph: gtv.EmpiricalGraph, slope: FloatArray, limits: tuple[float, float], title: str
) -> Any:
    """Draw the states as dots, coloured by slope; return what a colour bar is made of."""
    places = graph.positions
    for i, j in graph.edges:
        ax.plot(*places[[i, j]].T, color="0.8", linewidth=1, zorder=1)
    low, high = limits
    dots = ax.scatter(
        *places.T, c=slope, s=90, cmap=MAP, vmin=low, vmax=high, edgecolors="0.4", zorder=2
    )
    ax.set_title(title, fontsize=11)
    ax.set_aspect("equal")
    ax.axis("off")
    return dots


def draw_errors(ax: Any, errors: dict[str, float], title: str) -> None:
    """Draw a bar for each error."""
    names = list(errors)[::-1]
    bars = ax.barh(names, [errors[name] for name in names], color=("#228833", "#bbbbbb", "#bbbbbb"))
    ax.bar_label(bars, fmt="%.3f", padding=3)
    ax.set_title(title, fontsize=11)
    ax.set_xlim(right=1.2 * max(errors.values()))
    ax.set_xticks([])
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)


def overview() -> Figure:
    """Return the picture of the start page."""
    few = Few()
    problem = few.problem
    alone = problem.losses.minimizer(problem.graph.n_nodes)
    solution = problem.solve(rtol=1e-8)
    certificate = verify.certify(problem, solution.w, solution.u, rtol=1e-6)
    figure = Figure(figsize=SIZE, layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1.2, 0.8))
    shown = {f"each state alone, {YEARS} years of data": alone, "with its neighbours": solution.w}
    for ax, (title, w) in zip((left, middle), shown.items(), strict=True):
        dots = draw_states(ax, problem.graph, w[:, 1], (-0.4, 0.4), title)
    bar = figure.colorbar(dots, ax=[left, middle], shrink=0.75, extend="both")
    bar.set_label("trend of relative income")
    errors = {
        "one model\nfor all": few.error(few.pooled()),
        "each alone": few.error(alone),
        f"neighbours\n{certificate.status}": few.error(solution.w),
    }
    draw_errors(right, errors, f"error on the other {few.unseen} years")
    return figure


def tutorial(folder: Path) -> None:
    """Run the tutorial and keep the pictures that the page shows."""
    sys.path.append(str(FOLDER.parents[1] / "tests"))
    from _documents import run_page  # not a package: found by the line above

    page = "tutorial.md"
    shown = set(re.findall(r"\(pictures/tutorial-(\w+)\.png\)", (FOLDER.parent / page).read_text()))
    with tempfile.TemporaryDirectory() as scratch:
        run_page(page, Path(scratch))
        for name in sorted(shown):
            shutil.copy(Path(scratch) / f"{name}.png", folder / f"tutorial-{name}.png")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pictures into the folder given, docs/pictures by default."""
    given = sys.argv[1:] if arguments is None else arguments
    folder = Path(given[0]) if given else FOLDER
    folder.mkdir(exist_ok=True)
    overview().savefig(folder / "overview.png", dpi=DOTS)
    tutorial(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
