"""Workers find together that the time is over, whatever the losses of their shards look at."""

import os

import numpy as np

import gtvcvx as gtv
from gtvcvx.distributed import _clock, shard, solve

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))

LATE = 1e6


def _different_losses(folder):
    """Shards whose losses look at the clock more or less often: squares, kinks, curves, none."""
    rng = np.random.default_rng(0)
    n, d = 24, 2
    X, y = rng.standard_normal((n, 3, d)), rng.standard_normal((n, 3))
    kinds = (
        lambda i: gtv.SquaredLoss(X[i], y[i]),
        lambda i: gtv.AbsoluteLoss(X[i], y[i]) + gtv.L1(0.1),
        lambda i: gtv.LogisticLoss(X[i], (y[i] > 0).astype(int)),
        lambda i: gtv.ZeroLoss(),
    )
    losses = [kinds[4 * i // n](i) for i in range(n)]
    graph = gtv.EmpiricalGraph(n, [(i, j) for i in range(n) for j in (i + 1, i + 5) if j < n])
    problem = gtv.GTVProblem(graph, losses, "l2", 0.3)
    shard(problem, folder, 4, partitioner=[4 * i // n for i in range(n)])
    return problem


def test_the_time_may_be_over_at_any_sum(tmp_path, monkeypatch):
    problem = _different_losses(tmp_path)
    exact = problem.solve(rtol=1e-9).value
    seen, last = 0, np.inf

    def now():
        nonlocal seen
        seen += 1
        return 0.0 if seen <= last else LATE

    monkeypatch.setattr(_clock, "now_here", now)
    solve(tmp_path, workers=2, max_iter=20)
    total = seen
    # Set-up and the first point, and the gap of the last one.
    step = max(12 // MULTIPLIER, 1)
    for moment in (*range(5, 30, step), *range(total - 25, total, step)):
        seen, last = 0, moment
        run = solve(tmp_path, workers=2, max_iter=20, time_limit=100.0)
        assert run.status == "user_limit"
        assert run.dual_value <= exact + 1e-9 <= run.value + 2e-9
