"""Multipliers from flow conservation at the nodes, against linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from _plain_instances import KINKED, Data, instance, solve
from scipy.optimize import linprog

from verify.certificates._node_multipliers import node_multipliers
from verify.certificates._repair import Repair, anchored
from verify.instance._blocks import Part
from verify.instance._constraints import Constraints
from verify.instance._functions import Piecewise
from verify.instance._instance import load


def _least_gap(parts: list[Part], w: np.ndarray, target: np.ndarray, i: int) -> float | None:
    """Return the least total gap of node i by linear programming; None if flow is not conserved."""
    cost, columns, bounds, constant = [], [], [], 0.0
    for part in parts:
        f, z = part.function, part.push(w)
        assert isinstance(f, Piecewise)
        assert not f.curved[(f.lo < f.hi)].any()
        for index in np.ndindex(part.shape):
            if part.node[index[0]] != i or f.lo[index] == f.hi[index]:
                continue
            t = z[index] - f.y[index]
            end = f.hi[index] if t > 0 else f.lo[index]
            constant += float(end * t) if t else 0.0
            cost.append(-t)
            columns.append(np.eye(part.d)[index[1]] if part.x is None else part.x[index])
            bounds.append((f.lo[index], f.hi[index]))
    found = linprog(cost, A_eq=np.array(columns).T, b_eq=target[i], bounds=bounds)
    return constant + float(found.fun) if found.success else None


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["absolute", "quantile", "hinge", "absolute l1", "quantile box"])
def test_multipliers_have_the_least_gap_at_any_point(kind: str, seed: int) -> None:
    """Piecewise linear losses: the node problem is a linear program."""
    rng = np.random.default_rng(seed)
    n, d, m = 10, int(rng.integers(1, 4)), 8
    node = np.repeat(np.arange(n), m)
    rows: Data = {"kind": kind.split()[0], "node": node, "X": rng.standard_normal((n * m, d)),
                  "y": rng.choice([-1.0, 1.0], n * m)}  # fmt: skip
    if rows["kind"] == "quantile":
        rows["level"] = rng.uniform(0.2, 0.8, n * m)
    terms = [rows]
    every = np.arange(n)
    if "l1" in kind:
        terms.append({"kind": "l1", "node": every, "kappa": rng.uniform(0, 1, (n, d))})
    if "box" in kind:
        upper = np.where(rng.random((n, d)) < 0.5, 0.4, np.inf)
        terms.append({"kind": "box", "node": every, "lower": np.full((n, d), -0.4), "upper": upper})
    data = {**instance(0, "point", "l2", "empty", n, d), "terms": terms}
    inst = load(data)
    w = np.round(4 * np.clip(rng.standard_normal((n, d)), -0.4, 0.4)) / 10  # some bounds reached
    target = 0.05 * rng.standard_normal((n, d))
    parts = [part for part in inst.parts if not part.equation]
    found = node_multipliers(parts, w, target, 1e-14)
    error = target - sum(p.pull(r) for p, r in zip(parts, found, strict=True))
    gap = sum(p.gaps(r, w) for p, r in zip(parts, found, strict=True))
    reached = 0
    for i in range(n):
        least = _least_gap(parts, w, target, i)
        if least is not None:
            reached += 1
            assert np.abs(error[i]).max() < 1e-9
            assert abs(gap[i] - least) < 1e-9
    assert reached >= n // 2


@pytest.mark.parametrize("kind", KINKED)
def test_multipliers_at_solutions_leave_no_gap(kind: str) -> None:
    data = instance(31, kind, "l2", "connected", 10, 3)
    inst = load(data)
    w, u = solve(data)
    w, _ = Constraints(inst).moved(w)
    parts, target = anchored(inst, w), -inst.divergence(u)
    found = node_multipliers(parts, w, target, 1e-13)
    error = target - sum((p.pull(r) for p, r in zip(parts, found, strict=True)), 0 * w)
    assert np.abs(error).max() < 1e-6
    gap = sum(p.gaps(r, w).sum() for p, r in zip(parts, found, strict=True) if not p.equation)
    assert 0 <= gap < 1e-7


@pytest.mark.parametrize("fixed", [False, True])
def test_sums_of_columns_in_different_units_leave_no_gap(fixed: bool) -> None:
    """A simplex beside rows of an intercept, a year and inhabitants, at its interior and its edge.

    In units in which columns are alike, the sum of the coordinates is nearly that of few of them.
    """
    rng = np.random.default_rng(3)
    n, m, d = 6, 9, 5
    X = rng.standard_normal((n * m, d)) * [0.0, 20.0, 1e5, 30.0, 1.0] + [
        1.0,
        1985.0,
        2e5,
        40.0,
        0.0,
    ]
    w = rng.dirichlet(np.ones(d), n)
    w[::2, 2] = 0.0
    w[:, 0] += 1.0 - w.sum(axis=1)
    node, every = np.repeat(np.arange(n), m), np.arange(n)
    y = np.einsum("rj,rj->r", X, w[node]) + rng.standard_normal(n * m)
    ends = np.where(np.arange(d) == 4, w, -np.inf), np.where(np.arange(d) == 4, w, np.inf)
    box = {"kind": "box", "node": every, "lower": ends[0], "upper": ends[1]}
    terms: list[Data] = [
        {"kind": "squared", "node": node, "X": X, "y": y},
        {"kind": "simplex", "node": every, "total": np.ones(n)},
    ]
    data = instance(0, "point", "l2", "empty", n, d) | {"terms": [*terms, *([box] * fixed)]}
    repair = Repair(load(data), w)
    parts, inst = repair.parts, repair.inst
    slopes = parts[0].pull(parts[0].slope(repair.w))
    # What presses where a coordinate is zero, and a multiplier of the sum.
    press = np.where((w == 0.0), -rng.random((n, d)), 0.0) + rng.standard_normal((n, 1)) * 1e4
    target = slopes + press / repair.units
    found = node_multipliers(parts, repair.w, target, 1e-13)
    size = np.abs(slopes).max() + 1e4
    error = target - sum((p.pull(r) for p, r in zip(parts, found, strict=True)), 0 * w)
    assert np.abs(error).max() <= 1e-9 * size
    pairs = zip(parts, found, strict=True)
    gap = sum(p.gaps(r, repair.w).sum() for p, r in pairs if not p.equation)
    assert 0.0 <= gap <= 1e-8 * inst.value(repair.w)


def test_no_more_rows_than_directions_leave_no_choice() -> None:
    """What rows decided for good take of a flow may be powers of ten above the slopes at w."""
    rng = np.random.default_rng(5)
    n, d = 8, 6
    node = np.repeat(np.arange(n), rng.integers(1, d, n))
    X = rng.standard_normal((len(node), d))
    y = rng.integers(0, 2, len(node)).astype(np.float64)
    terms = [{"kind": "logistic", "node": node, "X": X, "y": y}]
    inst = load({**instance(0, "point", "l2", "empty", n, d), "terms": terms})
    (part,) = inst.parts
    true = (1 - 2 * y) * 10.0 ** rng.uniform(-12, -1, len(node)) / np.bincount(node)[node]
    w = np.empty((n, d))
    for i in range(n):  # decided: slopes of 1e-39
        w[i] = np.linalg.lstsq(X[node == i], np.where(y[node == i] > 0, 90.0, -90.0), rcond=None)[0]
    (found,) = node_multipliers([part], w, part.pull(true), 1e-14)
    np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-15)


def test_rows_of_huge_units_do_not_keep_multipliers_of_coordinates_from_their_ends() -> None:
    """Nine rows of size 1e5 decide nine coordinates of 17; gaps were 1e4 times those of l1 terms.

    The zeros of w are those of a solver, 1e-8, and one coordinate is close to zero.
    """
    rng = np.random.default_rng(5)
    d, m, kappa = 17, 9, 1e-3
    decided = np.arange(d) < m
    w = np.where(decided, rng.uniform(0.003, 1, d) * rng.choice([-1, 1], d), 0.0)
    X = 1e5 * rng.standard_normal((m, d))
    r = rng.uniform(-1e-8, 1e-8, m)
    other = kappa * np.where(decided, np.sign(w), rng.uniform(-0.9, 0.9, d))
    w = np.where(decided, w, 1e-8 * rng.standard_normal(d))
    w[0] = 0.003 * np.sign(w[0])
    rows = {"kind": "absolute", "node": np.zeros(m, dtype=int), "X": X, "y": X @ w}
    l1 = {"kind": "l1", "node": np.arange(1), "kappa": np.full((1, d), kappa)}
    data = {**instance(0, "point", "l2", "empty", 1, d), "terms": [rows, l1]}
    parts, target = list(load(data).parts), (other + X.T @ r)[None]
    found = node_multipliers(parts, w[None], target, 1e-16)
    assert np.abs(sum(p.pull(r) for p, r in zip(parts, found, strict=True)) - target).max() < 1e-15
    gap = sum(p.gaps(r, w[None]).sum() for p, r in zip(parts, found, strict=True))
    known = sum(p.gaps(r, w[None]).sum() for p, r in zip(parts, [r, other[None]], strict=True))
    assert gap < 2 * known + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_what_a_ridge_does_beside_hinges_of_huge_features_is_not_lost(seed: int) -> None:
    """Five hinges at their margins and nine that are decided, beside 14 coordinates of a ridge.

    At the optimum, where no gap is left; rounding of the rows' curvatures left 1e-4.
    """
    rng = np.random.default_rng(seed)
    n, m, kinks, mu = 8, 14, 5, 0.01
    node = np.repeat(np.arange(n), m)
    X, y = 1e5 * rng.standard_normal((n * m, m)), rng.choice([-1.0, 1.0], n * m)
    at_margin = np.tile(np.arange(m) < kinks, n)
    margin = np.where(at_margin, 1.0, rng.uniform(-1.0, 3.0, n * m))
    w = np.array([np.linalg.solve(X[node == i], (y * margin)[node == i]) for i in range(n)])
    free = np.where(at_margin, rng.uniform(0.1, 0.9, n * m), np.where(margin < 1, 1.0, 0.0))
    terms: list[Data] = [
        {"kind": "hinge", "node": node, "X": X, "y": y},
        {"kind": "ridge", "node": np.arange(n), "mu": np.full(n, mu)},
    ]
    rows, ridge = load({**instance(0, "point", "l2", "empty", n, m), "terms": terms}).parts
    target = rows.pull(-y * free / m) + mu * w
    found = node_multipliers([rows, ridge], w, target, 1e-14)
    error = rows.pull(found[0]) + ridge.pull(found[1]) - target
    assert np.abs(error).max() < 1e-7
    assert rows.gaps(found[0], w).sum() + ridge.gaps(found[1], w).sum() < 1e-10


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("kind", ["poisson", "logistic"])
def test_rates_far_too_small_are_raised_though_nothing_shows_for_many_rounds(
    kind: str, d: int
) -> None:
    """E-fold a round, as far as curvatures tell: what is missing falls in the last ones alone.

    Rows of huge features, three at each node, cost next to nothing, so that solvers leave them far
    from where they would be: here w is so far off that a rate of one is e^-12.
    """
    rng = np.random.default_rng(3)
    n, m = 20, d + 2
    node = np.repeat(np.arange(n), m)
    X = 1e6 * rng.standard_normal((n * m, d))
    y = rng.integers(0, 2, n * m).astype(np.float64)
    (part,) = load(
        {
            **instance(0, "point", "l2", "empty", n, d),
            "terms": [{"kind": kind, "node": node, "X": X, "y": y}],
        }
    ).parts
    near = 1e-6 * rng.standard_normal((n, d))
    target = part.pull(part.function.slope(part.push(near)))
    away = rng.standard_normal((n, d))
    images = np.abs(part.push(away)).reshape(n, -1).max(axis=1)
    w = near + away * (12.0 / images)[:, None]
    (found,) = node_multipliers([part], w, target, 1e-14)
    missed = np.abs(part.pull(found) - target)
    assert (missed <= 1e-8 * part.pull_sizes(np.abs(found))).all()
