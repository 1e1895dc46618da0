"""Bounds from points that are only nearly dual: never above the optimum."""

import numpy as np
import pytest
import scipy.sparse as sp

from gtvcvx.conic._form import Cone
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.conic._weak_duality import inside, weak_duality

# max |r| <= t, both ways, as two programs with known optima.
R = np.array([3.0, 4.0])
LENGTH = ConeProgram(
    sp.csc_array((1, 1)), np.ones(1), sp.csc_array([[-1.0], [0.0], [0.0]]),
    np.array([0.0, *R]), [Cone("soc", 3)],
)  # fmt: skip
EXPONENTIAL = ConeProgram(  # t >= exp(1)
    sp.csc_array((1, 1)), np.ones(1), sp.csc_array([[0.0], [0.0], [-1.0]]),
    np.array([1.0, 1.0, 0.0]), [Cone("exp", 3)],
)  # fmt: skip
POWER = ConeProgram(  # t^.5 >= 3
    sp.csc_array((1, 1)), np.ones(1), sp.csc_array([[-1.0], [0.0], [0.0]]),
    np.array([0.0, 1.0, 3.0]), [Cone("power", 3, (0.5, 0.5))],
)  # fmt: skip
CASES = {
    "soc": (LENGTH, 5.0, np.array([1.0, -0.6, -0.8])),
    "exp": (EXPONENTIAL, np.e, np.array([-np.e, 0.0, 1.0])),
    "power": (POWER, 9.0, np.array([1.0, 9.0, -6.0])),
}


@pytest.mark.parametrize("name", CASES)
def test_the_optimal_multipliers_prove_the_optimum(name):
    program, optimum, z = CASES[name]
    # An ulp inside: at the boundary itself nothing is sure.
    z = z.copy()
    z[0 if name == "exp" else -1] *= 1.0 - 1e-12
    x = np.array([optimum])
    bound = weak_duality(program, x, z, np.abs(x))
    assert bound is not None
    assert bound.value - bound.doubt <= optimum <= bound.value + bound.doubt + 1e-10
    assert bound.doubt <= 1e-12 * optimum


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("beside", [0.0, 1e-12, 1e-9])
def test_multipliers_beside_their_cone_prove_nearly_as_much(name, beside):
    program, optimum, z = CASES[name]
    z, x = z.copy(), np.array([optimum])
    z[0 if name == "exp" else -1] *= 1.0 + beside  # outside, or on the boundary
    bound = weak_duality(program, x, z, np.abs(x))
    assert bound is not None
    assert bound.value - bound.doubt <= optimum
    assert bound.value - bound.doubt >= optimum * (1.0 - 20.0 * beside - 1e-12)


@pytest.mark.parametrize(
    ("z", "cone"),
    [
        ([1e-12, 2.0, 3.0], Cone("exp", 3)),  # beside the face where the first is zero
        ([-1e-300, -1.0, 1.0], Cone("exp", 3)),  # the surface is at infinity
        ([-2.0, 1.0, -1.0], Cone("exp", 3)),
        ([-1e-14, 3.0, -1e-15], Cone("exp", 3)),
        ([-1e-14, 1.0, 1e-9], Cone("power", 3, (0.3, 0.7))),
        ([1.0, 2.0, -9.0], Cone("power", 3, (0.3, 0.7))),
        ([1e-300, 1e-300, 1.0], Cone("power", 3, (0.3, 0.7))),
        ([1e307, 1e307, 1.7e308], Cone("power", 3, (0.3, 0.7))),  # the surface is beyond doubles
    ],
)
def test_moved_multipliers_are_in_the_dual_cone(z, cone):
    """They have no negative product with any point of the cone."""
    moved = inside(np.array(z), [cone])
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal(500) * 10.0 ** rng.uniform(-2, 2, 500), np.ones(500)
    third = np.exp(np.minimum(first, 300.0))
    if cone.kind == "power":
        first, second = 10.0 ** rng.uniform(-3, 3, (2, 500))
        third = first ** cone.exponents[0] * second ** cone.exponents[1] * rng.choice([-1, 1], 500)
    points = np.array([first, second, third])
    products = moved[:, None] / np.abs(moved).max() * points
    assert (products.sum(axis=0) >= -1e-14 * np.abs(products).sum(axis=0)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "cone", [Cone("nonneg", 3), Cone("soc", 3), Cone("exp", 3), Cone("power", 3, (0.5, 0.5))]
)
@pytest.mark.parametrize("place", range(3))
def test_what_is_no_number_is_in_no_cone(cone, place, wrong):
    z = np.ones(3)
    z[place] = wrong
    assert inside(z, [cone]) is None


@pytest.mark.parametrize("name", CASES)
def test_what_does_not_fit_is_in_doubt(name):
    program, optimum, z = CASES[name]
    rng, x = np.random.default_rng(0), np.array([optimum])
    for size in 10.0 ** rng.uniform(-9, 0, 200):
        moved = z + size * rng.standard_normal(3)
        bound = weak_duality(program, x, moved, np.abs(x))
        assert bound is None or bound.value - bound.doubt <= optimum


def test_curvatures_make_up_for_what_does_not_fit():
    """(x - 3)^2 / 2 - 9 / 2 subject to x >= 1, beside a point that is far off."""
    program = ConeProgram(
        sp.csc_array([[1.0]]), np.array([-3.0]), sp.csc_array([[-1.0]]),
        np.array([-1.0]), [Cone("nonneg", 1)],
    )  # fmt: skip
    bound = weak_duality(program, np.array([7.0]), np.zeros(1), np.array([7.0]))
    assert bound.value == pytest.approx(-4.5)
    assert bound.doubt <= 1e-13


def test_far_from_the_optimum_nothing_is_proved():
    """The bound would be 10, not 5, beside the point zero, which says that solutions are small."""
    program, _, z = CASES["soc"]
    assert weak_duality(program, np.zeros(1), 2.0 * z, np.zeros(1)) is None


@pytest.mark.parametrize("name", ["exp", "power"])
def test_multipliers_outside_prove_nothing(name):
    program, optimum, z = CASES[name]
    assert weak_duality(program, np.array([optimum]), -z, np.array([optimum])) is None


def test_other_cones_are_not_known():
    program = LENGTH._replace(cones=[Cone("psd", 3)])
    assert weak_duality(program, np.ones(1), np.ones(3), np.ones(1)) is None
