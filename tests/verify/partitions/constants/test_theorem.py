"""Constants of Theorem 2: enclosures against exact rational arithmetic and against sampling."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from verify.partitions._data import read_partition, read_problem
from verify.partitions._local_losses import LocalLosses, expit
from verify.partitions._rounding import (
    inverse,
    largest_eigenvalue,
    positive_definite,
    smallest_eigenvalue,
)
from verify.partitions.constants._enclosures import (
    NORMS,
    SIGN_DIMENSION,
    dual_norm,
    sign_vectors,
    smoothness,
    strong_convexity,
)
from verify.partitions.constants._rational import rational_constants
from verify.partitions.constants._theorem import theorem_constants

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def psd(rng: np.random.Generator, k: int, d: int, rank: int) -> np.ndarray:
    x = rng.standard_normal((k, rank, d))
    return np.einsum("kri,krj->kij", x, x)


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


@pytest.mark.parametrize("d", [1, 2, 5, 30])
def test_eigenvalue_enclosures_are_tight_and_hold_the_float_value(d: int) -> None:
    rng = np.random.default_rng(d)
    h = psd(rng, 40, d, d + 2)
    values = np.linalg.eigvalsh(h)
    for enclosure, exact in (
        (smallest_eigenvalue(h), values[:, 0]),
        (largest_eigenvalue(h), values[:, -1]),
    ):
        assert (enclosure.lo <= exact * (1 + 1e-12)).all()
        assert (enclosure.hi >= exact * (1 - 1e-12)).all()
        assert (enclosure.hi - enclosure.lo <= 1e-10 * values[:, -1]).all()


def test_positive_definiteness_is_claimed_only_when_true() -> None:
    """Exact rational elimination is the oracle on matrices within rounding of singular."""
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(200):
        d = int(rng.integers(1, 5))
        x = rng.integers(-3, 4, (d, d)).astype(float)
        matrix = x @ x.T + np.diag(rng.choice([0.0, 1e-17, 1e-15, 1e-3, -1e-16], d))
        claim = bool(positive_definite(matrix[None])[0])
        work = [[Fraction(v) for v in row] for row in matrix.tolist()]
        definite = True
        for i in range(d):
            if work[i][i] <= 0:
                definite = False
                break
            for k in range(i + 1, d):
                factor = work[k][i] / work[i][i]
                work[k] = [a - factor * b for a, b in zip(work[k], work[i], strict=True)]
        assert definite or not claim
        claims += claim
    assert claims > 50


def test_inverse_bound_covers_the_exact_inverse() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        x = rng.integers(-4, 5, (4, 3)).astype(float)
        h = x.T @ x + np.eye(3)
        approximate, bound = inverse(h[None], np.zeros(1))
        work = [[Fraction(v) for v in row] for row in h.tolist()]
        adjugate = [
            [
                (-1) ** (i + j)
                * (
                    work[(r := [k for k in range(3) if k != j])[0]][
                        (c := [k for k in range(3) if k != i])[0]
                    ]
                    * work[r[1]][c[1]]
                    - work[r[0]][c[1]] * work[r[1]][c[0]]
                )
                for j in range(3)
            ]
            for i in range(3)
        ]
        determinant = sum(work[0][j] * adjugate[j][0] for j in range(3))
        for i, j in itertools.product(range(3), range(3)):
            error = abs(adjugate[i][j] / determinant - Fraction(float(approximate[0, i, j])))
            assert error <= Fraction(float(bound[0]))
        assert bound[0] < 1e-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 4, SIGN_DIMENSION + 2])
def test_beta_bounds_the_hessian_in_the_operator_norm(norm: str, d: int) -> None:
    """||H v||_* <= beta ||v|| for many v, and nearly attained where the formula is exact."""
    rng = np.random.default_rng(d)
    h = psd(rng, 20, d, max(d // 2, 1))
    beta = smoothness(h, np.zeros(20), norm)
    v = np.concatenate([rng.standard_normal((4000, d)), np.eye(d), sign_vectors(min(d, 10))[:, :d]])
    images = np.einsum("kij,vj->kvi", h, v)
    ratio = (dual_norm(images, norm) / np.linalg.norm(v, ORDER[norm], axis=1)).max(axis=1)
    assert (ratio <= beta.hi * (1 + 1e-12)).all()
    assert (beta.lo <= beta.hi).all()
    if d <= 4:
        assert (ratio >= 0.9 * beta.lo).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 4, SIGN_DIMENSION + 2])
def test_alpha_is_a_modulus_of_convexity(norm: str, d: int) -> None:
    """v^T H v >= alpha ||v||^2 for many v, and nearly attained where the formula is exact."""
    rng = np.random.default_rng(d + 50)
    h = psd(rng, 20, d, d + 3)
    alpha = strong_convexity(h, np.zeros(20), norm)
    inverses = np.linalg.inv(h)
    worst = (
        np.concatenate([inverses @ s for s in sign_vectors(min(d, 8))[:, :, None]], axis=2)
        if (d <= 8)
        else inverses
    )
    v = np.concatenate(
        [
            np.broadcast_to(rng.standard_normal((3000, d)), (20, 3000, d)),
            worst.transpose(0, 2, 1),
            inverses,
        ],
        axis=1,
    )
    form = np.einsum("kvi,kij,kvj->kv", v, h, v)
    size = np.linalg.norm(v, ORDER[norm], axis=2)
    least = (form / size**2).min(axis=1)
    assert (alpha.lo > 0).all()
    assert (alpha.lo <= least * (1 + 1e-10)).all()
    assert (alpha.lo <= alpha.hi).all()
    if d <= 4:
        assert (least <= alpha.hi * (1.15 if norm == "l2" else 1 + 1e-9)).all()


def test_spectral_alpha_would_be_unsound_for_l1() -> None:
    h = np.diag([2.0, 2.0])[None]
    v = np.array([1.0, 1.0])
    spectral = strong_convexity(h, np.zeros(1), "l2").lo[0]
    own = strong_convexity(h, np.zeros(1), "l1").lo[0]
    form, size = v @ h[0] @ v, np.abs(v).sum()
    assert form < 0.9 * spectral * size**2
    assert form >= own * size**2


def test_singular_sums_have_alpha_zero() -> None:
    h = np.array([[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    for norm in NORMS:
        assert (strong_convexity(h, np.zeros(2), norm).lo <= 1e-200).all()


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
        pairs = [(exact.alpha, constants.alpha.lo[c], constants.alpha.hi[c])]
        for p, node in enumerate(members):
            pairs.append((exact.beta[p], constants.beta.lo[node], constants.beta.hi[node]))
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
