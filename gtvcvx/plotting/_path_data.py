"""What pictures of lambda paths need, from any object or dict that has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, finite_array, integer_array


@dataclass(frozen=True)
class PathData:
    """Solutions for k values of lambda, the smallest first.

    Attributes
    ----------
    lams : ndarray, shape (k,)
    w : ndarray, shape (k, n, d), or None
    labels : ndarray of int, shape (k, n), or None
        Cluster of each node at each lambda.
    values : ndarray, shape (k,), or None
        Objective.
    nodes : sequence of length n, or None
        Node labels.
    """

    lams: FloatArray
    w: FloatArray | None
    labels: IntArray | None
    values: FloatArray | None
    nodes: Sequence[Any] | None

    def names(self, nodes: Sequence[Any] | None, n: int) -> Sequence[Any]:
        """Names of n nodes: those given, those of the path, or numbers."""
        found = nodes if nodes is not None else self.nodes
        if found is None:
            return range(n)
        if len(found) != n:
            raise ValueError(f"nodes: {n} names are expected, got {len(found)}")
        return found

    def nearest(self, at: float | None) -> int | None:
        """Position of the lambda nearest to ``at``, None for None; there must be labels."""
        if at is None:
            return None
        if self.labels is None:
            raise ValueError("at: the path has no labels to colour by")
        if not (np.isfinite(at) and at > 0):
            raise ValueError(f"at: a positive finite number is expected, got {at!r}")
        return int(np.argmin(np.abs(np.log(self.lams / at))))


def path_data(path: Any, *needed: str) -> PathData:
    """Take ``lams``, ``w``, ``labels`` and ``values`` from a path, by attribute or key.

    Parameters
    ----------
    path : object or mapping
        ``lams`` (k,) in any order, and what the picture needs of ``w`` (k, n, d), ``labels``
        (k, n) and ``values`` (k,).
    needed : str
        Names of what must be there besides ``lams``.

    Raises
    ------
    TypeError, ValueError
        Naming what is missing, or of another shape.
    """
    found = {name: _get(path, name) for name in ("lams", "w", "labels", "values")}
    for name in ("lams", *needed):
        if found[name] is None:
            raise TypeError(
                f"path: an object with the attributes (or a dict with the keys) "
                f"{', '.join(('lams', *needed))} is expected; there is no {name!r}"
            )
    lams = finite_array(found["lams"], "lams", 1)
    if not len(lams) or not (lams > 0).all():
        raise ValueError("lams: at least one lambda is expected, each of them positive")
    k = len(lams)
    w = None if found["w"] is None else finite_array(found["w"], "w", 3)
    labels = None if found["labels"] is None else integer_array(found["labels"], "labels")
    values = None if found["values"] is None else finite_array(found["values"], "values", 1)
    for name, array, axes in (("w", w, 3), ("labels", labels, 2), ("values", values, 1)):
        if array is not None and (array.ndim != axes or len(array) != k):
            raise ValueError(
                f"{name}: {axes} axes, the first of length {k}, are expected, "
                f"got shape {array.shape}"
            )
    if w is not None and labels is not None and labels.shape[1] != w.shape[1]:
        raise ValueError(f"labels: shape {w.shape[:2]} is expected, got {labels.shape}")
    order = np.argsort(lams, kind="stable")
    return PathData(
        lams[order],
        None if w is None else w[order],
        None if labels is None else labels[order].astype(np.int64),
        None if values is None else values[order],
        _get(path, "nodes"),
    )


def _get(path: Any, name: str) -> Any:
    return path.get(name) if isinstance(path, Mapping) else getattr(path, name, None)
