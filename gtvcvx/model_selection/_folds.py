"""Which data points are held out in which fold, and the problems that are left."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import BoolArray, IntArray, integer_array, is_integer
from gtvcvx.losses import stacked_from_terms
from gtvcvx.model_selection._errors import REGULARIZERS, ROW_ERRORS
from gtvcvx.problem import GTVProblem

Term = dict[str, Any]

OVER = ("points", "nodes")


class Folds:
    """Assignment of a problem's data to folds.

    Attributes
    ----------
    count : int
        Number of folds K.
    assignment : ndarray of int64
        Fold 0..K-1 of each data point, in the order of the rows in ``problem.to_data()["terms"]``
        (over="points"), or of each node, shape (n,) (over="nodes"); -1 where it is in none.
    """

    def __init__(
        self, problem: GTVProblem, cv: int | ArrayLike, over: str, rng: np.random.Generator
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

        So a node's rows, and a component's nodes, are spread evenly over the folds. A component
        with a single item keeps it: nothing would be left to predict it from.
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
                rng.permutation(component.max() + 1)[component[items]],
            )
        )
        folds = np.full(len(self._owners), -1)
        folds[items[order]] = np.arange(len(items)) % cv
        return folds

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
        """Return the problem without what the fold holds out; lambda is that of the problem."""
        kept = [
            _selected(term, rows != fold)
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
