"""What is no table of real numbers is refused, with its name, wherever tables come in."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import verify
from verify._real_numbers import real_numbers


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0, 1j], "x must be real numbers, got complex128"),
        (["1", "2"], "x must be real numbers, got text"),
        ([b"1"], "x must be real numbers, got text"),
        (np.array(["1.0"], dtype=object), "got an entry of str"),
        ([1, None], "got an entry of NoneType"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "got datetime64"),
        (np.ma.masked_invalid([1.0, np.nan]), "x is masked"),
        ([[1.0], [1.0, 2.0]], "x must be an array of numbers"),
    ],
)
def test_what_is_refused(value: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        real_numbers(value, "x")


def test_what_is_taken_is_not_changed() -> None:
    for value in ([1, 2], [True], [0.5], [Fraction(1, 3)], [Decimal("0.1")], [10**400], []):
        assert real_numbers(value, "x").tolist() == value
    assert real_numbers(np.ma.array([1.0, 2.0]), "x").tolist() == [1.0, 2.0]  # nothing is masked


@pytest.mark.parametrize("bad", [1j, "masked"])
def test_connectivity_refuses_them_too(bad: Any) -> None:
    a: Any = np.zeros((2, 1))
    a = np.ma.masked_equal([[0.0], [1.0]], 1.0) if bad == "masked" else a + bad
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 2,
        "dim": 1,
        "edges": [[0, 1]],
        "weights": [1.0],
        "lam": 1.0,
        "penalty": {"kind": "l2"},
        "terms": [{"kind": "point", "node": [0, 1], "a": a}],
    }
    with pytest.raises((TypeError, ValueError), match=r"terms\[0\]\.a"):
        verify.well_connected(data, [0, 0])
    with pytest.raises(ValueError, match=r"terms\[0\]\.a"):
        verify.certify(data, [[0.0], [0.0]])
