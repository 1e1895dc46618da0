"""Proximal points that cannot be followed to at once."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx._deadline import Expired, now, until
from gtvcvx.losses.batched.composite._proximal import ProximalPoints


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
    assert len(never_followed) > 1
    np.testing.assert_allclose(found + tau[:, None] * rows().gradient(found), v, rtol=1e-9)


def test_the_deadline_strikes_between_the_stages_of_an_approach(never_followed):
    """A single piece of nodes may have dozens of stages, of a few milliseconds each."""
    with until(now() - 1.0), pytest.raises(Expired):
        rows().prox(np.ones((4, 2)), np.ones(4))
    assert never_followed == [4]
