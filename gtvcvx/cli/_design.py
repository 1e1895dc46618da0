"""From the two CSV files of ``fit`` to a problem: graph, features, losses."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.files._tables import DataTable, EdgeTable, Label, match_nodes, read_data, read_edges
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import SquaredLoss
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
    """

    problem: GTVProblem
    features: list[str]
    table: DataTable
    X: FloatArray
    owner: IntArray
    scaling: dict[str, Any] | None
    intercept: bool

    def with_lam(self, lam: float) -> Design:
        """Return the same design with another lambda."""
        return replace(self, problem=self.problem.with_lam(lam))

    @property
    def n_labelled(self) -> int:
        """Number of nodes that hold a data point."""
        return len(np.unique(self.owner))

    def mean_squared_error(self, w: FloatArray) -> float:
        """Mean over all data points, for w of shape (n, d)."""
        predicted = np.einsum("nd,nd->n", self.X, w[self.owner])
        return float(np.mean((predicted - self.table.y) ** 2))

    def info(self) -> dict[str, Any]:
        """Return what a reader of the solution must know to use its coefficients."""
        return {
            "features": self.features,
            "intercept": self.intercept,
            "standardized": self.scaling,
        }


def read_design(args: Namespace) -> Design:
    """Read the files and build the problem; without ``args.lam`` its lambda is 1.

    Raises
    ------
    ValueError
        Naming the file and line, or the argument, that is wrong.
    """
    edges = read_edges(args.edges)
    table = read_data(args.data, node=args.node, target=args.target, features=args.features)
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
            f"{args.data}: there is no feature column besides {args.node!r} and {args.target!r}; "
            "--intercept adds a column of ones"
        )
    graph = _graph(args.edges, edges, nodes)
    owner = match_nodes(nodes, table)
    _check_magnitude(args.target, table, X, features)
    losses = SquaredLoss.from_rows(X, table.y, owner, n_nodes=len(nodes))
    problem = GTVProblem(graph, losses, args.penalty, 1.0 if args.lam is None else args.lam)
    return Design(problem, features, table, X, owner, scaling, args.intercept)


def _graph(path: str, table: EdgeTable, nodes: list[Label]) -> EmpiricalGraph:
    try:
        return EmpiricalGraph(len(nodes), table.edges, table.weights, nodes)
    except ValueError as error:
        raise ValueError(f"{path} (nodes numbered as they appear): {error}") from error


def _check_magnitude(target: str, table: DataTable, X: FloatArray, features: list[str]) -> None:
    """Refuse values whose squared errors double precision cannot hold."""
    for name, column in [(target, table.y), *zip(features, X.T, strict=True)]:
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
