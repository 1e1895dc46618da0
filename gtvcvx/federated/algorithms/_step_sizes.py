"""Step sizes of gradient methods around a server, and gradients, as programs take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.federated.programs import View


def step_size(lipschitz: FloatArray) -> float:
    """Return 1 / max l_i, and 1 where no loss is curved."""
    largest = float(lipschitz.max(initial=0.0))
    return 1.0 / largest if largest > 0 else 1.0


def own_lipschitz(view: View) -> float:
    """Return the Lipschitz constant of the gradient of a client's loss.

    Raises
    ------
    ValueError
        It is not known.
    """
    lipschitz = float(getattr(view.model, "lipschitz", np.inf))
    if np.isfinite(lipschitz):
        return lipschitz
    raise ValueError(
        f"lr: client {view.id}: the gradient of {view.model!r} has no Lipschitz constant that is "
        "known; give lr"
    )


def gradient_at(model: Any, w: FloatArray) -> FloatArray:
    """Return the gradient; NaN where numbers overflow, so that the run counts as diverged.

    Models that are no convex losses refuse such numbers.
    """
    if not np.isfinite(w).all():
        return np.full_like(w, np.nan)
    try:
        return np.asarray(model.gradient(w))
    except ValueError:
        if getattr(model, "convex", True):
            raise
        return np.full_like(w, np.nan)


def value_at(model: Any, w: FloatArray) -> float:
    """Return the loss; infinity where numbers overflow."""
    value = float(model.value(w)) if np.isfinite(w).all() else np.inf
    return value if np.isfinite(value) else np.inf
