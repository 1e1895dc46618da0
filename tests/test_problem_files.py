"""Plain data of a problem, and problems on disk."""

import json

import numpy as np
import pytest
from _instances import Case, cases

import gtvcvx as gtv
from gtvcvx.files import _storage

ARRAYS = {
    "edges": np.int64,
    "weights": np.float64,
    "node": np.int64,
    "X": np.float64,
    "y": np.float64,
    "a": np.float64,
}


def points_of(problem, case):
    rng = case.rng
    w = rng.standard_normal((problem.graph.n_nodes, problem.dim))
    return w, 1e-3 * rng.standard_normal((problem.graph.n_edges, problem.dim))


class TestPlainData:
    @pytest.mark.parametrize("case", cases(families=["connected", "isolated", "d=1"]), ids=str)
    def test_content(self, case):
        problem = case.problem()
        data = problem.to_data()
        assert set(data) == {
            *("schema", "n_nodes", "dim", "edges", "weights", "lam", "penalty", "terms", "nodes"),
        }
        assert data["schema"] == "gtv-problem/1"
        assert (data["n_nodes"], data["dim"]) == (problem.graph.n_nodes, problem.dim)
        assert data["lam"] == case.lam
        assert data["nodes"] == list(range(problem.graph.n_nodes))
        assert data["penalty"]["kind"] in ("l1", "l2", "linf", "squared", "pnorm", "quadratic")
        edges = data["edges"]
        assert (edges[:, 0] < edges[:, 1]).all()
        assert edges.tolist() == sorted(edges.tolist())
        for block in (data, *data["terms"]):
            for name in ARRAYS.keys() & block.keys():
                assert block[name].dtype == ARRAYS[name]

    @pytest.mark.parametrize("case", cases(penalties=["l2"]), ids=str)
    def test_terms_name_the_nodes_and_their_data(self, case):
        """Losses computed from the plain data alone."""
        problem = case.problem()
        w, _ = points_of(problem, case)
        total = np.zeros(problem.graph.n_nodes)
        for term in problem.to_data()["terms"]:
            node = term["node"]
            assert (np.diff(node) >= (0 if term["kind"] == "squared" else 1)).all()
            for row, i in enumerate(node):
                if term["kind"] == "squared":
                    residual = term["X"][row] @ w[i] - term["y"][row]
                    total[i] += residual**2 / np.sum(node == i)
                else:
                    total[i] += np.sum((w[i] - term["a"][row]) ** 2)
        np.testing.assert_allclose(total, problem.losses.value(w), rtol=1e-13)

    def test_changing_it_does_not_change_the_problem(self):
        case = Case("connected", "mix", "quadratic")
        problem = case.problem()
        w, u = points_of(problem, case)
        before = problem.value(w), problem.lower_bound(u)[0]
        data = problem.to_data()
        for block in (data, data["penalty"], *data["terms"]):
            for array in block.values():
                if isinstance(array, np.ndarray):
                    array[:] = 0
        data["nodes"].clear()
        assert (problem.value(w), problem.lower_bound(u)[0]) == before
        assert case.problem().lower_bound(u)[0] == before[1]
        assert problem.to_data()["nodes"] == list(range(7))


