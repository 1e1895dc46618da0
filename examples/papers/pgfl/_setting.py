"""The regression experiments of [PGFL], Figures 1 to 6.

Given: 2 to 9 rows a client, d = 60, three clusters with vectors ``w_q = (1 + gamma_q) w_0``, all
multiples of one, ridge regression, about 300 rounds, the NMSD (53) of the clients' vectors.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from pgfl._systems import Setting, Source, System, clusters_of, given, server_graph

import gtvcvx as gtv
from gtvcvx._arrays import FloatArray


def draw(setting: Setting, seed: int) -> System:
    """Draw w_0, clusters, rows x ~ N(0, I) and targets ``x^T w_q + noise``, as seed says."""
    rng = np.random.default_rng([seed, 0])
    labels = clusters_of(setting, rng)
    gamma = rng.uniform(-setting.spread, setting.spread, setting.clusters)
    truth = rng.standard_normal(setting.dim) * (1.0 + gamma)[:, None]
    losses: list[gtv.Loss] = []
    for q in labels:
        X = rng.standard_normal((rng.integers(2, 10), setting.dim))
        noise = setting.noise * rng.standard_normal(len(X))
        losses.append(gtv.SquaredLoss(X, X @ truth[q] + noise))
    score = partial(nmsd, truth=truth[labels])
    return System(losses, labels, server_graph(setting, rng), score, wide_bounds(setting.dim))


REGRESSION = Source("", draw)


def wide_bounds(dim: int) -> dict[str, float]:
    """Return bounds that no row, target or vector comes near, so that the run is the printed one.

    The paper's squared loss has no bounds, and so no sensitivity; by these it has one, which says
    what its noise protects. Rows and vectors are about sqrt(d) long, targets deviate by as much: a
    factor of 3, of 10 and of 20 is never met.
    """
    size = math.sqrt(dim)
    return {"row_bound": 3.0 * size, "target_bound": 20.0 * size, "radius": 10.0 * size}


def nmsd(models: FloatArray, truth: FloatArray) -> FloatArray:
    r"""Return ``||w_k - w_q||^2 / ||w_q||^2`` of each client (n,); (53) is its mean.

    Parameters
    ----------
    models, truth : ndarray, shape (n, d)
        What each client has, and what is true in its cluster.
    """
    return np.asarray(np.sum((models - truth) ** 2, axis=1) / np.sum(truth**2, axis=1))


def stated(setting: Setting, *, scheduled: bool = False, private: bool = False) -> dict[str, str]:
    """Say what the paper gives, and what is ours."""
    return {
        **given(setting, scheduled=scheduled, private=private),
        "d, rows": f"{setting.dim}, 2 to 9 uniformly, given",
        "w_q": f"(1 + gamma_q) w_0, gamma_q ~ U(-{setting.spread:g}, {setting.spread:g}), given",
        "w_0, x": "not given: ours are N(0, I)",
        "noise of targets": "not given: ours is N(0, 1), and deviations .1 and 3 beside it",
    }
