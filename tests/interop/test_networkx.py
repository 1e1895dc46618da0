"""Solutions as NetworkX graphs and GraphML files, and graphs read back."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from _instances import Case

import gtvcvx as gtv
from gtvcvx.interop import read_graphml, to_networkx, write_graphml


@pytest.fixture(scope="module")
def problem():
    """String labels, weights, and one node without data."""
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(
        5, [[0, 1], [1, 2], [2, 3], [3, 4], [0, 2]], [1.0, 0.5, 0.1, 2.0, 1.0], list("abcde")
    )
    losses = {
        x: gtv.SquaredLoss(rng.standard_normal((3, 2)), rng.standard_normal(3)) for x in "abde"
    }
    return gtv.GTVProblem(graph, losses, "l2", 0.2)


@pytest.fixture(scope="module")
def solution(problem):
    return problem.solve(rtol=1e-9, verbose=False)


def test_attributes_are_the_solution(problem, solution):
    G = to_networkx(solution, problem)
    assert list(G) == list("abcde")
    clusters = solution.clusters()
    for i, (label, node) in enumerate(G.nodes(data=True)):
        assert node["w"] == solution.w[i].tolist()
        assert node["cluster"] == clusters[i]
        assert node["gap"] == solution.node_gaps[i]
        assert node["labelled"] is (label != "c")
    assert G.number_of_edges() == 5
    for e, (i, j) in enumerate(problem.graph.edges):
        head, tail = "abcde"[i], "abcde"[j]
        edge = G.edges[head, tail]
        assert (edge["head"], edge["tail"]) == (head, tail)
        assert edge["flow"] == solution.u[e].tolist()
        assert edge["weight"] == problem.graph.weights[e]
        assert edge["capacity"] == 0.2 * problem.graph.weights[e]
        flow = np.linalg.norm(solution.u[e])
        assert edge["slack"] == pytest.approx(edge["capacity"] - flow, abs=1e-12)
        assert edge["saturated"] is bool(flow >= 0.999 * edge["capacity"])
        assert edge["jump"] == pytest.approx(np.linalg.norm(solution.w[i] - solution.w[j]))
        assert edge["gap"] == solution.edge_gaps[e]
    assert G.graph["lam"] == 0.2
    assert G.graph["value"] == solution.value


def test_flow_along_head_and_tail_is_the_gradient_of_the_losses(problem, solution):
    """The meaning of the signs: a node sends out what its loss pushes down."""
    G = to_networkx(solution, problem)
    sent = {label: np.zeros(2) for label in G}
    for _, _, edge in G.edges(data=True):
        sent[edge["tail"]] += edge["flow"]
        sent[edge["head"]] -= edge["flow"]
    gradient = problem.losses.gradient(solution.w)
    for i, label in enumerate("abcde"):
        assert sent[label] == pytest.approx(gradient[i], abs=1e-4)


def test_scalars_and_names_of_features(problem, solution):
    G = to_networkx(solution, problem, scalars=True)
    node, edge = G.nodes["b"], G.edges["a", "b"]
    assert (node["w0"], node["w1"]) == tuple(solution.w[1])
    assert (edge["flow0"], edge["flow1"]) == tuple(solution.u[0])
    assert all(isinstance(x, (bool, int, float, str)) for x in [*node.values(), *edge.values()])
    named = problem.solve(rtol=1e-9, verbose=False)
    named.info["features"] = ["cluster", "height"]
    G = to_networkx(named, problem, scalars=True)
    assert G.nodes["b"]["w_height"] == named.w[1, 1]
    assert G.nodes["b"]["w_cluster"] == named.w[1, 0]
    assert G.nodes["b"]["cluster"] == named.clusters()[1]
    assert G.edges["a", "b"]["flow_height"] == named.u[0, 1]
    assert to_networkx(named, problem).graph["features"] == ["cluster", "height"]


def test_graph_comes_back(problem, solution, tmp_path):
    path = tmp_path / "solution.graphml"
    write_graphml(path, solution, problem)
    for graph in (
        gtv.EmpiricalGraph.from_networkx(to_networkx(solution, problem)),
        read_graphml(path),
    ):
        assert list(graph.nodes) == list("abcde")
        assert np.array_equal(graph.edges, problem.graph.edges)
        assert np.array_equal(graph.weights, problem.graph.weights)
    assert (read_graphml(path, weight=None).weights == 1.0).all()
    assert (read_graphml(path, weight="capacity").weights == problem.capacities).all()


def test_graphml_keeps_every_digit_and_type(problem, solution, tmp_path):
    write_graphml(tmp_path / "x.graphml", solution, problem)
    G = nx.read_graphml(tmp_path / "x.graphml")
    expected = to_networkx(solution, problem, scalars=True)
    assert dict(G.nodes(data=True)) == dict(expected.nodes(data=True))
    for head, tail, attributes in expected.edges(data=True):
        assert {**G.edges[head, tail]} == attributes
    assert G.graph["lam"] == 0.2
    assert G.graph["status"] == "optimal"


@pytest.mark.parametrize("penalty", ["l1", "linf", "squared", "pnorm3"])
@pytest.mark.parametrize("family", ["isolated", "d=1"])
def test_integer_labels_isolated_nodes_and_penalties(family, penalty, tmp_path):
    problem = Case(family, "mix", penalty).problem()
    solution = problem.solve(rtol=1e-6, verbose=False)
    write_graphml(tmp_path / "x.graphml", solution, problem)
    graph = read_graphml(tmp_path / "x.graphml")
    assert list(graph.nodes) == list(range(7))
    assert all(isinstance(label, int) for label in graph.nodes)
    assert np.array_equal(graph.edges, problem.graph.edges)
    saturated = [edge["saturated"] for *_, edge in to_networkx(solution, problem).edges(data=True)]
    if penalty == "squared":
        assert not any(saturated)
    else:
        full = problem.penalty.dual_norm(solution.u) >= 0.999 * problem.capacities
        assert saturated == full.tolist()


def test_labels_that_xml_must_escape(tmp_path):
    labels = ["<b>&\"'", "a b", "日本", "\U0001f600"]
    graph = gtv.EmpiricalGraph(4, [[0, 1], [1, 2], [2, 3]], None, labels)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(4)))
    write_graphml(tmp_path / "x.graphml", problem.solve(verbose=False), problem)
    assert list(read_graphml(tmp_path / "x.graphml").nodes) == labels


@pytest.mark.parametrize(
    ("labels", "error", "words"),
    [
        (["a", "b\x00"], ValueError, "character that XML cannot hold"),
        (["a", "\ud800"], ValueError, "character that XML cannot hold"),
        ([1, "1"], ValueError, "two labels read '1'"),
        ([(0, 1), "b"], TypeError, "neither a string nor an integer"),
        ([True, "b"], TypeError, "neither a string nor an integer"),
    ],
)
def test_labels_that_graphml_cannot_hold(labels, error, words, tmp_path):
    graph = gtv.EmpiricalGraph(2, [[0, 1]], None, labels)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(2)))
    solution = problem.solve(verbose=False)
    with pytest.raises(error, match=words):
        write_graphml(tmp_path / "x.graphml", solution, problem)
    assert not list(tmp_path.iterdir())
    assert list(to_networkx(solution, problem)) == labels


def test_interrupted_writing_leaves_the_old_file(problem, solution, tmp_path, monkeypatch):
    path = tmp_path / "x.graphml"
    path.write_text("old", encoding="utf-8")

    def broken(graph, file, **options):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(nx, "write_graphml_xml", broken)
    with pytest.raises(KeyboardInterrupt):
        write_graphml(path, solution, problem)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def graphml(edges, kind="undirected", head='<?xml version="1.0"?>'):
    body = "".join(f'<edge source="{i}" target="{j}"/>' for i, j in edges)
    nodes = "".join(f'<node id="{i}"/>' for i in sorted({i for edge in edges for i in edge}))
    space = "http://graphml.graphdrawing.org/xmlns"
    graph = f'<graph edgedefault="{kind}">{nodes}{body}</graph>'
    return f'{head}<graphml xmlns="{space}">{graph}</graphml>'


def test_graph_of_another_program_with_parallel_edges(tmp_path):
    path = tmp_path / "x.graphml"
    path.write_text(graphml(["ab", "bc", "ba"]), encoding="utf-8")
    graph = read_graphml(path)
    assert list(graph.nodes) == ["a", "b", "c"]
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.weights.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("source,target\n1,2\n", "not a GraphML file"),
        ("<graphml", "not a GraphML file"),
        ("<html></html>", "not a GraphML file"),
        (graphml(["ab"], kind="directed"), "undirected"),
        (graphml(["ab", "aa"]), "self-loop"),
        (graphml([]), "at least one node"),
    ],
)
def test_files_that_are_no_graph_are_named(text, words, tmp_path):
    path = tmp_path / "x.graphml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=words) as raised:
        read_graphml(path)
    assert str(path) in str(raised.value)


def test_missing_file_and_foreign_solution(problem, solution, tmp_path):
    with pytest.raises(ValueError, match="there is no such file"):
        read_graphml(tmp_path / "none.graphml")
    with pytest.raises(ValueError, match="cannot be read"):
        read_graphml(tmp_path)
    other = Case("connected", "mix", "l2").problem()
    for export in (to_networkx, lambda s, p: write_graphml(tmp_path / "x", s, p)):
        with pytest.raises(ValueError, match="solution: w"):
            export(solution, other)
        with pytest.raises(TypeError, match="solution: a Solution"):
            export(problem, problem)
