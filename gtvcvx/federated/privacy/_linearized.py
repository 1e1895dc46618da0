"""One step along clipped gradients instead of the node step: for any differentiable loss."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, is_number
from gtvcvx.federated.privacy._rows import clipped_rows
from gtvcvx.losses import SquaredLoss, stacked_from_terms
from gtvcvx.losses._row_loss import RowLoss
from gtvcvx.losses.batched._terms import ROW_KINDS, WEIGHT


def linearized_step(
    gradients: ArrayLike,
    phi: ArrayLike,
    received: ArrayLike,
    rho: float,
    clip: float,
    regularizer_gradient: ArrayLike | None = None,
) -> FloatArray:
    r"""Node step with each row's loss replaced by its tangent at v, its gradient clipped to C.

    .. math:: w = v + \frac1\rho \Big( \phi - \frac1D \sum_r g_r \min(1, C / \lVert g_r \rVert)
              - \nabla R(v) \Big)

    Replacing one row moves it by at most `linearized_sensitivity`, whatever the loss: networks
    included, and without any bound on rows. It solves no problem exactly.

    Parameters
    ----------
    gradients : array_like, shape (D, d)
        Gradient at v of the loss of each row, without the mean.
    phi : array_like, shape (d,)
        Multiplier of the client.
    received : array_like, shape (d,)
        v, the vector that came from the server.
    rho : float
        > 0.
    clip : float
        C > 0.
    regularizer_gradient : array_like, shape (d,), optional
        Gradient at v of terms without rows, which are not clipped.

    Returns
    -------
    ndarray, shape (d,)
        Not private as it is: noise comes on top.

    Raises
    ------
    ValueError
        A gradient that is not finite, shapes that do not fit, numbers out of range.
    """
    _positive("rho", rho)
    _positive("clip", clip)
    rows = finite_array(gradients, "gradients", 2)
    if 0 in rows.shape:
        raise ValueError(f"gradients: at least one row and column, got shape {rows.shape}")
    given = {"phi": phi, "received": received, "regularizer_gradient": regularizer_gradient}
    vectors = {
        name: finite_array(np.zeros(rows.shape[1]) if x is None else x, name, 1)
        for name, x in given.items()
    }
    for name, vector in vectors.items():
        if len(vector) != rows.shape[1]:
            raise ValueError(f"{name}: shape ({rows.shape[1]},) is expected, got {vector.shape}")
    mean = np.mean(clipped_rows(rows, float(clip)), axis=0)
    slope = vectors["phi"] - mean - vectors["regularizer_gradient"]
    return np.asarray(vectors["received"] + slope / float(rho))


def linearized_sensitivity(n_samples: int, rho: float, clip: float) -> float:
    """Return ``2 C / (rho D)``, how far one replaced row moves `linearized_step` at most.

    Parameters
    ----------
    n_samples : int
        D >= 1.
    rho : float
        > 0.
    clip : float
        C > 0.
    """
    for name, value in (("n_samples", n_samples), ("rho", rho), ("clip", clip)):
        _positive(name, value)
    return 2.0 * (clip / n_samples) / rho


def sample_gradients(loss: Any, w: ArrayLike) -> FloatArray:
    """Gradients (D, d) at w of the loss of each row, terms without rows left out.

    Parameters
    ----------
    loss : SquaredLoss or any other loss of rows of one node
        Their mean is the gradient of the loss, but for a ridge or l1 term.
    w : array_like, shape (d,)

    Raises
    ------
    TypeError
        Another loss, which has no rows, or several kinds of them.
    """
    if not isinstance(loss, (SquaredLoss, RowLoss)):
        raise TypeError(f"loss: a loss of rows is expected, got {loss!r}")
    point = finite_array(w, "w", 1)
    if len(point) != loss.dim:
        raise ValueError(f"w: shape ({loss.dim},) is expected, got {point.shape}")
    count = len(loss.y)
    kind: Any = type(loss)
    (rows,) = (
        term
        for term in kind.batch([loss], loss.dim).terms(np.zeros(1, dtype=np.int64))
        if term["kind"] in ROW_KINDS
    )
    if WEIGHT in rows:
        raise ValueError(f"loss: {loss!r} is weighted, the mean over its rows is expected")
    each = stacked_from_terms([{**rows, "node": np.arange(count)}], loss.dim)
    return each.gradient(np.tile(point, (count, 1)))


def _positive(name: str, value: float) -> None:
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name}: a finite number > 0 is expected, got {value!r}")
