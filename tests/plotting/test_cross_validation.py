"""The picture of a cross-validation."""

from __future__ import annotations

import numpy as np
import pytest

from gtvcvx.plotting import plot_cross_validation

FOUND = {
    "lams": np.array([4.0, 2.0, 1.0]),
    "mean_errors": np.array([3.0, 1.2, 1.0]),
    "standard_errors": np.array([0.1, 0.2, 0.3]),
    "lam": 2.0,
    "lam_min": 1.0,
    "lam_1se": 2.0,
}


def test_errors_and_choices_are_drawn():
    ax = plot_cross_validation(FOUND)
    curve, chosen = ax.get_lines()[0], ax.get_lines()[-2:]
    assert curve.get_xdata().tolist() == [1.0, 2.0, 4.0]
    assert curve.get_ydata().tolist() == [1.0, 1.2, 3.0]
    assert [line.get_xdata()[0] for line in chosen] == [1.0, 2.0]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["least error", "one standard error, chosen"]
    assert ax.get_title() == "held-out error 1.2 $\\pm$ 0.2 at $\\lambda$ = 2"
    ax.figure.draw_without_rendering()


def test_objects_are_drawn_like_mappings():
    class Found:
        def __init__(self):
            self.__dict__ |= FOUND
            self.std_errors = self.__dict__.pop("standard_errors")

    assert plot_cross_validation(Found()).get_title() == plot_cross_validation(FOUND).get_title()


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="found: a CrossValidation is expected; there is no 'lams'"):
        plot_cross_validation(3)
    with pytest.raises(ValueError, match="found: as many errors"):
        plot_cross_validation({**FOUND, "lams": [1.0]})
    with pytest.raises(ValueError, match="mean_errors"):
        plot_cross_validation({**FOUND, "mean_errors": [1.0, np.nan, 2.0]})
