"""What rounding makes of a loss's value, against exact values."""

from fractions import Fraction

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import _pieces
from gtvcvx._norms import EPS
from gtvcvx.duality._value_rounding import ValueRounding
from gtvcvx.losses.batched._stacked import stacked_from_terms

KINDS = {
    "squared": (gtv.SquaredLoss.stack, lambda r: r * r),
    "absolute": (gtv.AbsoluteLoss.stack, abs),
    "huber": (
        lambda X, y: gtv.HuberLoss.stack(X, y, delta=0.5),
        lambda r: r * r if abs(r) <= 0.5 else abs(r) - Fraction(1, 4),
    ),
    "quantile": (
        lambda X, y: gtv.QuantileLoss.stack(X, y, level=0.25),
        lambda r: max(Fraction(3, 4) * r, -r / 4),  # r = x w - y
    ),
}


def exact(X, y, w, rule):
    total = Fraction(0)
    for rows, targets, point in zip(X.tolist(), y.tolist(), w.tolist(), strict=True):
        for row, target in zip(rows, targets, strict=True):
            products = (Fraction(a) * Fraction(b) for a, b in zip(row, point, strict=True))
            total += rule(sum(products) - Fraction(target)) / len(targets)
    return total


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_off_by_no_more_and_the_bound_is_no_wild_guess(kind, offset):
    make, rule = KINDS[kind]
    rng, largest = np.random.default_rng(0), 0.0
    for _ in range(20):
        X = np.concatenate([np.ones((6, 2, 1)), rng.standard_normal((6, 2, 2))], axis=2)
        w = rng.standard_normal((6, 3)) + np.array([offset, 0.0, 0.0])
        y = np.einsum("nrd,nd->nr", X, w) + 0.3 * rng.standard_normal((6, 2))
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(6, [(0, 1)]), make(X, y), "l2", 0.1)
        bounds, values = problem.bounds, problem.losses.value(w)
        noise = bounds._terms.noise(w, np.zeros((1, 3)), near=True)
        rounding = noise.total
        off = abs(float(Fraction(float(np.sum(values))) - exact(X, y, w, rule)))
        assert off <= rounding
        assert rounding <= 1e-15 * 40 * max(offset, 10.0)
        if kind != "squared":  # residuals of twice the precision: only the last sums are rounded
            assert rounding <= 1e-15 * float(np.sum(values)) + 1e-30 * max(offset, 10.0)
        largest = max(largest, off / rounding)
        gap = bounds.gap_of(w, np.zeros((1, 3)))
        assert gap.rounding >= rounding
    assert largest > 0.01  # of what it allows for


def test_a_bound_of_data_far_from_zero_is_below_the_optimum():
    """The median of each node's targets is exact: the optimum is known without rounding."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        y = 1e9 + rng.standard_normal((5, 3))
        losses = gtv.AbsoluteLoss.stack(np.full((5, 3, 1), 0.1), y)
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(5, np.empty((0, 2), int)), losses)
        least = sum(Fraction(max(row)) - Fraction(min(row)) for row in y.tolist()) / 3
        assert Fraction(problem.solve(rtol=1e-6).dual_value) <= least
        assert Fraction(problem.lower_bound(np.zeros((0, 1)))[0]) <= least


@pytest.mark.parametrize("kind", ["squared", "poisson", "absolute"])
def test_rows_in_pieces_and_in_any_order_lose_as_much(kind, monkeypatch):
    rng = np.random.default_rng(2)
    node = np.repeat(np.arange(5), [1, 7, 0, 3, 2])
    X, y, w = rng.standard_normal((13, 4)), rng.random(13), rng.standard_normal((5, 4))
    term = {"kind": kind, "node": node, "X": X, "y": y}
    whole = ValueRounding([term], 5, 4).at(w, np.ones(5))
    monkeypatch.setattr(_pieces, "PIECE", 8)
    order = rng.permutation(13)
    mixed = {"kind": kind, "node": node[order], "X": X[order], "y": y[order]}
    for rows in (term, mixed):
        assert ValueRounding([rows], 5, 4).at(w, np.ones(5)) == pytest.approx(whole, rel=1e-12)
    # By hand: sums over rows of what each loses.
    size, c = np.abs(X), 1.0 / np.bincount(node)[node]
    if kind == "absolute":
        lost = np.sum(c * np.sum(size * np.abs(w)[node], axis=1))
        assert whole == pytest.approx(4.0 * EPS * lost, rel=1e-12)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_scores_of_several_classes_lose_what_slopes_make_of_it(scale):
    """Beside features of 6243 and a bit; rows that are clear, or hopeless, lose next to nothing."""
    rng = np.random.default_rng(6)
    n, K = 30, 4
    node, wide = np.repeat(np.arange(n), 3), np.longdouble
    X = np.column_stack([np.ones(3 * n), 6243.0 + rng.standard_normal(3 * n)])
    W = scale * rng.standard_normal((n, 2, K))
    W[:, 0] = -6243.0 * W[:, 1] + scale * rng.standard_normal((n, K))
    term = {"kind": "multinomial", "node": node, "X": X, "y": rng.integers(0, K, 3 * n) * 1.0}
    loss = stacked_from_terms([term], 2 * K)
    w = W.reshape(n, -1)
    values = loss.value(w)
    z = np.einsum("rj,rjk->rk", X.astype(wide), W[node].astype(wide))
    own = term["y"][:, None] == np.arange(K)
    ahead = z - np.sum(np.where(own, z, 0.0), axis=1, keepdims=True)
    exact = np.log(np.exp(ahead - ahead.max(axis=1, keepdims=True)).sum(axis=1))
    exact = np.bincount(node, (exact + ahead.max(axis=1)).astype(float) / 3.0)
    bound = ValueRounding([term], n, 2 * K).at(w, values)
    off = abs(float(np.sum(values - exact)))
    assert off <= bound + 1e-14 * float(np.sum(values))
    products = np.einsum("rj,rjk->", np.abs(X), np.abs(W[node])) / 3.0
    assert 1e-4 < bound / (2.0 * EPS * products) < 0.7
