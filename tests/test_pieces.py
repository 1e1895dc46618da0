"""What is computed in pieces is what it is as a whole."""

import numpy as np
import pytest

from gtvcvx import _pieces
from gtvcvx._deadline import Expired, until
from gtvcvx._pieces import gram, rows_at_once


class Watched(np.ndarray):
    """Rows whose products say how large they are."""

    most = 0

    def __matmul__(self, other):
        Watched.most = max(Watched.most, self.shape[0] * self.shape[1] * other.shape[1])
        return np.asarray(self) @ np.asarray(other)


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (100_000, 2), (3000, 48), (700, 101)])
def test_products_of_rows_in_pieces_none_of_which_takes_threads(shape):
    X = np.random.default_rng(3).standard_normal(shape)
    Watched.most = 0
    found = gram(X.view(Watched))
    np.testing.assert_allclose(found, np.einsum("ni,nj->ij", X, X), rtol=1e-11, atol=1e-9)
    assert np.array_equal(found, found.T)
    assert Watched.most <= _pieces.ONE_THREAD


def test_the_clock_is_looked_at_between_pieces(monkeypatch):
    """Jumps over a million edges of many coordinates take seconds."""
    monkeypatch.setattr(_pieces, "PIECE", 8)
    with until(0.0):
        pieces = rows_at_once(5, 4)
        assert next(pieces) == slice(0, 2)
        with pytest.raises(Expired):
            next(pieces)
