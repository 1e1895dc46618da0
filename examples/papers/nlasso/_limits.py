"""What no run of Algorithm 1 can do in R iterations from zero: the speed limit of its steps.

With tau_i = 1/deg_i, and flows on edges of at most lambda in each coordinate, the flows move a node
by at most lambda in each coordinate per iteration. So a node without data has |w_i| <= R lambda.
At a node with data, with G_i = X_i^T X_i / m_i (times m_i where the loss is a sum), w_bar its true
weights and M_i = (I + 2 tau_i G_i)^-1, update (32) is

    w_i - w_bar  <-  M_i (w_i - w_bar + s),    |s| <= lambda in each coordinate;

along an eigenvector v of G_i with eigenvalue mu, and rho = 1/(1 + 2 tau_i mu), therefore

    |v^T (w_i - w_bar)| >= rho^R |v^T w_bar| - lambda |v|_1 (rho + rho^2 + ... + rho^R)

after R iterations: data pull slowly in directions in which they hardly vary.
"""

from __future__ import annotations

import numpy as np
from nlasso._setting import ROWS, Array, Network


def least_error(net: Network, lam: float, iterations: int | Array) -> Array:
    """Return an error (24) that no run can be below after so many iterations."""
    reach = lam * np.asarray(iterations, dtype=float)[..., None, None]
    left = np.maximum(np.abs(net.true_w[~net.data.labelled]) - reach, 0.0)
    return np.asarray(np.sum(left**2, axis=(-1, -2)) / len(net.true_w))


def largest_error(net: Network, lam: float, iterations: int) -> float:
    """Return an error (24) that no run can be above after so many iterations."""
    reached = np.abs(net.true_w[~net.data.labelled]) + lam * iterations
    return float(np.sum(reached**2) / len(net.true_w))


def least_label_errors(net: Network, lam: float, iterations: int) -> tuple[float, float]:
    """Return label errors that no run can be below: at nodes with known labels, at all others."""
    X, known = net.data.X, net.data.labelled
    eigenvalues, vectors = np.linalg.eigh(np.einsum("nmi,nmj->nij", X, X) / ROWS)
    pull = 2.0 * (ROWS if net.summed else 1.0) / np.maximum(net.graph.degrees, 1)
    shrink = 1.0 / (1.0 + (known * pull)[:, None] * eigenvalues)
    pushes = np.sum(shrink[..., None] ** np.arange(1, iterations + 1), axis=-1)
    along = np.abs(np.einsum("nij,ni->nj", vectors, net.true_w))
    left = shrink**iterations * along - lam * np.abs(vectors).sum(axis=1) * pushes
    return net.means(np.sum(eigenvalues * np.maximum(left, 0.0) ** 2, axis=1))
