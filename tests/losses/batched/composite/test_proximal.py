"""Proximal points that cannot be followed to at once."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Allowance, Expired, allowing, now, until
from gtvcvx.losses.batched.composite._parts import Parts
from gtvcvx.losses.batched.composite._proximal import MAP, SCRATCH_PRICE, ProximalPoints


@pytest.fixture
def never_followed(monkeypatch):
    """Return what is asked for to be followed, which never succeeds."""
    asked = []

    def failing(self, at, v, tau, left):
        asked.append(np.count_nonzero(left[at]))
        return asked[-1]

    monkeypatch.setattr(ProximalPoints, "_follow", failing)
    return asked


def rows(k=4):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((k, 3, 2))
    return gtv.HuberLoss.stack(X, rng.standard_normal((k, 3)), delta=0.5)


def test_what_is_not_followed_to_is_found_all_the_same(never_followed):
    v, tau = np.random.default_rng(1).standard_normal((4, 2)), np.full(4, 0.7)
    found = rows().prox(v, tau)
    assert never_followed == [4]
    np.testing.assert_allclose(found + tau[:, None] * rows().gradient(found), v, rtol=1e-9)


def test_the_deadline_strikes_between_nodes_from_scratch(never_followed, monkeypatch):
    """A piece that is short for following takes many times as long from scratch."""
    monkeypatch.setattr(Parts, "nodes_a_look", 10)
    with until(now() - 1.0), pytest.raises(Expired):
        rows().prox(np.ones((4, 2)), np.ones(4))
    assert never_followed == [4]


def test_nodes_from_scratch_are_paid_for(never_followed):
    with allowing(allowance := Allowance()):
        rows().prox(np.ones((4, 2)), np.ones(4))
    assert allowance.spent == 4 * 2 * SCRATCH_PRICE


def test_maps_count_as_detours_where_they_are_made():
    losses, tau = rows(), np.full(4, 0.7)
    v = np.random.default_rng(1).standard_normal((4, 2))
    losses.prox(v, tau)
    made = losses.detours
    assert made >= MAP  # at least one for each node
    losses.prox(v, tau)
    assert losses.detours == made
