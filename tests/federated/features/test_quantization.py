"""k-anonymous quantization: every cell holds k local points, whatever the table looks like."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gtvcvx.federated.features import KAnonymousQuantization

KINDS = ("normal", "ties", "constant", "raw", "huge", "adjacent")


def column(kind, m, rng):
    if kind == "normal":
        return rng.standard_normal(m)
    if kind == "ties":
        return rng.integers(0, 3, m).astype(float)
    if kind == "constant":
        return np.full(m, -7.25)
    if kind == "raw":
        return 1e9 + 1e-3 * rng.standard_normal(m) * 10.0 ** rng.integers(0, 6, m)
    if kind == "huge":
        return rng.choice([-1.7e308, 1.7e308, 0.0, 5e-324], m)
    return np.nextafter(1.0, 2.0) ** 0 + rng.integers(0, 4, m) * 2.0**-52


@given(
    m=st.integers(1, 60),
    k=st.integers(1, 20),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    seed=st.integers(0, 2**32 - 1),
)
@example(m=3, k=3, kinds=["normal"], seed=0)
@example(m=3, k=1, kinds=["ties", "constant"], seed=0)
@example(m=20, k=20, kinds=["raw"], seed=0)
@example(m=60, k=2, kinds=["huge", "adjacent"], seed=0)
def test_every_cell_holds_k_local_points(m, k, kinds, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([column(kind, m, rng) for kind in kinds])
    if m < k:
        with pytest.raises(ValueError, match=f"X: {k} points at least are expected, got {m}"):
            KAnonymousQuantization(k).fit(X)
        return
    phi = KAnonymousQuantization(k).fit(X)
    values, counts = np.unique(phi.transform(X), axis=0, return_counts=True)
    assert counts.min() >= k
    assert np.isfinite(values).all()
    # Cells have distinct values, so that the map and its cells tell the same.
    assert len(values) == len(phi.counts) == len(np.unique(phi.cells(X)))
    np.testing.assert_array_equal(np.bincount(phi.cells(X)), phi.counts)
    assert maximal(X, phi.cells(X), k)


def maximal(X, cells, k):
    """Whether no cell could be cut once more: it is small, or ties are in the way."""
    for cell in np.unique(cells):
        for values in X[cells == cell].T:
            if any(min((values <= t).sum(), (values > t).sum()) >= k for t in values):
                return False
    return True


def test_values_are_means_of_cells():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    phi = KAnonymousQuantization(3).fit(X)
    np.testing.assert_allclose(phi.transform(X)[:, 0], [1, 1, 1, 11, 11, 11])
    # Rows that were not fitted: the nearest side of the cut at 6.
    np.testing.assert_allclose(phi.transform([[-100.0], [5.9], [6.1], [1e9]])[:, 0], [1, 1, 11, 11])


@pytest.mark.parametrize("k", [1, 5, 100])
def test_ten_thousand_points(k):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.standard_normal(10_000), rng.integers(0, 50, 10_000) * 1e6])
    phi = KAnonymousQuantization(k).fit(X)
    assert phi.counts.sum() == 10_000
    assert k <= phi.counts.min()
    # Cuts at medians of a continuous feature: cells of less than four times k, ties or not.
    assert phi.counts.max() < 4 * k
    if k == 1:
        np.testing.assert_array_equal(phi.transform(X), X)


def test_cells_are_cut_at_their_median():
    X = np.arange(64.0)[:, None]
    assert KAnonymousQuantization(20).fit(X).counts.tolist() == [32, 32]
    # The median is a tie of 30 rows: the nearest cut is beside it.
    tied = np.repeat([0.0, 1.0, 2.0], [10, 30, 24])[:, None]
    assert sorted(KAnonymousQuantization(10).fit(tied).counts) == [10, 24, 30]


def test_units_do_not_matter():
    X = np.random.default_rng(2).standard_normal((200, 3))
    units = np.array([1.0, 2.0**30, 2.0**-30])
    one, other = (KAnonymousQuantization(5).fit(table) for table in (X, X * units))
    np.testing.assert_array_equal(one.cells(X), other.cells(X * units))


def test_order_of_rows_does_not_matter_and_copies_agree():
    X = np.random.default_rng(3).integers(0, 5, (50, 3)).astype(float)
    one, other = KAnonymousQuantization(4).fit(X), KAnonymousQuantization(4).fit(X[::-1])
    np.testing.assert_allclose(one.transform(X), other.transform(X))
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.transform(X), one.transform(X))


@pytest.mark.parametrize("k", [0, -1, 2.0, True, None])
def test_k_is_a_positive_integer(k):
    with pytest.raises(ValueError, match="k: an integer >= 1"):
        KAnonymousQuantization(k)


def test_bad_tables_are_refused_by_name():
    phi = KAnonymousQuantization(2)
    with pytest.raises(ValueError, match="map: it has not been fitted"):
        phi.transform([[1.0]])
    with pytest.raises(ValueError, match=r"X: entry \(1, 0\) is nan"):
        phi.fit([[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"X: entry \(0, 0\) is inf"):
        phi.fit([[np.inf], [1.0]])
    with pytest.raises(ValueError, match="X: a column at least"):
        phi.fit(np.zeros((3, 0)))
    phi.fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="X: 1 columns are expected, as fitted, got 2"):
        phi.transform([[1.0, 2.0]])
    with pytest.raises(ValueError, match=r"X: entry \(0, 0\) is nan"):
        phi.transform([[np.nan]])
