r"""Problems in coordinates of the subspace that their rows span, where these are few.

With a penalty that rotations leave as it is, and one ridge for all coordinates, nothing but rows
and points tells directions apart. Parameters projected on what they span, S, have the same products
and no larger jumps or squares: solutions are in S, and so is what flows carry. With an orthonormal
basis Q (r, d) of S every row x becomes Q x, and iterations and checks take r / d of the time; w Q
and u Q lead back. Coordinates with other ridges, an intercept's say, have a basis of their own.

Products lose a few roundings on the way: what these can make of the objective is added to the gap.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import NamedTuple, cast

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._callbacks import Progress, SolveCallback
from gtvcvx._deadline import now
from gtvcvx._householder import householder
from gtvcvx._norms import EPS, row_norm_2
from gtvcvx.losses import stacked_from_terms
from gtvcvx.losses.batched._terms import ROW_KINDS, WEIGHT, Term
from gtvcvx.losses.batched._thin import pays
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution
from gtvcvx.solvers._interpolation import interpolating
from gtvcvx.solvers.driver import Limits

# With fewer coordinates iterations take next to nothing; with more than this share of them left a
# basis gains little.
LEAST_COORDINATES, MOST_LEFT = 64, 0.5
# The squared number of rows over that of edges: a basis for so many takes as long as a few tens of
# iterations.
MOST = 5_000
# By rows; most problems take no more.
ITERATIONS = 300
# Ridges of so many kinds have bases of their own.
MOST_RIDGES = 3
#: Penalties that rotations leave as they are.
ROTATED = frozenset({"l2", "squared"})


class Block(NamedTuple):
    """A basis of what rows and points are in some coordinates."""

    coordinates: IntArray  # (k,), increasing
    basis: FloatArray  # (r, k), orthonormal rows


class RowSpace:
    """A problem in coordinates of what its rows and points span, and the way back.

    Attributes
    ----------
    problem : GTVProblem
        Of as many dimensions as there are rows and points, or fewer.
    """

    def __init__(self, problem: GTVProblem, vectors: FloatArray, groups: list[IntArray]) -> None:
        before = now()
        made = [_block(vectors, group) for group in groups]
        self._dim, self._blocks = problem.dim, [block for block, _ in made]
        self._rows = len(vectors) * len(groups)
        self._seconds = now() - before
        sizes = [len(block.basis) for block in self._blocks]
        self._ends = np.cumsum([0, *sizes])
        reduced = np.concatenate([vectors for _, vectors in made], axis=1)
        del made
        terms, first = [], 0
        for term in problem.losses.plain:
            if term["kind"] == "ridge":
                mu = _ridges(term, problem.dim)
                each = [mu[:, block.coordinates[:1]] for block in self._blocks]
                terms.append({**term, "mu": np.repeat(np.hstack(each), sizes, axis=1)})
                continue
            name = "X" if "X" in term else "a"
            terms.append({**term, name: reduced[first : first + len(term[name])]})
            first += len(term[name])
        losses = stacked_from_terms(terms, int(self._ends[-1]))
        self.problem = GTVProblem(problem.graph, losses, problem.penalty, problem.lam)

    @classmethod
    def of(cls, problem: GTVProblem) -> RowSpace | None:
        """Return that of a problem, made once for all values of lambda; None where none pays."""
        made = problem.cached("row space", lambda: _made(problem))
        if made is None:
            return None
        space = copy.copy(made)
        space.problem = made.problem.with_lam(problem.lam)
        return space

    def apply(self, x: FloatArray) -> FloatArray:
        """Return coordinates (k, r) of the projections of x (k, d)."""
        each = [x[:, block.coordinates] @ block.basis.T for block in self._blocks]
        return np.concatenate(each, axis=1)

    def restore(self, x: FloatArray) -> FloatArray:
        """Return what coordinates (k, r) stand for, (k, d)."""
        out = np.empty((len(x), self._dim))
        for block, first, end in zip(self._blocks, self._ends, self._ends[1:], strict=False):
            out[:, block.coordinates] = x[:, first:end] @ block.basis
        return out

    def start(self, solution: Solution) -> Solution:
        """Return a solution of the whole problem as one of the reduced problem."""
        return dataclasses.replace(solution, w=self.apply(solution.w), u=self.apply(solution.u))

    def restored(self, found: Solution, problem: GTVProblem, limits: Limits) -> Solution:
        """Return a solution of the reduced problem as one of the whole, with a gap for that."""
        w = self.restore(found.w)
        value = problem.value(w)
        gap = found.gap + max(value - found.value, 0.0) + _rounding(problem, w, value)
        done = limits.relative(gap, value) <= limits.rtol
        return dataclasses.replace(
            found,
            w=w,
            u=self._restored_later(found.u),
            value=value,
            dual_value=value - gap,
            gap=gap,
            status="optimal" if done else "user_limit",
            seconds=limits.seconds,
        )

    def _restored_later(self, u: FloatArray) -> FloatArray:
        """Return what u (m, r) stands for, when somebody asks: it takes as long as a basis."""
        return cast(FloatArray, lambda: self.restore(u))

    def reserve(self, n: int) -> float:
        """Return in how many seconds parameters of n nodes lead back, by what the basis took."""
        return self._seconds * min(n / max(self._rows, 1), 1.0)

    def watching(self, callback: SolveCallback | None) -> SolveCallback | None:
        """Return a callback for the reduced problem that shows the given one the whole."""
        if callback is None:
            return None

        def shown(progress: Progress, /) -> object:
            w, u = self.restore(progress.w), self.restore(progress.u)
            return callback(dataclasses.replace(progress, w=w, u=u))

        return shown


def _rounding(problem: GTVProblem, w: FloatArray, value: float) -> float:
    """Bound what the basis loses of the objective, a value at w (n, d) here, to first order.

    Householder's vectors are orthonormal, and rows what they are in the basis, to as many units
    in the last place as there are coordinates: the roundings of a product are at most the
    square of that number, and cancel in part.
    """
    total, unit, length = 0.0, problem.dim * EPS, row_norm_2(w)
    for term in problem.losses.plain:
        at = term["node"]
        if term["kind"] == "ridge":
            total += unit * float(np.sum(_ridges(term, problem.dim) * w[at] ** 2))
        elif term["kind"] == "point":
            off = unit * (row_norm_2(term["a"]) + length[at])
            weight = term.get(WEIGHT, 1.0)
            total += float(np.sum(weight * off * (2.0 * row_norm_2(w[at] - term["a"]) + off)))
        else:
            off = unit * row_norm_2(term["X"]) * length[at]
            total += float(np.sum(off * _steepness(term, w, off)))
    variation = value - float(np.sum(problem.losses.value(w)))
    return total + 2.0 * unit * max(variation, 0.0)


def _steepness(term: Term, w: FloatArray, off: FloatArray) -> FloatArray:
    """Return how steep rows (N,) are at most, at products with w (n, d) that are off by so much."""
    from gtvcvx.losses.batched.composite._parts import records_of  # compiled code
    from gtvcvx.losses.node._scalar import KINK, row_slope

    rows = records_of(term)
    slope = np.abs(row_slope(rows, np.einsum("rj,rj->r", term["X"], w[term["node"]])))
    steepest = np.maximum(np.abs(rows["low"]), np.abs(rows["high"]))
    return np.where(rows["kind"] == KINK, steepest, slope + 2.0 * rows["c"] * off)


def _made(problem: GTVProblem) -> RowSpace | None:
    found = _vectors(problem)
    # A model that fits all data is the solution, to more digits than a basis leaves.
    if found is None or interpolating(problem) is not None:
        return None
    vectors, groups = found
    left = sum(min(len(vectors), len(group)) for group in groups)
    few = len(vectors) ** 2 <= MOST * problem.graph.n_edges
    if not (few and 0 < left <= MOST_LEFT * problem.dim) or _thinner(problem, len(vectors), left):
        return None
    return RowSpace(problem, vectors, groups)


def _thinner(problem: GTVProblem, n_rows: int, left: int) -> bool:
    """Say whether few rows are gone through as they are, and would be matrices in the basis.

    Factoring those for each model of curved rows takes longer than iterations by rows: 100 nodes
    with a row each in 250 coordinates took a tenth of the time. Squares are factored once.
    """
    n, kinds = problem.graph.n_nodes, {term["kind"] for term in problem.losses.plain}
    if kinds <= {"squared", "point", "ridge"} or left**3 <= ITERATIONS * problem.dim:
        return False
    return pays(n_rows, n, problem.dim) and not pays(n_rows, n, left)


def _vectors(problem: GTVProblem) -> tuple[FloatArray, list[IntArray]] | None:
    """Return rows and points (N, d), and coordinates of equal ridges; None for other losses."""
    if problem.dim < LEAST_COORDINATES or problem.penalty.to_data()["kind"] not in ROTATED:
        return None
    terms = problem.losses.plain
    kinds = {term["kind"] for term in terms}
    if not (terms and kinds <= {*ROW_KINDS, "point", "ridge"}):
        return None
    # Numbers are looked at before arrays are made of them.
    found = [term["X"] if "X" in term else term["a"] for term in terms if term["kind"] != "ridge"]
    if sum(map(len, found)) > MOST_LEFT * problem.dim:
        return None
    d = problem.dim
    groups = _groups([_ridges(term, d) for term in terms if term["kind"] == "ridge"], d)
    if groups is None or not found:
        return None
    return found[0] if len(found) == 1 else np.concatenate(found), groups


def _ridges(term: Term, d: int) -> FloatArray:
    """Return a ridge for each coordinate (k, d), where terms may have one for all, too."""
    mu: FloatArray = term["mu"]
    return mu if mu.ndim == 2 else np.broadcast_to(mu[:, None], (len(mu), d))


def _groups(ridges: list[FloatArray], d: int) -> list[IntArray] | None:
    """Return coordinates with the same ridges (k, d); None where these are of many kinds."""
    left, groups = np.arange(d), list[IntArray]()
    while len(left) and len(groups) < MOST_RIDGES:
        same = np.ones(len(left), dtype=bool)
        for mu in ridges:
            same &= (mu[:, left] == mu[:, left[:1]]).all(axis=0)
        groups.append(left[same])
        left = left[~same]
    return None if len(left) else groups


def _block(vectors: FloatArray, coordinates: IntArray) -> tuple[Block, FloatArray]:
    """Return a basis, and what the vectors (N, d) are in it, (N, r)."""
    basis, triangle = householder(np.asfortranarray(vectors[:, coordinates].T))
    return Block(coordinates, np.ascontiguousarray(basis.T)), triangle.T
