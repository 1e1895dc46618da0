"""Log-losses of linear classifiers with K classes at many nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp
from gtvcvx._per_thread import PerThread
from gtvcvx.losses.batched._base import BatchedLoss, DualDomain, RangeRows
from gtvcvx.losses.batched._terms import Term, selected
from gtvcvx.losses.batched._thin import pays
from gtvcvx.losses.batched.multinomial import _cvxpy_model as model
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._domain import Generators, generators_of
from gtvcvx.losses.batched.multinomial._duals import NodeProblems, shares_of
from gtvcvx.losses.batched.multinomial._frames import frames_of
from gtvcvx.losses.batched.multinomial._model import MultinomialModel
from gtvcvx.losses.batched.multinomial._newton import NEWTON
from gtvcvx.losses.batched.multinomial._rows import Rows

# Multipliers that miss s by less than this share of what adds up to s count as exact; the bound is
# lowered by what the rest may cost.
LEAK = 1e-10
# Those of the chances at w_i itself, where no others are found: beside a boundary of the domain, in
# raw units, a flow is balanced to so many digits. What it costs is in the gap as well.
BALANCED = 1e-8
# Features whose largest entries differ by more than this factor are in different units.
RAW = 30.0
# Shares of a linear term that are tried in turn where the whole is off the domain: what repairs
# leave outside is about as much as their accuracy.
SHARES = (1.0 - 1e-9, 1.0 - 1e-7, 1.0 - 1e-5, 1.0 - 1e-3, 0.9, 0.5)


class _Memory:
    """What calls have left for the next ones to start from, in one thread.

    Attributes
    ----------
    last : ndarray, shape (k, d)
        The last proximal points.
    near : ndarray, shape (k, d), or None
        Where the last multipliers were looked for.
    known : tuple or None
        s (k, p, K), and chances (N, K) that give it.
    """

    def __init__(self, n_nodes: int, dim: int) -> None:
        self.last: FloatArray = np.zeros((n_nodes, dim))
        self.near: FloatArray | None = None
        self.known: tuple[FloatArray, FloatArray] | None = None


class BatchedMultinomial(BatchedLoss):
    r"""Means over rows of log-losses of K classes, with ridge terms and points, at k nodes.

    .. math:: L_i(W) = \sum_r c_r \Bigl(\log \sum_k e^{x_r^T W_k} - x_r^T W_{y_r}\Bigr)
              + \sum_{jk} \tfrac12 \mu_{ij} W_{jk}^2 - b_{ijk} W_{jk}, \quad W = w.reshape(p, K)

    The slope of row r is ``c_r x_r (p_r - e_{y_r})^T``, with p_r in the simplex of chances. So is
    ``L_i*(s)`` the least of ``sum_r c_r sum_k p_rk log p_rk`` and what the quadratics make of the
    rest of s; any p bounds it from above.

    Without a quadratic, nothing changes when one number is added to a feature's parameters of all
    classes: there flow is conserved, ``sum_k s_jk = 0``.

    Parameters
    ----------
    terms : list of dict
        Plain data at the nodes 0, ..., k - 1, merged (`gtvcvx.losses.batched._terms.merged`).
    """

    smooth = True
    modelled = True

    def __init__(self, terms: Sequence[Term], n_nodes: int, dim: int) -> None:
        self._n_nodes, self.dim = n_nodes, dim
        self._terms = list(terms)
        self._rows = Rows.of(self._terms, n_nodes, dim)
        self._memory = PerThread(_Memory, n_nodes, dim)

    def forget(self) -> None:
        """Let proximal points and chances start where the first ones did."""
        self._memory.forget()

    @property
    def n_nodes(self) -> int:
        """Number of nodes k in the batch."""
        return self._n_nodes

    def _matrices(self, w: FloatArray) -> FloatArray:
        """Return W (k, p, K) of parameters (k, d)."""
        return w.reshape(self._rows.shape)

    def value(self, w: FloatArray) -> FloatArray:
        """Losses (k,)."""
        rows, W = self._rows, self._matrices(w)
        out = rows.sums(softmax.values(rows.scores(W), rows.own))
        ridge = rows.mu.copy()
        for node, weight, a in rows.points:
            out[node] += weight * np.sum((w[node] - a) ** 2, axis=1)
            ridge[node] -= 2.0 * weight[:, None]
        return out + 0.5 * np.sum(ridge[:, :, None] * W**2, axis=(1, 2))

    def gradient(self, w: FloatArray) -> FloatArray:
        """Gradients (k, d)."""
        rows, W = self._rows, self._matrices(w)
        a = softmax.slopes(softmax.probabilities(rows.scores(W)), rows.own)
        out = rows.pulled(rows.c[:, None] * a) + rows.mu[:, :, None] * W - rows.linear
        return out.reshape(w.shape)

    def rise(self, w: FloatArray, before: FloatArray) -> FloatArray:
        """How far rows and quadratics are above their tangents."""
        rows, change = self._rows, self._matrices(w - before)
        q = softmax.probabilities(rows.scores(self._matrices(before)))
        out = rows.sums(softmax.rises(q, rows.scores(change)))
        return out + 0.5 * np.sum(rows.mu[:, :, None] * change**2, axis=(1, 2))

    def model(self, w: FloatArray, last: BatchedLoss | None = None) -> MultinomialModel:
        """Return squared errors of K rows for each row."""
        known = last if isinstance(last, MultinomialModel) else None
        return MultinomialModel(self._rows, self._matrices(w), known)

    def prox(self, v: FloatArray, tau: FloatArray) -> FloatArray:
        """Proximal points (k, d), from the last ones."""
        rows, memory = self._rows, self._memory.own
        mu = rows.mu + (1.0 / tau)[:, None]
        problems = NodeProblems(rows, mu, frames_of(rows, mu))
        linear = rows.linear + self._matrices(v) / tau[:, None, None]
        found = problems.solve(linear, self._matrices(memory.last), NEWTON.exact)
        memory.last = found.W.reshape(v.shape)
        return memory.last.copy()

    @cached_property
    def _problems(self) -> NodeProblems:
        return NodeProblems(self._rows, self._rows.mu, frames_of(self._rows, self._rows.mu))

    @cached_property
    def _minimizer(self) -> FloatArray:
        rows = self._rows
        found = self._problems.solve(rows.linear, np.zeros_like(rows.linear), NEWTON.exact)
        return found.W.reshape(self.n_nodes, self.dim)

    def minimizer(self) -> FloatArray:
        """Minimizers of least norm, or far out on the way to where the infimum is approached."""
        return self._minimizer.copy()

    def _inside(self, s: FloatArray) -> FloatArray:
        """Return s (k, p, K) without its part along null directions."""
        S = self._matrices(s)
        centred = S - S.mean(axis=2, keepdims=True)
        free = (self._rows.mu > 0.0)[:, :, None]
        out: FloatArray = centred - self._problems.frames.null @ centred
        return out + np.where(free, S - centred, 0.0)

    def _chances(self, s: FloatArray, start: FloatArray, accuracy: float) -> FloatArray:
        """Chances (N, K) whose multipliers give s (k, p, K), as nearly as was found."""
        memory = self._memory.own
        if memory.known is not None and np.array_equal(memory.known[0], s):
            return memory.known[1]
        linear = self._rows.linear + s
        p = self._problems.solve(linear, self._matrices(start), accuracy).p
        memory.known = s, p
        return p

    def conjugate(self, s: FloatArray, atol: FloatArray) -> FloatArray:
        """Upper bounds on the conjugates, exact up to rounding; +inf off their domains."""
        rows, inside, near = self._rows, self._inside(s), self._matrices(self._minimizer)
        self._memory.own.known = None  # those may be rougher
        away = np.linalg.norm(s - inside.reshape(s.shape), axis=1)
        rounding = LEAK * np.maximum(np.abs(s).max(axis=1), 1.0)
        out = np.full(len(s), np.inf)
        # The second ones give no slope at all, however far the minimizer is.
        for p in (self._chances(inside, self._minimizer, NEWTON.exact), rows.own.astype(float)):
            taken, leak = shares_of(rows, p, inside)
            leaks = self._problems.leaks(leak, inside, near)
            value = rows.sums(softmax.negative_entropies(p)) - rows.constant
            # What the multipliers miss of s_i pairs with points like the minimizers.
            value += _half_squares(taken + rows.linear, rows.mu) + 2.0 * leaks.cost
            missed = np.linalg.norm(leak, axis=(1, 2))
            close = np.isfinite(atol) & (np.hypot(away, missed) <= atol)
            exact = (leaks.share <= LEAK) & (away <= np.maximum(atol, rounding))
            out = np.minimum(out, np.where(close | exact, value, np.inf))
        return out

    def fenchel_gap(
        self, w: FloatArray, s: FloatArray, multipliers: FloatArray | None = None
    ) -> FloatArray:
        """Node gaps, summed over rows and coordinates; +inf where s_i is off the domain.

        Those of given multipliers (Q,) of the generators where no better ones are found. Beside a
        boundary of the domain the chances at w_i may give s_i but for rounding, and nothing else.
        """
        rows, inside, W = self._rows, self._inside(s), self._matrices(w)
        gap = self._gap(W, inside, self._chances(inside, w, NEWTON.close))
        if np.isfinite(gap).all():
            return gap
        own = softmax.probabilities(rows.scores(W))
        gap = np.minimum(gap, self._gap(W, inside, own, BALANCED))
        others = [rows.own.astype(float)]
        if multipliers is not None and self._generators is not None:
            others.append(self._generators.chances(multipliers))
        for p in others:
            gap = np.minimum(gap, self._gap(W, inside, p))
        return gap

    def _gap(self, W: FloatArray, s: FloatArray, p: FloatArray, most: float = LEAK) -> FloatArray:
        """Node gaps of chances p (N, K) for s (k, p, K) at W (k, p, K)."""
        rows = self._rows
        taken, leak = shares_of(rows, p, s)
        leaks = self._problems.leaks(leak, s, W)
        gap = rows.sums(softmax.divergences(p, rows.scores(W)))
        gap += _half_squares(taken + rows.linear - rows.mu[:, :, None] * W, rows.mu)
        # What the multipliers miss of s_i pairs with the solution, which is close to w_i.
        return np.where(leaks.share <= most, gap + 2.0 * leaks.cost, np.inf)

    def loose_gap(self, w: FloatArray) -> FloatArray:
        """Add up what the rows and coordinates are above their own least values."""
        rows, W = self._rows, self._matrices(w)
        gap = rows.sums(softmax.values(rows.scores(W), rows.own))
        return gap + _half_squares(rows.linear - rows.mu[:, :, None] * W, rows.mu)

    def range_rows(self) -> RangeRows | None:
        """Return bases of what the rows span, times those of classes; None with quadratics."""
        rows = self._rows
        k, p, K = rows.shape
        if (rows.mu > 0.0).any() or not pays(len(rows.X) * (K - 1), k, p * K):
            return None
        # A projector's eigenvalues are 0 and 1; those of the range come last.
        size, V = np.linalg.eigh(np.eye(p) - self._problems.frames.null)
        node, j = np.nonzero(size > 0.5)
        contrasts = np.linalg.svd(np.eye(K) - 1.0 / K)[0][:, : K - 1].T
        basis = V.transpose(0, 2, 1)[node, j]
        found = np.einsum("ri,ca->rcia", basis, contrasts).reshape(-1, p * K)
        counts = (K - 1) * np.bincount(node, minlength=k)
        return RangeRows(found, np.concatenate([[0], np.cumsum(counts)]))

    def null_projector(self) -> FloatArray | float:
        """Projectors on the directions along which the loss is constant."""
        rows = self._rows
        if (rows.mu > 0.0).all():
            return 0.0
        k, p, K = rows.shape
        mean = np.full((K, K), 1.0 / K)
        flat = np.where(rows.mu > 0.0, 0.0, 1.0)[:, :, None] * np.eye(p)
        out = np.einsum("kij,ab->kiajb", self._problems.frames.null, np.eye(K) - mean)
        out += np.einsum("kij,ab->kiajb", flat, mean)
        return out.reshape(k, p * K, p * K)

    @cached_property
    def _generators(self) -> Generators | None:
        # Repairs that change multipliers in raw units lose more than they mend.
        return None if self._raw else generators_of(self._rows)

    @property
    def _raw(self) -> bool:
        """Whether features have different units."""
        sizes = np.abs(self._rows.X).max(axis=0)
        sizes = sizes[sizes > 0.0]
        return bool(len(sizes)) and float(sizes.max()) > RAW * float(sizes.min())

    def domain(self) -> DualDomain | None:
        """Return a generator for each row and each class but its own."""
        return None if self._generators is None else self._generators.domain

    def multipliers(self, s: FloatArray, w: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Multipliers of the generators, and how far the classes' scores are from even."""
        assert self._generators is not None, "multipliers belong to generators"
        near = self._minimizer if w is None else w
        self._memory.own.near = near.copy()
        p = self._chances(self._inside(s), near, NEWTON.close)
        return self._generators.multipliers(p, self._rows.scores(self._matrices(near)))

    def scale_to_feasible(self, s: FloatArray) -> float:
        """Return the largest of some shares of s that are in all domains, as far as any is.

        The generators' intervals do not say that the chances of all other classes are at most 1.
        """
        if self._generators is None:
            return 1.0
        near = self._memory.own.near
        start = self._minimizer if near is None else near
        for share in (1.0, *SHARES):
            inside = self._inside(share * s)
            p = self._chances(inside, start, NEWTON.close)
            leak = shares_of(self._rows, p, inside).leak
            leaks = self._problems.leaks(leak, inside, np.zeros_like(inside))
            if (leaks.share <= LEAK).all():
                return share
        # No share helps where rounding leaves it beside a boundary: given multipliers do there.
        return 1.0

    def expression(self, w: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the value."""
        return model.value_model(self._rows, w)

    def conjugate_expression(self, s: cp.Expression) -> tuple[cp.Expression, list[cp.Constraint]]:
        """CVXPY model of the conjugate, with the chances of the classes."""
        return model.conjugate_model(self._rows, s)

    def terms(self, nodes: IntArray) -> list[dict[str, Any]]:
        """Return the terms that the losses were made of."""
        return [selected(term, np.asarray(nodes), copied=False) for term in self._terms]


def _half_squares(t: FloatArray, mu: FloatArray) -> FloatArray:
    """Return ``sum_jk t_jk^2 / (2 mu_j)`` (k,) over features with mu > 0."""
    half = np.divide(0.5, mu, np.zeros_like(mu), where=mu > 0.0)
    return np.asarray(np.sum(half[:, :, None] * t**2, axis=(1, 2)))
