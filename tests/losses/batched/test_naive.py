"""Every batched operation against its twin that loops over the nodes."""

import numpy as np
import pytest


def rows(function, *arguments):
    return np.array([function(*row) for row in zip(*arguments, strict=True)])


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


def test_size(batch):
    assert batch.losses.n_nodes == batch.k


def test_value(batch, rng):
    w = batch.draw(rng)
    assert_close(batch.losses.value(w), rows(lambda t, x: t.value(x), batch.twins, w))


def test_gradient(batch, rng):
    w = batch.draw(rng)
    assert_close(batch.losses.gradient(w), rows(lambda t, x: t.gradient(x), batch.twins, w))


def test_prox_with_a_step_size_for_each_node(batch, rng):
    v, tau = batch.draw(rng), rng.uniform(0.01, 100.0, batch.k)
    expected = rows(lambda t, x, step: t.prox(x, step), batch.twins, v, tau)
    assert_close(batch.losses.prox(v, tau), expected)


def test_prox_is_its_affine_map(batch, rng):
    v, tau = batch.draw(rng), rng.uniform(0.01, 100.0, batch.k)
    matrix, offset = batch.losses.affine_prox(tau)
    mapped = rows(lambda A, x, b: A @ x + b, matrix, v, offset)
    assert_close(batch.losses.prox(v, tau), mapped)


def test_conjugate_inside_its_domain(batch, rng):
    s = batch.inside(batch.draw(rng))
    found = batch.losses.conjugate(s, np.full(batch.k, 1e-12))
    assert_close(found, rows(lambda t, x: t.conjugate(x), batch.twins, s))


def test_fenchel_gap_is_its_definition(batch, rng):
    w, s = batch.draw(rng), batch.inside(batch.draw(rng))
    definition = rows(lambda t, x, y: t.value(x) + t.conjugate(y) - x @ y, batch.twins, w, s)
    assert_close(batch.losses.fenchel_gap(w, s), definition)


def test_null_projector(batch):
    projector = batch.losses.null_projector()
    if np.isscalar(projector):
        projector = np.broadcast_to(projector * np.eye(batch.d), (batch.k, batch.d, batch.d))
    bases = [twin.null_basis() for twin in batch.twins]
    assert_close(projector, [N @ N.T for N in bases])
    for T, N in zip(projector, bases, strict=True):
        # Full rank leaves exact zeros, so that no rounding error poses as a null direction.
        assert N.shape[1] or not T.any()


def test_minimizer_has_no_smaller_twin(batch, rng):
    best = batch.losses.minimizer()
    assert_close(rows(lambda t, x: t.gradient(x), batch.twins, best), np.zeros_like(best))
    null_part = best - batch.inside(best)
    assert_close(null_part, np.zeros_like(best))


@pytest.mark.parametrize("tau", [0.3, 5.0])
def test_single_losses_agree(batch, rng, tau):
    w, s = batch.draw(rng), batch.inside(batch.draw(rng))
    for i, (single, twin) in enumerate(zip(batch.singles, batch.twins, strict=True)):
        assert_close(single.value(w[i]), twin.value(w[i]))
        assert_close(single.gradient(w[i]), twin.gradient(w[i]))
        assert_close(single.prox(w[i], tau), twin.prox(w[i], tau))
        assert_close(single.conjugate(s[i]), twin.conjugate(s[i]))
        assert isinstance(single.value(w[i].tolist()), float)
        assert single.prox(w[i], tau).shape == (batch.d,)
