"""Orthogonal factors in panels: right, and no more than a panel between two looks."""

from __future__ import annotations

import numpy as np
import pytest

from gtvcvx import _householder
from gtvcvx._householder import PANEL, householder


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (1, 7), (300, PANEL), (300, 2 * PANEL + 3)])
def test_factors_in_panels(shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    monkeypatch.setattr(_householder, "look", lambda: looks.append(1))
    A = np.random.default_rng(3).standard_normal(shape)
    A[:, -1] = A[:, 0]  # rows that say the same
    Q, R = householder(np.asfortranarray(A))
    r = min(shape)
    np.testing.assert_allclose(Q @ R, A, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(Q.T @ Q, np.eye(r), rtol=0.0, atol=1e-13)
    assert np.array_equal(R, np.triu(R))
    assert len(looks) == 2 * -(-r // PANEL)  # no more than a panel between two of them
