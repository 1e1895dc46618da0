"""The scalar functions of the losses: slopes, values and gaps agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _plain_instances import instance

from verify.instance._functions import Exponential, Logistic, Piecewise, Poisson
from verify.instance._instance import Instance, load


def _functions(inst: Instance) -> list[Any]:
    return [p.function for p in inst.parts if not p.equation]


def test_functions_are_those_of_the_data() -> None:
    """Slopes against differences, gaps against the Fenchel-Young inequality, all kinds at once."""
    inst = load(instance(32, "every_kind", "l2", "connected", 9, 2))
    rng = np.random.default_rng(0)
    for f in _functions(inst):
        z = rng.uniform(-2, 2, f.y.shape)
        if isinstance(f, Piecewise) and np.isinf(np.where(f.limited, f.value(z), 0)).any():
            z = np.where(
                np.isinf(f.hi), f.y - np.abs(z), np.where(np.isinf(f.lo), f.y + np.abs(z), z)
            )
        h = 1e-6
        with np.errstate(invalid="ignore"):
            difference = (f.value(z + h) - f.value(z - h)) / (2 * h)
        smooth = np.abs(z - f.y) > 1e-3
        known = np.isfinite(difference) & (smooth | isinstance(f, Exponential))
        np.testing.assert_allclose(f.slope(z)[known], difference[known], atol=1e-5)
        r = f.clip(rng.uniform(-2, 2, f.y.shape))
        gaps = f.gaps(r, z)
        assert (gaps >= 0).all()
        for other in rng.uniform(-3, 3, (40, *f.y.shape)):  # h*(r) >= r z' - h(z') for all z'
            assert (gaps >= r * (other - z) - f.value(other) + f.value(z) - 1e-12).all()
        own = f.slope(z)
        finite = np.isfinite(own)
        assert (f.gaps(np.where(finite, own, r), z)[finite] <= 1e-12).all()


@pytest.mark.parametrize("z", [60.0, 1000.0, 1e5])
def test_gaps_are_finite_where_a_chance_is_zero_in_doubles(z: float) -> None:
    """Raw units separate data by margins of thousands: multipliers of 1e-12 cost next to nothing.

    The gap was infinite, and the proof of a right answer was lost.
    """
    p, ones = 1e-12, np.ones(2)
    y = np.array([1.0, 0.0])
    logistic = Logistic(y, ones, -y, 1.0 - y)
    expected = p * (np.log(p) + z) + (1.0 - p) * np.log1p(-p)
    gaps = logistic.gaps(p * (1.0 - 2.0 * y), z * (2.0 * y - 1.0))
    np.testing.assert_allclose(gaps, expected, rtol=1e-9)
    poisson = Poisson(np.zeros(1), ones[:1], np.zeros(1), np.full(1, np.inf))
    np.testing.assert_allclose(
        poisson.gaps(np.array([p]), np.array([-z])), p * (np.log(p) + z - 1.0), rtol=1e-9
    )
