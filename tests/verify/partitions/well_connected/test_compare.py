"""Is a partition recovered by a solution: what is proved, what a tolerance says, the words."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

import gtvcvx as gtv
import verify


def points(edges, rows, lam, penalty="l2", n=None, labelled=None):
    a = np.atleast_2d(np.asarray(rows, dtype=float).T).T
    graph = gtv.EmpiricalGraph(n or len(a), edges)
    losses = [gtv.PointLoss(row) for row in a]
    if labelled is not None:
        losses = [
            loss if known else gtv.ZeroLoss() for loss, known in zip(losses, labelled, strict=True)
        ]
    return gtv.GTVProblem(graph, losses, penalty, lam)


def compared(problem, partition, solution=None):
    given = problem.solve(rtol=1e-8) if solution is None else solution
    return verify.well_connected(problem, partition, given)


@pytest.fixture(scope="module")
def karate():
    """Louvain's communities of the karate club, and a point of its own for each."""
    graph = nx.karate_club_graph()
    communities = nx.community.louvain_communities(graph, weight=None, seed=1)
    labels = np.empty(34, dtype=int)
    for c, nodes in enumerate(communities):
        labels[list(nodes)] = c
    losses = gtv.PointLoss.stack(np.eye(len(communities))[labels])
    network = gtv.EmpiricalGraph.from_networkx(graph, weight=None)
    return gtv.GTVProblem(network, losses, "l2", 0.05), labels


def test_communities_of_the_karate_club_are_recovered_although_definition_1_fails(karate):
    problem, labels = karate
    report = compared(problem, labels)
    assert not report.holds
    assert all(cluster.margin < 1 for cluster in report.clusters.values())
    assert report.recovered is True
    assert report.solution.proved
    assert report.solution.certificate.status == "CERTIFIED"
    assert verify.check(report.solution.certificate.document).status == "CERTIFIED"
    assert {cluster.found for cluster in report.solution.clusters.values()} == {"equal"}
    for text in (str(report), repr(report).partition("\n")[2]):
        lines = text.splitlines()
        assert lines[0].startswith("solved at lambda = 0.05 (certified, relative gap ")
        assert lines[0].endswith("the partition IS recovered")
        assert lines[1].startswith("  every solution has one model on each cluster, up to ")
        assert lines[1].endswith("(proved)")
        assert lines[2].startswith("Theorem 2 (l2 norm, lambda = 0.05): 4 of 4 clusters are not")
        assert "sufficient, not necessary" in lines[3]
    assert "if every cluster is well-connected" not in str(report)  # no i0, no bound
    assert report._repr_html_().index("IS recovered") < report._repr_html_().index("Theorem 2")


def test_another_partition_is_not_recovered(karate):
    problem, labels = karate
    two = labels % 2
    report = compared(problem, two)
    assert report.recovered is False
    assert not report.solution.proved
    assert report.solution.clusters[0].parts == 2
    assert report.solution.clusters[0].bound == np.inf
    lines = str(report).splitlines()
    assert lines[0].endswith("the partition IS NOT recovered")
    assert lines[1].startswith("  cluster 0 is split: models up to 1.")
    assert lines[3] == "  one model in every solution is proved for 0 of 2 clusters"
    assert lines[4].endswith(" apart count as one")
    assert "split" in repr(report)
    assert json.loads(json.dumps(report.to_dict()))["solution"]["clusters"][0]["bound"] == "inf"


def test_in_consensus_clusters_are_merged(karate):
    problem, labels = karate
    report = compared(problem.with_lam(50.0), labels)
    assert report.recovered is True
    assert {cluster.found for cluster in report.solution.clusters.values()} == {"merged"}
    assert report.solution.merged == [[0, 1, 3, 2]]  # in the partition's order
    assert str(report).splitlines()[0].endswith("recovered, but clusters are MERGED")
    assert "  merged: clusters 0, 1, 3, 2" in str(report)


