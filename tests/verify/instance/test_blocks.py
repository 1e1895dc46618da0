"""What multipliers take of sizes at the nodes, and parts of some nodes."""

import numpy as np
import pytest
from _plain_instances import KINKED, instance

from verify.instance._blocks import Blocks
from verify.instance._instance import load


def test_coordinates_that_a_row_does_not_have_do_not_count() -> None:
    """Sizes 6, 8 and 1 at the node: rows of features 2 and -4 take them with 3 and 2."""
    x = np.array([[2.0, -4.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.0]])
    blocks = Blocks(np.array([1, 1, 1]), x, 2, 3)
    sizes = np.array([[9.0, 9.0, 9.0], [6.0, 8.0, 1.0]])
    assert blocks.enough_for(sizes).tolist() == [3.0, 2.0, 0.0]
    assert blocks.least_for(sizes).tolist() == [2.0, 2.0, np.inf]


def test_coordinates_take_their_own_sizes_in_their_units() -> None:
    sizes = np.array([[6.0, 8.0], [1.0, 3.0]])
    blocks = Blocks(np.array([1]), None, 2, 2)
    assert blocks.enough_for(sizes).tolist() == blocks.least_for(sizes).tolist() == [[1.0, 3.0]]
    blocks = blocks.rescaled(np.array([2.0, 0.5]))
    assert blocks.least_for(sizes).tolist() == [[2.0, 1.5]]


@pytest.mark.parametrize("kind", KINKED)
def test_some_nodes_of_a_part_are_what_they_are_among_all(kind: str) -> None:
    n, d = 8, 3
    inst = load(instance(7, kind, "l2", "connected", n, d)).rescaled()
    rng = np.random.default_rng(7)
    nodes, w = rng.random(n) < 0.6, rng.standard_normal((n, d))
    for part in inst.parts:
        some, rows = part.among(nodes), np.flatnonzero(nodes[part.node])
        r = part.function.clip(rng.standard_normal(part.shape))
        z = part.push(w)
        assert np.array_equal(some.push(w[nodes]), z[rows])
        assert np.array_equal(some.pull(r[rows]), part.pull(r)[nodes])
        assert np.array_equal(some.hessian(r[rows]), part.hessian(r)[nodes])
        assert np.array_equal(some.slope(w[nodes]), part.slope(w)[rows])
        assert np.array_equal(some.function.clip(r[rows]), r[rows])
        gaps = some.gaps(r[rows], w[nodes]), part.gaps(r, w)[nodes]
        np.testing.assert_array_equal(*gaps)
