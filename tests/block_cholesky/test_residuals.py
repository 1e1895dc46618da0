"""Conjugate residuals make the most of a bad factor."""

import numpy as np
import pytest

from gtvcvx.block_cholesky._residuals import ConjugateResiduals


def system(seed, n=30, spread=9):
    """Return a matrix whose eigenvalues spread over decades, a bad inverse, and a right side."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.logspace(0, -spread, n)
    # What a factor with a shift knows nothing of: all that is below.
    bad = Q @ np.diag(1.0 / (values + 1e-6)) @ Q.T
    return Q @ np.diag(values) @ Q.T, bad, rng.standard_normal((n, 1))


def refined(matrix, bad, right, scale, most):
    """Return the solution, and sizes of what is left."""
    residuals = ConjugateResiduals(scale)
    x, left = np.zeros_like(right), right
    sizes = [np.linalg.norm(left * scale)]
    for _ in range(most):
        more = bad @ left
        if not residuals.add(matrix @ more, more):
            break
        (x,) = residuals.moved(left, x)
        left = right - matrix @ x
        sizes.append(np.linalg.norm(left * scale))
    return x, sizes


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_never_grows_and_vanishes(seed):
    matrix, bad, right = system(seed)
    scale = np.exp(np.random.default_rng(seed).standard_normal(right.shape))
    _, sizes = refined(matrix, bad, right, scale, 30)
    assert (np.diff(sizes) <= 1e-6 * sizes[0]).all()
    assert sizes[-1] < 1e-3 * sizes[0]
    # Plain refinement leaves what the factor does not know.
    x = np.zeros_like(right)
    for _ in range(30):
        x += bad @ (right - matrix @ x)
    assert np.linalg.norm((right - matrix @ x) * scale) > 0.1 * sizes[0]


def test_each_step_is_the_best_along_all_directions_so_far():
    matrix, bad, right = system(0, n=8, spread=3)
    scale = np.linspace(1.0, 2.0, 8)[:, None]
    _, sizes = refined(matrix, bad, right, scale, 3)
    images, left = [], right
    for _ in range(3):
        images.append(scale * (matrix @ bad @ left))
        basis = np.hstack(images)
        share = np.linalg.lstsq(basis, scale * right, rcond=None)[0]
        left = right - basis @ share / scale
    assert sizes[-1] == pytest.approx(np.linalg.norm(left * scale))


def test_nothing_new_is_refused():
    residuals = ConjugateResiduals(np.ones(2))
    assert not residuals.add(np.zeros(2), np.zeros(2))
    assert not residuals.add(np.array([np.inf, 0.0]), np.zeros(2))
    assert residuals.add(np.array([1.0, 0.0]), np.ones(2))
