"""The problem that the tests of the driver share."""

import numpy as np
import pytest

import gtvcvx as gtv


@pytest.fixture(scope="module")
def problem():
    """A path with few labels: thousands of iterations for many digits."""
    rng = np.random.default_rng(0)
    n = 60
    graph = gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)])
    labelled = np.zeros(n, dtype=bool)
    labelled[::6] = True
    losses = gtv.SquaredLoss.stack(
        rng.standard_normal((n, 2, 2)), rng.standard_normal((n, 2)) + 2.0, labelled
    )
    return gtv.GTVProblem(graph, losses, "l2", 0.05)
