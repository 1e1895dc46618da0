"""Units in which Clarabel solves a problem, the most promising ones first.

Its tolerances are relative to the largest entries of the data, and to 1. Edges of capacity 1e-5
count little beside losses of size 1, features of size 1e5 much beside an intercept; then it calls
solved what is far from it, or takes twice as many iterations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.conic._function import make_forms
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS, Term
from gtvcvx.losses.node._segments import owners
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._losses import FAR, KINKED, largest_point

# Sizes of features, and capacities, up to which the data's own units are good.
GOOD = 30.0
# Sizes of features that differ by more than that are those of different units.
RAW = 100.0
# Choices beside those for losses that are known by CVXPY's rules.
ROUNDS = 3


def feature_sizes(terms: list[Term], dim: int) -> FloatArray:
    """Return the largest entry of each column of all features (d,); 1 where there is none."""
    sizes = _largest_features(terms, dim)
    return np.where(sizes > 0.0, sizes, 1.0)


def units_differ(terms: list[Term], dim: int) -> bool:
    """Say whether features have different units."""
    sizes = feature_sizes(terms, dim)
    return float(sizes.max() / sizes.min()) > RAW


def _largest_features(terms: list[Term], dim: int) -> FloatArray:
    sizes = np.zeros(dim)
    for term in terms:
        if term["kind"] in ROW_KINDS:
            sizes = np.maximum(sizes, np.abs(term["X"]).max(axis=0))
        elif term["kind"] == MULTINOMIAL:
            of_features = np.abs(term["X"]).max(axis=0)
            sizes = np.maximum(sizes, np.repeat(of_features, dim // len(of_features)))
    return sizes


class Written(NamedTuple):
    """Sizes in the conic forms of losses that are known by CVXPY's rules alone."""

    columns: FloatArray  # (d,), largest entries of the coordinates' columns; zero without any
    offsets: float  # typical largest entry of the right-hand sides; 1 without any

    @staticmethod
    def of(losses: StackedLoss) -> Written:
        """Look at all of these losses."""
        columns, offsets = np.zeros(losses.dim), [np.empty(0)]
        for _, batch in losses.parts:
            functions = batch.written() or ()
            make_forms(functions)
            for function in functions:
                form = function.form
                if not form.A.shape[0]:  # a linear function: nothing has a size
                    continue
                first = form.A.indptr[: form.dim + 1]
                np.maximum.at(columns, owners(first), np.abs(form.A.data[: first[-1]]))
                offsets.append(np.abs(form.b).max(initial=0.0, keepdims=True))
        some = np.concatenate(offsets)
        some = some[some > 0.0]
        return Written(columns, float(np.median(some)) if len(some) else 1.0)


class Choice(NamedTuple):
    """Units of coordinates and of other variables, and the factor of all costs; powers of two.

    Lightly regularized, the matrix that Clarabel factors is closer to its own: where columns are
    all but dependent, what Clarabel adds by itself is more than what they differ by.
    """

    columns: FloatArray  # (n, d)
    cost: float
    others: float = 1.0
    light: bool = False


def choices_of_units(problem: GTVProblem) -> list[Choice]:
    """Return the units of one round after the other.

    Where CVXPY's rules describe losses, those come first in which their right-hand sides are 1:
    these losses have no method that is made for them. Features are 1 then, too, and once more,
    lightly regularized. Beside large data the capacities have to be 1 if they are less, and
    features of different units stay as they are: columns that all but agree, as offsets and an
    intercept, took many times as many steps once they had the same size.
    """
    choices = _of_known(problem)
    written = Written.of(problem.losses)
    some = written.columns[written.columns > 0.0]
    sizes = np.append(some, written.offsets)
    if not len(some) or max(sizes.max(), 1.0 / sizes.min()) <= GOOD:
        return choices
    known = _largest_features(problem.losses.plain, problem.dim)
    features = np.maximum(known, written.columns)
    features = np.where(features > 0.0, features, 1.0)
    n, others = problem.graph.n_nodes, float(_power_of_two(written.offsets))

    def in_sizes(of_features: FloatArray, cost: float) -> Choice:
        columns = _power_of_two(written.offsets / of_features)
        return Choice(np.tile(columns, (n, 1)), cost / others, others)

    ones, cost = in_sizes(features, 1.0), _cost_of_flow(problem)
    if cost <= 1.0 or others < 1.0:
        return [ones, ones._replace(light=True), *choices[:ROUNDS]]
    differ = features.max() > RAW * features.min()
    first = in_sizes(np.minimum(features, 1.0) if differ else features, cost)
    return [first, choices[0]._replace(light=True), ones, *choices[: ROUNDS - 1]]


def _of_known(problem: GTVProblem) -> list[Choice]:
    """Return those that losses known by their data ask for.

    Costs grow until capacities are about 1; where features are large, until that holds in their
    units. Kinked losses, whose slopes are bounded like flows, do without the latter, and beside
    capacities of 1 and more they need no other units. Sums that are given have units of their own,
    in which large features only make points less precise.
    """
    n, d = problem.graph.n_nodes, problem.dim
    terms = problem.losses.plain
    features, kinds = feature_sizes(terms, d), {term["kind"] for term in terms}
    own, scaled = np.ones((n, d)), np.tile(_power_of_two(1.0 / features), (n, 1))
    cost = _cost_of_flow(problem)
    large = float(_power_of_two(max(features.max(), 1.0)))
    plain = Choice(own, 1.0)
    edges, features_too = Choice(scaled, cost), Choice(scaled, cost * large)
    if max(features.max(), 1.0 / features.min(), cost, 1.0 / cost) <= GOOD:
        return [plain, features_too]
    if "simplex" in kinds:
        return [plain, edges, features_too, Choice(own, cost)]
    if "poisson" in kinds:  # rates grow as they do, whatever the units
        return [plain, Choice(own, cost), edges, features_too]
    if kinds == {"point"} and largest_point(terms) > FAR:
        return [plain, edges]  # capacities of 1 are beside points that are as much larger
    if kinds.isdisjoint(KINKED):
        return [features_too, edges, Choice(own, cost), plain]
    if cost <= 1.0 <= features.max():
        return [plain, edges, features_too, Choice(own, cost)]
    return [edges, plain, features_too, Choice(own, cost)]


def _cost_of_flow(problem: GTVProblem) -> float:
    """Return the factor of all costs with which typical capacities are 1."""
    if not problem.graph.n_edges:
        return 1.0
    return float(_power_of_two(1.0 / np.exp(np.mean(np.log(problem.capacities)))))


def _power_of_two(x: FloatArray | float) -> FloatArray:
    """Return the nearest powers of two."""
    return np.asarray(np.exp2(np.round(np.log2(x))))
