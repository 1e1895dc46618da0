"""Parts of the exact solver against oracles: linear systems, the proof."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx.solvers.exact import _linear as _exact_linear
from gtvcvx.solvers.exact._cluster_flows import ClusterFlows, Flow
from gtvcvx.solvers.exact._data import exact_data
from gtvcvx.solvers.exact._faces import Face, Point
from gtvcvx.solvers.exact._linear import PRIMES, Rational, Ray, solve_semidefinite
from gtvcvx.solvers.exact._proof import prove


def whole(values):
    return np.array(values, dtype=object)


def gram(rng, size, rank, bits):
    root = whole(rng.integers(-(2**bits), 2**bits, (rank, size)).tolist()).reshape(rank, size)
    return root.T.dot(root)


@pytest.mark.parametrize("eliminated", [0, 10**6], ids=["lifting", "elimination"])
@given(
    size=st.integers(1, 9),
    lost=st.integers(0, 3),
    bits=st.sampled_from([1, 2, 40]),
    seed=st.integers(0, 10**6),
)
def test_semidefinite_systems(eliminated, size, lost, bits, seed):
    """A solution solves; a ray shows that there is none. Which it is, the rank tells."""
    rng = np.random.default_rng(seed)
    A = gram(rng, size, max(size - lost, 0), bits)
    b = whole(rng.integers(-9, 10, size).tolist())
    if seed % 2:
        b = A.dot(b)
    start = Rational(whole(rng.integers(-9, 10, size).tolist()), 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_exact_linear, "ELIMINATED", eliminated)
        found = solve_semidefinite(A, b, start)
    if isinstance(found, Ray):
        assert not seed % 2
        assert (A.dot(found.direction) == 0).all()
        assert b.dot(found.direction) > 0
    else:
        assert found.denominator > 0
        assert (A.dot(found.numerators) == b * found.denominator).all()
        rank = np.linalg.matrix_rank(A.astype(float)) if bits < 40 else size - lost
        assert found.unique == (rank == size)


def test_large_numbers_are_lifted_back():
    """Thirty unknowns of 120 bits, against elimination."""
    rng = np.random.default_rng(0)
    A = gram(rng, 30, 32, 60)
    b = whole(rng.integers(-(2**60), 2**60, 30).tolist())
    found = solve_semidefinite(A, b, Rational(b, 1))
    oracle = _exact_linear._eliminate(A, b)
    assert [Fraction(x, found.denominator) for x in found.numerators] == [
        Fraction(x, oracle.denominator) for x in oracle.numerators
    ]


@pytest.mark.parametrize("size", [1, 15])
def test_an_unlucky_prime_is_passed_over(size):
    """Modulo the first prime the matrix is zero."""
    A = PRIMES[0] * np.eye(size, dtype=np.int64).astype(object)
    found = solve_semidefinite(A, whole([1] * size), Rational(whole([0] * size), 1))
    assert [Fraction(x, found.denominator) for x in found.numerators] == [
        Fraction(1, PRIMES[0])
    ] * size


def test_a_matrix_that_is_not_semidefinite_is_noticed():
    A, zero = whole([[0, 1], [1, 0]]), Rational(whole([0, 0]), 1)
    with pytest.raises(ArithmeticError, match="semidefinite"):
        solve_semidefinite(A, whole([1, 2]), zero)


def test_primes_are_prime():
    small = [p for p in range(2, 46341) if all(p % q for q in range(2, int(p**0.5) + 1))]
    assert all(prime < 2**31 and all(prime % q for q in small) for prime in PRIMES)


@pytest.fixture
def optimum():
    """Data, optimal point and optimal flow: two fused nodes and one apart."""
    graph = gtv.EmpiricalGraph(3, [(0, 1), (1, 2)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [0.25], [4.0]]), "l1", 1.0)
    data = exact_data(problem)
    point = Point(whole([[3], [3], [28]]), whole([[8], [8], [8]]))
    face = Face(data, point.signs(data.edges))
    flow, splits = ClusterFlows(data, np.zeros((2, 1))).find(point, face)
    assert not splits
    return data, point, flow


def test_the_proof_accepts_the_optimum(optimum):
    proof = prove(*optimum)
    assert proof.w == [[Fraction(3, 8)], [Fraction(3, 8)], [Fraction(7, 2)]]
    assert proof.u == [[Fraction(-3, 4)], [Fraction(-1)]]
    w = [row[0] for row in proof.w]
    losses = sum((x - a) ** 2 for x, a in zip(w, [0, Fraction(1, 4), 4], strict=True))
    assert proof.value == losses + w[2] - w[1]


def changed_point(optimum, w):
    return optimum[0], Point(whole(w), optimum[1].denominators), optimum[2]


def changed_flow(optimum, u, denominator=4):
    data, point, _ = optimum
    numerators = whole([[x * data.scale] for x in u])
    return data, point, Flow(numerators, np.full((2, 1), denominator * data.scale, dtype=object))


def test_the_proof_refuses_everything_else(optimum):
    assert prove(*changed_flow(optimum, [-3, -4])) is not None
    tiny = 2**200
    # Node gradients, conservation, sign, capacity, alignment: each broken by itself or almost.
    assert prove(*changed_point(optimum, [[3], [3], [29]])) is None
    assert prove(*changed_point(optimum, [[3], [4], [28]])) is None
    assert prove(*changed_flow(optimum, [-3 * tiny - 1, -4 * tiny], 4 * tiny)) is None
    assert prove(*changed_flow(optimum, [-3, 4])) is None
    assert prove(*changed_flow(optimum, [-3 * tiny, -4 * tiny - 1], 4 * tiny)) is None
    assert prove(*changed_flow(optimum, [-3 * tiny, -4 * tiny + 1], 4 * tiny)) is None


def test_an_edge_with_a_jump_must_be_full():
    """Flows that conserve within the capacity: every jump needs its edge full."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0]]), "l1", 0.5)
    data = exact_data(problem)
    quarters = prove(
        data, Point(whole([[1], [3]]), whole([[4], [4]])), Flow(whole([[-1]]), whole([[2]]))
    )
    assert quarters is not None
    eighths = Point(whole([[1], [7]]), whole([[8], [8]]))
    assert prove(data, eighths, Flow(whole([[-1]]), whole([[4]]))) is None


