"""Every family of problems is certified from the w and u of an independent solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _plain_instances import GRAPHS, LOSSES, PENALTIES, instance, solve

import verify


def _certified(data: dict[str, Any], rtol: float = 1e-8) -> verify.Certificate:
    w, u = solve(data)
    certificate = verify.certify(data, w, u, rtol=rtol)
    assert certificate.status == "CERTIFIED", certificate
    assert 0 <= certificate.gap <= rtol * max(1, abs(certificate.upper))
    total = certificate.node_gaps.sum() + certificate.edge_gaps.sum()
    assert total == pytest.approx(certificate.gap, abs=1e-12 * max(1, abs(certificate.upper)))
    return certificate


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("loss", [*LOSSES, "everything"])
def test_connected_graphs(loss: str, phi: str) -> None:
    _certified(instance(1, loss, phi, "connected", 12, 2))


@pytest.mark.parametrize("kind", [g for g in GRAPHS if g not in ("connected", "empty")])
@pytest.mark.parametrize("loss", ["squared", "few_rows", "unlabelled", "point", "lasso"])
def test_other_graphs(loss: str, kind: str) -> None:
    phi = PENALTIES[(GRAPHS.index(kind) + LOSSES.index(loss)) % len(PENALTIES)]
    _certified(instance(2, loss, phi, kind, 12, 2))


@pytest.mark.parametrize("loss", [x for x in LOSSES if x != "logistic"])
def test_graphs_without_edges(loss: str) -> None:
    _certified(instance(3, loss, "l2", "empty", 6, 2))


@pytest.mark.parametrize("d", [1, 3, 6])
@pytest.mark.parametrize("loss", ["few_rows", "unlabelled", "logistic_ridge"])
def test_other_dimensions(loss: str, d: int) -> None:
    _certified(instance(4, loss, PENALTIES[d % 5], "connected", 10, d))


def test_a_component_without_any_label() -> None:
    data = instance(5, "squared", "l2", "components", 12, 2)
    term = data["terms"][0]
    kept = term["node"] < 6
    for key in ("node", "X", "y"):
        term[key] = term[key][kept]
    certificate = _certified(data)
    assert (certificate.node_gaps[6:] == 0).all()


def test_no_losses_at_all() -> None:
    data = {**instance(5), "terms": []}
    certificate = verify.certify(data, np.zeros((12, 2)), rtol=0.0)
    assert certificate.status == "CERTIFIED"
    assert certificate.gap == 0


def test_more_dimensions_than_rows_in_a_whole_component() -> None:
    """Three rows, six dimensions: the stacked data of every component are rank deficient."""
    data = instance(6, "unlabelled", "l2", "components", 8, 6)
    term = data["terms"][0]
    pick = np.flatnonzero(np.isin(term["node"], term["node"][[0, -1]]))[:3]
    for key in ("node", "X", "y"):
        term[key] = term[key][pick]
    _certified(data)


def test_several_terms_of_one_kind_at_a_node() -> None:
    data = instance(7, "squared", "l2")
    other = instance(8, "few_rows", "l2")["terms"][0]
    data["terms"] += [other, instance(9, "point", "l2")["terms"][0]]
    _certified(data)


@pytest.mark.parametrize(
    "q", [[[1, 0], [0, 0]], [[1, 1], [1, 1]], [[9, 3], [3, 1]], [[0, 0], [0, 0]]]
)
@pytest.mark.parametrize("loss", ["squared", "few_rows", "unlabelled", "lasso", "mixed"])
def test_singular_quadratic_penalties(loss: str, q: list[list[int]]) -> None:
    data = instance(3, loss, "squared", "connected", 10, 2)
    data["penalty"] = {"kind": "quadratic", "Q": np.array(q, dtype=float)}
    _certified(data)


WEIGHTS = {
    "tiny": lambda rng, m: np.full(m, 1e-300),
    "huge": lambda rng, m: np.full(m, 1e300),
    "mixed": lambda rng, m: 10.0 ** rng.choice([-300, 0, 300], m),
    "denormal": lambda rng, m: np.full(m, 5e-324),
    "spread": lambda rng, m: 10.0 ** rng.uniform(-6, 6, m),
    "largest": lambda rng, m: np.full(m, np.finfo(float).max),
}


@pytest.mark.parametrize("phi", ["l1", "l2", "squared"])
@pytest.mark.parametrize("loss", ["squared", "unlabelled", "point"])
@pytest.mark.parametrize("name", WEIGHTS)
def test_extreme_weights(name: str, loss: str, phi: str) -> None:
    """Our own solve refutes zero with a point of its own, and that point is certified."""
    data = instance(3, loss, phi, "connected", 10, 2)
    data["weights"] = WEIGHTS[name](np.random.default_rng(0), len(data["edges"]))
    _own_solution_is_certified(data)


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("lam", [1e8, 1e300, 1e-300])
def test_extreme_lambda(lam: float, phi: str) -> None:
    _own_solution_is_certified(instance(3, "squared", phi, "connected", 8, 2, lam=lam))


def _own_solution_is_certified(data: dict[str, Any]) -> None:
    zero = np.zeros((data["n_nodes"], data["dim"]))
    refuted = verify.certify(data, zero, rtol=1e-7)
    assert refuted.status == "REFUTED"
    assert refuted.better is not None
    assert verify.certify(data, refuted.better, rtol=1e-6).status == "CERTIFIED"


@pytest.mark.parametrize("phi", ["l1", "l2", "linf"])
def test_exact_ties(phi: str) -> None:
    """Point losses on a path at the critical lambda: w constant, all edges just saturated."""
    data = {
        "schema": "gtv-problem/1", "n_nodes": 2, "dim": 1, "edges": np.array([[0, 1]]),
        "weights": np.array([1.0]), "lam": 1.0, "penalty": {"kind": phi},
        "terms": [{"kind": "point", "node": np.arange(2), "a": np.array([[0.0], [1.0]])}],
    }  # fmt: skip
    w = np.full((2, 1), 0.5)
    certificate = verify.certify(data, w, np.array([[-1.0]]), rtol=0.0)
    assert certificate.status == "CERTIFIED"
    assert certificate.gap == 0
    assert certificate.distance_bound == 0


def test_separable_logistic_node_without_neighbours() -> None:
    """The optimum, zero, is not attained; a far point is certified, the origin is not."""
    data = instance(3, "point", "l2", "empty", 1, 2)
    x = np.array([[1.0, 0.5], [0.7, 1.0], [-1.0, -0.2], [-0.6, -0.9]])
    y = np.array([1.0, 1.0, 0.0, 0.0])
    data["terms"] = [{"kind": "logistic", "node": np.zeros(4, dtype=int), "X": x, "y": y}]
    far = np.array([[30.0, 30.0]])
    assert verify.certify(data, far, rtol=1e-6).status == "CERTIFIED"
    assert verify.certify(data, np.zeros((1, 2)), rtol=1e-6).status == "REFUTED"


@pytest.mark.parametrize("seed", range(3))
def test_a_better_flow_never_lowers_the_proved_bound_below_the_float_gap(seed: int) -> None:
    """Exactness costs nothing: exact and float gaps agree to rounding."""
    data = instance(seed, "unlabelled", "l2", "connected", 40, 3)
    w, u = solve(data)
    certificate = verify.certify(data, w, u, rtol=1e-7)
    assert certificate.rel_gap < 1e-9
