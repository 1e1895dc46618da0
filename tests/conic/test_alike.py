"""Forms of functions that differ in their constants alone are those of each, to the last bit."""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from gtvcvx.conic import _alike, _function
from gtvcvx.conic._alike import forms_alike, forms_of_kinds, kind_of
from gtvcvx.conic._form import ConicForm
from gtvcvx.conic._function import CvxpyFunction, make_forms


def _slack(X, y, w):
    t = cp.Variable(len(y), nonneg=True)
    return cp.sum(t) + y[0], [t >= X @ w - y, t >= y - X @ w]


# Data X (4, 3), y (4,), and the variable; y is of either sign.
BUILDS = {
    "norm": lambda X, y, w: cp.norm(X @ w - y, 2) + y[1],
    "squares": lambda X, y, w: cp.sum_squares(X @ w - y) / len(y) + y[0] * w[2],
    "huber": lambda X, y, w: cp.sum(cp.huber(X @ w - y, 0.5)),
    "weights": lambda X, y, w: np.abs(y[:3]) @ cp.abs(w - 1.0),
    "exponential": lambda X, y, w: cp.sum(cp.logistic(X @ w)) - (y @ X) @ w,
    "power": lambda X, y, w: cp.pnorm(X @ w - y, 1.5),
    "rules": lambda X, y, w: (cp.norm1(X @ w - y), [w <= 2 + y[0] ** 2, w[::2] >= -(X[1, 1] ** 2)]),
    "sparse": lambda X, y, w: cp.norm1(sp.csr_array(np.where(X > 0, X, 0)) @ w - y),
    "others": _slack,
}


def functions(build, count, **options):
    rng = np.random.default_rng(5)
    data = [(rng.standard_normal((4, 3)), rng.standard_normal(4)) for _ in range(count)]
    return [CvxpyFunction(lambda w, X=X, y=y: build(X, y, w, **options), 3) for X, y in data]


def assert_equal(found, expected):
    assert found.dim == expected.dim
    assert found.cones == expected.cones
    for name in ("P", "A"):
        one, other = getattr(found, name), getattr(expected, name)
        assert one.nnz == other.nnz
        np.testing.assert_array_equal(one.toarray(), other.toarray())
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.b, expected.b)
    assert found.offset == expected.offset


@pytest.mark.parametrize("name", BUILDS)
def test_forms_are_those_of_each(name):
    some = functions(BUILDS[name], 3)
    kinds = [kind_of(function.part) for function in some]
    assert kinds[0].key == kinds[1].key == kinds[2].key
    forms = forms_alike(some[1].part, [kind.values for kind in kinds])
    for form, function in zip(forms, some, strict=True):
        assert_equal(form, ConicForm.of(function._problem, function._w))


def _calls(monkeypatch):
    calls, solve = [], cp.Problem.get_problem_data
    monkeypatch.setattr(
        cp.Problem,
        "get_problem_data",
        lambda self, *args, **kwargs: calls.append(1) or solve(self, *args, **kwargs),
    )
    return calls


def test_each_kind_takes_one_canonicalization(monkeypatch):
    some = functions(BUILDS["norm"], 8) + functions(BUILDS["huber"], 8)
    calls = _calls(monkeypatch)
    make_forms(some)
    assert len(calls) == 2
    assert all(function.prepared for function in some)


def _in_c_order(entries, tensor, rows, place, parameters):
    """As if the rows of the tensor were stacked the other way."""
    tensor = sp.csr_array(tensor)
    order = np.arange(tensor.shape[0]).reshape(rows, -1, order="F").ravel()
    return entries(tensor[order], rows, place, parameters)


def _of_another_parameter(entries, tensor, rows, place, parameters):
    return entries(tensor, rows, place, np.roll(parameters, 1, axis=0))


def _without(entries, tensor, rows, place, parameters):
    raise KeyError("b")


@pytest.mark.parametrize("layout", [_in_c_order, _of_another_parameter, _without])
def test_other_tensors_than_known_are_noticed(layout, monkeypatch):
    entries = _alike._Entries.of
    monkeypatch.setattr(_alike._Entries, "of", staticmethod(partial(layout, entries)))
    some = functions(BUILDS["norm"], 8)
    assert forms_of_kinds([function.part for function in some]) == [None] * 8
    make_forms(some)
    for function in some:
        assert_close(function.form, ConicForm.of(function._problem, function._w))


OTHERS = {
    "a threshold": [lambda X, y, w, k=k: cp.sum(cp.huber(w, 1.0 + k)) for k in range(2)],
    "an exponent": [lambda X, y, w, p=p: cp.pnorm(w, p) for p in (1.5, 3.0)],
    "an index": [lambda X, y, w, k=k: cp.abs(w[k] - y[0]) for k in range(2)],
    "a variable": [lambda X, y, w, n=n: cp.norm(w - cp.Variable(3, nonneg=n)) for n in (0, 1)],
    "a rule": [lambda X, y, w: (w[0], [w >= 0]), lambda X, y, w: (w[0], [w == 0])],
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_differs_in_more_than_constants_is_another_kind(name):
    one, other = (kind_of(functions(build, 1)[0].part) for build in OTHERS[name])
    assert one.key != other.key


@pytest.mark.parametrize(
    "build",
    [
        lambda X, y, w: abs(y[0]) * cp.norm(X @ w - y),  # a product of parameters
        lambda X, y, w: cp.quad_form(w, X.T @ X),
    ],
)
def test_where_parameters_are_of_no_use_forms_are_made_beside_each_other(build, monkeypatch):
    some = functions(build, 8)
    make_forms(some)
    for function in some:
        assert function.prepared
        assert_close(function.form, ConicForm.of(function._problem, function._w))
    again = functions(build, 8)
    monkeypatch.setattr(_function, "forms_of_kinds", lambda parts: [None] * len(parts))
    make_forms(again)
    for function, other in zip(some, again, strict=True):
        assert_equal(function.form, other.form)


class _Absolute(cp.abs):
    """An atom of a user's, who may keep anything in it."""


def test_atoms_of_users_are_of_no_kind():
    [function] = functions(lambda X, y, w: cp.sum(_Absolute(w)), 1)
    assert kind_of(function.part) is None


def assert_close(found, expected):
    """The same numbers, whatever the empty rows."""
    np.testing.assert_array_equal(found.q, expected.q)
    np.testing.assert_array_equal(found.P.toarray(), expected.P.toarray())
    filled = np.diff(expected.A.tocsr().indptr) > 0
    kept = np.diff(found.A.tocsr().indptr) > 0
    np.testing.assert_array_equal(found.A.toarray()[kept], expected.A.toarray()[filled])
