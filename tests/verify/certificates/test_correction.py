"""Corrections of flow and multipliers together, against dense linear algebra and planted points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from _plain_instances import PENALTIES, Data, instance

import verify
from verify._filling import hubs
from verify.certificates import _certify
from verify.certificates._correction import MARGIN, Correction
from verify.certificates._exact_flow import ExactFlow, exact_flow
from verify.certificates._exact_point import ExactPoint
from verify.certificates._factor_work import factor_seconds
from verify.certificates._room import edge_weights, interval_weights
from verify.certificates._step import DualPoint, Metric, Step, _bordered, _factorized, balance
from verify.certificates._whitening import WhitePart, frames, row_squares
from verify.instance._functions import Logistic, Piecewise, Poisson, PseudoHuber
from verify.instance._instance import Instance, load
from verify.instance._integers import to_floats
from verify.instance._penalties import Penalty, QuadraticPenalty, RescaledPenalty

RAW = np.array([1.0, 1985.0, 3e4, 0.05])  # an intercept, a year, an income and a rate


def _planted(n: int = 12, seed: int = 0) -> tuple[Data, np.ndarray, np.ndarray]:
    """Return absolute losses and l1 terms in raw units, with an optimal pair (w, u).

    w is constant on a path. Every other row has y on its image, where its multiplier is anything.
    """
    rng = np.random.default_rng(seed)
    w = np.tile([2.0, -0.1, 1e-3, 0.0], (n, 1))
    X = RAW * (1 + [0.0, 0.01, 0.3, 0.5] * rng.standard_normal((3 * n, 4)))
    node = np.repeat(np.arange(n), 3)
    residual = np.where(np.arange(3 * n) % 3 == 0, 100.0 * rng.choice([-1, 1], 3 * n), 0.0)
    r = np.where(residual != 0, np.sign(residual) / 3, rng.uniform(-0.3, 0.3, 3 * n))
    kappa = np.zeros((n, 4))
    pulled = np.zeros((n, 4))
    np.add.at(pulled, node, r[:, None] * X)
    # What the rows leave goes along the path; the l1 terms of the last node take the rest.
    u = -np.cumsum(pulled, axis=0)[:-1]
    rest = -pulled.sum(axis=0)
    kappa[-1] = np.where(w[-1] != 0, np.abs(rest), 2 * np.abs(rest))
    w[:] *= np.where(w[-1] != 0, np.sign(w[-1]) * np.sign(rest), 1.0)
    data = {
        "schema": "gtv-problem/1", "n_nodes": n, "dim": 4, "lam": 1.0,
        "edges": np.column_stack([np.arange(n - 1), np.arange(1, n)]),
        "weights": 2 * np.abs(u).max(axis=1), "penalty": {"kind": "l1"},
        "terms": [
            {"kind": "absolute", "node": node, "X": X,
             "y": np.einsum("rj,rj->r", X, w[node]) - residual},
            {"kind": "l1", "node": np.arange(n), "kappa": kappa},
        ],
    }  # fmt: skip
    return data, w, u


@pytest.mark.parametrize("seed", range(3))
def test_right_answers_in_raw_units_are_certified_without_another_solve(seed: int) -> None:
    data, w, u = _planted(seed=seed)
    rough = u * (1 + 1e-6 * np.random.default_rng(seed).standard_normal(u.shape))
    certificate = verify.certify(data, w, rough, search=False)
    assert certificate.status == "CERTIFIED", certificate.reason
    assert certificate.rel_gap < 1e-6


def _metric(inst: Instance, rng: np.random.Generator) -> Metric:
    root = rng.standard_normal((len(inst.edges), inst.d, inst.d))
    return Metric(root @ root.transpose(0, 2, 1), [rng.random(p.shape) for p in inst.parts])


def _matrix(inst: Instance) -> np.ndarray:
    """Return B as a dense matrix: the balance of the unit changes of u, then of every part."""
    columns = []
    zero = DualPoint(np.zeros((len(inst.edges), inst.d)), [np.zeros(p.shape) for p in inst.parts])
    for k, v in enumerate((zero.u, *zero.r)):
        for index in np.ndindex(v.shape):
            unit = [0 * x for x in (zero.u, *zero.r)]
            unit[k][index] = 1.0
            columns.append(balance(inst, list(inst.parts), DualPoint(unit[0], unit[1:])).ravel())
    return np.array(columns).T


@pytest.mark.parametrize("loss", ["squared", "lasso", "hinge_ridge"])
def test_a_step_is_the_least_change_that_makes_up_the_balance(loss: str) -> None:
    inst = load(instance(3, loss, "l2", "connected", 6, 2))
    rng = np.random.default_rng(1)
    metric, B = _metric(inst, rng), _matrix(inst)
    rest = (B @ rng.standard_normal(B.shape[1])).reshape(inst.n, inst.d)
    change = Step(inst, list(inst.parts), metric).response(rest)
    W = np.zeros((B.shape[1], B.shape[1]))
    for e, block in enumerate(metric.u):
        W[2 * e : 2 * e + 2, 2 * e : 2 * e + 2] = block
    at = np.arange(metric.u.shape[0] * 2, len(W))
    W[at, at] = np.concatenate([v.ravel() for v in metric.r])
    wanted = -W @ B.T @ np.linalg.lstsq(B @ W @ B.T, rest.ravel(), rcond=1e-12)[0]
    found = np.concatenate([v.ravel() for v in (change.u, *change.r)])
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())


def test_nodes_take_what_errors_of_the_factors_leave() -> None:
    """What rows move too much was left beside edges that can take a millionth of it."""
    inst = load(instance(3, "squared", "l2", "connected", 6, 2))
    rng = np.random.default_rng(1)
    metric = _metric(inst, rng)
    metric = Metric(1e-12 * metric.u, metric.r)
    parts = list(inst.parts)
    step, rest = Step(inst, parts, metric), rng.standard_normal((inst.n, inst.d))
    exact = step.solve
    step.solve = lambda rhs: exact(rhs) + 1e-6 * rng.standard_normal(rhs.shape)
    left = rest + balance(inst, parts, step.response(rest))
    assert np.abs(left).max() < 1e-9
    assert np.abs(balance(inst, parts, step.response(0 * rest))).max() < 1e-9


def test_rounding_of_raw_units_is_made_up_and_ends_stay() -> None:
    data, w, u = _planted()
    inst = load(data).rescaled()
    units, rng = load(data).units, np.random.default_rng(2)
    parts = list(inst.parts)
    correction = Correction(inst, parts, w * units, np.ones(len(u), dtype=bool))
    start = [part.slope(w * units) for part in parts]
    rough = u / units * (1 + 1e-9 * rng.standard_normal(u.shape))
    found = correction.run(DualPoint(rough, start), lambda: False)
    size = np.abs(balance(inst, parts, DualPoint(np.abs(found.u), found.r))) + 1
    assert (np.abs(balance(inst, parts, found)) < 1e-13 * size).all()
    for part, r in zip(parts, found.r, strict=True):
        assert (part.function.clip(r) == r).all()
    rows, ends = found.r[0], np.arange(len(found.r[0])) % 3 == 0
    assert np.abs(np.abs(rows[ends]) - 1 / 3).max() < 2 * MARGIN
    before = np.abs(balance(inst, parts, DualPoint(rough, start))).max()
    assert before > 1e-3  # slopes at kinks are a guess: there was something to correct


@pytest.mark.parametrize("other", [1.0, 1e12])
def test_room_at_an_end_is_none_of_other_coordinates(other: float) -> None:
    """A bound's multiplier at zero moved for free where one of another unit was large."""
    data = instance(2, "unlabelled", "l2", n=2)
    data["terms"] = [
        {
            "kind": "box",
            "node": np.arange(2),
            "lower": np.zeros((2, 2)),
            "upper": np.full((2, 2), np.inf),
        }
    ]
    inst = load(data)
    parts = list(inst.parts)
    correction = Correction(inst, parts, np.ones((2, 2)), np.ones(len(inst.edges), dtype=bool))
    r = [np.array([[0.0, -other], [-1.0, -other]]) for _ in parts]
    r = [part.function.clip(v) for part, v in zip(parts, r, strict=True)]
    (weights,) = (
        w
        for part, w in zip(
            parts, correction._metric(DualPoint(np.zeros((1, 2)), r), 1e-9).r, strict=True
        )
        if np.isinf(part.function.lo).any()
    )
    assert weights[0, 0] < 1e-20 * weights[1, 0]


