"""Certificates in many dimensions: no matrix for a node whose losses are sums over coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from verify.certificates import _coordinates, _repair
from verify.certificates._node_curvature import NodeCurvature
from verify.instance._blocks import Blocks
from verify.instance._instance import load

N, D = 9, 40


def problem(penalty: str = "l2", rows: int = 0) -> gtv.GTVProblem:
    """Points in unlike units, some with l1 and ridge terms or bounds, some nodes without any."""
    rng = np.random.default_rng(0)
    points = 10.0 ** rng.uniform(-3, 3, D) * rng.standard_normal((N, D))
    losses: list[Any] = [gtv.PointLoss(point) for point in points]
    losses[1] = losses[1] + gtv.Ridge(0.1) + gtv.L1(0.2)
    losses[2] = losses[2] + gtv.Box(-1.0, 1.0)
    losses[3] = gtv.ZeroLoss()
    if rows:
        losses[4] = gtv.LassoLoss(rng.standard_normal((rows, D)), np.ones(rows), 0.1)
    return gtv.GTVProblem(gtv.generators.grid(3, 3), losses, penalty, 0.5)


@pytest.fixture
def no_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("a matrix for each node")

    monkeypatch.setattr(Blocks, "hessian", refused)


@pytest.mark.usefixtures("no_matrices")
@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "squared"])
def test_points_are_certified_without_a_matrix(
    penalty: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_repair, "MOST_ENTRIES", 0)
    model = problem(penalty)
    solution = model.solve(rtol=1e-8)
    found = verify.certify(model, solution.w, solution.u, search=False)
    assert found.status == "CERTIFIED", found.reason


def test_many_rows_in_too_many_dimensions_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = problem(rows=D // 2)
    solution = model.solve(rtol=1e-8)
    assert verify.certify(model, solution.w, solution.u, search=False).status == "CERTIFIED"
    monkeypatch.setattr(_repair, "MOST_ENTRIES", N * D**2 - 1)
    found = verify.certify(model, solution.w, solution.u, search=False)
    assert found.status == "UNPROVED"
    assert r"a matrix (d, d) for each node takes too much memory" in found.reason


def test_coordinates_say_what_matrices_say(monkeypatch: pytest.MonkeyPatch) -> None:
    model = problem()
    w = model.solve(rtol=1e-8).w
    inst = load(model).rescaled()
    r = [np.full(term.shape, 0.01) for term in inst.terms]
    apart = NodeCurvature(inst, r, w * load(model).units)
    monkeypatch.setattr(_coordinates, "FEWEST", D + 1)
    dense = NodeCurvature(inst, r, w * load(model).units)
    np.testing.assert_allclose(apart.eigenvalues, dense.eigenvalues, rtol=1e-12)
    square = np.einsum(
        "nij,nj,nkj->nik", apart.vectors, apart.eigenvalues, apart.vectors, optimize=True
    )
    expected = np.einsum(
        "nij,nj,nkj->nik", dense.vectors, dense.eigenvalues, dense.vectors, optimize=True
    )
    np.testing.assert_allclose(square, expected, rtol=1e-12, atol=1e-12 * expected.max())
    rho = np.random.default_rng(1).standard_normal((N, D))
    pairs = zip(apart.absorbed(rho) or [], dense.absorbed(rho) or [], strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("make", [lambda x: x, lambda x: None], ids=["rows", "identity"])
def test_diagonals_are_those_of_the_hessians(make: Callable[[Any], Any]) -> None:
    rng = np.random.default_rng(2)
    node = np.array([0, 1, 3])
    blocks = Blocks(node, make(rng.standard_normal((3, 5))), 4, 5)
    for one in (blocks, blocks.rescaled(2.0 ** np.arange(5))):
        curvature = rng.random(one.shape)
        expected = np.einsum("njj->nj", one.hessian(curvature))
        np.testing.assert_allclose(one.hessian_diagonal(curvature), expected, rtol=1e-14)
