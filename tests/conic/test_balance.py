"""Multipliers are moved onto their equations, inside their cones; bounds stay below the optimum."""

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp

from gtvcvx.conic import _balance
from gtvcvx.conic._balance import balanced
from gtvcvx.conic._form import Cone
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.conic._weak_duality import inside, weak_duality

CONES = [Cone("zero", 3), Cone("nonneg", 9), Cone("soc", 4), Cone("soc", 1), Cone("soc", 6)]
ROWS = sum(cone.rows for cone in CONES)


def pair(seed, n=8, curved=False):
    """Return a program, a strictly feasible point of it and of its dual."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((ROWS, n), density=0.5, rng=rng, data_sampler=rng.standard_normal).tocsc()
    P = sp.diags_array(np.where(np.arange(n) % 3 == 0, 1.0, 0.0) * curved).tocsc()
    x = rng.standard_normal(n)
    z, s = (np.concatenate([interior(rng, cone, dual) for cone in CONES]) for dual in (True, False))
    q = -(P @ x + A.T @ z)
    return ConeProgram(P, q, A, A @ x + s, CONES), x, z


def interior(rng, cone, dual):
    part = rng.standard_normal(cone.rows)
    if cone.kind == "zero":
        return part if dual else np.zeros(cone.rows)
    if cone.kind == "nonneg":
        return np.abs(part) + 0.1
    part[0] = np.linalg.norm(part[1:]) + 0.5
    return part


def missing(program, x, z):
    return np.abs(program.P @ x + program.q + program.A.T @ z).max()


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_equations_are_met_inside_the_cones(seed, curved):
    program, x, z = pair(seed, curved=curved)
    rng = np.random.default_rng(seed)
    beside = z * (1.0 + 1e-6 * rng.standard_normal(ROWS))
    found = balanced(program, x, beside)
    assert missing(program, x, beside) > 1e-7
    if not curved:  # what is curved meets its own equations at another point
        assert missing(program, x, found) <= 1e-13
    np.testing.assert_array_equal(inside(found, CONES), found)
    np.testing.assert_allclose(found, z, atol=1e-4)
    before, after = (weak_duality(program, x, at, 10.0 + np.abs(x)) for at in (beside, found))
    assert after.doubt <= 1e-3 * before.doubt


def optimum(program, accuracy):
    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonneg": clarabel.NonnegativeConeT,
        "soc": clarabel.SecondOrderConeT,
    }
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = accuracy
    P, A = (sp.csc_matrix(part) for part in (program.P, program.A))
    cones = [kinds[cone.kind](cone.rows) for cone in program.cones]
    answer = clarabel.DefaultSolver(P, program.q, A, program.b, cones, settings).solve()
    return np.array(answer.x), np.array(answer.z), answer.obj_val


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_rough_solutions_hold(seed):
    program, _, _ = pair(seed, curved=bool(seed % 2))
    exact, _, value = optimum(program, 1e-10)
    x, z, _ = optimum(program, 1e-3)
    found = balanced(program, x, z)
    bound = weak_duality(program, x, found, np.abs(exact) + np.abs(x))
    assert bound is not None
    assert bound.value - bound.doubt <= value + 1e-8 * (1.0 + abs(value))
    assert bound.value >= value - 0.05 * (1.0 + abs(value))


def test_multipliers_on_the_boundary_stay():
    """There are no rows that could move; what is missing stays so."""
    program = ConeProgram(
        sp.csc_array((2, 2)), np.ones(2), sp.csc_array(-np.eye(2)), np.zeros(2), [Cone("nonneg", 2)]
    )  # fmt: skip
    z = np.array([0.0, 2.0])
    np.testing.assert_allclose(balanced(program, np.zeros(2), z), [0.0, 1.0])


def test_what_is_in_no_cone_or_large_is_left_alone(monkeypatch):
    program, x, z = pair(0)
    assert balanced(program, x, np.full(ROWS, np.nan)) is None
    monkeypatch.setattr(_balance, "MOST", 10)
    assert balanced(program, x, z) is None


def test_a_singular_system_is_left_alone(monkeypatch):
    """Two equal columns, and nothing added to the diagonal."""
    monkeypatch.setattr(_balance, "SHIFT", 0.0)
    A = sp.csc_array([[-1.0, -1.0]])
    program = ConeProgram(sp.csc_array((2, 2)), np.ones(2), A, np.zeros(1), [Cone("nonneg", 1)])
    assert balanced(program, np.zeros(2), np.array([0.5])) is None
