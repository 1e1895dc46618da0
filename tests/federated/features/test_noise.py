"""Additive noise, and the estimate of mutual information that it is measured by."""

import pickle

import numpy as np
import pytest

from gtvcvx.federated.features import AdditiveNoise, FeatureMap, gaussian_mutual_information

X = np.random.default_rng(0).standard_normal((20_000, 2)) * [1.0, 1e3] + [0.0, 1e5]


def test_noise_has_the_deviation_of_each_column():
    phi = AdditiveNoise([0.5, 0.0], seed=1).fit(X)
    noise = phi.transform(X) - X
    # Four deviations of the estimate: 4 / sqrt(2 m).
    assert noise[:, 0].std() == pytest.approx(0.5, rel=0.02)
    assert abs(np.corrcoef(noise[:, 0], X[:, 0])[0, 1]) < 0.03
    assert not noise[:, 1].any()


def test_seeds_repeat_calls_draw_anew_and_copies_go_on():
    one, other = AdditiveNoise(1.0, 3).fit(X), AdditiveNoise(1.0, 3).fit(X)
    assert isinstance(one, FeatureMap)
    first = one.transform(X)
    np.testing.assert_array_equal(first, other.transform(X))
    copied = pickle.loads(pickle.dumps(one))
    second = one.transform(X)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(copied.transform(X), second)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
def test_noise_takes_away_information_as_the_formula_says(sigma):
    shared = AdditiveNoise([sigma, sigma * 1e3], 2).fit(X).transform(X)
    expected = 0.5 * np.log(1 + 1 / sigma**2)
    assert gaussian_mutual_information(X[:, 0], shared) == pytest.approx(expected, abs=0.01)


def test_information_of_copies_and_of_nothing():
    assert gaussian_mutual_information(X[:, 0], X) == np.inf
    noise = np.random.default_rng(9).standard_normal((20_000, 3))
    assert gaussian_mutual_information(X[:, 0], noise) < 1e-3
    assert gaussian_mutual_information(X[:, 0], np.full((20_000, 1), 0.1)) < 1e-15
    # Units and copies of columns tell nothing new.
    half = X[:, :1] + noise[:, :1]
    twice = np.column_stack([half * 1e9, -half, half + 5])
    one, other = (gaussian_mutual_information(X[:, 0], shared) for shared in (half, twice))
    assert one == pytest.approx(other, rel=1e-9)


def test_bad_input_is_refused_by_name():
    for sigma in (-1.0, np.nan, [[1.0]]):
        with pytest.raises(ValueError, match="sigma: a finite number >= 0"):
            AdditiveNoise(sigma, 0)
    with pytest.raises(ValueError, match="seed: an integer or a generator"):
        AdditiveNoise(1.0, None)
    with pytest.raises(ValueError, match="sigma: 2 deviations are expected, got 3"):
        AdditiveNoise([1.0, 1, 1], 0).fit(X)
    with pytest.raises(ValueError, match="map: it has not been fitted"):
        AdditiveNoise(1.0, 0).transform(X)
    with pytest.raises(ValueError, match=r"X: entry \(0, 0\) is inf"):
        AdditiveNoise(1.0, 0).fit([[np.inf]])
    with pytest.raises(ValueError, match=r"shared: more than d \+ 1 = 3 rows"):
        gaussian_mutual_information([1.0, 2, 3], X[:3])
    with pytest.raises(ValueError, match="private: it is constant"):
        gaussian_mutual_information(np.full(20_000, 0.1), X)
    with pytest.raises(ValueError, match="private: 20000 numbers"):
        gaussian_mutual_information([1.0], X)
