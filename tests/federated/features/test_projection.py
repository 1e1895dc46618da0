"""Projection: nothing that is left is correlated with the private feature, in any units."""

import pickle

import numpy as np
import pytest

from gtvcvx.federated.features import FeatureMap, PrivateProjection, gaussian_mutual_information

RNG = np.random.default_rng(0)
PRIVATE = RNG.standard_normal(80)
X = RNG.standard_normal((80, 4)) + PRIVATE[:, None] * [1.0, -0.5, 0.0, 3.0]
UNITS = np.array([1e9, 1.0, 1e-9, 1e3])
OFFSETS = np.array([0.0, 1e4, 0.0, -1e6])


def correlations(shared, private, before):
    """Largest share of the deviation that a column had and that is along the private feature."""
    secret = (private - private.mean()) / private.std()
    return np.abs(
        (shared - shared.mean(axis=0)).T @ secret / len(secret) / before.std(axis=0)
    ).max()


@pytest.mark.parametrize(("units", "offsets"), [(1.0, 0.0), (UNITS, 0.0), (UNITS, OFFSETS)])
def test_nothing_left_is_correlated(units, offsets):
    table = X * units + offsets
    phi = PrivateProjection().fit(table, PRIVATE * 1e5 + 3)
    shared = phi.transform(table)
    assert correlations(table, PRIVATE, table) > 0.5
    # Offsets cost digits: 1e4 deviations of a column cost four.
    assert correlations(shared, PRIVATE, table) < 1e-11
    assert gaussian_mutual_information(PRIVATE, table) > 1
    # With offsets the direction that was taken out is left as rounding, independent of the feature:
    # of one such, the estimate is 1/(2 m) on average.
    told = gaussian_mutual_information(PRIVATE, shared)
    assert told < (0.03 if np.any(offsets) else 1e-15)
    np.testing.assert_allclose(shared.mean(axis=0), table.mean(axis=0), rtol=1e-6, atol=1e-9)


def test_units_do_not_matter_and_it_is_the_printed_map_for_standardized_columns():
    phi, scaled = PrivateProjection().fit(X, PRIVATE), PrivateProjection().fit(X * UNITS, PRIVATE)
    np.testing.assert_allclose(scaled.transform(X * UNITS) / UNITS, phi.transform(X), atol=1e-12)
    unit = (X - X.mean(axis=0)) / X.std(axis=0)
    c = unit.T @ (PRIVATE - PRIVATE.mean()) / 80
    printed = unit @ (np.eye(4) - np.outer(c, c) / (c @ c))
    np.testing.assert_allclose(
        PrivateProjection().fit(unit, PRIVATE).transform(unit), printed, atol=1e-13
    )


def test_several_private_features_at_once():
    private = np.column_stack([PRIVATE, X[:, 0] ** 2, 2 * PRIVATE])
    shared = PrivateProjection().fit(X, private).transform(X)
    for column in private.T:
        assert correlations(shared, column, X) < 1e-13
    assert np.linalg.matrix_rank(shared - shared.mean(axis=0), tol=1e-9) == 2


def test_what_is_nothing_but_rounding_becomes_constant():
    same = np.column_stack([PRIVATE, PRIVATE * 1e6 + 1e8])
    shared = PrivateProjection().fit(same, PRIVATE).transform(same)
    assert (shared == shared[0]).all()
    constant = np.column_stack([X, np.full(80, 0.1)])
    phi = PrivateProjection().fit(constant, PRIVATE)
    np.testing.assert_allclose(phi.transform(constant)[:, 4], 0.1)
    np.testing.assert_allclose(
        phi.transform(constant)[:, :4], PrivateProjection().fit(X, PRIVATE).transform(X), atol=1e-12
    )
    np.testing.assert_allclose(phi.transform([[0, 0, 0, 0, 9.0]])[:, 4], 0.1)


def test_uncorrelated_rows_pass():
    table, private = np.array([[1.0], [1], [-1], [-1]]), [1.0, -1, 1, -1]
    np.testing.assert_array_equal(PrivateProjection().fit(table, private).transform(table), table)


def test_copies_agree():
    phi = PrivateProjection().fit(X, PRIVATE)
    assert isinstance(phi, FeatureMap)
    again = pickle.loads(pickle.dumps(phi))
    np.testing.assert_array_equal(again.transform(X), phi.transform(X))


def test_bad_input_is_refused_by_name():
    phi = PrivateProjection()
    with pytest.raises(ValueError, match="map: it has not been fitted"):
        phi.transform(X)
    for private, message in (
        (None, "private: the private feature of each row"),
        (PRIVATE[1:], "private: one for each of the m >= 2 rows"),
        (np.full(80, 0.1), "private: column 0 is constant"),
        (np.full(80, np.nan), r"private: entry \(0,\) is nan"),
    ):
        with pytest.raises(ValueError, match=message):
            phi.fit(X, private)
    with pytest.raises(ValueError, match=r"X: entry \(0, 0\) is nan"):
        phi.fit(X * np.nan, PRIVATE)
