"""Bad input is refused by name; names and plain data round-trip."""

import json

import cvxpy as cp
import numpy as np
import pytest

from gtvcvx.penalties import (
    CompiledForm,
    L1Norm,
    L2Norm,
    LinfNorm,
    Penalty,
    PNorm,
    Quadratic,
    SquaredNorm,
    as_penalty,
    penalty_from_data,
)

ONES = np.ones((3, 2))


def with_entry(edge, value):
    rows = ONES.copy()
    rows[edge, 1] = value
    return rows


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda p: p.value(with_entry(1, np.nan)), ValueError, "v of penalty .*edge 1 has nan"),
        (lambda p: p.conjugate(with_entry(2, np.inf)), ValueError, "z of penalty .*edge 2 has inf"),
        (lambda p: p.conjugate(ONES, tol=-1.0), ValueError, "tol must be"),
        (lambda p: p.conjugate(ONES, tol=np.nan), ValueError, "tol must be"),
        (lambda p: p.value(np.ones(3)), ValueError, r"shape \(m, d\)"),
        (lambda p: p.value(np.ones((3, 0))), ValueError, r"d >= 1"),
        (lambda p: p.value([["a", "b"]]), TypeError, "real numbers"),
        (lambda p: p.value(1j * ONES), TypeError, "real numbers"),
        (lambda p: p.prox(ONES, [1.0, 1.0]), ValueError, r"t must have shape \(3,\)"),
        (lambda p: p.prox(ONES, [1.0, -1.0, 1.0]), ValueError, "t must be .*>= 0.*edge 1"),
        (lambda p: p.prox_conjugate(ONES, 0.0, 1.0), ValueError, "sigma must be .*> 0"),
        (lambda p: p.prox_conjugate(ONES, 1.0, [1, 1, 0]), ValueError, "cap must be .*edge 2"),
        (lambda p: p.project_domain(ONES, np.nan), ValueError, "cap must be finite"),
        (lambda p: p.fenchel_gap(ONES, ONES[:2], 1.0), ValueError, "u must have the shape"),
        (lambda p: p.scale_to_feasible(with_entry(0, np.nan), 1.0), ValueError, "u of penalty"),
    ],
)
@pytest.mark.parametrize("penalty", [L2Norm(), PNorm(3), Quadratic(np.eye(2))], ids=str)
def test_bad_arrays(penalty, call, error, message):
    with pytest.raises(error, match=message):
        call(penalty)


@pytest.mark.parametrize("penalty", [SquaredNorm(), Quadratic(np.eye(2))], ids=str)
def test_only_norms_have_a_dual_norm(penalty):
    with pytest.raises(TypeError, match=f"'{penalty.name}' is not a norm"):
        penalty.dual_norm(ONES)


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.ones((2, 3)), ValueError, r"square.*\(2, 3\)"),
        (np.ones(4), ValueError, "square"),
        (np.empty((0, 0)), ValueError, "square"),
        ([[1.0, np.nan], [0.0, 1.0]], ValueError, r"finite, but Q\[0, 1\]"),
        ([[1.0, 0.5], [0.0, 1.0]], ValueError, r"symmetric, but Q\[0, 1\] = 0.5"),
        ([[1.0, 2.0], [2.0, 1.0]], ValueError, "positive semidefinite.* -1"),
        ([["a", "b"], ["c", "d"]], TypeError, "real numbers"),
    ],
)
def test_bad_matrices(matrix, error, message):
    with pytest.raises(error, match=message):
        Quadratic(matrix)


def test_quadratic_knows_its_dimension():
    with pytest.raises(ValueError, match="d = 3 columns, got 2"):
        Quadratic(np.eye(3)).value(ONES)
    with pytest.raises(ValueError, match="made for d = 3"):
        as_penalty(Quadratic(np.eye(3)), 2)


def test_quadratic_keeps_its_own_matrix():
    given = np.eye(2)
    penalty = Quadratic(given)
    given[0, 0] = 5.0
    assert penalty.Q[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        penalty.Q[0, 0] = 5.0


@pytest.mark.parametrize("p", [0.5, -1.0, np.nan, 0.999999])
def test_exponents_below_one(p):
    with pytest.raises(ValueError, match="p must be >= 1"):
        PNorm(p)


@pytest.mark.parametrize("p", ["2", None, True, 2j])
def test_exponents_that_are_no_numbers(p):
    with pytest.raises(TypeError, match="p must be a real number"):
        PNorm(p)


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"'l1', 'l2', 'linf', 'squared'.*'tv'"):
        as_penalty("tv", 2)
    with pytest.raises(TypeError, match=r"'l1', 'l2', 'linf', 'squared'.*int"):
        as_penalty(2, 2)


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [("l2", L2Norm, 0), ("l1", L1Norm, 1), ("linf", LinfNorm, 2), ("squared", SquaredNorm, 3)],
)
def test_names(name, kind, code):
    penalty = as_penalty(name, 4)
    assert type(penalty) is kind
    assert penalty.name == name
    assert penalty.compiled_form == code
    assert as_penalty(penalty, 4) is penalty


def test_compiled_forms_of_objects():
    assert PNorm(2).compiled_form == CompiledForm.L2
    assert PNorm(1).compiled_form == CompiledForm.L1
    assert PNorm(np.inf).compiled_form == CompiledForm.LINF
    assert PNorm(3).compiled_form == CompiledForm.OTHER == -1
    assert Quadratic(np.eye(2)).compiled_form == CompiledForm.OTHER


@pytest.mark.parametrize("d", [2])
def test_data_round_trip(penalty, d, rng):
    data = penalty.to_data()
    text = json.dumps(data, default=lambda a: a.tolist())
    v = rng.standard_normal((4, d))
    for source in (data, json.loads(text)):
        copy = penalty_from_data(source)
        assert isinstance(copy, Penalty)
        np.testing.assert_array_equal(copy.value(v), penalty.value(v))
        np.testing.assert_array_equal(copy.prox(v, 0.3), penalty.prox(v, 0.3))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ({"kind": "tv"}, ValueError, "'l1', 'l2'.*'quadratic'.*'tv'"),
        ({}, ValueError, "got None"),
        ({"kind": ["l1"]}, ValueError, "kind must be"),
        ({"kind": "pnorm"}, ValueError, r"fields \['kind', 'p'\]"),
        ({"kind": "l1", "p": 3}, ValueError, r"fields \['kind'\]"),
        ({"kind": "pnorm", "p": 0.5}, ValueError, "p must be >= 1"),
        ({"kind": "pnorm", "p": "3"}, TypeError, "p must be a real"),
        ({"kind": "quadratic", "Q": [[-1.0]]}, ValueError, "positive semidefinite"),
        ("l1", TypeError, "must be a dict, got str"),
    ],
)
def test_bad_data(data, error, message):
    with pytest.raises(error, match=message):
        penalty_from_data(data)


def test_bad_expressions():
    with pytest.raises(ValueError, match=r"V of penalty 'l2' must have shape \(m, d\)"):
        L2Norm().weighted_expression(cp.Variable(3), np.ones(3))
    with pytest.raises(ValueError, match="weights must be finite and > 0, but edge 1"):
        L2Norm().weighted_expression(cp.Variable((2, 2)), [1.0, 0.0])
    with pytest.raises(TypeError, match="lam must be a scalar"):
        L2Norm().dual_expression(cp.Variable((2, 2)), np.ones(2), cp.Parameter())
