"""Losses whose multipliers do not follow from w alone, and constraints: certified all the same."""

from __future__ import annotations

import os
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from _plain_instances import GRAPHS, KINKED, PENALTIES, Data, instance, solve

import verify
from verify.instance._constraints import Constraints
from verify.instance._instance import load

ROUNDS = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))


def _certified(data: Data, rtol: float = 1e-8) -> verify.Certificate:
    """Certify the solution with its flow, without any search, and then without the flow."""
    w, u = solve(data)
    alone = verify.certify(data, w, rtol=1e-6)
    assert alone.status == "CERTIFIED", alone
    certificate = verify.certify(data, w, u, rtol=rtol, search=False)
    assert certificate.status == "CERTIFIED", certificate
    assert 0 <= certificate.gap <= rtol * max(1, abs(certificate.upper))
    assert certificate.lower <= alone.upper
    assert alone.lower <= certificate.upper
    total = certificate.node_gaps.sum() + certificate.edge_gaps.sum()
    assert total == pytest.approx(certificate.gap, abs=1e-11 * max(1, abs(certificate.upper)))
    assert verify.optimality(data, w, u).holds(1e-5)
    return certificate


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("loss", KINKED)
def test_connected_graphs(loss: str, phi: str) -> None:
    _certified(instance(1, loss, phi, "connected", 10, 2))


@pytest.mark.parametrize("d", [1, 3, 4])
@pytest.mark.parametrize("loss", KINKED)
def test_other_dimensions(loss: str, d: int) -> None:
    _certified(instance(2, loss, PENALTIES[(d + KINKED.index(loss)) % 5], "connected", 9, d))


@pytest.mark.parametrize("kind", [g for g in GRAPHS if g != "connected"])
@pytest.mark.parametrize(
    "loss", ["absolute", "hinge_ridge", "box_lasso", "simplex", "huber", "pseudohuber"]
)
def test_other_graphs(loss: str, kind: str) -> None:
    phi = PENALTIES[(GRAPHS.index(kind) + KINKED.index(loss)) % len(PENALTIES)]
    _certified(instance(3, loss, phi, kind, 10, 2))


