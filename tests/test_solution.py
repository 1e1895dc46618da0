"""Solutions: clusters from the dual slack and from the jumps of w, and solutions on disk."""

import copy
import pickle
from dataclasses import replace

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from _instances import NORMS, PENALTIES, Case, cases, reference
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx.files import _storage
from gtvcvx.solution import Record, Solution


def solution(w, edges, slack, gap=1e-9, **changes):
    """A solution by hand; only what `clusters` looks at has a meaning."""
    w = np.asarray(w, dtype=float).reshape(len(w), -1)
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    fields = {
        "w": w,
        "u": np.zeros((len(edges), w.shape[1])),
        "value": 2.0,
        "dual_value": 2.0 - gap,
        "gap": gap,
        "status": "optimal",
        "n_iter": 3,
        "seconds": 0.5,
        "solver": "TEST",
        "nodes": range(len(w)),
        "node_gaps": np.zeros(len(w)),
        "edge_gaps": np.zeros(len(edges)),
        "edges": edges,
        "slack": np.asarray(slack, dtype=float),
    }
    return Solution(**(fields | changes))


def naive_clusters(sol, tol):
    """Breadth-first search over the fused edges, one edge at a time."""
    threshold = tol * max(np.ptp(column) for column in sol.w.T)
    G = nx.empty_graph(len(sol.w))
    for (i, j), slack in zip(sol.edges.tolist(), sol.slack.tolist(), strict=True):
        jump = np.sqrt(np.sum((sol.w[i] - sol.w[j]) ** 2))
        if threshold == 0 or jump <= threshold or (slack > 0 and sol.gap / slack <= threshold):
            G.add_edge(i, j)
    return {frozenset(component) for component in nx.connected_components(G)}


def groups(labels):
    return {frozenset(np.flatnonzero(labels == c).tolist()) for c in set(labels.tolist())}


class TestClusters:
    edges = ((0, 1), (1, 2))

    def test_equal_parameters_on_saturated_edges_are_one_cluster(self):
        labels = solution([0.0, 0.0, 5.0], self.edges, [0.0, 0.0]).clusters()
        assert labels.tolist() == [0, 0, 1]
        assert labels.dtype == np.int64

    def test_slack_decides_where_w_is_not_accurate(self):
        sol = solution([0.0, 0.1, 5.0], self.edges, [0.05, 0.0], gap=1e-6)
        assert sol.clusters().tolist() == [0, 0, 1]

    def test_slack_decides_nothing_while_the_gap_is_large(self):
        sol = solution([0.0, 0.1, 5.0], self.edges, [0.05, 0.0], gap=1.0)
        assert sol.clusters().tolist() == [0, 1, 2]
        assert sol.clusters(tol=0.05).tolist() == [0, 0, 1]

    def test_no_gap_and_no_slack(self):
        assert solution([0.0, 1.0, 5.0], self.edges, [0.0, 0.0], gap=0.0).clusters().tolist() == [
            *range(3)
        ]

    def test_equal_nodes_without_a_path_between_them_stay_apart(self):
        assert solution([1.0, 1.0, 5.0], [(1, 2)], [0.0]).clusters().tolist() == [0, 1, 2]

    def test_constant_w_has_the_components_as_clusters(self):
        assert solution([1.0] * 4, [(0, 2), (1, 3)], [0.0, 0.0]).clusters().tolist() == [0, 1, 0, 1]

    def test_without_edges(self):
        assert solution([1.0, 1.0], [], []).clusters().tolist() == [0, 1]

    @given(st.integers(0, 2**32 - 1))
    def test_against_the_search(self, seed):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        graph = gtv.EmpiricalGraph(n, np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1)))
        w = rng.integers(0, 3, (n, d)) + 1e-4 * rng.standard_normal((n, d))
        slack = np.maximum(rng.standard_normal(graph.n_edges), 0.0)
        sol = solution(w, graph.edges, slack, gap=10.0 ** rng.uniform(-6, 0))
        for tol in (1e-3, 0.1):
            assert groups(sol.clusters(tol)) == naive_clusters(sol, tol)

    @pytest.mark.parametrize("tol", [-1e-3, np.nan])
    def test_tol(self, tol):
        with pytest.raises(ValueError, match="tol: a number >= 0"):
            solution([0.0, 1.0], [(0, 1)], [0.0]).clusters(tol)

    @pytest.mark.parametrize("penalty", NORMS)
    def test_of_two_groups_of_points(self, penalty):
        edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
        points = np.repeat([[0.0, 0.0], [5.0, 3.0]], 3, axis=0)
        points += 0.1 * np.random.default_rng(0).standard_normal((6, 2))
        graph = gtv.EmpiricalGraph(6, edges)
        problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(points), PENALTIES[penalty](2), 0.5)
        assert problem.solve("CLARABEL").clusters().tolist() == [0, 0, 0, 1, 1, 1]

    @pytest.mark.parametrize("case", cases(families=["connected"], penalties=NORMS), ids=str)
    def test_no_solution_jumps_further_than_the_gap_over_the_slack(self, case):
        problem = case.problem()
        rough = problem.solve(solver="PDHG", max_iter=100)
        jumps = problem.penalty.value(problem.differences(reference(case).w))
        np.testing.assert_array_equal(rough.edges, problem.graph.edges)
        assert (jumps * rough.slack <= rough.gap + 1e-6).all()


