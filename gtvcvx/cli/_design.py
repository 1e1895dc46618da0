"""From the two CSV files of ``fit`` to a problem: graph, features, losses."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.cli._losses import LossChoice, chosen_loss
from gtvcvx.files._tables import DataTable, EdgeTable, Label, match_nodes, read_data, read_edges
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.problem import GTVProblem

INTERCEPT = "intercept"
# Squares and sums of squares of larger values may overflow.
_LARGEST = 1e140


@dataclass(frozen=True)
class Design:
    """The problem that ``fit`` solves, and how it was made from the files.

    Attributes
    ----------
    problem : GTVProblem
    features : list of str, length d
        Names of the entries of a parameter vector.
    table : DataTable
        The data file.
    X : ndarray, shape (N, d)
        Features of each data point, scaled and with the intercept's column of ones.
    owner : ndarray of int64, shape (N,)
        Number of the node that holds each data point.
    scaling : dict or None
        With ``--standardize``: ``mean`` and ``scale`` of each feature column of the file, and the
        names of the ``constant`` ones, which are left as they are (mean 0, scale 1).
    intercept : bool
        Whether the last feature is a column of ones.
    loss : LossChoice
    columns : dict
        Names of the ``node``, the ``target`` and the ``features`` columns.
    """

    problem: GTVProblem
    features: list[str]
    table: DataTable
    X: FloatArray
    owner: IntArray
    scaling: dict[str, Any] | None
    intercept: bool
    loss: LossChoice
    columns: dict[str, Any]

    def with_lam(self, lam: float) -> Design:
        """Return the same design with another lambda."""
        return replace(self, problem=self.problem.with_lam(lam))

    @property
    def inputs(self) -> list[str]:
        """Names of the columns of X."""
        return [*self.table.features, *[INTERCEPT] * self.intercept]

    @property
    def n_labelled(self) -> int:
        """Number of nodes that hold a data point."""
        return len(np.unique(self.owner))

    def fit_quality(self, w: FloatArray) -> dict[str, float]:
        """Return means over all data points, for w of shape (n, d); see `LossChoice.quality`."""
        own = w[self.owner]
        if self.loss.is_point:
            error = float(np.mean(np.sum((own - self.X) ** 2, axis=1)))
            return {"mean_loss": error, "mean_squared_error": error}
        return self.loss.quality(self.loss.predictors(self.X, own), self.table.y)

    def in_original_units(self, w: FloatArray) -> tuple[list[str], FloatArray] | None:
        """Return names and values of the coefficients of the columns as they are in the file.

        None without ``--standardize``, for then they are w (n, d) itself. Scaling moves the
        origin, so that models have an intercept, the last coefficient, if they had none before.
        """
        if self.scaling is None:
            return None
        mean, scale = np.array(self.scaling["mean"]), np.array(self.scaling["scale"])
        names = list(self.table.features)
        if self.loss.is_point:
            return names, w * scale + mean
        # One column a class, or one in all.
        W = w.reshape(len(w), self.X.shape[1], -1)
        slopes = W[:, : len(names)] / scale[:, None]
        offset = -np.einsum("nfk,f->nk", slopes, mean)
        if self.intercept:
            offset = offset + W[:, -1]
        elif not mean.any():
            return self.loss.names(names, self.table.labels), slopes.reshape(len(w), -1)
        name = INTERCEPT
        while name in names:
            name += "_"
        values = np.concatenate([slopes, offset[:, None]], axis=1)
        return self.loss.names([*names, name], self.table.labels), values.reshape(len(w), -1)

    def info(self) -> dict[str, Any]:
        """Return what a reader of the solution must know to use its coefficients."""
        return {
            "features": self.features,
            "intercept": self.intercept,
            "standardized": self.scaling,
            "loss": self.loss.data(),
            "labels": self.table.labels,
            "columns": self.columns,
        }

    def info_of(self, w: FloatArray) -> dict[str, Any]:
        """Return the same, and with ``--standardize`` w (n, d) in the units of the file."""
        converted = self.in_original_units(w)
        if converted is None:
            return self.info()
        return {**self.info(), "original": {"features": converted[0], "w": converted[1]}}


def read_design(args: Namespace) -> Design:
    """Read the files and build the problem; without ``args.lam`` its lambda is 1.

    Raises
    ------
    ValueError
        Naming the file and line, or the argument, that is wrong.
    """
    loss = chosen_loss(args)
    edges = read_edges(args.edges)
    table = read_data(
        args.data,
        node=args.node,
        target=args.target,
        features=args.features,
        targets=loss.targets(),
    )
    nodes = _with_isolated(edges.labels, table) if args.isolated else edges.labels
    X, features, scaling = table.X, list(table.features), None
    if args.standardize:
        X, scaling = standardized(X, features)
    if args.intercept:
        if INTERCEPT in features:
            raise ValueError(f"--intercept: {args.data} has a feature column {INTERCEPT!r} already")
        X, features = np.column_stack([X, np.ones(len(X))]), [*features, INTERCEPT]
    if not features:
        raise ValueError(
            f"{args.data}: there is no feature column besides {args.node!r}"
            + ("" if loss.is_point else f" and {args.target!r}; --intercept adds a column of ones")
        )
    graph = _graph(args.edges, edges, nodes)
    owner = match_nodes(nodes, table)
    _check_magnitude(args.target, table, X, features)
    if loss.is_point:
        _refuse_second_rows(table, owner)
    losses = loss.stacked(X, table.y, owner, len(nodes), args.intercept)
    names = loss.names(features, table.labels)
    problem = GTVProblem(graph, losses, args.penalty, 1.0 if args.lam is None else args.lam)
    columns = {"node": args.node, "target": args.target, "features": list(table.features)}
    return Design(problem, names, table, X, owner, scaling, args.intercept, loss, columns)


def _refuse_second_rows(table: DataTable, owner: IntArray) -> None:
    """Refuse a second point at a node."""
    first: dict[int, int] = {}
    for k, node in enumerate(owner.tolist()):
        if first.setdefault(node, k) != k:
            raise ValueError(
                f"{table.path}, line {table.lines[k]}: node {str(table.node[k])!r} has a row "
                f"already, on line {table.lines[first[node]]}; the loss point takes one a node"
            )


def _graph(path: str, table: EdgeTable, nodes: list[Label]) -> EmpiricalGraph:
    try:
        return EmpiricalGraph(len(nodes), table.edges, table.weights, nodes)
    except ValueError as error:
        raise ValueError(f"{path} (nodes numbered as they appear): {error}") from error


def _check_magnitude(
    target: str | None, table: DataTable, X: FloatArray, features: list[str]
) -> None:
    """Refuse values whose squared errors double precision cannot hold."""
    for name, column in [(target or "", table.y), *zip(features, X.T, strict=True)]:
        large = np.flatnonzero(np.abs(column) > _LARGEST)
        if large.size:
            k = int(large[0])
            raise ValueError(
                f"{table.path}, line {table.lines[k]}, column {name!r}: {column[k]:g} is too large "
                "for squared errors in double precision"
            )


def _with_isolated(labels: list[Label], table: DataTable) -> list[Label]:
    """Add the nodes of the data file that have no edge, after the others."""
    known = {str(label) for label in labels}
    new = {str(label): label for label in table.node if str(label) not in known}
    nodes = [*labels, *new.values()]
    one_type = len({type(label) for label in nodes}) == 1
    return nodes if one_type else [str(label) for label in nodes]


def standardized(X: FloatArray, features: list[str]) -> tuple[FloatArray, dict[str, Any]]:
    """Scale the columns of X (N, d) to mean 0 and variance 1 over all rows.

    A constant column has no scale, and without it no intercept may be left: it stays as it is.

    Returns
    -------
    X : ndarray, shape (N, d)
    scaling : dict
        ``mean`` (d,) and ``scale`` (d,), lists of floats, with X = (raw - mean) / scale, and
        ``constant``, the names of the columns that were left.
    """
    constant = np.ptp(X, axis=0) == 0
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.where(constant, 0.0, X.mean(axis=0))
        scale = np.where(constant, 1.0, np.sqrt(np.mean((X - mean) ** 2, axis=0)))
        scaled = (X - mean) / np.where(scale > 0, scale, 1.0)
    wrong = np.flatnonzero(~(np.isfinite(scaled).all(axis=0) & np.isfinite(scale) & (scale > 0)))
    if wrong.size:
        raise ValueError(
            f"--standardize: the values of column {features[int(wrong[0])]!r} are too large or too "
            "close together to be scaled in double precision"
        )
    names = [name for name, left in zip(features, constant, strict=True) if left]
    return scaled, {"mean": mean.tolist(), "scale": scale.tolist(), "constant": names}
