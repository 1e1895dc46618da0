"""Constants of Theorem 2 against exact rational arithmetic and known minimizers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from verify.partitions._data import read_partition, read_problem
from verify.partitions._local_losses import LocalLosses, expit
from verify.partitions.constants._rational import rational_constants
from verify.partitions.constants._theorem import theorem_constants


def regression(rng: np.random.Generator, n: int, d: int, norm: str, rows: int = 3) -> dict:
    node = np.repeat(np.arange(n), rows)
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": np.array([[i, i + 1] for i in range(n - 1)]),
        "weights": rng.uniform(0.5, 1.5, n - 1),
        "lam": 0.5,
        "penalty": {"kind": norm},
        "terms": [
            {
                "kind": "squared",
                "node": node,
                "X": rng.standard_normal((len(node), d)),
                "y": rng.standard_normal(len(node)),
            }
        ],
    }


@pytest.mark.parametrize(("norm", "d"), [("l1", 1), ("l2", 1), ("linf", 1), ("l1", 3), ("linf", 3)])
def test_enclosures_hold_the_rational_constants(norm: str, d: int) -> None:
    rng = np.random.default_rng(d)
    """(l2 in several dimensions is irrational; its eigenvalues have tests of their own.)"""
    data = read_problem(regression(rng, 12, d, norm))
    parts = read_partition([0] * 7 + [1] * 5, data.names)
    constants = theorem_constants(data, parts, LocalLosses(12, d, data.terms))
    for c, members in enumerate(parts.members):
        exact = rational_constants(data, members, norm)
        assert exact is not None
        assert (exact.alpha_lo, exact.beta_lo) == (exact.alpha_hi, exact.beta_hi)
        pairs = [(exact.alpha_lo, constants.alpha.lo[c], constants.alpha.hi[c])]
        for p, node in enumerate(members):
            pairs.append((exact.beta_lo[p], constants.beta.lo[node], constants.beta.hi[node]))
            pairs.append((exact.delta_lo[p], constants.delta.lo[node], constants.delta.hi[node]))
        for value, lo, hi in pairs:
            assert Fraction(float(lo)) <= value <= Fraction(float(hi))
            assert hi - lo <= 1e-10 * max(hi, 1.0)


def test_delta_of_l2_holds_the_gradient_at_the_minimizer() -> None:
    rng = np.random.default_rng(4)
    problem = regression(rng, 9, 3, "l2")
    data = read_problem(problem)
    parts = read_partition([0] * 9, data.names)
    constants = theorem_constants(data, parts, LocalLosses(9, 3, data.terms))
    x, y = problem["terms"][0]["X"], problem["terms"][0]["y"]
    center = np.linalg.lstsq(x, y, rcond=None)[0]
    gradient = 2 / 3 * (x * (x @ center - y)[:, None]).reshape(9, 3, 3).sum(axis=1)
    assert np.linalg.norm(gradient, axis=1) == pytest.approx(constants.delta.hi, rel=1e-10)
    assert (constants.delta.lo <= constants.delta.hi).all()


def test_logistic_with_ridge_has_true_constants() -> None:
    """Gradients of the logistic loss are beta-Lipschitz and the minimizer is found."""
    rng = np.random.default_rng(8)
    n, rows, d = 5, 6, 2
    node = np.repeat(np.arange(n), rows)
    x = 3 * rng.standard_normal((n * rows, d))
    y = (rng.random(n * rows) < 0.5).astype(float)
    terms = [
        {"kind": "logistic", "node": node, "X": x, "y": y},
        {"kind": "ridge", "node": np.arange(n), "mu": np.full(n, 0.01)},
    ]
    data = read_problem(
        regression(rng, n, d, "l2") | {"terms": terms},
    )
    losses = LocalLosses(n, d, data.terms)
    parts = read_partition([0] * n, data.names)
    constants = theorem_constants(data, parts, losses)
    assert constants.reasons == [""]
    assert constants.alpha.lo[0] == pytest.approx(0.05, rel=1e-12)
    w = constants.centers[0]
    slope = ((expit(x @ w) - y)[:, None] * x / rows).reshape(n, rows, d).sum(axis=1) + 0.01 * w
    assert np.abs(slope.sum(axis=0)).max() < 1e-13
    assert np.linalg.norm(slope, axis=1) == pytest.approx(constants.delta.hi, rel=1e-9)
    for _ in range(50):
        u, v = rng.standard_normal((2, d))
        jump = (
            losses.gradients(np.tile(u, (n, 1))).value - losses.gradients(np.tile(v, (n, 1))).value
        )
        assert (np.linalg.norm(jump, axis=1) <= constants.beta.hi * np.linalg.norm(u - v)).all()


def test_zero_losses_have_exactly_zero_constants() -> None:
    rng = np.random.default_rng(2)
    problem = regression(rng, 4, 2, "linf")
    term = problem["terms"][0]
    keep = term["node"] != 2
    problem["terms"] = [{k: v if k == "kind" else v[keep] for k, v in term.items()}]
    data = read_problem(problem)
    losses = LocalLosses(4, 2, data.terms)
    constants = theorem_constants(data, read_partition([0] * 4, data.names), losses)
    assert constants.beta.hi[2] == constants.delta.hi[2] == 0.0
    assert (np.delete(constants.delta.hi, 2) > 0).all()
