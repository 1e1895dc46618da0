"""Losses of one coordinate with kinks, bends and parabolas."""

import numpy as np

import gtvcvx as gtv


def kinked_loss(rng: np.random.Generator, digits: int) -> gtv.Loss:
    """Return one of any kind; with few digits ties come up."""
    m = int(rng.integers(1, 4))
    X = rng.choice([1.0, -1.0, 2.5], (m, 1))
    y = np.round(2.0 * rng.standard_normal(m), digits)
    makers = (
        lambda: gtv.ZeroLoss(),
        lambda: gtv.PointLoss([y[0]]),
        lambda: gtv.SquaredLoss(X, y),
        lambda: gtv.AbsoluteLoss(X, y),
        lambda: gtv.QuantileLoss(X, y, level=0.3),
        lambda: gtv.HuberLoss(X, y, delta=0.7),
        lambda: gtv.HingeLoss(X, np.where(y > 0.0, 1.0, -1.0)),
        lambda: gtv.LassoLoss(X, y, kappa=0.4),
    )
    return makers[int(rng.integers(len(makers)))]()