def test_finer_partitions_are_merged_and_coarser_ones_split():
    problem = points([[0, 1], [1, 2], [2, 3]], [0.0, 0.1, 5.0, 5.1], 0.3)
    fine = compared(problem, ["a", "b", "c", "c"])
    assert [c.found for c in fine.solution.clusters.values()] == ["merged", "merged", "equal"]
    assert fine.solution.merged == [["a", "b"]]
    assert fine.recovered is True
    mixed = compared(problem, ["a", "b", "b", "c"])
    assert [c.found for c in mixed.solution.clusters.values()] == ["merged", "split", "merged"]
    assert mixed.solution.merged == [["a", "b"], ["b", "c"]]
    assert "  merged in part: clusters 'a', 'b'\n  merged in part: clusters 'b', 'c'" in str(mixed)


def test_the_bound_holds_for_every_solution():
    """Of points that are hardly certified: the exact solution stays within their bounds."""
    rng = np.random.default_rng(3)
    edges = [[i, j] for s in (0, 4) for i in range(s, s + 4) for j in range(i + 1, s + 4)]
    for penalty in ("l2", "l1", "linf"):
        target = np.repeat([[0.0, 0.0], [3.0, 1.0]], 4, axis=0) + rng.normal(0, 0.05, (8, 2))
        problem = points([*edges, [3, 4]], target, 0.4, penalty)
        exact = problem.solve(rtol=1e-12).w
        rough = problem.solve(rtol=1e-12)
        w = rough.w + 1e-5 * rng.standard_normal((8, 2))
        report = compared(problem, [0] * 4 + [1] * 4, (w, rough.u))
        for c, cluster in report.solution.clusters.items():
            rows = exact[4 * c : 4 * c + 4]
            apart = np.linalg.norm(rows[:, None] - rows[None], axis=2).max()
            assert apart <= cluster.bound < 1e-2
            given = np.linalg.norm(
                w[4 * c : 4 * c + 4][:, None] - w[None, 4 * c : 4 * c + 4], axis=2
            )
            assert given.max() <= cluster.bound  # the point itself obeys it, too
            assert cluster.spread >= given.max()


@pytest.mark.parametrize(("penalty", "factor"), [("l1", 1.0), ("l2", 1.0), ("linf", np.sqrt(2))])
def test_the_bound_is_the_gap_over_the_room(penalty, factor):
    """Both nodes at 1/2 + e in one coordinate: gap 2 e^2, flow 1 of a capacity of 3."""
    problem = points([[0, 1]], [[0.0, 0.0], [1.0, 0.0]], 3.0, penalty)
    e = 1e-4
    w, u = np.array([[0.5 + e, 0.0]] * 2), np.array([[-1.0, 0.0]])
    bound = compared(problem, [0, 0], (w, u)).solution.clusters[0].bound
    tight = factor * 2 * e**2 / (3.0 - 1.0)
    assert tight * (1 - 1e-3) <= bound <= tight * (1 + 1e-3)


def test_flows_at_capacity_prove_nothing():
    """Two nodes at the lambda at which they just meet: equal, and no room on the edge."""
    problem = points([[0, 1]], [0.0, 4.0], 4.0)  # gradient 2 (w - a) = 4 at w = 2
    w, u = np.full((2, 1), 2.0), np.array([[-4.0]])
    report = compared(problem, [0, 0], (w, u))
    assert report.solution.certificate.gap <= 1e-9
    assert report.recovered is True
    assert not report.solution.proved
    assert "recovered TO A TOLERANCE only" in str(report)
    assert "is proved for 0 of 1 clusters" in str(report)


def test_an_exact_solution_proves_equality():
    problem = points([[0, 1], [1, 2]], [0.0, 0.25, 8.0], 1.0, "l1")
    solution = problem.solve("EXACT")
    report = compared(problem, [0, 0, 1], (solution.exact.w, solution.exact.u))
    assert report.solution.clusters[0].bound == 0.0
    assert "every solution has one model on each cluster, exactly (proved)" in str(report)


