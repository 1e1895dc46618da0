"""Few rows beside ridges: as with as many rows more as there are coordinates, in less memory."""

import tracemalloc
from functools import partial

import numpy as np
import pytest

import gtvcvx as gtv

N_NODES, DIM = 30, 200


def batch():
    """Rows of several kinds, one to three a node, points and ridges, units far apart."""
    rng = np.random.default_rng(3)
    units = 10.0 ** rng.uniform(-1.0, 1.0, DIM)
    kinds = gtv.LogisticLoss, gtv.PoissonLoss, partial(gtv.HuberLoss, delta=0.5)
    losses = []
    for i in range(N_NODES):
        X = rng.standard_normal((1 + i % 3, DIM)) * units / 10.0
        y = rng.integers(0, 2, len(X)).astype(float)
        rows = kinds[i // 3 % 3](X, y)
        losses.append(rows + gtv.PointLoss(rng.standard_normal(DIM)) + gtv.Ridge(0.3 * (1 + i)))
    graph = gtv.EmpiricalGraph(N_NODES, [(i, i + 1) for i in range(N_NODES - 1)])
    ((_, found),) = gtv.GTVProblem(graph, losses, "l2", 0.1).losses.parts
    return found


def both():
    ridged, general = batch(), batch()
    general.__dict__["_ridged"] = False
    assert ridged._ridged
    return ridged, general


def points(seed=0):
    rng = np.random.default_rng(seed)
    return 0.3 * rng.standard_normal((2, N_NODES, DIM))


def test_conjugates_gaps_and_minimizers_are_the_same():
    ridged, general = both()
    w, other = points()
    s = ridged.gradient(other)
    for name, arguments, atol in (
        ("fenchel_gap", (w, s), 1e-11),
        ("conjugate", (s, np.zeros(N_NODES)), 1e-9),
        ("minimizer", (), 1e-5),
    ):
        found, expected = (getattr(b, name)(*arguments) for b in (ridged, general))
        assert np.isfinite(expected).all()
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=atol)
    # Of slopes at a point that point is the maximizer: the part beside the rows, too.
    z = ridged._multipliers(s, w).z
    np.testing.assert_allclose(z, other, atol=1e-5)
    np.testing.assert_allclose(ridged.fenchel_gap(other, s), 0.0, atol=1e-11)


def test_models_are_the_same():
    ridged, general = both()
    w, other = points(1)
    models = [b.model(other, b.model(w)) for b in (ridged, general)]
    assert type(models[0]) is not type(models[1])
    for name, arguments in (
        ("gradient", (w,)),
        ("rise", (w, other)),
        ("total_hessian", ()),
        ("minimizer", ()),
    ):
        found, expected = (getattr(m, name)(*arguments) for m in models)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-7)
    for found, expected in zip(*(m.thin() for m in models), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


def test_no_array_has_a_matrix_for_each_node():
    ridged = batch()
    w, other = points(2)
    tracemalloc.start()
    ridged.model(w).thin()
    ridged.fenchel_gap(w, ridged.gradient(other))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 0.5 * 8 * N_NODES * DIM**2


@pytest.mark.parametrize("ridge", ["none", "uneven"])
def test_otherwise_coordinates_have_rows(ridge):
    mu = 0.0 if ridge == "none" else np.arange(DIM) + 1.0
    X = np.random.default_rng(0).standard_normal((2, DIM))
    losses = [gtv.LogisticLoss(X, np.ones(2)) + gtv.Ridge(mu) for _ in range(N_NODES)]
    graph = gtv.EmpiricalGraph(N_NODES, [(0, 1)])
    ((_, found),) = gtv.GTVProblem(graph, losses, "l2", 0.1).losses.parts
    assert not found._ridged
