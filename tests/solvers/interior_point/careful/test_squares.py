"""Systems of steps in twice the digits, against dense algebra and fractions."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from gtvcvx.conic._form import Cone
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.solvers.interior_point.careful import _layout
from gtvcvx.solvers.interior_point.careful._asymmetric import AsymmetricCones
from gtvcvx.solvers.interior_point.careful._defined import Defined
from gtvcvx.solvers.interior_point.careful._layout import Layout, by_rows
from gtvcvx.solvers.interior_point.careful._newton import ConicNewton
from gtvcvx.solvers.interior_point.careful._squares import Squares, TooLarge
from gtvcvx.solvers.interior_point.careful._symmetric import Scaling, SymmetricCones
from gtvcvx.solvers.interior_point.careful._twofold import (
    add_products,
    add_transposed,
    add_triples,
    divide,
    scale_triples,
)

CONES = [
    *(Cone("zero", 4), Cone("nonneg", 5), Cone("soc", 4), Cone("soc", 3), Cone("soc", 4)),
    *(Cone("power", 3, (0.3, 0.7)), Cone("exp", 3), Cone("exp", 3)),
]
OTHERS = AsymmetricCones(CONES)
M, N = 29, 9


def with_definitions(rng):
    """Equations: variable 8 with a curvature, 7 in cones, 6 alone, and one that defines nothing."""
    P, A = np.zeros((N, N)), rng.standard_normal((M, N))
    P[:3, :3] = np.eye(3) + 0.5
    A[:, 6:] = 0.0
    A[0, 8], P[8, 8] = 2.0, 3.0
    A[1, 7], A[5, 7], A[10, 7] = -0.5, 1.3, 0.7
    A[2, 6] = 1.0
    return ConeProgram(sp.csc_array(P), rng.standard_normal(N), sp.csc_array(A), np.ones(M), CONES)


@pytest.fixture
def rng():
    return np.random.default_rng(8)


def test_steps_are_those_of_dense_algebra(rng):
    program, cones = with_definitions(rng), SymmetricCones(CONES)
    free, rest = cones.free, np.arange(4, M)
    s, z = (cones.inside(3.0 * rng.standard_normal(M)) for _ in range(2))
    scaling, squares = Scaling(cones, s, z), Squares(program, cones, OTHERS)
    roots = rng.standard_normal((3, 3, 3))
    squares.factorize(scaling, roots)
    top, bottom = rng.standard_normal(N), rng.standard_normal(M)
    dx, dy, dz = squares.solve(top, bottom)
    P, A = program.P.toarray(), program.A.toarray()
    np.testing.assert_allclose(P @ dx + A.T @ dz, top, atol=1e-12)
    np.testing.assert_allclose(A @ dx, dy, atol=1e-12)
    np.testing.assert_allclose(dy[free], bottom[free], atol=1e-12)
    left = scaling.divided(dy) - scaling.times(dz) - bottom
    at = OTHERS.at
    inverse = np.linalg.inv(roots.transpose(0, 2, 1))
    left[at] = times(roots, dy[at]) - times(inverse, dz[at]) - bottom[at]
    np.testing.assert_allclose(left[rest], 0.0, atol=1e-10)


def times(matrices, x):
    return np.einsum("kij,kj->ki", matrices, x)


def test_rows_of_three_are_scaled_as_by_dense_algebra(rng):
    """The twins of what is compiled, and digits beyond those of one number."""
    A = sp.csr_array(sp.random_array((M, N), density=0.6, rng=rng))
    layout = Layout.of(sp.csc_array((N, N)), A, SymmetricCones(CONES), OTHERS)
    roots = rng.standard_normal((3, 3, 3)) * 10.0 ** rng.uniform(-6, 6, (3, 3, 1))
    total, room = np.zeros((2, layout.size)), np.empty((6, N))
    add_triples(layout.triples, roots, total, room)
    found = np.zeros((N, N))
    found[*layout.edges.T] = total[0, layout.beside]
    found[np.diag_indices(N)] = total[0, layout.diagonal]
    scaled = [M @ A.toarray()[at] for M, at in zip(roots, OTHERS.at, strict=True)]
    wanted = sum(rows.T @ rows for rows in scaled)
    np.testing.assert_allclose(found, np.triu(wanted), rtol=1e-9, atol=1e-9 * np.abs(wanted).max())
    y = rng.standard_normal((2, M))
    y[1] *= 1e-17
    moved = y.copy()
    scale_triples(layout.triples.first, roots, moved)
    for rows, matrix in zip(OTHERS.at, roots, strict=True):
        for row, number in zip(matrix, exact(moved[:, rows]), strict=True):
            products = (Fraction(float(a)) * b for a, b in zip(row, exact(y[:, rows]), strict=True))
            assert abs(number - sum(products)) < Fraction(float(np.abs(row).max())) / 10**29
    others = np.setdiff1d(np.arange(M), OTHERS.at)
    np.testing.assert_array_equal(moved[:, others], y[:, others])


def test_variables_that_equations_define_are_in_no_system(rng):
    defined = Defined.of(with_definitions(rng), np.arange(4))
    assert sorted(zip(defined.rows, defined.columns, strict=True)) == [(0, 8), (1, 7), (2, 6)]
    assert list(defined.kept) == list(range(6))


def test_weights_that_differ_by_more_than_sixteen_digits_are_kept(rng):
    """Scaled rows of 1e5 and 1e-5: least squares with weights of 1e10 and 1e-10."""
    A, cones = rng.standard_normal((4, 3)), [Cone("nonneg", 4)]
    none = sp.csc_array((3, 3))
    program = ConeProgram(none, np.zeros(3), sp.csc_array(A), np.zeros(4), cones)
    known = SymmetricCones(cones)
    s, z = np.array([1e-5, 1e-5, 1e5, 1e5]), np.array([1e5, 1e5, 1e-5, 1e-5])
    squares = Squares(program, known, AsymmetricCones(cones))
    squares.factorize(Scaling(known, s, z), np.empty((0, 3, 3)))
    right = np.array([1e5, -2e5, 3e-5, 5e-5])
    dx, _, _ = squares.solve(np.zeros(3), right)
    # The first two rows hold; in the direction that is left the others fit.
    direction = np.cross(A[0], A[1])
    start = np.linalg.lstsq(A[:2], np.array([1.0, -2.0]), rcond=None)[0]
    own, aim = A[2:] @ direction, np.array([3.0, 5.0]) - A[2:] @ start
    np.testing.assert_allclose(dx, start + (own @ aim) / (own @ own) * direction, rtol=1e-3)


def exact(x):
    return [Fraction(float(high)) + Fraction(float(low)) for high, low in x.T]


def test_products_with_rows_have_thirty_digits(rng):
    A = sp.csr_array(sp.random_array((6, 5), density=0.6, rng=rng))
    x, y = rng.standard_normal((2, 5)), rng.standard_normal((2, 6))
    x[1], y[1] = 1e-17 * x[1], 1e-17 * y[1]
    dense = [[Fraction(float(a)) for a in row] for row in A.toarray()]
    along, back = np.zeros((2, 6)), np.zeros((2, 5))
    add_products(by_rows(A), x, along)
    add_transposed(by_rows(A), y, back)
    ex, ey = exact(x), exact(y)
    for row, found in zip(dense, exact(along), strict=True):
        assert abs(found - sum(a * b for a, b in zip(row, ex, strict=True))) < Fraction(1, 10**29)
    for column, found in zip(zip(*dense, strict=True), exact(back), strict=True):
        right = sum(a * b for a, b in zip(column, ey, strict=True))
        assert abs(found - right) < Fraction(1, 10**29)
    by = np.array([3.0, -7.0, 0.1, 1e5, 2.0])
    divide(x, by)
    for found, first, factor in zip(exact(x), ex, by, strict=True):
        assert abs(found - first / Fraction(float(factor))) < Fraction(1, 10**29)


def test_what_takes_too_many_multiplications_is_refused(rng):
    with pytest.raises(TooLarge):
        ConicNewton(with_definitions(rng), most=1.0)


def test_the_deadline_is_looked_at_while_entries_are_located(rng, monkeypatch):
    program, cones = with_definitions(rng), SymmetricCones(CONES)
    whole = Squares(program, cones, OTHERS)._layout
    looks = []
    monkeypatch.setattr(_layout, "look", lambda: looks.append(1))
    monkeypatch.setattr(_layout, "A_LOOK", 5)
    pieces = Squares(program, cones, OTHERS)._layout
    assert len(looks) > 5
    np.testing.assert_array_equal(pieces.pairs.places, whole.pairs.places)
    np.testing.assert_array_equal(pieces.cones.places, whole.cones.places)
    np.testing.assert_array_equal(pieces.triples.places, whole.triples.places)