def _with_ties(seed: int) -> Data:
    """Return data of small integers: many kinks at once, equal bounds, rank-deficient rows."""
    rng = np.random.default_rng(seed)
    loss, phi = KINKED[seed % len(KINKED)], PENALTIES[(seed // 3) % 5]
    kind, d = GRAPHS[(seed // 2) % len(GRAPHS)], 1 + seed % 4
    n = int(rng.integers(2, 12))
    data = instance(seed, loss, phi, kind, n, d, lam=float(rng.choice([0.5, 1.0, 4.0])))
    data["weights"] = rng.integers(1, 3, len(data["weights"])).astype(float)
    for term in data["terms"]:
        shape = (len(term["node"]), d)
        if "X" in term:
            term["X"] = rng.integers(-1, 2, shape).astype(float)
        if term["kind"] in ("squared", "huber", "pseudohuber", "absolute", "quantile"):
            term["y"] = rng.integers(-2, 3, shape[0]).astype(float)
        if term["kind"] == "quantile":
            term["level"] = rng.choice([0.25, 0.5, 1 / 3], shape[0])
        if term["kind"] == "box":
            term["lower"] = np.where(np.isfinite(term["lower"]), -1.0, -np.inf)
            upper = rng.integers(-1, 2, shape)
            term["upper"] = np.where(np.isfinite(term["upper"]), upper, np.inf)
        if term["kind"] == "simplex":
            term["total"] = np.ones(shape[0])
        if term["kind"] == "l1":
            term["kappa"] = rng.integers(0, 2, shape) * 0.5
        if term["kind"] == "ridge":
            term["mu"] = rng.integers(0, 3, shape) * 0.5
    return data


@pytest.mark.parametrize("seed", range(60 * ROUNDS))
def test_ties(seed: int) -> None:
    data = _with_ties(seed)
    w, u = solve(data)
    certificate = verify.certify(data, w, u, rtol=1e-6, search=False)
    assert certificate.status == "CERTIFIED", certificate


@cache
def _solved(loss: str) -> tuple[Data, np.ndarray, np.ndarray, verify.Certificate]:
    """An instance, its solution, and the proof of it."""
    data = instance(4, loss, "l2", "connected", 10, 2)
    w, u = solve(data)
    return data, w, u, verify.certify(data, w, u, rtol=1e-8, search=False)


@pytest.mark.parametrize("size", [1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize("loss", KINKED)
def test_rough_pairs_have_bounds_as_good_as_they_are(loss: str, size: float) -> None:
    """No gap below the true suboptimality, and the bound is off by the order of the noise."""
    data, w, u, best = _solved(loss)
    assert best.status == "CERTIFIED"
    rng = np.random.default_rng(0)
    point = w + size * rng.standard_normal(w.shape)
    flow = u + size * rng.standard_normal(u.shape)
    rough = verify.certify(data, point, flow, rtol=1e-4, search=False)
    assert rough.lower <= best.upper
    assert rough.gap >= rough.upper - best.upper - 1e-15 * abs(rough.upper)
    assert best.lower - rough.lower <= 200 * size * max(1, abs(best.upper))


@pytest.mark.parametrize("loss", KINKED)
def test_wrong_points_are_refuted_with_a_witness(loss: str) -> None:
    data = instance(5, loss, "l1", "connected", 8, 2)
    w, u = solve(data)
    wrong = w + 0.1 * np.random.default_rng(0).standard_normal(w.shape)
    wrong, _ = Constraints(load(data)).moved(wrong)
    certificate = verify.certify(data, wrong, u, rtol=1e-6)
    assert certificate.status == "REFUTED"
    assert certificate.reason.startswith("w is not within rtol")
    assert certificate.gap > 0
    assert verify.check(certificate.document).status == "REFUTED"
    better = verify.certify(data, certificate.better, rtol=1e-6)
    assert better.status == "CERTIFIED"
    assert better.upper < certificate.upper
    assert not verify.optimality(data, wrong, u).holds(1e-5)
    noise = 0.1 * np.random.default_rng(1).standard_normal(u.shape)
    assert not verify.optimality(data, w, u + noise).holds(1e-5)


def test_multipliers_that_must_be_zero() -> None:
    """Counts of zero push w to infinity, where all their multipliers are zero exactly."""
    term: Data = {
        "kind": "poisson", "node": np.zeros(4, dtype=int), "y": np.array([0.0, 0.0, 3.0, 1.0]),
        "X": np.array([[-1.0, 1.0], [-1.0, 2.0], [1.0, 0.0], [1.0, 0.0]]),
    }  # fmt: skip
    data = {**instance(6, "point", "l2", "empty", 1, 2), "terms": [term]}
    w = np.array([[np.log(2.0), -40.0]])
    certificate = verify.certify(data, w, np.zeros((0, 2)), rtol=1e-9, search=False)
    assert certificate.status == "CERTIFIED"
    assert certificate.lower <= 0.5 * (2 - 2 * np.log(2)) <= certificate.upper


def test_hinges_without_a_ridge_are_flat_at_zero() -> None:
    """Separable: the optimum is zero with all margins kept, and no multiplier can be nonzero."""
    data = instance(7, "hinge_ridge", "l2", "connected", 8, 2)
    term = data["terms"][0]
    term["y"] = np.where(term["X"][:, 0] > 0, 1.0, -1.0)
    data["terms"] = [term]
    scale = 1.01 / np.abs(term["X"][:, 0]).min()
    w = np.tile([scale, 0.0], (8, 1))
    certificate = verify.certify(data, w, rtol=1e-9)
    assert (certificate.status, certificate.upper) == ("CERTIFIED", 0.0)
    assert verify.certify(data, 0 * w, rtol=1e-9).status == "REFUTED"


@pytest.mark.parametrize("lam", [1e-6, 1e3])
@pytest.mark.parametrize(
    "loss", ["absolute", "huber_ridge", "pseudohuber_ridge", "hinge_ridge", "box_lasso", "simplex"]
)
def test_small_and_large_lambda(loss: str, lam: float) -> None:
    data = instance(8, loss, "l2", "connected", 8, 2, lam=lam)
    w = np.array(np.broadcast_to(np.array([0.5, 0.5]), (8, 2)))
    w, _ = Constraints(load(data)).moved(w)
    refuted = verify.certify(data, w, rtol=1e-7)
    assert refuted.status == "REFUTED"
    assert verify.certify(data, refuted.better, rtol=1e-6).status == "CERTIFIED"


@pytest.mark.parametrize(
    "loss", ["absolute", "huber", "pseudohuber", "quantile", "hinge_ridge", "box_lasso"]
)
def test_huge_points_cause_no_warning(loss: str) -> None:
    data = instance(9, loss, "l2", "connected", 8, 2)
    w, u = solve(data)
    signs = np.sign(np.random.default_rng(0).standard_normal(w.shape))
    point, _ = Constraints(load(data)).moved(1e160 * signs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        certificate = verify.certify(data, point, u, rtol=1e-6)
        assert certificate.status == "REFUTED"
        assert verify.check(certificate.document).status == "REFUTED"
        assert verify.certify(data, point, u, search=False).status == "UNPROVED"


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize(
    "loss", ["absolute", "quantile", "huber_ridge", "pseudohuber_ridge", "box_lasso", "simplex"]
)
def test_units_of_the_data_do_not_matter(loss: str, scale: float) -> None:
    """Scaling w, y, bounds and totals scales the solution; nothing else may change."""
    data = instance(10, loss, "l2", "connected", 8, 2)
    for term in data["terms"]:
        for key in ("y", "delta", "lower", "upper", "total"):
            if key in term and not (key == "y" and term["kind"] == "hinge"):
                term[key] = term[key] * scale
        for key in ("kappa", "mu"):
            if key in term:
                term[key] = term[key] * (scale if key == "kappa" and _is_squared(data) else 1)
    if _is_squared(data):
        data["lam"] *= scale
    w, u = solve(data)
    assert verify.certify(data, w, u, rtol=1e-5, search=False).status == "CERTIFIED"


def _is_squared(data: Data) -> bool:
    return any(term["kind"] in ("squared", "huber", "pseudohuber") for term in data["terms"])


def test_report_of_a_certificate_of_every_kind(tmp_path: Any) -> None:
    data = instance(11, "every_kind", "l2", "connected", 9, 2)
    certificate = _certified(data)
    assert [r.shape for r in certificate.r] == [
        (len(t["node"]),) if "X" in t else (len(t["node"]), 2) for t in data["terms"]
    ]
    certificate.save(tmp_path / "c.json")
    result = verify.check(tmp_path / "c.json", data=data)
    assert (result.status, result.to_json()["upper"]) == ("CERTIFIED", certificate.upper)