def test_conservation_alone_is_not_enough():
    """Without any jump: a flow that conserves but exceeds its capacity by next to nothing."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    for lam, optimal in [(1.0, True), (float(np.nextafter(1.0, 0.0)), False)]:
        problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[0.0], [1.0]]), "l1", lam)
        data = exact_data(problem)
        point = Point(whole([[1], [1]]), whole([[2], [2]]))
        flow = Flow(whole([[-1]]), whole([[1]]))
        assert (prove(data, point, flow) is not None) == optimal


def test_signs_of_jumps_that_floats_cannot_see():
    top = 10**40
    point = Point(whole([[top], [top + 1], [top]]), whole([[3 * top], [3 * top], [3 * top]]))
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    assert point.floats[0] == point.floats[1]
    assert point.signs(edges).ravel().tolist() == [-1, 1, 0]
    other = Point(whole([[1], [top + 1], [2]]), whole([[3], [3 * top], [6]]))
    assert other.signs(edges).ravel().tolist() == [-1, 1, 0]


def test_data_are_read_exactly():
    """Every float comes back from the integers; rows of a node share its 1/m."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)], [0.1])
    losses = [gtv.SquaredLoss([[0.3], [1e-30], [7.0]], [0.7, 1.0, 2.0]), gtv.PointLoss(1 / 3)]
    data = exact_data(gtv.GTVProblem(graph, losses, "l1", 0.7))
    X, y = [Fraction(x) for x in (0.3, 1e-30, 7.0)], [Fraction(x) for x in (0.7, 1.0, 2.0)]
    third = Fraction(1, 3)
    assert Fraction(data.capacities[0], data.scale) == Fraction(0.7) * Fraction(0.1)
    assert Fraction(data.quadratic[0, 0, 0], data.scale) == 2 * third * sum(x * x for x in X)
    inner = sum(a * b for a, b in zip(X, y, strict=True))
    assert Fraction(data.linear[0, 0], data.scale) == 2 * third * inner
    assert data.quadratic[1, 0, 0] == 2 * data.scale
    assert Fraction(data.linear[1, 0], data.scale) == 2 * Fraction(1 / 3)
    assert data.constant == third * sum(b * b for b in y) + Fraction(1 / 3) ** 2
