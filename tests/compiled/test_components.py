"""Connected components: compiled beyond some number of edges, and the same as SciPy's."""

from __future__ import annotations

import numpy as np
import pytest

from gtvcvx import graph
from gtvcvx.graph import COMPILED_EDGES, connected_components


@pytest.mark.parametrize("n", [2, 40, 900, 20_000])
@pytest.mark.parametrize("seed", range(3))
def test_components_are_those_of_scipy(n, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, n, (COMPILED_EDGES + 7, 2))
    edges[:: 2 + seed] = edges[0]  # parallel ones; loops are among them
    compiled = connected_components(n, edges)
    backwards = connected_components(n, np.asfortranarray(edges[::-1, ::-1]))
    monkeypatch.setattr(graph, "COMPILED_EDGES", np.inf)
    by_scipy = connected_components(n, edges)
    assert compiled.dtype == by_scipy.dtype
    np.testing.assert_array_equal(compiled, by_scipy)
    np.testing.assert_array_equal(backwards, by_scipy)


def test_long_chains_in_any_order():
    n = 50_000
    chain = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    chain = np.delete(chain, [9_999, 29_999], axis=0)
    expected = np.repeat([0, 1, 2], [10_000, 20_000, 20_000])
    order = np.random.default_rng(0).permutation(len(chain))
    for some in (chain, chain[::-1], chain[order]):
        np.testing.assert_array_equal(connected_components(n, some), expected)
