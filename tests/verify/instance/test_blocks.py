"""What multipliers take of sizes at the nodes."""

import numpy as np

from verify.instance._blocks import Blocks


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
