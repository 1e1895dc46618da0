"""Units in which Clarabel solves a problem, the most promising ones first.

Its tolerances are relative to the largest entries of the data, and to 1. Edges of capacity 1e-5
count little beside losses of size 1, features of size 1e5 much beside an intercept; then it calls
solved what is far from it, or takes twice as many iterations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS, Term
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._losses import KINKED

# Sizes of features, and capacities, up to which the data's own units are good.
GOOD = 30.0


def feature_sizes(terms: list[Term], dim: int) -> FloatArray:
    """Return the largest entry of each column of all features (d,); 1 where there is none."""
    sizes = np.zeros(dim)
    for term in terms:
        if term["kind"] in ROW_KINDS:
            sizes = np.maximum(sizes, np.abs(term["X"]).max(axis=0))
        elif term["kind"] == MULTINOMIAL:
            of_features = np.abs(term["X"]).max(axis=0)
            sizes = np.maximum(sizes, np.repeat(of_features, dim // len(of_features)))
    return np.where(sizes > 0.0, sizes, 1.0)


class Choice(NamedTuple):
    """Units of the coordinates, and the factor of all costs; powers of two."""

    columns: FloatArray  # (n, d)
    cost: float


def choices_of_units(problem: GTVProblem) -> list[Choice]:
    """Return the units of one round after the other.

    Costs grow until capacities are about 1; where features are large, until that holds in their
    units. Kinked losses, whose slopes are bounded like flows, do without the latter.
    """
    n, d = problem.graph.n_nodes, problem.dim
    terms = problem.losses.terms()
    features, kinds = feature_sizes(terms, d), {term["kind"] for term in terms}
    own, scaled = np.ones((n, d)), np.tile(_power_of_two(1.0 / features), (n, 1))
    typical = np.exp(np.mean(np.log(problem.capacities))) if problem.graph.n_edges else 1.0
    cost = float(_power_of_two(1.0 / typical))
    large = float(_power_of_two(max(features.max(), 1.0)))
    plain = Choice(own, 1.0)
    edges, features_too = Choice(scaled, cost), Choice(scaled, cost * large)
    if max(features.max(), 1.0 / features.min(), cost, 1.0 / cost) <= GOOD:
        return [plain, features_too]
    if "poisson" in kinds:  # rates grow as they do, whatever the units
        return [plain, Choice(own, cost), edges, features_too]
    if kinds.isdisjoint(KINKED):
        return [features_too, edges, Choice(own, cost), plain]
    return [edges, plain, features_too, Choice(own, cost)]


def _power_of_two(x: FloatArray | float) -> FloatArray:
    """Return the nearest powers of two."""
    return np.asarray(np.exp2(np.round(np.log2(x))))
