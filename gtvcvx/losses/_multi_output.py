"""Several outputs at a node: matrices of parameters, for any loss of data points."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, integer_array, real_array
from gtvcvx.losses._row_loss import RowLoss
from gtvcvx.losses._squared import SquaredLoss
from gtvcvx.losses.batched._stacked import StackedLoss

AnyLoss = TypeVar("AnyLoss", SquaredLoss, RowLoss)


def multi_output(
    X: ArrayLike | None,
    Y: ArrayLike,
    loss: type[Any] = SquaredLoss,
    *,
    node: ArrayLike | None = None,
    n_nodes: int | None = None,
    intercept: int | None = None,
    sample_weight: ArrayLike | None = None,
    **parameters: Any,
) -> Any:
    """Loss of a linear model with q outputs, ``W = w.reshape(p, q)`` and Y = X W.

    Every entry of Y is a data point of its own: the loss is the mean over all entries. w has
    d = p q entries, those of W row by row.

    Parameters
    ----------
    X : array_like, shape (m, p), or None
        Features, one row a data point. None: no features but the constant 1.
    Y : array_like, shape (m, q)
        Targets of all outputs.
    loss : class, default SquaredLoss
        Any loss of data points, such as `HuberLoss`.
    node : array_like of int, shape (m,), optional
        Number of the node that holds each row: all nodes' losses from one table, as in
        ``SquaredLoss.from_rows``. Default: the loss of one node.
    n_nodes : int, optional
        Number of nodes, with ``node``.
    intercept : int, optional
        Column of X that is constant, for losses that leave it out of a penalty.
    sample_weight : array_like, shape (m,) or (m, q), optional
        Weights >= 0 of the rows, or of the entries of Y, with which the mean is weighted.
    **parameters
        Of the loss: numbers, arrays of the shape of Y for those of data points, or of shape
        (p, q) for those of entries of W.

    Returns
    -------
    Loss of one node, or StackedLoss.
    """
    if not (isinstance(loss, type) and issubclass(loss, (SquaredLoss, RowLoss))):
        raise TypeError(f"loss: a class of losses of data points is expected, got {loss!r}")
    targets = finite_array(Y, "Y", 2)
    features = np.ones((len(targets), 1)) if X is None else finite_array(X, "X", 2)
    if len(features) != len(targets):
        raise ValueError(f"Y: {len(features)} rows are expected, as X has rows, got {len(targets)}")
    (m, p), q = features.shape, targets.shape[1]
    if q == 0:
        raise ValueError("Y: at least one output column is expected")
    design = np.einsum("mp,oq->mopq", features, np.eye(q)).reshape(m * q, p * q)
    given = {
        name: np.ravel(value) if np.ndim(value) == 2 else value
        for name, value in parameters.items()
    }
    if sample_weight is not None:
        given["sample_weight"] = _weights_of_entries(sample_weight, (m, q))
    if intercept is not None:
        column = int(integer_array(intercept, "intercept"))
        if not 0 <= column < p:
            raise ValueError(f"intercept: a column 0..{p - 1} is expected, got {column}")
        given["intercept"] = column * q + np.arange(q)
    if node is None:
        return loss(design, targets.ravel(), **given)
    owner = integer_array(node, "node")
    if owner.shape != (m,):
        raise ValueError(f"node: shape ({m},) is expected, got {owner.shape}")
    stacked: StackedLoss = loss.from_rows(
        design, targets.ravel(), np.repeat(owner, q), n_nodes, **given
    )
    return stacked


def _weights_of_entries(sample_weight: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return a weight for each entry of Y, flattened, from those of rows or of entries."""
    weights = real_array(sample_weight, "sample_weight")
    if weights.shape not in (shape, shape[:1]):
        raise ValueError(
            f"sample_weight: shape {shape[:1]} or {shape} is expected, got {weights.shape}"
        )
    return weights.ravel() if weights.ndim == 2 else np.repeat(weights, shape[1])
