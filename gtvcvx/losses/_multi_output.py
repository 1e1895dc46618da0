"""Several outputs at a node: matrices of parameters, for any loss of data points."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import finite_array, integer_array
from gtvcvx.losses._row_loss import RowLoss
from gtvcvx.losses._squared import SquaredLoss
from gtvcvx.losses.batched._stacked import StackedLoss

AnyLoss = TypeVar("AnyLoss", SquaredLoss, RowLoss)


def multi_output(
    X: ArrayLike,
    Y: ArrayLike,
    loss: type[Any] = SquaredLoss,
    *,
    node: ArrayLike | None = None,
    n_nodes: int | None = None,
    intercept: int | None = None,
    **parameters: Any,
) -> Any:
    """Loss of a linear model with q outputs, ``W = w.reshape(p, q)`` and Y = X W.

    Every entry of Y is a data point of its own: the loss is the mean over all entries. w has
    d = p q entries, those of W row by row.

    Parameters
    ----------
    X : array_like, shape (m, p)
        Features, one row a data point.
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
    **parameters
        Of the loss: numbers, arrays of the shape of Y for those of data points, or of shape
        (p, q) for those of entries of W.

    Returns
    -------
    Loss of one node, or StackedLoss.
    """
    if not (isinstance(loss, type) and issubclass(loss, (SquaredLoss, RowLoss))):
        raise TypeError(f"loss: a class of losses of data points is expected, got {loss!r}")
    features, targets = finite_array(X, "X", 2), finite_array(Y, "Y", 2)
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
