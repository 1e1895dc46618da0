"""The same run gives the same digits, whatever was solved before with the same losses."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gtvcvx as gtv

N, D = 12, 3


def made(kind):
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((N, 4, D)), rng.standard_normal((N, 4))
    if kind == "huber":
        return gtv.HuberLoss.stack(X, y, delta=0.3)
    if kind == "simplex":
        return [gtv.SquaredLoss(x, t) + gtv.Simplex() for x, t in zip(X, y, strict=True)]
    labels = rng.integers(0, 3, (N, 4))
    return [
        gtv.MultinomialLogisticLoss(x[:, :1], k, n_classes=3)
        for x, k in zip(X, labels, strict=True)
    ]


@pytest.mark.parametrize("kind", ["huber", "simplex", "multinomial"])
@pytest.mark.parametrize("other", [0.2, 1.5])
def test_runs_begin_anew(kind, other):
    """Also after another lambda, which shares the losses."""
    chain = gtv.EmpiricalGraph(N, [(i, i + 1) for i in range(N - 1)])
    problem = gtv.GTVProblem(chain, made(kind), "l2", lam=0.2)
    limits = {"solver": "PDHG", "rtol": 1e-12, "max_iter": 40}
    first = problem.solve(**limits)
    problem.with_lam(other).solve(**limits)
    second = problem.solve(**limits)
    np.testing.assert_array_equal(second.w, first.w)
    np.testing.assert_array_equal(second.u, first.u)
    assert second.gap == first.gap


def test_solves_begin_without_the_factorizations_of_others():
    """What a first check is worth depends on whether it has to pay for them."""
    chain = gtv.EmpiricalGraph(N, [(i, i + 1) for i in range(N - 1)])
    problem = gtv.GTVProblem(chain, made("huber"), "l2", lam=0.2)
    problem.lower_bound(np.zeros((N - 1, D)))
    before = problem.bounds
    first = problem.solve()
    assert problem.bounds is not before
    second = problem.solve()
    np.testing.assert_array_equal(second.u, first.u)
    assert second.gap == first.gap


@pytest.fixture
def often_switched():
    """Let threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kind", ["huber", "simplex", "multinomial"])
def test_threads_do_not_disturb_each_other(kind, often_switched):
    """Problems of a path share their losses; one problem may be solved twice at a time, too."""
    chain = gtv.EmpiricalGraph(N, [(i, i + 1) for i in range(N - 1)])
    problem = gtv.GTVProblem(chain, made(kind), "l2", lam=0.2)

    def solved(lam, max_iter=60):
        other = problem if lam == problem.lam else problem.with_lam(lam)
        return other.solve(solver="PDHG", rtol=1e-12, max_iter=max_iter)

    lams, limits = [0.05, 0.2, 0.2, 0.2, 0.8, 1.6], [60, 60, 50, 40, 60, 60]
    alone = list(map(solved, lams, limits))
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(solved, lams, limits))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(other.w, one.w)
        assert other.gap == one.gap