class TestFiles:
    @pytest.mark.parametrize("case", cases(families=["isolated", "few-rows", "d=1"]), ids=str)
    def test_round_trip_is_exact(self, case, tmp_path):
        problem = case.problem()
        problem.save(tmp_path / "problem.npz")
        back = gtv.GTVProblem.load(tmp_path / "problem.npz")
        w, u = points_of(problem, case)
        assert back.value(w) == problem.value(w)
        assert back.lower_bound(u)[0] == problem.lower_bound(u)[0]
        assert repr(back) == repr(problem)
        assert list(back.graph.nodes) == list(problem.graph.nodes)
        assert [p.name for p in tmp_path.iterdir()] == ["problem.npz"]

    @pytest.mark.parametrize("labels", [["a", "ü", "λ\n"], [3, 2**70, -1], ["1", 1, ""]])
    def test_labels(self, labels, tmp_path):
        graph = gtv.EmpiricalGraph(3, [(0, 1)], nodes=labels)
        gtv.GTVProblem(graph, gtv.StackedLoss([], dim=1)).save(tmp_path / "p")
        assert gtv.GTVProblem.load(tmp_path / "p").graph.nodes == labels

    def test_places_of_nodes(self, tmp_path):
        places = [[0.0, 1.0], [2.0, 3.0]]
        graph = gtv.EmpiricalGraph(2, [(0, 1)], positions=places)
        gtv.GTVProblem(graph, gtv.StackedLoss([], dim=1)).save(tmp_path / "p")
        assert gtv.GTVProblem.load(tmp_path / "p").graph.positions.tolist() == places

    @pytest.mark.parametrize("label", [("a", 1), 1.5, None, True, frozenset()])
    def test_labels_that_cannot_be_written_down(self, label, tmp_path):
        graph = gtv.EmpiricalGraph(2, [(0, 1)], nodes=["a", label])
        problem = gtv.GTVProblem(graph, gtv.StackedLoss([], dim=1))
        with pytest.raises(TypeError, match=r"graph: node label .* cannot be written down"):
            problem.save(tmp_path / "problem.npz")
        assert list(tmp_path.iterdir()) == []

    def test_without_edges_and_losses(self, tmp_path):
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, []), gtv.StackedLoss([], dim=3), "l1", 2.0)
        problem.save(tmp_path / "p.npz")
        back = gtv.GTVProblem.load(tmp_path / "p.npz")
        assert (back.graph.n_edges, back.dim, back.lam) == (0, 3, 2.0)

    def test_missing_file_and_other_kinds_of_file(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            gtv.GTVProblem.load(tmp_path / "nothing.npz")
        path = tmp_path / "other.npz"
        for content in (b"", b"text", b"PK\x03\x04 broken"):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=r"other\.npz: not a gtv-problem/1 file"):
                gtv.GTVProblem.load(path)
        np.savez(path, a=np.zeros(2))
        with pytest.raises(ValueError, match="not a gtv-problem/1 file"):
            gtv.GTVProblem.load(path)
        _storage.save(path, {"schema": "gtv-solution/1"})
        with pytest.raises(ValueError, match="schema 'gtv-problem/1' is expected, found"):
            gtv.GTVProblem.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda data: data.pop("edges"),
            lambda data: data.pop("terms"),
            lambda data: data.pop("lam"),
            lambda data: data.update(weights=-data["weights"]),
            lambda data: data.update(lam=float("nan")),
            lambda data: data.update(n_nodes=2),
            lambda data: data.update(n_nodes="7"),
            lambda data: data.update(terms=None),
            lambda data: data.update(terms=[{"kind": "hinge", "node": [0]}]),
            lambda data: data.update(terms=[3]),
            lambda data: data.update(penalty={"kind": "l3"}),
            lambda data: data.update(penalty=None),
            lambda data: data.update(nodes=["a"] * 7),
            lambda data: data.update(dim=5),
            lambda data: data.update(positions=np.zeros((3, 2))),
            lambda data: data["terms"][0].update(node=-data["terms"][0]["node"] - 1),
        ],
    )
    def test_incomplete_or_wrong_content_names_the_file(self, change, tmp_path):
        data = Case("connected", "mix", "l2").problem().to_data()
        change(data)
        path = tmp_path / "bad.npz"
        _storage.save(path, data)
        with pytest.raises(ValueError, match=r"bad\.npz: not a complete problem"):
            gtv.GTVProblem.load(path)

    def test_the_text_inside_is_json(self, tmp_path):
        Case("connected", "mix", "l2").problem().save(tmp_path / "p.npz")
        with np.load(tmp_path / "p.npz", allow_pickle=False) as file:
            text = json.loads(str(file["json"]))
        assert text["penalty"] == {"kind": "l2"}
