"""Errors of single data points: by hand, and against the losses that average them."""

from __future__ import annotations

import numpy as np
import pytest

from gtvcvx.losses import stacked_from_terms
from gtvcvx.model_selection._errors import ROW_ERRORS, own_errors


def term_of(kind, rng):
    node = np.array([0, 0, 1, 1, 1])
    y = {
        "logistic": rng.integers(0, 2, 5).astype(float),
        "multinomial": rng.integers(0, 2, 5).astype(float),
        "poisson": rng.integers(0, 4, 5).astype(float),
        "hinge": rng.choice([-1.0, 1.0], 5),
    }.get(kind, rng.standard_normal(5))
    columns = 1 if kind == "multinomial" else 2  # of two classes
    term = {"kind": kind, "node": node, "X": rng.standard_normal((5, columns)), "y": y}
    delta = {"delta": np.full(5, 0.7)}
    extra = {"huber": delta, "pseudohuber": delta, "quantile": {"level": np.full(5, 0.3)}}
    return term | extra.get(kind, {})


def test_by_hand():
    w = np.array([[1.0, 2.0], [0.0, -1.0]])
    X = np.array([[1.0, 1.0], [0.0, 2.0]])
    base = {"node": np.array([0, 1]), "X": X}  # z = 3, -2
    expected = {
        "squared": ({"y": [1.0, 1.0]}, [4.0, 9.0]),
        "absolute": ({"y": [1.0, 1.0]}, [2.0, 3.0]),
        "huber": ({"y": [2.5, 1.0], "delta": [1.0, 1.0]}, [0.25, 5.0]),
        "pseudohuber": ({"y": [2.0, -2.0], "delta": [1.0, 1.0]}, [np.sqrt(2) - 1, 0.0]),
        "quantile": ({"y": [1.0, 1.0], "level": [0.2, 0.2]}, [1.6, 0.6]),
        "logistic": ({"y": [1.0, 1.0]}, [np.log1p(np.exp(-3)), 2 + np.log1p(np.exp(-2))]),
        "poisson": ({"y": [2.0, 0.0]}, [np.exp(3) - 6, np.exp(-2)]),
        "hinge": ({"y": [1.0, 1.0]}, [0.0, 3.0]),
        # Two classes of one feature: scores (1, 2) and (0, -1/2).
        "multinomial": (
            {"X": [[1.0], [0.5]], "y": [1.0, 0.0]},
            [np.log1p(np.exp(-1)), np.log1p(np.exp(-0.5))],
        ),
    }
    assert set(expected) == set(ROW_ERRORS)
    for kind, (data, errors) in expected.items():
        term = base | {"kind": kind} | {name: np.array(x) for name, x in data.items()}
        assert own_errors(term, w) == pytest.approx(errors), kind
    points = {"kind": "point", "node": np.array([1]), "a": np.array([[2.0, 1.0]])}
    assert own_errors(points, w) == pytest.approx([8.0])


@pytest.mark.parametrize("kind", ROW_ERRORS)
def test_their_means_are_the_loss(kind):
    rng = np.random.default_rng(0)
    term = term_of(kind, rng)
    losses = stacked_from_terms([term], 2)
    w = rng.standard_normal((2, 2))
    errors = own_errors(term, w)
    assert losses.value(w) == pytest.approx([errors[:2].mean(), errors[2:].mean()])
