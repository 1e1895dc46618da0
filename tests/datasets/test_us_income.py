"""Embedded data: what they are, and that the files agree with one another and with the source."""

from __future__ import annotations

import sys

import networkx as nx
import numpy as np
import pytest

from gtvcvx.datasets import _regenerate, load_us_income, us_income_paths
from gtvcvx.files._tables import match_nodes, read_data, read_edges
from gtvcvx.graph import EmpiricalGraph


@pytest.fixture(scope="module")
def income():
    return load_us_income()


def test_shapes_and_figures(income):
    assert len(income.states) == 48
    assert income.states == sorted(income.states)
    assert income.years.tolist() == list(range(1929, 2010))
    assert income.income.shape == (48, 81)
    # Figures of the source table, by hand.
    row = {state: k for k, state in enumerate(income.states)}
    assert income.income[row["Alabama"], 0] == 323
    assert income.income[row["Alabama"], 1969 - 1929] == 2748
    assert income.income[row["Wyoming"], 2008 - 1929] == 45177
    assert income.income.min() > 100


def test_contiguity(income):
    graph = EmpiricalGraph(48, income.edges, nodes=income.states).to_networkx()
    assert graph.number_of_edges() == 107
    assert nx.is_connected(graph)
    assert set(graph["Maine"]) == {"New Hampshire"}
    assert set(graph["Florida"]) == {"Alabama", "Georgia"}
    assert len(graph["Missouri"]) == len(graph["Tennessee"]) == 8
    # The four corners meet in a point.
    assert graph.has_edge("Arizona", "Colorado")
    assert graph.has_edge("New Mexico", "Utah")
    assert (income.edges[:, 0] < income.edges[:, 1]).all()


def test_graph_and_places(income):
    graph = income.graph()
    assert graph.nodes == income.states
    assert np.array_equal(graph.edges, income.edges)
    centre = dict(zip(income.states, income.centres.tolist(), strict=True))
    # Whole degrees that any atlas has: Denver's state, Kansas, and the four corners of the country.
    for state, latitude, longitude in (
        ("Colorado", 39, -106),
        ("Kansas", 38, -98),
        ("Washington", 47, -120),
        ("Maine", 45, -69),
        ("Florida", 29, -82),
        ("California", 37, -120),
    ):
        assert centre[state] == pytest.approx([latitude, longitude], abs=0.8)
    x, y = graph.positions.T
    assert income.states[int(np.argmax(x))] == "Maine"
    assert income.states[int(np.argmin(y))] == "Florida"
    # Neighbours are near, and the picture is as wide as the country: about 4500 by 2500 km, of
    # which the centroids span less.
    lengths = np.linalg.norm(np.diff(graph.positions[graph.edges], axis=1)[:, 0], axis=1)
    assert lengths.max() < 13.0
    assert 2.0 < np.ptp(x) / np.ptp(y) < 2.4


def test_trend_regression_means_what_it_says(income):
    X, y = income.trend_regression()
    assert X.shape == (48, 81, 2)
    assert (X[:, :, 0] == 1).all()
    assert X[0, [0, 40, 80], 1].tolist() == [-1, 0, 1]
    np.testing.assert_allclose(np.exp(y).mean(axis=0), 1, rtol=1e-12)
    w = np.linalg.lstsq(X[0], y.T, rcond=None)[0].T
    alabama, connecticut = income.states.index("Alabama"), income.states.index("Connecticut")
    assert w[alabama, 0] < -0.2 < 0.2 < w[alabama, 1]
    assert w[connecticut, 0] > 0.3


def test_adjoining_states_are_more_alike_than_others(income):
    """Without this the data would be no example for total variation."""
    X, y = income.trend_regression()
    w = np.linalg.lstsq(X[0], y.T, rcond=None)[0].T
    along_edges = np.linalg.norm(w[income.edges[:, 0]] - w[income.edges[:, 1]], axis=1).mean()
    rows, cols = np.triu_indices(48, 1)
    assert along_edges < 0.7 * np.linalg.norm(w[rows] - w[cols], axis=1).mean()


def test_files_for_the_command_line(income):
    paths = us_income_paths()
    table = read_data(paths.data, node="state", target="log_relative_income")
    edges = read_edges(paths.edges)
    assert table.features == ["constant", "trend"]
    assert table.n_skipped == 0
    X, y = income.trend_regression()
    assert [edges.labels[k] for k in match_nodes(edges.labels, table)] == list(
        np.repeat(income.states, 81)
    )
    assert np.array_equal(table.X.reshape(48, 81, 2), X)
    np.testing.assert_allclose(table.y.reshape(48, 81), y, atol=5.1e-7, rtol=0)
    assert set(edges.labels) == set(income.states)
    assert len(edges.edges) == 107


def test_regenerated_files_are_the_embedded_ones(tmp_path):
    pytest.importorskip("libpysal", reason="libpysal (extra bench)")
    pytest.importorskip("geopandas", reason="geopandas (extra geo)")
    _regenerate.regenerate(tmp_path)
    folder = us_income_paths().data.parent
    for name in ("income.csv", "contiguity.csv", "centres.csv", "trend.csv"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_regenerating_without_libpysal_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "libpysal.examples", None)
    with pytest.raises(SystemExit, match="pip install libpysal"):
        _regenerate.regenerate(tmp_path)


class TestGal:
    def read(self, tmp_path, text):
        path = tmp_path / "a.gal"
        path.write_text(text)
        return _regenerate.read_gal(path)

    @pytest.mark.parametrize("first", ["3", "0 3 shape id"])
    def test_pairs(self, tmp_path, first):
        assert self.read(tmp_path, f"{first}\n0 1\n1\n1 2\n0 2\n2 1\n1\n") == [(0, 1), (1, 2)]

    def test_node_without_neighbours(self, tmp_path):
        assert self.read(tmp_path, "3\n0 1\n2\n1 0\n\n2 1\n0\n") == [(0, 2)]

    def test_refuses_what_is_not_symmetric(self, tmp_path):
        with pytest.raises(ValueError, match="not symmetric"):
            self.read(tmp_path, "2\n0 1\n1\n1 0\n\n")

    def test_refuses_another_number_of_nodes(self, tmp_path):
        with pytest.raises(ValueError, match="another number of nodes"):
            self.read(tmp_path, "3\n0 1\n1\n1 1\n0\n")
