"""What is left out of numba's compiler is not missed, and what it would do again is not done."""

import numpy as np
import pytest
from numba.core.base import BaseContext
from numba.core.caching import NullCache
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import Flags
from numba.core.types import Function

from gtvcvx.compiled import _primal_dual, compiled, dims_of
from verify import _compilers

KINDS = [
    {"small": small, "allocates": allocates}
    for small in (False, True)
    for allocates in (False, True)
]


def uncached(**options):
    """The decorator, without files."""

    def decorate(function):
        dispatcher = compiled(**options)(function)
        dispatcher._cache = NullCache()
        return dispatcher

    return decorate


def calls(monkeypatch, owner, name):
    """Count the calls of a method from now on."""
    found, method = [], getattr(owner, name)

    def counted(*args, **kwargs):
        found.append(args)
        return method(*args, **kwargs)

    monkeypatch.setattr(owner, name, counted)
    return found


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_loops_compute_the_same(options):
    rng = np.random.default_rng(1)

    def add_squares(x, scale, out):
        for i in range(len(x)):
            for k in range(x.shape[1]):
                out[i] += scale * max(x[i, k], 0.0) ** 2

    x, found, expected = rng.standard_normal((7, 3)), np.ones(7), np.ones(7)
    uncached(**options)(add_squares)(x, 0.5, found)
    add_squares(x, 0.5, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("small", [False, True])
def test_branches_of_arguments_that_are_not_there_are_left_out(small):
    """Else their types would not be found out; a dimension is a constant to the compiler."""

    @uncached(allocates=False, small=small)
    def total(dims, x, weights):
        found = 0.0
        for i in range(len(x)):
            for k in range(len(dims)):
                if weights is not None:
                    found += weights[i] * x[i, k]
                elif x.ndim == 3:
                    found += x[i, k, 0]
                else:
                    found += x[i, k]
        return found

    x = np.random.default_rng(1).random((5, 3))
    assert total(dims_of(3), x, None) == pytest.approx(x.sum())
    if not small:  # where nothing is None small functions are not looked through for branches
        assert total(dims_of(3), x, np.full(5, 2.0)) == pytest.approx(2.0 * x.sum())


def test_a_function_is_not_compiled_for_a_constant_too():
    @uncached(inner=True, allocates=False)
    def after(top, x):
        return top + len(x)

    @uncached(allocates=False)
    def stacked(x):
        top = 0
        for _ in range(3):
            top = after(top, x)
        return top

    assert stacked(np.zeros(4)) == 12
    assert len(after.signatures) == 1


def test_what_operators_make_of_their_arguments_is_found_out_once(monkeypatch):
    monkeypatch.setattr(_compilers, "_KNOWN", {})

    def times(factor):
        @uncached(allocates=False)
        def scale(x):
            for i in range(len(x)):
                x[i] = factor * x[i] + x[i] * x[i]

        x = np.array([1.0, 2.0])
        scale(x)
        return x.tolist()

    assert times(2.0) == [3.0, 8.0]
    asked = calls(monkeypatch, Function, "get_call_type")
    assert times(3.0) == [4.0, 10.0]
    assert not asked


def test_new_definitions_are_not_looked_for_at_every_entry_of_an_array(monkeypatch):
    def function(x):
        total = 0.0
        for i in range(len(x)):
            total += x[i] * x[i] - x[i]
        return total

    uncached(allocates=False)(function)(np.ones(4))
    asked = calls(monkeypatch, BaseContext, "refresh")
    uncached(allocates=False)(function)(np.ones(4))
    # Once for the function, and not for each of three entries.
    assert len(asked) < 3


def test_what_unpacks_arguments_is_not_optimized_alone(monkeypatch):
    def function(x, y):
        for i in range(len(x)):
            x[i] += y[i]

    optimized = calls(monkeypatch, CPUCodeLibrary, "_optimize_functions")
    given = np.ones(3)
    uncached(allocates=False)(function)(given, np.ones(3))
    assert given.tolist() == [2.0, 2.0, 2.0]
    assert len(optimized) == 1


def test_the_iteration_counts_no_references():
    """Counting took two to four times as long as what it does with few coordinates."""
    for function in (_primal_dual.iterate, _primal_dual.node_block):
        assert not function.targetoptions["_nrt"]


def test_flags_have_the_values_that_numba_s_have():
    flags = Flags()
    flags.error_model = "numpy"
    ours = _compilers._Flags(flags)
    assert ours.values() == flags.values()
    assert ours == flags
    assert hash(ours) == hash(flags)
    assert ours.copy().values() == flags.values()
