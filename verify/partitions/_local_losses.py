"""Curvature and gradients of the local losses, with bounds on the rounding errors.

Every loss of the plain data with a bounded second derivative everywhere is covered: squared, point,
ridge, logistic and the zero loss. A logistic loss has curvature between 0 and (1 / (4 m_i)) X^T X,
so the Hessian bound from above (for beta) and from below (for alpha) differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verify._arrays import FloatArray, IntArray
from verify.partitions._rounding import TINY, gamma

#: Kinds of terms with a bounded second derivative.
SMOOTH = frozenset({"squared", "point", "ridge", "logistic"})
#: Kinds with a gradient everywhere that the tests here do not cover.
DIFFERENTIABLE = frozenset({"huber", "pseudohuber", "poisson", "multinomial"})


@dataclass(frozen=True)
class Bounded:
    """Approximate values and a bound on the error of each."""

    value: FloatArray
    error: FloatArray


class LocalLosses:
    """The smooth terms of all nodes.

    Parameters
    ----------
    n_nodes, dim : int
        Numbers n of nodes and d of dimensions.
    terms : Sequence[Mapping[str, Any]]
        The list ``terms`` of the plain data.

    Attributes
    ----------
    upper, lower : ndarray, shape (n, d, d)
        Hessian bounds; the same array if no loss is logistic.
    error : ndarray, shape (n,)
        Bound on the spectral norm (hence on each entry) of the rounding error in both.
    nonsmooth : ndarray of str, shape (n,)
        What keeps the loss of a node from being covered ("" if nothing does).
    """

    def __init__(self, n_nodes: int, dim: int, terms: Sequence[Mapping[str, Any]]) -> None:
        self.n_nodes, self.dim = n_nodes, dim
        self._terms = [term for term in terms if term["kind"] in SMOOTH]
        self.nonsmooth = np.full(n_nodes, "", dtype=object)
        for term in terms:
            if term["kind"] not in SMOOTH:
                unknown = term["kind"] in DIFFERENTIABLE
                words = "has no known bound of its curvature" if unknown else "is not smooth"
                name = term.get("name", term["kind"])
                self.nonsmooth[term["node"]] = f"{words}: {name}"
        self.has_logistic = any(term["kind"] == "logistic" for term in self._terms)
        self.lower = np.zeros((n_nodes, dim, dim))
        self.error = np.zeros(n_nodes)
        extra = np.zeros_like(self.lower) if self.has_logistic else None
        for term in self._terms:
            if term["kind"] == "logistic":
                assert extra is not None
                self._add_rows(extra, term, 0.25)
            elif term["kind"] == "squared":
                self._add_rows(self.lower, term, 2.0)
            else:
                size = _twice(term) if term["kind"] == "point" else term["mu"]
                diagonal = np.arange(dim)
                index = term["node"][:, None]
                self.lower[index, diagonal, diagonal] += size
        self.upper = self.lower if extra is None else self.lower + extra
        if len(self._terms) > 1:
            trace = np.trace(self.upper, axis1=1, axis2=2)
            self.error += gamma(len(self._terms)) * trace

    def _add_rows(self, hessians: FloatArray, term: Mapping[str, Any], factor: float) -> None:
        """Add (factor / m_i) X_i^T X_i to ``hessians`` and its rounding error to ``error``."""
        nodes, first, count = row_groups(term["node"])
        x = term["X"]
        scaled = (factor * coefficients(term))[:, None] * x
        added = np.empty((len(nodes), self.dim, self.dim))
        for j in range(self.dim):
            added[:, j] = np.add.reduceat(scaled[:, j : j + 1] * x, first, axis=0)
        added = (added + added.transpose(0, 2, 1)) / 2.0
        hessians[nodes] += added
        self.error[nodes] += gamma(count + 6) * np.trace(added, axis1=1, axis2=2) + TINY

    def gradients(self, w: FloatArray) -> Bounded:
        """Gradient of every local loss at w (n, d), with an entrywise error bound."""
        value = np.zeros_like(w)
        size = np.zeros_like(w)
        error = np.zeros_like(w)
        for term in self._terms:
            index, part, part_error = self._gradient(term, w)
            value[index] += part
            size[index] += np.abs(part)
            error[index] += part_error
        if len(self._terms) > 1:
            error += gamma(len(self._terms)) * size
        return Bounded(value, error)

    def _gradient(
        self, term: Mapping[str, Any], w: FloatArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        if term["kind"] == "point":
            index = term["node"]
            part = _twice(term) * (w[index] - term["a"])
            # Two roundings with a weight; twice the difference itself is exact.
            return index, part, gamma(2 if "weight" in term else 1) * np.abs(part) + TINY
        if term["kind"] == "ridge":
            index = term["node"]
            part = term["mu"] * w[index]
            return index, part, gamma(1) * np.abs(part) + TINY
        index, first, count = row_groups(term["node"])
        x, y = term["X"], term["y"]
        at_rows = w[term["node"]]
        z = np.einsum("rd,rd->r", x, at_rows)
        z_size = np.einsum("rd,rd->r", np.abs(x), np.abs(at_rows))
        d = self.dim
        if term["kind"] == "squared":
            slope = 2.0 * (z - y)
            slope_error = 2.0 * gamma(d + 3) * (z_size + np.abs(y)) + TINY
        else:
            slope = expit(z) - y
            slope_error = 0.25 * gamma(d + 1) * z_size + gamma(16) + TINY
        weight = coefficients(term)
        part = np.add.reduceat((weight * slope)[:, None] * x, first, axis=0)
        sizes = (weight * (slope_error + gamma(8) * np.abs(slope)))[:, None] * np.abs(x)
        absolute = (weight * np.abs(slope))[:, None] * np.abs(x)
        error = np.add.reduceat(sizes, first, axis=0)
        error += gamma(count + 4)[:, None] * np.add.reduceat(absolute, first, axis=0)
        return index, part, error * (1.0 + gamma(count + 8))[:, None] + TINY

    def hessians(self, w: FloatArray) -> FloatArray:
        """Hessian of every local loss at w, (n, d, d); approximate."""
        if not self.has_logistic:
            return self.lower
        total = self.lower.copy()
        for term in self._terms:
            if term["kind"] == "logistic":
                index, first, _ = row_groups(term["node"])
                p = expit(np.einsum("rd,rd->r", term["X"], w[term["node"]]))
                scaled = (p * (1.0 - p) * coefficients(term))[:, None] * term["X"]
                for j in range(self.dim):
                    total[index, j] += np.add.reduceat(
                        scaled[:, j : j + 1] * term["X"], first, axis=0
                    )
        return total


def _twice(term: Mapping[str, Any]) -> float | FloatArray:
    """Return 2, or twice the weights (k, 1) of points."""
    return 2.0 * term["weight"][:, None] if "weight" in term else 2.0


def coefficients(term: Mapping[str, Any]) -> FloatArray:
    """Return what each row (N,) counts in the loss of its node, its weight or 1/m; rounded once."""
    if "weight" in term:
        return np.asarray(term["weight"])
    _, _, count = row_groups(term["node"])
    return 1.0 / np.repeat(count, count)


def row_groups(
    node: IntArray,
) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct nodes of sorted rows, the first row of each and the number of its rows."""
    index, first, count = np.unique(node, return_index=True, return_counts=True)
    return index, first, count


def expit(z: FloatArray) -> FloatArray:
    """1 / (1 + exp(-z)) without overflow."""
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0.0, 1.0, small) / (1.0 + small))
