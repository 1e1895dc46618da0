"""Least congestion of scalar flows against enumeration and linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from verify.partitions.recovery._scalar_congestion import least_congestion


def balance(edges: np.ndarray, flow: np.ndarray, n: int) -> np.ndarray:
    out = np.zeros(n)
    np.add.at(out, edges[:, 0], flow)
    np.subtract.at(out, edges[:, 1], flow)
    return out


@pytest.mark.parametrize("with_fixed", [False, True])
def test_linear_programming_agrees(with_fixed: bool) -> None:
    rng = np.random.default_rng(int(with_fixed))
    infeasible = 0
    for _ in range(60):
        n = int(rng.integers(2, 9))
        i, j = np.triu_indices(n, 1)
        keep = (rng.random(len(i)) < 0.4) | (j == i + 1)
        edges = np.stack([i[keep], j[keep]], axis=1)
        m = len(edges)
        weights = rng.uniform(0.5, 2.0, m)
        fixed = np.full(m, np.nan)
        if with_fixed:
            chosen = rng.random(m) < 0.5
            fixed[chosen] = rng.choice([0.0, 0.5], chosen.sum())
        supply = rng.standard_normal(n)
        supply -= supply.mean()
        incidence = np.zeros((m, n))
        incidence[np.arange(m), edges[:, 0]] = 1.0
        incidence[np.arange(m), edges[:, 1]] = -1.0
        ordinary = np.isnan(fixed)
        limits = np.where(ordinary, 0.0, np.nan_to_num(fixed))
        slope = np.where(ordinary, weights, 0.0)[:, None]
        eye = np.eye(m)
        lp = linprog(
            np.append(np.zeros(m), 1.0),
            A_ub=np.block([[eye, -slope], [-eye, -slope]]),
            b_ub=np.concatenate([limits, limits]),
            A_eq=np.hstack([incidence.T, np.zeros((n, 1))]),
            b_eq=supply,
            bounds=[(None, None)] * m + [(0, None)],
        )
        found = least_congestion(edges, weights, fixed, supply)
        if lp.status == 2:
            infeasible += 1
            assert found.t == np.inf
            continue
        assert found.t == pytest.approx(lp.fun, rel=1e-9, abs=1e-9)
        assert balance(edges, found.flow, n) == pytest.approx(supply, abs=1e-12)
        limit = np.where(ordinary, found.t * weights, fixed)
        assert (np.abs(found.flow) <= limit * (1 + 1e-12) + 1e-12).all()
        inside, crossing = found.tight, found.tight[edges[:, 0]] != found.tight[edges[:, 1]]
        if found.t > 0:
            pushed = supply[inside].sum() - fixed[crossing & ~ordinary].sum()
            assert found.t == pytest.approx(pushed / weights[crossing & ordinary].sum(), rel=1e-12)
    assert (infeasible > 0) == with_fixed


def test_nothing_to_route() -> None:
    edges = np.array([[0, 1]])
    found = least_congestion(edges, np.ones(1), np.full(1, np.nan), np.zeros(2))
    assert found.t == 0.0
    assert found.flow.tolist() == [0.0]
