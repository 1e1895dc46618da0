"""[nLasso] Table 1: label errors of Algorithm 1, linear regression and a decision tree.

Two clusters of 150 nodes, p_out 1e-3, lambda 1e-3, 500 iterations. The table prints errors at the
30 nodes with known labels ("train") and at the 270 others ("test"). A tree has no weights to be
compared, so that errors can only be those of labels. Regression and tree are fitted to all known
points at once, without the graph; the tree has depth 2 and the regression an intercept, as in the
authors' notebook, since the paper does not say.

Beside them stand the certified optimum, and what no run of 500 iterations from zero can go below.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from nlasso._limits import least_label_errors
from nlasso._setting import (
    GIVEN,
    ITERATIONS,
    LAM,
    P_OUT,
    READINGS,
    Array,
    Network,
    algorithm1,
    draw,
    optimum,
)
from numpy.typing import ArrayLike
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from gtvcvx.experiments import Experiment, Outcome, Row, Study, Verdict, gap_text, proved_gap

PRINTED = {
    "Algorithm 1": (1.7e-6, 1.8e-6),
    "linear regression": (4.04, 4.51),
    "decision tree": (4.21, 4.87),
}
SIDES = ("train", "test")
TREE_DEPTH = 2
# Errors of 1e-6 depend on the draw by factors: one of ten is an order of magnitude.
FACTOR = 10.0


def like_a_draw(printed: float, ours: ArrayLike) -> Verdict:
    """REPRODUCED where the printed value is within two deviations of the mean of our draws.

    A single draw, which has no deviation, may be off by a third, which is what two are of twenty.
    """
    values = np.asarray(ours, dtype=float)
    far = 2.0 * values.std(ddof=1) if values.size > 1 else values[0] / 3.0
    near = abs(printed - values.mean()) <= far
    return Verdict.REPRODUCED if near else Verdict.NOT_REPRODUCED


def same_size(printed: float, ours: ArrayLike) -> bool:
    """Whether a printed error and the mean of ours differ by a factor of at most ten."""
    ratio = float(np.mean(np.asarray(ours, dtype=float))) / printed
    return 1.0 / FACTOR <= ratio <= FACTOR


def of_algorithm1(printed: float, ours: ArrayLike, least: ArrayLike) -> Verdict:
    """REPRODUCED within a factor of ten; CANNOT HOLD where all draws have a larger lower bound."""
    if same_size(printed, ours):
        return Verdict.REPRODUCED
    excluded = printed < np.min(np.asarray(least, dtype=float))
    return Verdict.CANNOT_HOLD if excluded else Verdict.NOT_REPRODUCED


def of_solution(printed: float, solved: ArrayLike) -> Verdict:
    """REPRODUCED UNDER ANOTHER READING where the optimum has the printed error, up to ten times."""
    return Verdict.OTHER_READING if same_size(printed, solved) else Verdict.NOT_REPRODUCED


def pooled_errors(net: Network, regressor: LinearRegression | DecisionTreeRegressor) -> Array:
    """Compute errors of a regressor that is fitted to all known points at once."""
    X, y, known = net.data.X, net.data.y, net.data.labelled
    regressor.fit(X[known].reshape(-1, X.shape[2]), y[known].ravel())
    predictions = regressor.predict(X.reshape(-1, X.shape[2])).reshape(y.shape)
    return np.array(net.means((predictions - y) ** 2))


def cell(seed: int, nodes: int, summed: bool) -> dict[str, ArrayLike]:
    """Compute all errors (train, test) of one draw."""
    net = draw(seed, P_OUT, nodes=nodes, summed=summed)
    problem = net.problem(LAM)
    w = algorithm1(problem, [ITERATIONS])[ITERATIONS]
    solved = optimum(problem)
    tree = DecisionTreeRegressor(max_depth=TREE_DEPTH, random_state=seed)
    return {
        "Algorithm 1": net.label_errors(w),
        "linear regression": pooled_errors(net, LinearRegression()),
        "decision tree": pooled_errors(net, tree),
        "optimum": net.label_errors(solved.w),
        "least": least_label_errors(net, LAM, ITERATIONS),
        "(24)": [net.error(w), net.error(solved.w)],
        "reached": np.abs(w[~net.data.labelled]).max(),
        "gap": proved_gap(problem, w, solution=solved),
        "solved": proved_gap(problem, solved.w, solution=solved),
    }


def rows(of: Callable[[str], Array]) -> list[Row]:
    """Fill the table; ``of`` gives an entry of the cells of all seeds."""
    printed = PRINTED["Algorithm 1"]
    ours, solved, least = (of(name).T for name in ("Algorithm 1", "optimum", "least"))
    bound = f"from zero no run of {ITERATIONS} iterations has less than"
    quality = "the printed number is the quality of the solution, not of the printed run"
    out = [
        Row(
            f"Algorithm 1, {side}",
            printed[k],
            ours[k],
            solved[k],
            of_algorithm1(printed[k], ours[k], least[k]),
            f"{bound} {least[k].min():.2g}, in the easiest of our draws",
        )
        for k, side in enumerate(SIDES)
    ]
    out += [
        Row(
            f"the same, solved, {side}",
            printed[k],
            solved[k],
            solved[k],
            of_solution(printed[k], solved[k]),
            quality,
        )
        for k, side in enumerate(SIDES)
    ]
    for name in list(PRINTED)[1:]:
        values = of(name).T
        out += [baseline(name, s, PRINTED[name][k], values[k]) for k, s in enumerate(SIDES)]
    return [*out, _error_row(of("(24)"))]


def baseline(name: str, side: str, printed: float, ours: Array) -> Row:
    """Compare a method that does not look at the graph."""
    reason = f"our draws have {ours.min():.2f} to {ours.max():.2f}; the graph has no part in it"
    return Row(f"{name}, {side}", printed, ours, None, like_a_draw(printed, ours), reason)


def _error_row(errors: Array) -> Row:
    reason = "squared distance of weights instead of labels, as in Figure 2"
    name = "Algorithm 1, error (24)"
    return Row(name, "not given", errors[:, 0], errors[:, 1], None, reason)


def run(study: Study) -> Outcome:
    """Draw networks, and average over them."""
    nodes = study.choose(tiny=100, default=300, paper=300)
    summed = study.reading == "notebook"
    cells = [
        study.cell(f"seed={seed}", lambda seed=seed: cell(seed, nodes, summed))
        for seed in study.seeds
    ]

    def of(name: str) -> Array:
        return np.array([found[name] for found in cells])

    return Outcome(
        rows=rows(of),
        panels=[],
        setting=GIVEN
        | {
            "p_out, lambda, iterations": f"given: {P_OUT}, {LAM}, {ITERATIONS}",
            "measure": "not given: ours is the mean squared error of labels",
            "baselines": f"not given: ours are a regression with intercept, a tree of depth "
            f"{TREE_DEPTH}, fitted to all known points at once",
            "runs": f"not given: ours are {len(study.seeds)}",
        },
        notes=[
            f"After {ITERATIONS} iterations the largest entry of w at a node without known labels "
            f"is {of('reached').max():.3f}; the speed limit is {ITERATIONS * LAM:g}, the true "
            "entries are 2 and -2.",
            f"Optimum: {gap_text(of('solved'))}. "
            f"Algorithm 1 after {ITERATIONS} iterations: {gap_text(of('gap'))}.",
        ],
        measure="mean squared error of labels",
    )


EXPERIMENT = Experiment(
    name="nlasso-table-1",
    paper="nLasso",
    item="Table 1",
    title="Label errors of network Lasso, linear regression and a decision tree",
    run=run,
    readings=READINGS,
    seeds=5,
    paper_seeds=20,
    remark="The row of Algorithm 1 should read: the solution of the network Lasso. 500 iterations "
    "from zero cannot come near it at lambda 1e-3.",
)
