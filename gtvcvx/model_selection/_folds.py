"""Which data points are held out in which fold, and the problems that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    finite_array,
    integer_array,
    is_integer,
)
from gtvcvx.losses import stacked_from_terms
from gtvcvx.losses.batched._terms import WEIGHT
from gtvcvx.model_selection._errors import CLASSES, REGULARIZERS, ROW_ERRORS
from gtvcvx.problem import GTVProblem

Term = dict[str, Any]

OVER = ("points", "nodes")


class Folds:
    """Assignment of a problem's data to folds.

    Parameters
    ----------
    problem : GTVProblem
    cv, over, error_weight
        See `cross_validate`.
    rng : numpy.random.Generator

    Attributes
    ----------
    count : int
        Number of folds K.
    assignment : ndarray of int64
        Fold 0..K-1 of each data point, in the order of the rows in ``problem.to_data()["terms"]``
        (over="points"), or of each node, shape (n,) (over="nodes"); -1 where it is in none.
    """

    def __init__(
        self,
        problem: GTVProblem,
        cv: int | ArrayLike,
        over: str,
        rng: np.random.Generator,
        error_weight: ArrayLike | None = None,
    ) -> None:
        if over not in OVER:
            raise ValueError(f"over: one of {OVER} is expected, got {over!r}")
        self._problem, self._over = problem, over
        self._terms = _checked_terms(problem)
        self._owners = self._items()
        if is_integer(cv):
            of_items, self.count = self._dealt(int(cv), rng), int(cv)
        else:
            of_items = self._given(cv)
            self.count = int(of_items.max(initial=-1)) + 1
        self._check(of_items)
        self.assignment = of_items
        if over == "nodes":
            self.assignment = np.full(problem.graph.n_nodes, -1)
            self.assignment[self._owners] = of_items
        self._rows = self._folds_of_rows()
        self._weights = self._weights_of_rows(error_weight)

    def _items(self) -> IntArray:
        """Nodes of the items that are dealt out: of each data point, or each node with data."""
        owners = [term["node"] for term in self._terms if self._is_held_out(term)]
        if not owners:
            hint = "; over='nodes' holds out points" if self._over == "points" else ""
            raise ValueError(f"over: the losses have no {self._noun} to hold out{hint}")
        items = np.concatenate(owners)
        return items if self._over == "points" else np.unique(items)

    @property
    def _noun(self) -> str:
        return "data points" if self._over == "points" else "nodes with data"

    def _is_held_out(self, term: Term) -> bool:
        return term["kind"] in ROW_ERRORS or (term["kind"] == "point" and self._over == "nodes")

    def _dealt(self, cv: int, rng: np.random.Generator) -> IntArray:
        """Deal out the items node by node, component by component, like cards.

        So a node's rows, and a component's nodes, are spread evenly over the folds; of classes,
        the rows of each class. A component with a single item keeps it: nothing would be left to
        predict it from.
        """
        if cv < 2:
            raise ValueError(f"cv: at least 2 folds are expected, got {cv}")
        component = self._problem.graph.components[self._owners]
        items = np.flatnonzero(np.bincount(component)[component] > 1)
        if len(items) < cv:
            raise ValueError(
                f"cv: {cv} folds need as many {self._noun} in components with at least two, "
                f"there are {len(items)}"
            )
        owner = self._owners[items]
        order = np.lexsort(
            (
                rng.random(len(items)),
                rng.permutation(self._problem.graph.n_nodes)[owner],
                self._classes()[items],
                rng.permutation(component.max() + 1)[component[items]],
            )
        )
        folds = np.full(len(self._owners), -1)
        folds[items[order]] = np.arange(len(items)) % cv
        return folds

    def _classes(self) -> FloatArray:
        """Class of each item, zero where it has none."""
        if self._over == "nodes":
            return np.zeros(len(self._owners))
        terms = [term for term in self._terms if self._is_held_out(term)]
        return np.concatenate(
            [t["y"] if t["kind"] in CLASSES else np.zeros(len(t["node"])) for t in terms]
        )

    def _given(self, cv: Any) -> IntArray:
        folds = integer_array(cv, "cv").astype(np.int64)
        size = len(self._owners) if self._over == "points" else self._problem.graph.n_nodes
        if folds.shape != (size,):
            raise ValueError(
                f"cv: a number of folds or an array of shape ({size},), the fold of each "
                f"{'data point' if self._over == 'points' else 'node'}, is expected, got shape "
                f"{folds.shape}"
            )
        if folds.min() < -1:
            raise ValueError(f"cv: folds from 0, or -1 for none, are expected, got {folds.min()}")
        return folds if self._over == "points" else folds[self._owners]

    def _check(self, folds: IntArray) -> None:
        """Refuse folds that are empty or leave a component without data."""
        if self.count < 2:
            raise ValueError(f"cv: at least 2 folds are expected, got {self.count}")
        sizes = np.bincount(folds[folds >= 0], minlength=self.count)
        if not sizes.all():
            raise ValueError(f"cv: fold {int(np.argmin(sizes))} holds out nothing")
        component = self._problem.graph.components[self._owners]
        whole = np.bincount(component)
        for k in range(self.count):
            out = np.bincount(component[folds == k], minlength=len(whole))
            empty = np.flatnonzero((out == whole) & (whole > 0))
            if empty.size:
                node = int(self._owners[np.argmax(component == empty[0])])
                raise ValueError(
                    f"cv: fold {k} leaves no data in the component of node "
                    f"{self._problem.graph.nodes[node]!r}"
                )

    def training(self, fold: int) -> GTVProblem:
        """Return the problem without what the fold holds out; lambda is that of the problem.

        The losses of nodes weigh what they did: means are those of fewer rows, and the weights of
        weighted rows that are left add up to the same.
        """
        kept = [
            _reweighted(term, _selected(term, rows != fold))
            for term, rows in zip(self._terms, self._rows, strict=True)
        ]
        problem = self._problem
        losses = stacked_from_terms([term for term in kept if len(term["node"])], problem.dim)
        return GTVProblem(problem.graph, losses, problem.penalty, problem.lam)

    def held_out(self, fold: int) -> list[Term]:
        """Return what the fold holds out, as terms."""
        found = [
            _selected(term, rows == fold)
            for term, rows in zip(self._terms, self._rows, strict=True)
        ]
        return [term for term in found if len(term["node"])]

    def weights(self, fold: int) -> list[FloatArray]:
        """Return how much each error counts, for the rows of each term of `held_out`."""
        found = [
            weights[rows == fold] for weights, rows in zip(self._weights, self._rows, strict=True)
        ]
        return [weights for weights in found if len(weights)]

    @property
    def sizes(self) -> IntArray:
        """Number of data points that each fold holds out, (K,)."""
        return np.array([sum(map(len, self.weights(k))) for k in range(self.count)])

    @property
    def total_weights(self) -> FloatArray:
        """Weight of the errors of each fold, (K,)."""
        return np.array([float(sum(w.sum() for w in self.weights(k))) for k in range(self.count)])

    def _weights_of_rows(self, given: ArrayLike | None) -> list[FloatArray]:
        """Weights of the errors of each row or point of each term; of other terms, anything."""
        if given is None:
            return [_own_weights(term) for term in self._terms]
        data = [term["kind"] in (*ROW_ERRORS, "point") for term in self._terms]
        sizes = [len(t["node"]) if d else 0 for t, d in zip(self._terms, data, strict=True)]
        weights = finite_array(given, "error_weight", 1)
        if weights.shape != (sum(sizes),) or not np.all(weights > 0.0):
            raise ValueError(
                f"error_weight: a number > 0 for each of {sum(sizes)} data points is expected"
            )
        pieces = np.split(weights, np.cumsum(sizes)[:-1])
        return [
            piece if d else np.ones(len(term["node"]))
            for piece, d, term in zip(pieces, data, self._terms, strict=True)
        ]

    def _folds_of_rows(self) -> list[IntArray]:
        """Fold of each row of each term."""
        rows: list[IntArray] = []
        first = 0
        for term in self._terms:
            node = term["node"]
            if not self._is_held_out(term):
                rows.append(np.full(len(node), -1))
            elif self._over == "nodes":
                rows.append(self.assignment[node])
            else:
                rows.append(self.assignment[first : first + len(node)])
                first += len(node)
        return rows


def _checked_terms(problem: GTVProblem) -> list[Term]:
    """Plain data of the losses; what cannot be taken apart is refused by node."""
    terms = problem.losses.terms()
    for term in terms:
        if term["kind"] not in (*ROW_ERRORS, "point", *REGULARIZERS):
            label = problem.graph.nodes[int(term["node"][0])]
            raise ValueError(
                f"problem: the loss of node {label!r} is of kind {term['kind']!r}, whose data "
                "cannot be held out"
            )
    return terms


def _selected(term: Term, chosen: BoolArray) -> Term:
    """Keep some rows of a term; all of its arrays have one entry a row."""
    return {
        name: value[chosen] if isinstance(value, np.ndarray) else value
        for name, value in term.items()
    }


def _own_weights(term: Term) -> FloatArray:
    """Weights of the rows of a term, in units in which those of a mean weigh one each."""
    node = term["node"]
    if WEIGHT not in term:
        return np.ones(len(node))
    if term["kind"] not in ROW_ERRORS:
        return np.asarray(term[WEIGHT])
    return np.asarray(term[WEIGHT] * np.bincount(node)[node])


def _reweighted(term: Term, kept: Term) -> Term:
    """Give rows that were kept the weight that each node's rows of the term had in all."""
    if WEIGHT not in term or term["kind"] not in ROW_ERRORS:
        return kept
    node = kept["node"]
    before = np.bincount(term["node"], term[WEIGHT])
    after = np.bincount(node, kept[WEIGHT], len(before))
    return {**kept, WEIGHT: kept[WEIGHT] * (before[node] / after[node])}
