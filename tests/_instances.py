"""Small problems of every family x loss x penalty, and their optima by CVXPY.

``from _instances import cases, reference`` works in every test file, see conftest.py:

    @pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
    def test_something(case):
        problem = case.problem()
        assert ... == reference(case).value
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

import gtvcvx as gtv

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A shape of graph and data.

    ``rows`` are the least and the largest number of data points of a node with squared error.
    """

    n_nodes: int
    edges: tuple[tuple[int, int], ...]
    dim: int = 2
    rows: tuple[int, int] = (3, 6)
    unlabelled: tuple[int, ...] = ()


_RING = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 0), (1, 4), (2, 6))

FAMILIES: dict[str, Family] = {
    "connected": Family(7, _RING),
    "disconnected": Family(7, ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3), (4, 6))),
    # Node 5 is isolated and has data, node 6 is isolated and has none.
    "isolated": Family(7, ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3)), unlabelled=(2, 6)),
    # Nodes 3 to 6 form a component without any data, and 0 conserves flow where losses are mixed.
    "unlabelled": Family(
        7, ((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3)), unlabelled=(3, 4, 5, 6)
    ),
    "few-rows": Family(7, _RING, dim=4, rows=(1, 2), unlabelled=(3,)),
    "d=1": Family(7, _RING, dim=1, unlabelled=(3,)),
    "d=6": Family(7, _RING, dim=6, rows=(4, 8), unlabelled=(3,)),
}


def _quadratic(d: int) -> gtv.Penalty:
    """Positive definite for d = 1, otherwise of rank d - 1."""
    root = np.random.default_rng(d).standard_normal((d, max(d - 1, 1)))
    return gtv.Quadratic(root @ root.T)


PENALTIES: dict[str, Callable[[int], gtv.Penalty]] = {
    "l1": lambda d: gtv.L1Norm(),
    "l2": lambda d: gtv.L2Norm(),
    "linf": lambda d: gtv.LinfNorm(),
    "squared": lambda d: gtv.SquaredNorm(),
    "pnorm3": lambda d: gtv.PNorm(3),
    "quadratic": _quadratic,
}
NORMS = ("l1", "l2", "linf", "pnorm3")


def _squared(rng: np.random.Generator, family: Family) -> gtv.Loss:
    m = int(rng.integers(family.rows[0], family.rows[1] + 1))
    X = rng.standard_normal((m, family.dim))
    return gtv.SquaredLoss(X, X @ rng.standard_normal(family.dim) + 0.1 * rng.standard_normal(m))


def _point(rng: np.random.Generator, family: Family) -> gtv.Loss:
    return gtv.PointLoss(rng.standard_normal(family.dim))


# Which loss a labelled node gets; "mix" also makes the first labelled node forget its data.
LOSSES: dict[str, tuple[Callable[[np.random.Generator, Family], gtv.Loss], ...]] = {
    "squared": (_squared,),
    "point": (_point,),
    "mix": (lambda rng, family: gtv.ZeroLoss(), _squared, _point),
}


@dataclass(frozen=True)
class Case:
    """One instance by its names; ``str(case)`` serves as the test's id."""

    family: str
    loss: str
    penalty: str
    seed: int = 0
    lam: float = 0.15

    def __str__(self) -> str:
        return f"{self.family}-{self.loss}-{self.penalty}-{self.seed}"

    @property
    def rng(self) -> np.random.Generator:
        """Generator of this case's own, for what a test draws beyond the problem."""
        return np.random.default_rng([self.seed, zlib.crc32(str(self).encode())])

    def graph(self) -> gtv.EmpiricalGraph:
        family = FAMILIES[self.family]
        weights = np.random.default_rng(self.seed).uniform(0.5, 2.0, len(family.edges))
        return gtv.EmpiricalGraph(family.n_nodes, family.edges, weights)

    def losses(self) -> list[gtv.Loss]:
        family, makers = FAMILIES[self.family], LOSSES[self.loss]
        rng = np.random.default_rng([self.seed, 1])
        losses: list[gtv.Loss] = []
        turn = 0
        for i in range(family.n_nodes):
            if i in family.unlabelled:
                losses.append(gtv.ZeroLoss())
            else:
                losses.append(makers[turn % len(makers)](rng, family))
                turn += 1
        return losses

    def problem(self) -> gtv.GTVProblem:
        penalty = PENALTIES[self.penalty](FAMILIES[self.family].dim)
        return gtv.GTVProblem(self.graph(), self.losses(), penalty, self.lam)


def cases(
    families: Iterable[str] = tuple(FAMILIES),
    losses: Iterable[str] = tuple(LOSSES),
    penalties: Iterable[str] = tuple(PENALTIES),
    seeds: Iterable[int] = (0,),
) -> list[Case]:
    """All combinations, for pytest.mark.parametrize("case", cases(...), ids=str)."""
    return [Case(*names) for names in product(families, losses, penalties, seeds)]


@dataclass(frozen=True)
class Reference:
    """Optimum of a case by CVXPY and Clarabel, none of the project's solvers."""

    value: float
    w: FloatArray  # (n, d); arbitrary where the solution is not unique
    u: FloatArray  # (m, d), dual value of the first constraint
    model: cp.Problem


@cache
def reference(case: Case) -> Reference:
    """Solve the primal of a case, once for all tests that ask."""
    model = case.problem().cvxpy()
    model.solve(solver=cp.CLARABEL)
    assert model.status == cp.OPTIMAL
    return Reference(
        float(model.value), model.var_dict["w"].value, model.constraints[0].dual_value, model
    )


def far_from_solutions() -> tuple[gtv.GTVProblem, FloatArray, FloatArray]:
    """Return a problem with targets of a million and one row a node, a point and a flow.

    The point is near zero, and does not tell that solutions are not.
    """
    rng = np.random.default_rng(11)
    n = 8
    X = np.concatenate([np.ones((n, 1, 1)), 1e3 + rng.standard_normal((n, 1, 3))], axis=2)
    y = 1e6 + rng.standard_normal((n, 1))
    graph = gtv.EmpiricalGraph(n, [(i // 2, i) for i in range(1, n)], rng.random(n - 1) + 0.1)
    problem = gtv.GTVProblem(graph, gtv.AbsoluteLoss.stack(X, y), "l2", 0.03)
    w = np.einsum("nd,n->nd", X[:, 0], y[:, 0] / np.sum(X[:, 0] ** 2, axis=1))
    return problem, w, np.full((n - 1, 4), 1e-3)
