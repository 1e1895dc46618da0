"""Certificates of right answers whose data have columns of very different units."""

from __future__ import annotations

import numpy as np
import pytest
from _plain_instances import Data, graph, instance, solve

import gtvcvx as gtv
import verify
from verify.certificates._repair import gaps
from verify.instance._constraints import Constraints
from verify.instance._instance import load

RAW = (1.0, 2000.0, 5e4, 1.0)


def columns(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Return data rows (1, year, income, x)."""
    year, income = rng.integers(1950, 2021, rows), rng.uniform(2e4, 8e4, rows)
    return np.column_stack([np.ones(rows), year, income, rng.standard_normal(rows)])


def raw_instance(
    loss: str, phi: str, seed: int, rows: tuple[int, int], units: tuple[float, ...] = RAW
) -> Data:
    """Return an instance in raw units: labels of size one from parameters of size 1 / units."""
    rng = np.random.default_rng(seed)
    n, d = 12, len(units)
    node = np.repeat(np.arange(n), rng.integers(rows[0], rows[1] + 1, n))
    x = columns(len(node), rng) if units == RAW else rng.standard_normal((len(node), d)) * units
    truth = (1 + 0.1 * rng.standard_normal((n, d)) + (np.arange(n) < n // 2)[:, None]) / units
    y = np.einsum("rj,rj->r", x, truth[node]) + 0.3 * rng.standard_normal(len(node))
    term: Data = {"kind": loss, "node": node, "X": x, "y": y}
    if loss in ("huber", "pseudohuber"):
        term["delta"] = np.full(len(node), 0.5)
    edges = graph("connected", n, rng)
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": edges,
        "weights": rng.uniform(0.5, 1.5, len(edges)),
        "lam": 0.1,
        "penalty": {"kind": phi},
        "terms": [term],
    }


@pytest.mark.parametrize("phi", ["l1", "l2", "linf", "squared"])
@pytest.mark.parametrize("rows", [(1, 3), (5, 5)])
def test_squared_losses_in_raw_units(phi: str, rows: tuple[int, int]) -> None:
    data = raw_instance("squared", phi, 31, rows)
    w, u = solve(data)
    assert verify.certify(data, w, u, rtol=1e-6, search=False).status == "CERTIFIED"


@pytest.mark.parametrize("loss", ["absolute", "huber", "pseudohuber"])
@pytest.mark.parametrize("phi", ["l1", "l2", "linf"])
def test_losses_with_ends_in_raw_units(loss: str, phi: str) -> None:
    data = raw_instance(loss, phi, 32, (1, 4))
    w, u = solve(data)
    assert verify.certify(data, w, u, rtol=1e-5, search=False).status == "CERTIFIED"


@pytest.mark.parametrize("seed", [0, 4])
def test_nearly_collinear_columns_with_bounds_and_small_capacities(seed: int) -> None:
    """Offsets of 1e2 to 1e4 beside an intercept, five rows for eight columns, lambda 1e-5."""
    rng, n, d, rows = np.random.default_rng(seed), 10, 8, 5
    offset, spread = 10.0 ** rng.uniform(2, 4, d), np.ones(d)
    offset[0], spread[0] = 1.0, 0.0
    node, z = np.repeat(np.arange(n), rows), rng.standard_normal((n * rows, d))
    y = 1000 + z @ rng.standard_normal(d) + 0.3 * rng.standard_normal(len(node))
    edges = graph("connected", n, rng)
    zero = np.zeros((n, d))
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": edges,
        "weights": np.ones(len(edges)),
        "lam": 1e-5,
        "penalty": {"kind": "linf"},
        "terms": [
            {"kind": "squared", "node": node, "X": offset + spread * z, "y": y},
            {"kind": "box", "node": np.arange(n), "lower": zero, "upper": zero + np.inf},
        ],
    }
    w, u = solve(data)
    assert verify.certify(data, w, u, rtol=1e-6, search=False).status == "CERTIFIED"


def test_pseudo_huber_losses_of_features_over_six_decades() -> None:
    data = raw_instance("pseudohuber", "l2", 33, (4, 6), (1.0, 1e3, 1e-3))
    w, u = solve(data)
    assert verify.certify(data, w, u, rtol=1e-6, search=False).status == "CERTIFIED"


def test_without_a_flow_the_dual_is_solved_in_raw_units() -> None:
    data = raw_instance("squared", "l2", 34, (5, 5))
    w, _ = solve(data)
    assert verify.certify(data, w, rtol=1e-5).status == "CERTIFIED"


def test_units_are_powers_of_two_and_those_of_alike_columns_are_ones() -> None:
    units = load(raw_instance("squared", "l2", 31, (5, 5))).units
    np.testing.assert_array_equal(units, [1, 2**11, 2**16, 1])
    tidy = load(instance(3, "everything", "l2"))
    np.testing.assert_array_equal(tidy.units, 1)
    assert tidy.rescaled() is tidy


def test_columns_that_other_units_would_round_keep_theirs() -> None:
    data = raw_instance("squared", "l2", 31, (5, 5))
    data["terms"][0]["X"][0, 2] = 5e-324
    np.testing.assert_array_equal(load(data).units, 1)


@pytest.mark.parametrize("phi", ["l1", "l2", "linf", "pnorm", "squared", "quadratic"])
@pytest.mark.parametrize("loss", ["everything", "box_lasso", "simplex"])
def test_a_rescaled_instance_has_the_same_values_and_gaps(loss: str, phi: str) -> None:
    data = instance(7, loss, "l2" if phi == "pnorm" else phi)
    if phi == "pnorm":
        data["penalty"] = {"kind": "pnorm", "p": 3.0}
    data["terms"][0]["X"][:, 1] *= 1e5
    inst = load(data)
    other, units, rng = inst.rescaled(), inst.units, np.random.default_rng(0)
    w, _ = Constraints(inst).moved(rng.standard_normal((inst.n, inst.d)))
    u = inst.penalty.clip(rng.standard_normal((len(inst.edges), inst.d)), inst.cap)
    r = inst.joined([part.function.clip(part.slope(w)) for part in inst.parts])
    assert units.max() > 1
    np.testing.assert_array_equal(other.joined([p.slope(w * units) for p in other.parts])[0], r[0])
    np.testing.assert_allclose(other.value(w * units), inst.value(w))
    for mine, theirs in zip(gaps(inst, w, u, r), gaps(other, w * units, u / units, r), strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-9 * np.abs(mine).max())
    for part, scaled in zip(inst.parts, other.parts, strict=True):
        v = part.slope(w)
        np.testing.assert_array_equal(scaled.pull(v) * units, part.pull(v))
        c = rng.uniform(0.5, 1.5, part.shape)
        np.testing.assert_allclose(
            scaled.hessian(c) * units * units[:, None], part.hessian(c), rtol=1e-12
        )


@pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")
@pytest.mark.parametrize("seed", [0, 23])
def test_what_rounding_misses_is_made_up_where_there_is_room_for_it(seed: int) -> None:
    # Two rows a node, capacities over eight decades: rooms of flows do, too, and their squares are
    # lost side by side. What is missing went to one node, across edges that are full: 5e-5.
    rng = np.random.default_rng(seed)
    n, rows, d = 60, 2, 5
    X = 10.0 ** rng.uniform(2, 4, d) + rng.standard_normal((n, rows, d))
    X[:, :, 0] = 1.0
    centred = X - X.mean((0, 1))
    y = 1e3 + centred @ rng.standard_normal(d) + rng.standard_t(3, (n, rows))
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    graph = gtv.EmpiricalGraph(n, edges, 10.0 ** rng.uniform(-4, 4, n - 1))
    losses = [gtv.AbsoluteLoss(X[i], y[i]) for i in range(n)]
    problem = gtv.GTVProblem(graph, losses, "l2", 1e-3)
    found = problem.solve(rtol=1e-6)
    certificate = verify.certify(problem, found.w, found.u, rtol=1e-6, search=False)
    assert certificate.status == "CERTIFIED", certificate.reason


def test_multipliers_of_decided_rows_grow_into_what_inhabitants_need() -> None:
    """An intercept beside inhabitants, and capacities of 1e-4: gradients are 1e12 times as large.

    Multipliers of rows that are decided, 1e-20, have to take 1e-12 of what is missing; held where
    they were they left it to edges that were full: 1.1e-2 of a gap of 8e-8 in w and u.
    """
    rng = np.random.default_rng(32)
    n, m = 4, 4
    X = np.stack([np.ones((n, m)), 1e8 * rng.lognormal(0, 1, (n, m))], axis=-1)
    true = rng.standard_normal((3, 2)) / [1.0, 1e8]
    z = np.einsum("imd,id->im", X, true[np.arange(n) * 3 // n]) + rng.logistic(size=(n, m))
    node = np.repeat(np.arange(n), m)
    rows: Data = {"kind": "logistic", "node": node, "X": X.reshape(-1, 2), "y": 1.0 * (z > 0)}
    data: Data = {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": 2,
        "edges": np.array([[0, 1], [1, 2], [2, 3]]),
        "weights": 10 ** rng.uniform(-1, 1, n - 1),
        "lam": 3e-4,
        "penalty": {"kind": "linf"},
        "terms": [rows | {"y": rows["y"].ravel()}],
    }
    w = [
        [73.684418439907063, -3.2055726104912280e-07],
        [-16.726777786979017, -2.7411555707896915e-07],
        [-16.726781640666339, 1.7680097465495214e-07],
        [-16.726777567142349, 6.2811912619518963e-07],
    ]
    u = [
        [1.1867426678814089e-04, 4.8980724490503265e-19],
        [1.1867360286088252e-04, -2.0454701156732763e-06],
        [-5.1687500904774170e-11, -2.4618465655145913e-06],
    ]
    certificate = verify.certify(data, w, u, search=False)
    assert certificate.status == "CERTIFIED", certificate.reason
    assert certificate.rel_gap < 2e-7
