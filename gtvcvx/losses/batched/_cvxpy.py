"""Losses that users write with CVXPY, at many nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._lazy import cp
from gtvcvx.conic._form import conjugate_model
from gtvcvx.conic._function import CvxpyFunction, make_forms
from gtvcvx.losses.batched._base import BatchedLoss

T = TypeVar("T")

# Of so many losses the conic form is made even if only a rough bound is wanted: 1 ms for each.
_AFFORDABLE = 50


def _named(node: str | None, compute: Callable[..., T], *arguments: Any) -> T:
    """Compute, with the node's name in front of the message of an error."""
    try:
        return compute(*arguments)
    except (cp.DCPError, cp.SolverError, TypeError, ValueError) as error:
        if node is None:
            raise
        raise type(error)(f"losses: node {node}: {error}") from error


class BatchedCvxpy(BatchedLoss):
    """Losses by CVXPY at k nodes, worked off one after the other.

    A joint cone program of all nodes takes longer: its iterations go on until the last node has
    converged.
    """

    # What CVXPY can tell of a function does not say whether it has a gradient.
    smooth = False

    def __init__(self, functions: Sequence[CvxpyFunction], names: Sequence[str | None]) -> None:
        self._functions, self._names = list(functions), list(names)
        self.dim = self._functions[0].dim

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return len(self._functions)

    def _each(self, of: Callable[[CvxpyFunction, int], Any], conic: bool = True) -> FloatArray:
        """Stack what ``of(function, i)`` gives for each node i, by its conic form or without."""
        if conic:
            make_forms(self._functions)
        rows = []
        for i, (function, name) in enumerate(zip(self._functions, self._names, strict=True)):
            look()
            rows.append(_named(name, of, function, i))
        return np.array(rows)

    def value(self, w: FloatArray) -> FloatArray:
        """Losses (k,), +inf where a constraint is violated by more than 1e-8 of the size of w."""
        return self._each(lambda f, i: f.value(w[i]), conic=False)

    def gradient(self, w: FloatArray) -> FloatArray:
        """Subgradients (k, d), multipliers of the cone program with w fixed."""
        return self._each(lambda f, i: f.subgradient(w[i]))

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points (k, d), by Clarabel."""
        return self._each(lambda f, i: f.prox(v[i], float(tau[i])))

    def project_domain(self, w: FloatArray) -> FloatArray:
        """Return points near w_i where L_i is finite: w_i itself, or its projection."""
        return self._each(lambda f, i: f.near(w[i]), conic=False)

    @cached_property
    def _minimizer(self) -> FloatArray:
        least = self._each(lambda f, i: f.minimizer())
        return least - np.einsum("kij,kj->ki", self._projector, least)

    def minimizer(self) -> FloatArray:
        """One minimizer of each loss, without a part along null directions."""
        return self._minimizer.copy()

    def _inside(self, s: FloatArray) -> FloatArray:
        """Remove the part of s along null directions."""
        return s - np.einsum("kij,kj->ki", self._projector, s)

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Upper bounds on the conjugates; +inf farther than atol from the domain.

        The part along null directions is left out up to atol, be it infinite. What leaves the
        domain otherwise is moved back within a finite atol only: it is no matter of rounding.
        """
        inside = self._inside(s)
        away = np.linalg.norm(s - inside, axis=1)

        def bound(f: CvxpyFunction, i: int) -> float:
            if away[i] > atol[i]:
                return np.inf
            value = f.conjugate(inside[i])
            if np.isfinite(value) or not 0.0 < atol[i] < np.inf:
                return value
            nearest = f.nearest_slope(inside[i])
            close = np.linalg.norm(nearest - s[i]) <= atol[i]
            return f.conjugate(nearest) if close else np.inf

        return self._each(bound)

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Upper bounds ``L_i(w_i) + L_i*(s_i) - <s_i, w_i>`` on the node gaps."""
        inside = self._inside(s)
        bound = self._each(lambda f, i: f.conjugate(inside[i], w[i]))
        return np.maximum(self.value(w) + bound - np.sum(inside * w, axis=1), 0.0)

    def loose_gap(self, w: FloatArray) -> FloatArray:
        """Upper bounds ``L_i(w_i) - min L_i`` on the gaps of no injection.

        Where CVXPY's rules say that a loss is not negative, that is enough. To bring one into conic
        form, for its least value, takes milliseconds: if too many have still to be, the bounds are
        infinite there.
        """
        values = self.value(w)
        dear = dict.fromkeys(f for f in self._functions if not f.cheap)  # in order, unlike a set
        affordable = len(dear) <= _AFFORDABLE
        if affordable:
            make_forms(dear)
        least = self._each(lambda f, i: f.least if affordable or f.cheap else -np.inf, conic=False)
        return np.maximum(values - least, 0.0)

    def scale_to_feasible(self, s: FloatArray) -> float:
        """Return a theta in [0, 1] with theta s_i in the domain of L_i* for all i, the largest."""
        inside = self._inside(s)
        return 1.0 / float(self._each(lambda f, i: f.excess(inside[i])).max())

    @cached_property
    def _projector(self) -> FloatArray:
        return self._each(lambda f, i: f.null @ f.null.T)

    def null_projector(self) -> FloatArray:
        """Projectors on the directions along which L_i is constant, from its conic form.

        Raises
        ------
        ValueError
            A loss is unbounded below: no flow need be dual feasible then, not even zero.
        """
        if not all(function.nonnegative for function in self._functions):
            self.minimizer()
        return self._projector

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value: what the users wrote, node by node."""
        costs, constraints = [], []
        for i, f in enumerate(self._functions):
            cost, extra = f.expression(w[i, :])
            costs.append(cost)
            constraints += extra
        return cp.sum(cp.hstack(costs)), constraints

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate: the duals of the cone programs."""
        make_forms(self._functions)
        return conjugate_model([f.form for f in self._functions], s, np.ones(self.n_nodes))

    def written(self) -> Sequence[CvxpyFunction]:
        """Return the functions (k,)."""
        return self._functions

    def multiplied(self, factors: FloatArray, nodes: IntArray) -> BatchedCvxpy:
        """Return the losses times factors (k,) > 0, nodes with one function sharing the new one."""
        zero = np.flatnonzero(factors == 0.0)
        if zero.size:
            raise TypeError(
                f"factor: zero at node {int(nodes[zero[0]])}, whose loss is written with CVXPY and "
                "may have constraints; leave the node out instead"
            )
        known: dict[tuple[int, float], CvxpyFunction] = {}
        for function, factor in zip(self._functions, factors.tolist(), strict=True):
            key = id(function), factor
            known[key] = known.get(key) or function.multiplied(factor)
        keys = zip(map(id, self._functions), factors.tolist(), strict=True)
        return BatchedCvxpy([known[key] for key in keys], self._names)

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """One opaque term: there are no data that would say what the losses are."""
        return [{"kind": "opaque", "node": np.sort(nodes), "name": "CvxpyLoss"}]
