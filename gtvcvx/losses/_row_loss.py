"""What losses of data points have in common: means over rows of functions of x.w and y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray
from gtvcvx.losses._loss import PlainLoss
from gtvcvx.losses._rows import Rows, row_parameter, rows_of_node, stacked_rows, table_rows
from gtvcvx.losses.batched._stacked import StackedLoss, stacked_terms
from gtvcvx.losses.batched._terms import ROW_KINDS, Term, check_targets


class RowLoss(PlainLoss):
    """Mean, or weighted mean, over data points (x, y) of a function of x.w and y.

    Parameters
    ----------
    X : array_like, shape (m, d), or None
        Features, one row a data point. None: no features but the constant 1.
    y : array_like, shape (m,)
        Targets.
    sample_weight : array_like, shape (m,), optional
        Weights s >= 0 of the data points, of which only the ratios count: the loss is
        ``sum_r s_r f_r(x_r.w) / sum_r s_r``. Those of weight 0 are as if absent.
    **parameters
        Of the kind of loss; see there.
    """

    _kind: ClassVar[str]
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init__(
        self,
        X: ArrayLike | None,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        **parameters: Any,
    ) -> None:
        self._rows = rows_of_node(X, y, sample_weight)
        self.X, self.y = self._rows.X, self._rows.y
        check_targets(self._kind, self.y, self._rows.place)
        self.dim: int = self.X.shape[1]
        self._row, self._extra = self._read(parameters, np.shape(y), self.dim)

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
        return rows, cls._beside(given, dim)

    @classmethod
    def _beside(cls, parameters: Mapping[str, Any], dim: int) -> list[Term]:
        """Terms that a node has beside its rows, at node 0."""
        return []

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the rows, and what is beside them, at node 0."""
        return [*self._rows.terms(self._kind, self._row), *self._extra]

    @classmethod
    def stack(
        cls,
        X: ArrayLike | None,
        y: ArrayLike,
        labelled: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        **parameters: Any,
    ) -> StackedLoss:
        """Losses of all nodes at once, with the same number of rows at every node.

        Parameters
        ----------
        X : array_like, shape (n, m, d), or None
            None: no features but the constant 1.
        y : array_like, shape (n, m)
            Or, with X of shape (n, d), of shape (n,): one data point a node.
        labelled : array_like of bool, shape (n,), optional
            Nodes whose data are accessible; the others get the zero loss, and may have NaN.
            Default: all.
        sample_weight : array_like, shaped like y, optional
            Weights >= 0 of the data points; a node whose weights are all 0 gets the zero loss.
        **parameters
            Those of the single loss. Parameters of data points are numbers, or shaped like y.
        """
        rows = stacked_rows(X, y, labelled, sample_weight)
        return cls._stacked(rows, parameters, np.shape(y))

    @classmethod
    def from_rows(
        cls,
        X: ArrayLike | None,
        y: ArrayLike,
        node: ArrayLike,
        n_nodes: int | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        **parameters: Any,
    ) -> StackedLoss:
        """Losses of all nodes from one table of data points, any number of rows per node.

        Parameters
        ----------
        X : array_like, shape (N, d), or None
            None: no features but the constant 1.
        y : array_like, shape (N,)
        node : array_like of int, shape (N,)
            Number of the node that holds each row. Nodes without rows get the zero loss.
        n_nodes : int, optional
            Number of nodes n of the graph. Default: as many as the graph that the losses meet.
        sample_weight : array_like, shape (N,), optional
            Weights >= 0 of the data points; a node whose weights are all 0 gets the zero loss.
        **parameters
            Those of the single loss. Parameters of data points are numbers, or of shape (N,).
        """
        rows = table_rows(X, y, node, n_nodes, sample_weight)
        return cls._stacked(rows, parameters, np.shape(y))

    @classmethod
    def _stacked(
        cls, rows: Rows, parameters: Mapping[str, Any], shape: tuple[int, ...]
    ) -> StackedLoss:
        dim = rows.X.shape[1]
        check_targets(cls._kind, rows.y, rows.place)
        row, extra = cls._read(parameters, shape, dim)
        terms = rows.terms(cls._kind, row)
        nodes = np.unique(rows.node)
        for term in extra:
            (name,) = set(term) - {"kind", "node"}
            values = np.broadcast_to(term[name], (len(nodes), dim))
            terms.append({"kind": term["kind"], "node": nodes, name: values})
        return stacked_terms(terms, dim, rows.n_nodes)

    def __repr__(self) -> str:
        weighted = "" if self._rows.share is None else ", weighted"
        return f"{type(self).__name__}(X of shape {self.X.shape}{weighted})"
