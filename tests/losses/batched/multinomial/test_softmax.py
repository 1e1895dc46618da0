"""Rows over K classes against their formulas in long arithmetic, from even scores to tails."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from gtvcvx.losses.batched.multinomial import _softmax as softmax

SCALES = (1e-9, 1e-4, 1.0, 30.0, 300.0)


def rows(scale, seed=0, m=6, K=4):
    rng = np.random.default_rng(seed)
    own = np.eye(K, dtype=bool)[rng.integers(0, K, m)]
    return scale * rng.standard_normal((m, K)), own


@pytest.fixture(autouse=True)
def _long():
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 400, -(10**6), 10**6
        yield


def exact(x):
    return [Decimal(float(a)) for a in x]


def log_sum(z):
    return sum(a.exp() for a in exact(z)).ln()


def close(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found, np.array([float(x) for x in expected]), rtol=rtol, atol=0.0)


@pytest.mark.parametrize("scale", SCALES)
def test_values(scale):
    z, own = rows(scale)
    expected = [log_sum(row) - exact(row[y])[0] for row, y in zip(z, own, strict=True)]
    close(softmax.values(z, own), expected)


@pytest.mark.parametrize("scale", SCALES)
def test_slopes_keep_what_the_other_classes_have(scale):
    z, own = rows(scale)
    for row, mask, slope in zip(z, own, softmax.slopes(softmax.probabilities(z), own), strict=True):
        total = log_sum(row)
        chances = [(a - total).exp() for a in exact(row)]
        y = int(np.argmax(mask))
        chances[y] = -sum(p for k, p in enumerate(chances) if k != y)
        np.testing.assert_allclose(slope, [float(p) for p in chances], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("step", [1e-12, 1e-6, 1e-2, 3.0, 200.0])
def test_rises_without_cancellation(step):
    z, _ = rows(1.0)
    change = rows(step, seed=1)[0]
    q = softmax.probabilities(z)
    expected = []
    for chances, x in zip(q, change, strict=True):
        total = sum(exact(chances))
        p, x = [a / total for a in exact(chances)], exact(x)
        mean = sum(a * b for a, b in zip(p, x, strict=True))
        expected.append(sum(a * (b - mean).exp() for a, b in zip(p, x, strict=True)).ln())
    close(softmax.rises(q, change), expected, rtol=1e-9)


@pytest.mark.parametrize("step", [1e-9, 1e-4, 0.3, 20.0])
def test_divergences(step):
    z, own = rows(1.0)
    p = softmax.completed(softmax.probabilities(z + rows(step, seed=1)[0]), own)
    expected = []
    for chances, row in zip(p, z, strict=True):
        total = log_sum(row)
        pairs = list(zip(exact(chances), exact(row), strict=True))
        # What rounding leaves of the sum of the chances beside 1 is no gap.
        excess = sum(a for a, _ in pairs) - 1
        expected.append(sum(a * (a.ln() - x + total) for a, x in pairs) - excess)
    found = softmax.divergences(p, z)
    assert (found >= 0.0).all()
    close(found, expected, rtol=1e-6)


def test_no_chance_at_all():
    z, own = rows(1.0)
    p = own.astype(float)
    np.testing.assert_allclose(softmax.divergences(p, z), softmax.values(z, own), rtol=1e-12)
    np.testing.assert_array_equal(softmax.negative_entropies(p), np.zeros(len(z)))
