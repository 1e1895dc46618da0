"""How large solutions may be, component by component."""

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.duality._lengths import Lengths, growth, lengths_of_components, triangle

D = 3


def tables_of(rng, components, counts):
    """Make a logistic and an absolute term with so many rows at each node."""
    tables = []
    for kind, share in (("logistic", 0.3), ("absolute", 1.0)):
        node = np.repeat(np.arange(len(components)), (share * np.array(counts)).astype(int))
        X, y = rng.standard_normal((len(node), D)), rng.standard_normal(len(node))
        tables.append({"kind": kind, "node": node, "X": X, "y": y})
    return tables


def test_each_component_has_the_lengths_of_its_rows_alone():
    rng = np.random.default_rng(0)
    counts = [1, 2, 2, 3, 40, 0, 9, 7, 2, 1, 0]
    components = np.array([0, 0, 1, 2, 3, 4, 5, 5, 6, 7, 7])
    tables = tables_of(rng, components, counts)
    found = lengths_of_components(tables, D, components)
    for component in range(8):
        some = [np.isin(t["node"], np.flatnonzero(components == component)) for t in tables]
        X, y = (
            np.concatenate([t[k][s] for t, s in zip(tables, some, strict=True)]) for k in ("X", "y")
        )
        endless = float(some[0].any())
        lengths = Lengths(np.concatenate([[endless, len(y), np.sum(y**2)], np.sum(X**2, axis=0)]))
        alone = lengths.together(triangle([X], lengths.units))
        here = found[components == component]
        if len(y):
            np.testing.assert_allclose(here, np.broadcast_to(alone, here.shape), rtol=1e-12)
        else:  # as the largest
            np.testing.assert_array_equal(here[0], found.max(axis=0))


@pytest.mark.parametrize("after", [np.array([1.0, 6.0]), np.array([[1.0, 2.0], [3.0, 2.0]])])
def test_growth_is_that_of_the_coordinate_that_grows_most(after):
    assert growth(np.array([1.0, 2.0]), after) == 3.0


def test_rows_of_others_do_not_say_how_far_a_lonely_node_goes():
    """Three nearly equal rows are told apart by models of 1e10 alone, and what leaks pairs so."""
    rng = np.random.default_rng(1)
    near = rng.standard_normal(4) * (1.0 + 1e-9 * rng.standard_normal((3, 4)))
    losses = [gtv.LogisticLoss(rng.standard_normal((12, 4)), np.arange(12) % 2) for _ in range(2)]
    losses.append(gtv.LogisticLoss(near, [0.0, 0.0, 1.0]))
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(3, [(0, 1)]), losses, "linf", 0.3)
    far = problem.bounds._terms.alone
    assert (far[2] >= 1e9).all()
    assert (far[:2] <= 1e4).all()
    joined = gtv.GTVProblem(gtv.EmpiricalGraph(3, [(0, 1), (1, 2)]), losses, "linf", 0.3)
    assert (joined.bounds._terms.alone <= 1e4).all()
