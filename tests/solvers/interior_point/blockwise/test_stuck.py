"""When our own interior-point method gives up, by the gaps of a scripted Newton's method."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.solvers.driver import Limits
from gtvcvx.solvers.interior_point.blockwise._blockwise import DEFAULTS, Blockwise, planned


class Scripted:
    """Own gaps and objectives, one after the other."""

    finite, surplus, lost, goal, row_slopes = True, 0.0, 0.0, 0.0, None
    w, u = np.zeros((2, 1)), np.zeros((1, 1))

    def __init__(self, gaps, values, missing):
        self._script = zip(gaps, values, missing, strict=True)

    def iterate(self):
        self.gap, self._value, self.imbalance = next(self._script)

    def value(self):
        return self._value


def iterations(gaps, values, missing=None):
    """Iterations until it gives up, None if it does not; nothing is missing by default."""
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    losses = [gtv.AbsoluteLoss([[1.0]], [float(i)]) for i in range(2)]
    problem = gtv.GTVProblem(graph, losses, "l2", 1.0)
    method = Blockwise(problem, planned(problem))
    method.begin(Limits(1e-6, 200), np.inf)
    missing = np.zeros(len(gaps)) if missing is None else missing
    method._newton = Scripted(gaps, values, missing)
    for _ in gaps:
        method.run(1)
        if method.finished:
            return method.n_iter
    return None


def test_points_that_come_back_from_far_off_are_waited_for():
    """F8 20264851/5: objectives of 6e6 fell with their gaps to 27, six steps before the end."""
    away = [2.0 * 3.0**k for k in range(DEFAULTS.patience)]
    back = [away[-1] * 0.1**k for k in range(1, 14)]
    gaps = np.array(away + back)
    values = gaps / 1.5 + 1.0
    assert iterations(gaps, values) is None
    own = (gaps / values)[: DEFAULTS.patience + 5]  # which alone would tell that nothing happens
    assert own.min() > DEFAULTS.factor * own[0]


@pytest.mark.parametrize("falling", [1.0, 0.9])
def test_gaps_that_hardly_fall_are_given_up(falling):
    gaps = 1e3 * falling ** np.arange(100.0)
    assert iterations(gaps, gaps / 1.5) == DEFAULTS.patience + 1


@pytest.mark.parametrize(("share", "ends"), [(0.2, None), (1e-3, DEFAULTS.patience + 1)])
def test_what_is_missing_falls_before_the_gap_does(share, ends):
    """Short steps are worth it as long as much is missing beside the gap, and ever less."""
    gaps = 1e3 * 0.97 ** np.arange(60.0)
    missing = share * 1e3 * 0.93 ** np.arange(60.0)
    assert iterations(gaps, gaps / 1.5 + 1e3, missing) == ends
    # Not where it stays.
    assert iterations(gaps, gaps / 1.5 + 1e3, np.full(60, share * 1e3)) == DEFAULTS.patience + 1
