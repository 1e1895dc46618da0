"""Careful steps on cone programs, against Clarabel and against what is known."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from gtvcvx.conic._form import Cone
from gtvcvx.conic._scaled import ConeProgram, clarabel_cone
from gtvcvx.solvers.interior_point.careful._asymmetric import AsymmetricCones
from gtvcvx.solvers.interior_point.careful._newton import ConicNewton

# Beside the symmetric cones of `with_solution`, their rows after those.
OTHERS = [
    *(Cone("exp", 3), Cone("power", 3, (0.3, 0.7)), Cone("exp", 3), Cone("power", 3, (0.5, 0.5))),
    Cone("power", 3, (0.9, 0.1)),
]


def with_others(rng):
    """A program with exponential and power cones as well, inside of which there are points."""
    program, rows = with_solution(rng), 3 * len(OTHERS)
    P, q, A, b, cones = program
    known = AsymmetricCones(OTHERS)
    more, middle = rng.standard_normal((rows, 7)), np.zeros(rows)
    middle[known.at] = known.unit
    q, b = q - more.T @ middle, np.append(b, more @ np.ones(7) + middle)
    return ConeProgram(P, q, sp.vstack([A, more], format="csc"), b, [*cones, *OTHERS])


def with_solution(rng, units=None):
    """A program with all kinds of cones, inside of which there are points and multipliers."""
    N, cones = 7, [Cone("zero", 2), Cone("nonneg", 8), Cone("soc", 4), Cone("soc", 3)]
    root = rng.standard_normal((2, N))
    A = rng.standard_normal((17, N)) * (1.0 if units is None else units)
    slack, z = np.zeros(17), rng.standard_normal(17)
    slack[2:10], z[2:10] = rng.random(8), rng.random(8)
    slack[[10, 14]], z[[10, 14]] = 1.0, 10.0
    P = root.T @ root
    q = -P @ np.ones(N) - A.T @ z
    return ConeProgram(sp.csc_array(P), q, sp.csc_array(A), A @ np.ones(N) + slack, cones)


def solved(program):
    newton = ConicNewton(program)
    for _ in range(40):
        newton.iterate()
        if newton.gap + newton.unfit <= 1e-10 or newton.length < 1e-8:
            break
    return newton


@pytest.mark.parametrize(
    ("make", "seed"), [*((with_solution, k) for k in range(5)), *((with_others, k) for k in (1, 2))]
)
def test_the_optimum_is_that_of_clarabel(make, seed):
    program = make(np.random.default_rng(seed))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P, q, A, b, cones = program
    each = [clarabel_cone(cone) for cone in cones]
    answer = clarabel.DefaultSolver(sp.triu(P, format="csc"), q, A, b, each, settings).solve()
    newton = solved(program)
    assert newton.gap + newton.unfit <= 1e-10
    assert newton.value == pytest.approx(answer.obj_val, rel=1e-6)


def test_columns_of_any_unit_are_solved():
    """Columns that differ by 1e8, two of them all but the same."""
    rng = np.random.default_rng(1)
    program = with_solution(rng, np.array([1.0, 1e3, 1e-5, 1e2, 1e3, 1.0, 10.0]))
    A = program.A.toarray()
    A[:, 1] = 1e3 * A[:, 0] + 1e-3 * A[:, 1]
    z = np.zeros(17)
    z[2:10], z[[10, 14]] = 1.0, 10.0
    q = -program.P @ np.ones(7) - A.T @ z
    s = np.zeros(17)
    s[2:10], s[[10, 14]] = 1.0, 1.0
    newton = solved(program._replace(A=sp.csc_array(A), q=q, b=A @ np.ones(7) + s))
    assert newton.gap <= 1e-9


def test_variables_that_nothing_determines_do_no_harm():
    """Two have the same columns, so that systems are singular."""
    program = with_solution(np.random.default_rng(3))
    P, q, A, b, cones = program
    twice = np.append(np.arange(7), 0)
    P, A = P.toarray(), A.toarray()
    doubled = ConeProgram(
        sp.csc_array(P[twice][:, twice]), q[twice], sp.csc_array(A[:, twice]), b, cones
    )
    newton = solved(doubled)
    assert newton.gap + newton.unfit <= 1e-10
    assert newton.value == pytest.approx(solved(program).value, rel=1e-8)


def test_from_a_point_it_goes_on_without_the_factor_of_a_start(monkeypatch):
    """One that is not scaled fills in more than those of all steps."""
    program = with_solution(np.random.default_rng(0))
    end = solved(program)
    monkeypatch.setattr(ConicNewton, "restart", lambda self: pytest.fail("started afresh"))
    newton = ConicNewton(program, start=(end.x, end.s.copy(), end.z))
    newton.iterate()
    assert newton.value == pytest.approx(end.value, rel=1e-8)


def test_optima_that_are_known():
    """Least of e^x - 2 x, and of |x|^3 - 3 x by a power cone, in one program."""
    # x, its exponential t; v, its power r.
    q = np.array([-2.0, 1.0, -3.0, 1.0])
    A = np.zeros((6, 4))
    A[0, 0] = A[2, 1] = A[3, 3] = A[5, 2] = -1.0
    b = np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    cones = [Cone("exp", 3), Cone("power", 3, (1.0 / 3.0, 2.0 / 3.0))]
    newton = ConicNewton(ConeProgram(sp.csc_array((4, 4)), q, sp.csc_array(A), b, cones))
    steps = 0
    while newton.gap + newton.unfit > 1e-10:
        newton.iterate()
        steps += 1
    assert steps <= 15
    np.testing.assert_allclose(newton.x, [np.log(2.0), 2.0, 1.0, 1.0], atol=1e-4)
    assert newton.value == pytest.approx(2.0 - 2.0 * np.log(2.0) - 2.0, abs=1e-9)


def test_starts_outside_other_cones_or_far_from_their_middle_are_left():
    program = with_others(np.random.default_rng(2))
    newton = ConicNewton(program)
    for _ in range(6):
        newton.iterate()
    x, s, z = newton.x, newton.s.copy(), newton.z.copy()
    assert ConicNewton(program, start=(x, s, z)).warm
    assert np.array_equal(ConicNewton(program, start=(x, s, z)).s, s)
    at = newton._others.at[0]
    for bad in (-z[at], np.array([-1e-9, 1.0, 1.0])):
        z[at] = bad
        newton = ConicNewton(program, start=(x, s, z))
        assert not newton.warm
        while newton.gap + newton.unfit > 1e-10 and newton.length > 1e-8:
            newton.iterate()
        assert newton.gap + newton.unfit <= 1e-10