class TestSlackOfPenaltiesByCvxpy:
    """Dual norms are a cone program each there."""

    def problem(self):
        edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)]
        points = np.repeat([[0.0, 0.0], [5.0, 3.0]], 3, axis=0)
        points += 0.1 * np.random.default_rng(0).standard_normal((6, 2))
        penalty = gtv.CvxpyPenalty(lambda v: 2.0 * cp.norm(v), norm=True, dim=2)
        graph = gtv.EmpiricalGraph(6, edges)
        return gtv.GTVProblem(graph, gtv.PointLoss.stack(points), penalty, 0.25)

    def test_is_computed_when_it_is_asked_for_once(self, monkeypatch):
        problem, asked = self.problem(), []
        norm = gtv.CvxpyPenalty._dual_norm
        monkeypatch.setattr(
            gtv.CvxpyPenalty, "_dual_norm", lambda self, z: asked.append(len(z)) or norm(self, z)
        )
        found = problem.solve(rtol=1e-8)
        assert not asked
        expected = problem.capacities - 0.5 * np.linalg.norm(found.u, axis=1)
        np.testing.assert_allclose(found.slack, expected, atol=1e-7)
        assert found.clusters().tolist() == [0, 0, 0, 1, 1, 1]
        assert asked == [7]

    def test_goes_where_the_solution_goes(self, tmp_path):
        found = self.problem().solve(rtol=1e-8)
        for back in (copy.copy(found), pickle.loads(pickle.dumps(found)), replace(found)):
            assert isinstance(back.__dict__["slack"], np.ndarray)
            np.testing.assert_array_equal(back.slack, found.slack)
        found.save(tmp_path / "s.npz")
        np.testing.assert_array_equal(Solution.load(tmp_path / "s.npz").slack, found.slack)

    def test_none_by_default(self):
        fields = dict(vars(solution([0.0], [], [])))
        del fields["slack"]
        assert Solution(**fields).slack.shape == (0,)


class TestGap:
    def test_relative_to_the_value_or_one(self):
        assert solution([0.0], [], [], value=50.0, gap=1.0).rel_gap == 0.02
        assert solution([0.0], [], [], value=-50.0, gap=1.0).rel_gap == 0.02
        assert solution([0.0], [], [], value=0.5, gap=0.25).rel_gap == 0.25

    def test_of_a_record(self):
        assert Record(n_iter=3, seconds=0.1, value=5.0, dual_value=4.5).gap == 0.5


class TestFiles:
    def test_round_trip_is_exact(self, tmp_path):
        sol = Case("connected", "mix", "l2").problem().solve("CLARABEL")
        sol.save(tmp_path / "solution.npz")
        back = Solution.load(tmp_path / "solution.npz")
        for name in ("w", "u", "node_gaps", "edge_gaps", "edges", "slack"):
            np.testing.assert_array_equal(getattr(back, name), getattr(sol, name))
            assert getattr(back, name).dtype == getattr(sol, name).dtype
        for name in ("value", "dual_value", "gap", "rel_gap", "status", "n_iter", "seconds"):
            assert getattr(back, name) == getattr(sol, name)
        assert (back.solver, back.history, back.info) == (sol.solver, sol.history, sol.info)
        assert back.history[-1].gap == sol.history[-1].gap
        assert list(back.nodes) == list(sol.nodes)
        assert back.clusters().tolist() == sol.clusters().tolist()
        assert [p.name for p in tmp_path.iterdir()] == ["solution.npz"]

    def test_unusual_content(self, tmp_path):
        info = {"primal_weight": np.float64(2.0), "array": [1, None], "restarts": np.int64(3)}
        history = [Record(0, 0.0, 1.0, -np.inf), Record(5, 0.1, 0.5, 0.25)]
        sol = solution([0.0, 1.0], [], [], info=info, history=history, nodes=["a", 7])
        sol.save(tmp_path / "s")
        back = Solution.load(tmp_path / "s")
        assert (back.info, back.history, back.nodes) == (info, history, ["a", 7])
        assert back.edges.shape == (0, 2)

    def test_labels_that_cannot_be_written_down(self, tmp_path):
        sol = solution([0.0, 1.0], [], [], nodes=["a", ("b", 1)])
        with pytest.raises(TypeError, match=r"data\['nodes'\]\[1\]: \('b', 1\)"):
            sol.save(tmp_path / "s.npz")
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("change", [{"history": [1]}, {"history": None}, {"w": None}])
    def test_incomplete_content_names_the_file(self, change, tmp_path):
        path = tmp_path / "s.npz"
        solution([0.0, 1.0], [], []).save(path)
        data = _storage.load(path, "gtv-solution/1") | change
        if data["w"] is None:
            del data["w"]
        _storage.save(path, data)
        with pytest.raises(ValueError, match=r"s\.npz: not a complete solution"):
            Solution.load(path)

    def test_a_problem_is_not_a_solution(self, tmp_path):
        Case("connected", "mix", "l2").problem().save(tmp_path / "p.npz")
        with pytest.raises(ValueError, match="schema 'gtv-solution/1' is expected, found 'gtv-pro"):
            Solution.load(tmp_path / "p.npz")