def test_single_nodes_are_trivially_recovered():
    problem = points([[0, 1], [1, 2]], [0.0, 1.0, 2.0], 0.1)
    report = compared(problem, [0, 1, 2])
    assert report.holds
    assert report.solution.proved
    assert str(report).startswith("the partition IS recovered: every solution at lambda = 0.1")
    assert "Theorem 2 (l2 norm, lambda = 0.1): every cluster is well-connected" in str(report)
    assert "if every cluster" not in str(report)


def test_isolated_nodes_and_clusters_without_labels():
    """Nodes 3 and 4 are alone and unlabelled: any models solve, so that nothing is proved there."""
    problem = points([[0, 1], [1, 2]], [1.0, 1.0, 1.2, 0.0, 0.0], 1.0, labelled=[1, 0, 1, 0, 0])
    report = compared(problem, [0, 0, 0, 1, 1])
    assert report.solution.clusters[0].proved
    assert not report.solution.clusters[1].proved
    together = problem.solve(rtol=1e-8)
    apart = np.array(together.w)
    apart[3] += 1.0
    other = compared(problem, [0, 0, 0, 1, 1], (apart, together.u))
    assert other.solution.certificate.status == "CERTIFIED"
    assert other.recovered is False
    assert other.solution.clusters[1].found == "split"
    alone = compared(problem, [0, 0, 0, 1, 2])
    assert alone.solution.proved
    assert {c.found for c in alone.solution.clusters.values()} == {"equal"}


def test_a_graph_without_edges():
    problem = points(np.zeros((0, 2), dtype=int), [0.0, 1.0, 1.0], 1.0)
    report = compared(problem, [0, 1, 1])
    assert report.recovered is True  # in the one solution that there is; no edge proves it
    assert not report.solution.proved
    assert compared(problem, [0, 0, 1]).recovered is False


def test_without_a_solution_nothing_is_said():
    problem = points([[0, 1], [1, 2]], [0.0, 1.0, 2.0], 0.1)
    report = verify.well_connected(problem, [0, 0, 1])
    assert report.recovered is None
    assert "solution" not in report.to_dict()
    assert str(report).startswith("not solved: whether the partition is recovered at lambda")


@pytest.mark.parametrize("penalty", ["l2", "squared"])
def test_a_point_that_is_no_solution_decides_nothing(penalty):
    problem = points([[0, 1], [1, 2]], [0.0, 1.0, 2.0], 0.1, penalty)
    report = compared(problem, [0, 0, 1], np.zeros((3, 1)))
    assert report.solution.certificate.status == "REFUTED"
    assert report.recovered is None
    assert str(report).startswith("NOT solved at lambda = 0.1 (REFUTED")
    assert "merged" not in str(report)
    assert "merged" not in repr(report)


def test_penalties_that_are_no_norm_are_decided_by_tolerance():
    problem = points([[0, 1], [1, 2]], [1.0, 1.0, 4.0], 1.0, "squared")
    report = compared(problem, [0, 0, 1])
    assert report.recovered is False
    assert compared(problem, [0, 1, 2]).recovered is True


def test_losses_without_a_rule_are_compared_and_said_to_be_uncertified():
    import cvxpy as cp  # slow, and for this test alone

    losses = [gtv.CvxpyLoss(lambda w: cp.sum(cp.exp(w) - w), 1)] * 2
    graph = gtv.EmpiricalGraph(2, [[0, 1]])
    problem = gtv.GTVProblem(graph, losses, "l2", 1.0)
    report = compared(problem, [0, 0], problem.solve("CLARABEL"))
    assert report.solution.certificate.status == "UNPROVED"
    assert report.recovered is True
    assert str(report).startswith("solved at lambda = 1 (UNPROVED")


def test_what_is_no_solution_is_refused():
    problem = points([[0, 1], [1, 2]], [0.0, 1.0, 2.0], 0.1)
    for wrong in (7, "w", (1, 2, 3)):
        with pytest.raises(TypeError, match="solution: an object with w and u"):
            verify.well_connected(problem, [0, 0, 1], wrong)
    with pytest.raises(ValueError, match="shape"):
        verify.well_connected(problem, [0, 0, 1], np.zeros((4, 1)))
