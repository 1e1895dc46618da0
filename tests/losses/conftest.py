"""Batches of quadratic losses, and beside each node a twin that is written to be read.

The catalogue's losses have theirs in `_catalogue_cases`.
"""

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from gtvcvx.losses import BatchedLoss, Loss, PointLoss, SquaredLoss, ZeroLoss


class NaiveSquared:
    """(1/m) ||X w - y||^2 by dense linear algebra for one node."""

    def __init__(self, X, y):
        self.X, self.y, self.m = X, y, len(y)

    def value(self, w):
        return sum((x @ w - y) ** 2 for x, y in zip(self.X, self.y, strict=True)) / self.m

    def gradient(self, w):
        return sum(
            2 * (x @ w - y) * x / self.m for x, y in zip(self.X, self.y, strict=True)
        ) + np.zeros(self.X.shape[1])

    def prox(self, v, tau):
        d = self.X.shape[1]
        scale = 2 * tau / self.m
        return np.linalg.solve(np.eye(d) + scale * self.X.T @ self.X, v + scale * self.X.T @ self.y)

    def null_basis(self):
        _, sigma, basis = np.linalg.svd(self.X)
        return basis[int(np.sum(sigma > 1e-9 * max(sigma[0], 1e-300))) :].T

    def conjugate(self, s):
        """Witness form: min r^T y + (m/4) ||r||^2 over X^T r = s, r = particular + left null."""
        r0 = np.linalg.lstsq(self.X.T, s, rcond=1e-9)[0]
        U, sigma, _ = np.linalg.svd(self.X)
        left = U[:, int(np.sum(sigma > 1e-9 * max(sigma[0], 1e-300))) :]
        r = r0 - left @ (left.T @ (r0 + 2 * self.y / self.m))
        return r @ self.y + self.m / 4 * r @ r

    def model(self, w):
        return cp.sum_squares(self.X @ w - self.y) / self.m


class NaivePoint:
    """||w - a||^2."""

    def __init__(self, a):
        self.a = a

    def value(self, w):
        return sum((x - b) ** 2 for x, b in zip(w, self.a, strict=True))

    def gradient(self, w):
        return np.array([2 * (x - b) for x, b in zip(w, self.a, strict=True)])

    def prox(self, v, tau):
        return np.array([(x + 2 * tau * b) / (1 + 2 * tau) for x, b in zip(v, self.a, strict=True)])

    def null_basis(self):
        return np.empty((len(self.a), 0))

    def conjugate(self, s):
        return sum(x * b + x**2 / 4 for x, b in zip(s, self.a, strict=True))

    def model(self, w):
        return cp.sum_squares(w - self.a)


class NaiveZero:
    """0 everywhere."""

    def __init__(self, d):
        self.d = d

    def value(self, w):
        return 0.0

    def gradient(self, w):
        return np.zeros(self.d)

    def prox(self, v, tau):
        return v

    def null_basis(self):
        return np.eye(self.d)

    def conjugate(self, s):
        return 0.0

    def model(self, w):
        return cp.Constant(0.0)


@dataclass
class Batch:
    """k losses: batched, single, and their naive twins."""

    losses: BatchedLoss
    singles: list[Loss]
    twins: list[Any]

    @property
    def k(self):
        return len(self.twins)

    @property
    def d(self):
        return self.losses.dim

    def draw(self, rng):
        """Random rows (k, d)."""
        return rng.standard_normal((self.k, self.d))

    def inside(self, s):
        """Move the rows of s into the domains of the conjugates."""
        bases = [twin.null_basis() for twin in self.twins]
        return np.array([x - N @ (N.T @ x) for x, N in zip(s, bases, strict=True)])


def _squared(data):
    singles = [SquaredLoss(X, y) for X, y in data]
    d = data[0][0].shape[1]
    return Batch(SquaredLoss.batch(singles, d), singles, [NaiveSquared(X, y) for X, y in data])


def _random_rows(rng, counts, d):
    return [(rng.standard_normal((m, d)), rng.standard_normal(m)) for m in counts]


def _repeated(rng):
    """Features that are linearly dependent, also with more rows than columns, and all zero."""
    data = _random_rows(rng, [4, 5, 2, 3], 3)
    for X, _ in data[:2]:
        X[:, 2] = X[:, 0] - 2.0 * X[:, 1]
    data[2][0][1] = data[2][0][0]
    data[3][0][:] = 0.0
    return data


def _points(rng, k, d):
    a = rng.standard_normal((k, d))
    singles = [PointLoss(row) for row in a]
    return Batch(PointLoss.batch(singles, d), singles, [NaivePoint(row) for row in a])


def _zeros(rng, k, d):
    singles = [ZeroLoss() for _ in range(k)]
    return Batch(ZeroLoss.batch(singles, d), singles, [NaiveZero(d) for _ in range(k)])


BATCHES = {
    "squared": lambda rng: _squared(_random_rows(rng, [3, 7, 3, 5], 3)),
    "squared-few-rows": lambda rng: _squared(_random_rows(rng, [1, 3, 2, 1], 4)),
    "squared-mixed-rank": lambda rng: _squared(_random_rows(rng, [1, 6, 2, 9, 6], 3)),
    "squared-dependent": lambda rng: _squared(_repeated(rng)),
    "squared-d=1": lambda rng: _squared(_random_rows(rng, [1, 4, 2], 1)),
    "point": lambda rng: _points(rng, 4, 3),
    "point-d=1": lambda rng: _points(rng, 3, 1),
    "zero": lambda rng: _zeros(rng, 3, 2),
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(params=[*BATCHES])
def batch(request: pytest.FixtureRequest, rng: np.random.Generator) -> Batch:
    return BATCHES[request.param](rng)


@pytest.fixture(params=[name for name in BATCHES if name.startswith("squared")])
def squared(request: pytest.FixtureRequest, rng: np.random.Generator) -> Batch:
    return BATCHES[request.param](rng)
