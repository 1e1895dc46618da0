"""What losses of data points have in common: means over rows of functions of x.w and y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx.losses._loss import PlainLoss
from gtvcvx.losses._rows import Rows, row_parameter, rows_of_node, stacked_rows, table_rows
from gtvcvx.losses.batched._from_terms import parts_of_terms
from gtvcvx.losses.batched._stacked import StackedLoss
from gtvcvx.losses.batched._terms import ROW_KINDS, Term, check_parameter, check_targets


class RowLoss(PlainLoss):
    """Mean over data points (x, y) of a function of x.w and y.

    Parameters
    ----------
    X : array_like, shape (m, d)
        Features, one row a data point.
    y : array_like, shape (m,)
        Targets.
    **parameters
        Of the kind of loss; see there.
    """

    _kind: ClassVar[str]
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, X: ArrayLike, y: ArrayLike, **parameters: Any) -> None:
        self.X, self.y = rows_of_node(X, y)
        check_targets(self._kind, self.y)
        self.dim: int = self.X.shape[1]
        self._row, self._extra = self._read(parameters, self.y.shape, self.dim)

    @classmethod
    def _read(
        cls, parameters: Mapping[str, Any], shape: tuple[int, ...], dim: int
    ) -> tuple[dict[str, FloatArray], list[Term]]:
        """Return the parameters of each row, flattened, and the terms beside the rows."""
        known = (*ROW_KINDS[cls._kind], *cls._defaults)
        for name in parameters:
            if name not in known:
                raise TypeError(f"{name}: {cls.__name__} has no such parameter")
        given = {**cls._defaults, **parameters}
        rows = {}
        for name in ROW_KINDS[cls._kind]:
            if name not in given:
                raise TypeError(f"{name}: {cls.__name__} needs this parameter")
            rows[name] = row_parameter(name, given[name], shape)
            check_parameter(name, rows[name])
        return rows, cls._beside(given, dim)

    @classmethod
    def _beside(cls, parameters: Mapping[str, Any], dim: int) -> list[Term]:
        """Terms that a node has beside its rows, at node 0."""
        return []

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the rows, and what is beside them, at node 0."""
        node = np.zeros(len(self.y), dtype=np.int64)
        rows = {"kind": self._kind, "node": node, "X": self.X, "y": self.y, **self._row}
        return [rows, *self._extra]

    @classmethod
    def stack(
        cls, X: ArrayLike, y: ArrayLike, labelled: ArrayLike | None = None, **parameters: Any
    ) -> StackedLoss:
        """Losses of all nodes at once, with the same number of rows at every node.

        Parameters
        ----------
        X : array_like, shape (n, m, d)
        y : array_like, shape (n, m)
        labelled : array_like of bool, shape (n,), optional
            Nodes whose data are accessible; the others get the zero loss. Default: all.
        **parameters
            Those of the single loss. Parameters of data points are numbers, or of shape (n, m).
        """
        return cls._stacked(stacked_rows(X, y, labelled), parameters, np.shape(y))

    @classmethod
    def from_rows(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        node: ArrayLike,
        n_nodes: int | None = None,
        **parameters: Any,
    ) -> StackedLoss:
        """Losses of all nodes from one table of data points, any number of rows per node.

        Parameters
        ----------
        X : array_like, shape (N, d)
        y : array_like, shape (N,)
        node : array_like of int, shape (N,)
            Number of the node that holds each row. Nodes without rows get the zero loss.
        n_nodes : int, optional
            Number of nodes n of the graph. Default: as many as the graph that the losses meet.
        **parameters
            Those of the single loss. Parameters of data points are numbers, or of shape (N,).
        """
        return cls._stacked(table_rows(X, y, node, n_nodes), parameters, np.shape(y))

    @classmethod
    def _stacked(
        cls, rows: Rows, parameters: Mapping[str, Any], shape: tuple[int, ...]
    ) -> StackedLoss:
        dim = rows.X.shape[1]
        check_targets(cls._kind, rows.y)
        row, extra = cls._read(parameters, shape, dim)
        chosen = {name: values[rows.order] for name, values in row.items()}
        terms: list[Term] = [
            {"kind": cls._kind, "node": rows.node, "X": rows.X, "y": rows.y, **chosen}
        ]
        nodes = np.unique(rows.node)
        for term in extra:
            (name,) = set(term) - {"kind", "node"}
            values = np.broadcast_to(term[name], (len(nodes), dim))
            terms.append({"kind": term["kind"], "node": nodes, name: values})
        losses = StackedLoss(parts_of_terms(terms, dim) if len(nodes) else [], dim)
        return losses if rows.n_nodes is None else losses.completed(rows.n_nodes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(X of shape {self.X.shape})"
