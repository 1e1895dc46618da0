"""Multipliers from flow conservation at the nodes, against linear programs."""

from __future__ import annotations

import numpy as np
import pytest
from _plain_instances import KINKED, Data, instance, solve
from scipy.optimize import linprog

from verify.certificates._node_multipliers import node_multipliers
from verify.certificates._repair import anchored
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