def test_what_is_beyond_its_bounds_is_put_back() -> None:
    data, w, u = _planted()
    inst = load(data)
    parts = list(inst.parts)
    correction = Correction(inst, parts, w, np.ones(len(u), dtype=bool))
    beyond = DualPoint(3 * u, [2 * part.function.hi for part in parts])
    found = correction.run(beyond, lambda: False)
    assert (inst.penalty.dual_norm(found.u) <= inst.cap).all()
    assert (inst.penalty.dual_norm(beyond.u) > inst.cap).any()
    for part, r in zip(parts, found.r, strict=True):
        assert (part.function.clip(r) == r).all()


def test_frames_see_what_is_nine_orders_of_magnitude_smaller() -> None:
    """Two rows, and coordinates with weights that squares of the rows would hide."""
    rng = np.random.default_rng(5)
    data = instance(3, "lasso", "l1", "connected", 4, 2) | {"dim": 4}
    X = RAW * (1 + 0.1 * rng.standard_normal((8, 4)))
    data["terms"] = [
        {"kind": "absolute", "node": np.repeat(np.arange(4), 2), "X": X, "y": np.zeros(8)},
        {"kind": "l1", "node": np.arange(4), "kappa": np.ones((4, 4))},
    ]
    parts = list(load(data).parts)
    weights = [np.ones(8), 1e-18 * np.array(RAW) ** 2 * np.ones((4, 4))]
    found = frames(row_squares(parts, weights), 4, 4)
    gram = row_squares(parts, weights)(found)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(4), gram.shape), atol=1e-5)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_weights_of_flows_are_large_inside_and_small_across_an_end(p: float) -> None:
    rng = np.random.default_rng(0)
    penalty, cap = Penalty(p), np.full(2, 3.0)
    direction = rng.standard_normal((1, 3)) + 2
    at_end = 3.0 * direction / penalty.dual_norm(direction)
    u = np.concatenate([np.zeros((1, 3)), at_end])
    most = np.full(3, np.inf)
    weights = edge_weights(penalty, u, cap, 1.0, 1e-9, most)
    np.testing.assert_allclose(weights, weights.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(weights[0])[0] > 0.01
    # Outwards: the gradient of the dual norm at the end.
    out = {1.0: np.eye(3)[np.abs(at_end[0]).argmax()], 2.0: at_end[0] / 3, np.inf: np.ones(3)}[p]
    assert out @ weights[1] @ out < 1e-6
    limited = edge_weights(penalty, u, cap, 1.0, 1e-9, np.array([0.5, 1e-3, 1e9]))
    inverse = np.linalg.inv(weights[0]) + np.diag(1 / np.array([0.5, 1e-3, 1e9]))
    np.testing.assert_allclose(limited[0], np.linalg.inv(inverse), rtol=1e-9, atol=1e-12)
    # In other units they are those of other flows.
    units = np.array([1.0, 1024.0, 0.5])
    other = edge_weights(RescaledPenalty(penalty, units), u / units, cap, 1.0, 1e-9, most)
    np.testing.assert_allclose(other, weights / units / units[:, None], rtol=1e-9, atol=1e-18)


def test_weights_of_quadratic_penalties_are_their_curvature() -> None:
    q, cap = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([0.5, 4.0])
    weights = edge_weights(QuadraticPenalty(q), np.zeros((2, 2)), cap, 1.0, 0.1, np.ones(2))
    np.testing.assert_allclose(weights, cap[:, None, None] * q)


def test_weights_of_multipliers_are_curvatures_but_near_their_ends() -> None:
    inst = load(instance(3, "everything", "l2", "connected", 6, 2))
    for part in inst.parts:
        f = part.function
        both = np.isfinite(f.lo) & np.isfinite(f.hi)
        middle = np.where(both, (np.where(both, f.lo, 0) + np.where(both, f.hi, 0)) / 2, 0.0)
        middle = np.where(np.isfinite(f.hi) & ~np.isfinite(f.lo), -1.0, middle)
        middle = np.where(np.isfinite(f.lo) & ~np.isfinite(f.hi), 1.0, middle)
        inside = interval_weights(part, middle, np.ones(part.shape), 1e-6, 1e-9)
        end = np.where(np.isfinite(f.hi), f.hi, np.where(np.isfinite(f.lo), f.lo, middle))
        at_end = interval_weights(part, end, np.ones(part.shape), 1e-6, 1e-9)
        some = np.isfinite(f.lo) | np.isfinite(f.hi)
        assert (inside[f.lo < f.hi] > 0).all()
        assert (inside[f.lo == f.hi] == 0).all()
        assert (at_end[some] < 1e-6).all()


@pytest.mark.parametrize(
    "function",
    [
        Logistic(np.array([0.0, 1.0]), np.full(2, 3.0), np.zeros(2), np.zeros(2)),
        Poisson(np.array([0.0, 2.0]), np.full(2, 3.0), np.zeros(2), np.full(2, np.inf)),
        PseudoHuber(*np.array([[0.5, -1.0], [3.0, 2.0], [0.7, 1.5], [-1.0, -1.0], [1.0, 1.0]])),
        Piecewise(*np.array([[0.5, -1.0], [3.0, 2.0], [-np.inf] * 2, [np.inf] * 2])),
    ],
)
def test_stiffness_at_a_slope_is_the_curvature_where_it_is_taken(function: object) -> None:
    f = function
    assert isinstance(f, Logistic | Poisson | PseudoHuber | Piecewise)
    if isinstance(f, Logistic):
        f.lo, f.hi = -f.y / f.m, (1 - f.y) / f.m
    elif isinstance(f, Poisson):
        f.lo = -f.y / f.m
    for z in (np.array([-2.0, 0.3]), np.array([1.0, 4.0])):
        np.testing.assert_allclose(f.stiffness(f.slope(z)), f.curvature(z), rtol=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_frames_make_squares_ones_and_leave_out_what_nothing_sees(penalty: str) -> None:
    """Three rows in raw units and one direction, the difference of two equal columns, of none."""
    rng = np.random.default_rng(5)
    data = instance(3, "squared", penalty, "connected", 4, 2) | {"dim": 5}
    X = RAW * (1 + 0.1 * rng.standard_normal((40, 4)))
    if "Q" in data["penalty"]:
        data["penalty"] = {"kind": "squared"}
    data["terms"] = [
        {"kind": "squared", "node": np.repeat(np.arange(4), 10), "X": np.c_[X, X[:, 0]],
         "y": np.zeros(40)},
    ]  # fmt: skip
    part = load(data).parts[0]
    weights = np.exp(5 * rng.standard_normal(40))
    found = frames(row_squares([part], [weights]), 4, 5)
    gram = WhitePart(part, found).hessian(weights)
    kept = (found != 0).any(axis=1)
    assert (kept.sum(axis=1) == 4).all()
    np.testing.assert_allclose(gram, np.eye(5) * kept[:, None, :], atol=1e-6)


def test_the_time_of_a_factor_is_foretold_from_how_wide_a_graph_is() -> None:
    n = 1_000
    path = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    star = np.column_stack([np.zeros(n - 1, dtype=np.int64), np.arange(1, n)])
    everything = np.column_stack(np.triu_indices(n, 1))
    assert factor_seconds(path, n, 10) < 1e-3
    assert factor_seconds(star, n, 10) < 1e-3
    one = factor_seconds(everything, n, 1)
    assert 0.05 / 8 < one < 1 / 8
    assert factor_seconds(everything, n, 10) == pytest.approx(1e3 * one)
    assert factor_seconds(path[:0], n, 3) < 1e-3
    large = nx.random_regular_graph(4, 20_000, seed=1)
    assert factor_seconds(np.array(large.edges), 20_000, 2) > 20
    centres = nx.complete_bipartite_graph(2, 20_000)
    assert factor_seconds(np.array(centres.edges), 20_002, 2) < 1e-3


@pytest.mark.parametrize("centres", [1, 3])
def test_hubs_are_a_border_that_solves_the_same(centres: int) -> None:
    """More than 10 sqrt(n) neighbours; the rest is as sparse as without them."""
    rng, n, d = np.random.default_rng(5), 400, 2
    graph = nx.complete_bipartite_graph(centres, n - centres)
    graph.add_edges_from((i, i + 1) for i in range(centres, n - 1))
    edges = np.array(graph.edges)
    last = np.repeat(hubs(n, edges), d)
    assert last.sum() == centres * d
    matrix = sp.csc_matrix(sp.kron(nx.laplacian_matrix(graph) + sp.eye_array(n), np.eye(d)))
    matrix = matrix + sp.csc_matrix(sp.kron(sp.eye_array(n), [[0.0, 0.5], [0.5, 0.0]]))
    rhs = rng.standard_normal(n * d)
    solution = _bordered(matrix, last)(rhs)
    np.testing.assert_allclose(matrix @ solution, rhs, atol=1e-10)
    np.testing.assert_allclose(solution, _factorized(matrix)(rhs), atol=1e-10)


def test_a_singular_matrix_answers_nan_and_no_exception() -> None:
    solve = _factorized(sp.csc_matrix((3, 3)))
    assert np.isnan(solve(np.ones(3))).all()
    np.testing.assert_allclose(_factorized(sp.csc_matrix(2 * np.eye(3)))(np.ones(3)), 0.5)


def test_a_witness_that_loses_what_floats_promise_is_made_again(monkeypatch) -> None:
    """Scaling back what has left its bounds costs its share of the whole objective."""
    data, w, u = _planted()
    rough = u * (1 + 1e-6 * np.random.default_rng(0).standard_normal(u.shape))
    made = []

    def spoilt(*arguments: Any) -> ExactFlow:
        made.append(arguments[-1] is not None)
        flow = exact_flow(*arguments)
        return flow if made[-1] else replace(flow, k=flow.k + 1, k_r=[k + 1 for k in flow.k_r])

    monkeypatch.setattr(_certify, "exact_flow", spoilt)
    certificate = verify.certify(data, w, rough, search=False)
    assert certificate.status == "CERTIFIED", certificate.reason
    assert made[-2:] == [False, True]


def test_refinement_inside_leaves_flows_in_their_capacities() -> None:
    """A change that is shared with an edge at its capacity is made up by the rows alone."""
    data = {
        "schema": "gtv-problem/1", "n_nodes": 2, "dim": 1, "lam": 1.0,
        "edges": np.array([[0, 1]]), "weights": np.ones(1), "penalty": {"kind": "l2"},
        "terms": [{"kind": "squared", "node": np.arange(2), "X": np.ones((2, 1)),
                   "y": np.zeros(2)}],
    }  # fmt: skip
    inst = load(data)
    u, r = np.ones((1, 1)), [np.array([-1.0 - 1e-9, 1.0 + 1e-9])]

    def absorb(rest: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        return -0.5 * rest[:1], [-0.5 * rest[:, 0]]

    def refined(careful: bool) -> ExactPoint:
        point = ExactPoint(inst, u, r, np.zeros((2, 1)))
        (point.refine_inside if careful else point.refine_with)(absorb)
        return point

    assert to_floats(refined(False).u, refined(False).k)[0, 0] > 1.0
    point = refined(True)
    assert to_floats(point.u, point.k)[0, 0] <= 1.0
    assert np.abs(to_floats(point.residual(), point.k)).max() < 1e-11

    worse = ExactPoint(inst, u, r, np.zeros((2, 1)))
    worse.refine_inside(lambda rest: (rest[:1], [rest[:, 0]]))
    assert to_floats(worse.residual(), worse.k)[1, 0] == pytest.approx(1e-9)


def test_ends_at_zero_take_no_share_of_intervals_that_edges_could_not_carry() -> None:
    """Two nodes whose rows are decided, of size 1e5, behind an edge of capacity 1e-8.

    A share of 1e-12 of each row's interval adds up to 1e-7 at the nodes.
    """
    X = np.array([[1e5], [3e5], [2e5], [1e5]])
    hinge = {"kind": "hinge", "node": np.array([0, 0, 1, 1]), "X": X, "y": np.ones(4)}
    data = {**instance(0, "point", "l2", n=2, d=1), "terms": [hinge], "lam": 1e-8}
    data |= {"edges": np.array([[0, 1]]), "weights": np.ones(1)}
    inst = load(data)
    parts = list(inst.parts)
    correction = Correction(inst, parts, np.ones((2, 1)), np.ones(1, dtype=bool))
    start = DualPoint(np.zeros((1, 1)), [np.full(4, -1e-14)])
    found = correction.run(start, lambda: False)
    assert np.abs(balance(inst, parts, found)).max() < 0.25 * inst.cap[0]
    assert (inst.penalty.dual_norm(found.u) <= inst.cap).all()
    (r,) = found.r
    assert (parts[0].function.clip(r) == r).all()
