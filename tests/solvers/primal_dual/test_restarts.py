"""When an iteration restarts because it drifts, and how its weight follows."""

import dataclasses

import numpy as np
import pytest

from gtvcvx.solvers.primal_dual._restarts import Restarted
from gtvcvx.solvers.primal_dual._settings import DEFAULTS
from gtvcvx.solvers.primal_dual._state import Travelled


class Steps:
    """A state whose steps have given lengths, in the point and in the flow."""

    averages = True

    def __init__(self, primal, dual, fall=1.0, weight=1.0):
        self.primal, self.dual, self.fall, self.weight = primal, dual, fall, weight
        self.weights = []

    def advance(self, n_iter):
        self.primal, self.dual = self.primal * self.fall**n_iter, self.dual * self.fall**n_iter
        return self.primal**2, self.dual**2

    def begin_epoch(self):
        self.weights.append(self.weight)

    def change_weights(self, weights):
        self.weight = weights

    def travelled(self):
        return Travelled(np.array(0.0), np.array(0.0))

    def begin_here(self):
        pass

    add_sample = to_average = begin_here

    def go_back(self, current):
        pass

    stay = go_back


class Method(Restarted):
    """The decisions alone."""

    def __init__(self, state, settings=DEFAULTS):
        super().__init__(state, settings)
        self._begin_here()

    def move_to(self, w, u):
        raise NotImplementedError


@pytest.mark.parametrize("tilt", [9.0, 1.0 / 9.0, 1e6])
def test_the_weight_follows_a_drift_without_waiting_for_the_epoch(tilt):
    state = Steps(tilt, 1.0)
    Method(state).run(4 * DEFAULTS.shortest_epoch + 1)
    factor = min(np.sqrt(tilt), DEFAULTS.largest_change)
    # The first restart, of which nobody knows yet what it has to improve on, is one, too.
    np.testing.assert_allclose(state.weights, factor ** np.arange(5), rtol=1e-12)


@pytest.mark.parametrize(
    "state",
    [
        Steps(1e3, 1.0, 0.9 ** (1.0 / DEFAULTS.sample)),  # it converges
        Steps(0.9 * DEFAULTS.tilted, 1.0),  # both move
        Steps(1.0, 0.0),  # nothing tells by how much
        Steps(1e3, 1.0, weight=[1.0, 2.0]),  # coordinates may drift each in its own way
    ],
    ids=["converging", "even", "one", "coordinates"],
)
def test_nothing_else_is_a_drift(state):
    other = Steps(state.primal, state.dual, state.fall, state.weight)
    Method(state).run(300)
    Method(other, dataclasses.replace(DEFAULTS, tilted=np.inf)).run(300)
    assert state.weights == other.weights


class Rounds(Steps):
    """Steps of one length; who is ahead, and by how much, is a list, an entry for each sample."""

    def __init__(self, tilts):
        super().__init__(1.0, 1.0)
        self.tilts = iter(tilts)

    def advance(self, n_iter):
        tilt = next(self.tilts, 1.0) if n_iter > 1 else 1.0
        return tilt**2 / (1.0 + tilt**2), 1.0 / (1.0 + tilt**2)


def test_a_weight_that_followed_a_swing_comes_back():
    """Iterates that go round their limits have point and flow ahead in turn: no drift."""
    state = Rounds([5.0] * 4 + [0.2] * 100)
    Method(state).run(150)
    assert state.weights[1] == pytest.approx(np.sqrt(5.0))  # it might have been one
    assert state.weights[2:] == [1.0] * len(state.weights[2:]) != []


def test_who_is_ahead_in_turn_within_an_epoch_does_not_drift():
    state = Rounds([1.0] * 4 + [1.0 / 3.0] * 2 + [5.0] * 8)  # the first epoch tells nothing
    Method(state).run(14 * DEFAULTS.sample)
    assert set(state.weights) == {1.0}


def test_after_a_while_there_may_be_drifts_again():
    state = Rounds([5.0] * 4 + [0.2] * 500)
    Method(state).run(1200)
    assert state.weights[-1] < 1.0
