"""Maps from leaks to the least multipliers that give them."""

import tracemalloc

import numpy as np
import pytest

from gtvcvx.losses.batched.composite._absorption import Absorption
from gtvcvx.losses.batched.composite._least_multipliers import beside
from gtvcvx.losses.batched.composite._parts import Parts


def test_rows_beside_coordinates_are_those_of_the_pseudo_inverse():
    rng = np.random.default_rng(2)
    rows, room = rng.standard_normal((4, 3, 7)), 10.0 ** rng.uniform(-3.0, 3.0, (4, 7))
    room[:, 2:4] = 0.0  # an intercept, and another column without a term of its own
    found, short = beside(rows, room)
    for X, g, map_ in zip(rows, room, found, strict=True):
        naive = np.linalg.pinv(np.concatenate([X, np.diag(g)]).T)[:3]
        np.testing.assert_allclose(map_, naive, rtol=1e-9, atol=1e-9 * np.abs(naive).max())
    assert not short.any()


def test_more_columns_without_room_than_rows_are_not_made_up_for():
    room = np.array([[1.0, 0.0, 0.0]])
    assert beside(np.ones((1, 1, 3)), room)[1].all()
    assert beside(np.ones((1, 0, 3)), room)[1].all()
    assert not beside(np.ones((1, 0, 3)), np.ones((1, 3)))[1].any()


def lasso(d: int, intercept: bool) -> Parts:
    """Return few rows and l1 terms of 12 nodes."""
    rng = np.random.default_rng(5)
    X, node = rng.standard_normal((24, d)), np.repeat(np.arange(12), 2)
    kappa = np.full((12, d), 0.1)
    kappa[:, 0] = 0.0 if intercept else 0.1
    terms = [
        {"kind": "squared", "node": node, "X": X, "y": rng.standard_normal(24)},
        {"kind": "l1", "node": np.arange(12), "kappa": kappa},
    ]
    return Parts.of(terms, 12, d)


@pytest.mark.parametrize("intercept", [False, True])
def test_few_rows_and_many_columns_make_up_for_leaks_without_matrices(intercept, monkeypatch):
    d = 300
    rng = np.random.default_rng(6)
    w, leak = rng.standard_normal((12, d)), 1e-9 * rng.standard_normal((12, d))
    doubt, a, t = np.full((12, d), 1e-15), rng.standard_normal(24), np.zeros((12, d))
    reach = np.ones(d)
    parts = lasso(d, intercept)
    tracemalloc.start()
    thin = Absorption(parts).cost(w, a, t, leak, doubt, reach)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.3 * 8 * 12 * d**2
    monkeypatch.setattr("gtvcvx.losses.batched.composite._least_multipliers.pays", lambda *_: False)
    dense = Absorption(parts).cost(w, a, t, leak, doubt, reach)
    np.testing.assert_allclose(thin.node, dense.node, rtol=1e-3)
    assert thin.share == dense.share == 0.0
    assert thin.rest <= 1e-6 * thin.node.sum()
