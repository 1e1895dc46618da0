"""Smoothness and strong convexity in the penalty's norm, against sampling."""

from __future__ import annotations

import numpy as np
import pytest

from verify.partitions.constants._enclosures import (
    NORMS,
    SIGN_DIMENSION,
    dual_norm,
    sign_vectors,
    smoothness,
    strong_convexity,
)

ORDER = {"l1": 1, "l2": 2, "linf": np.inf}


def psd(rng: np.random.Generator, k: int, d: int, rank: int) -> np.ndarray:
    x = rng.standard_normal((k, rank, d))
    return np.einsum("kri,krj->kij", x, x)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 4, SIGN_DIMENSION + 2])
def test_beta_bounds_the_hessian_in_the_operator_norm(norm: str, d: int) -> None:
    """||H v||_* <= beta ||v|| for many v, and nearly attained where the formula is exact."""
    rng = np.random.default_rng(d)
    h = psd(rng, 20, d, max(d // 2, 1))
    beta = smoothness(h, np.zeros(20), norm)
    v = np.concatenate([rng.standard_normal((4000, d)), np.eye(d), sign_vectors(min(d, 10))[:, :d]])
    images = np.einsum("kij,vj->kvi", h, v)
    ratio = (dual_norm(images, norm) / np.linalg.norm(v, ORDER[norm], axis=1)).max(axis=1)
    assert (ratio <= beta.hi * (1 + 1e-12)).all()
    assert (beta.lo <= beta.hi).all()
    if d <= 4:
        assert (ratio >= 0.9 * beta.lo).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 4, SIGN_DIMENSION + 2])
def test_alpha_is_a_modulus_of_convexity(norm: str, d: int) -> None:
    """v^T H v >= alpha ||v||^2 for many v, and nearly attained where the formula is exact."""
    rng = np.random.default_rng(d + 50)
    h = psd(rng, 20, d, d + 3)
    alpha = strong_convexity(h, np.zeros(20), norm)
    inverses = np.linalg.inv(h)
    worst = (
        np.concatenate([inverses @ s for s in sign_vectors(min(d, 8))[:, :, None]], axis=2)
        if (d <= 8)
        else inverses
    )
    v = np.concatenate(
        [
            np.broadcast_to(rng.standard_normal((3000, d)), (20, 3000, d)),
            worst.transpose(0, 2, 1),
            inverses,
        ],
        axis=1,
    )
    form = np.einsum("kvi,kij,kvj->kv", v, h, v)
    size = np.linalg.norm(v, ORDER[norm], axis=2)
    least = (form / size**2).min(axis=1)
    assert (alpha.lo > 0).all()
    assert (alpha.lo <= least * (1 + 1e-10)).all()
    assert (alpha.lo <= alpha.hi).all()
    if d <= 4:
        assert (least <= alpha.hi * (1.15 if norm == "l2" else 1 + 1e-9)).all()


def test_spectral_alpha_would_be_unsound_for_l1() -> None:
    h = np.diag([2.0, 2.0])[None]
    v = np.array([1.0, 1.0])
    spectral = strong_convexity(h, np.zeros(1), "l2").lo[0]
    own = strong_convexity(h, np.zeros(1), "l1").lo[0]
    form, size = v @ h[0] @ v, np.abs(v).sum()
    assert form < 0.9 * spectral * size**2
    assert form >= own * size**2


def test_singular_sums_have_alpha_zero() -> None:
    h = np.array([[[1.0, 1.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    for norm in NORMS:
        assert (strong_convexity(h, np.zeros(2), norm).lo <= 1e-200).all()
