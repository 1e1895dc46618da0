"""Which data are held out in which fold, and what cannot be held out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.model_selection import cross_validate
from gtvcvx.model_selection._folds import Folds

LAMS = [1.0, 0.2, 0.04]
NODE = np.repeat(np.arange(8), (3, 4, 1, 0, 5, 2, 3, 4))  # 22 data points at seven nodes
CHAIN = generators.chain(4, 1.0)


def problem_on(graph, node, penalty="l2"):
    """Every data point is different, so that it can be recognized."""
    X = np.ones((len(node), 1))
    y = np.random.default_rng(0).standard_normal(len(node))
    return gtv.GTVProblem(graph, gtv.SquaredLoss.from_rows(X, y, node), penalty)


class TestFolds:
    counts = st.lists(st.integers(0, 6), min_size=2, max_size=9)

    @given(counts=counts, cv=st.integers(2, 5), seed=st.integers(0, 99), cut=st.integers(0, 8))
    def test_points_are_spread_evenly(self, counts, cv, seed, cut):
        """Over each node and over all; two components, the path 0..cut and the rest."""
        n = len(counts)
        edges = [(i, i + 1) for i in range(n - 1) if i != cut]
        graph = gtv.EmpiricalGraph(n, np.array(edges, dtype=int).reshape(-1, 2))
        node = np.repeat(np.arange(n), counts)
        component = graph.components[node]
        movable = np.bincount(component)[component] > 1 if len(node) else np.zeros(0, bool)
        if movable.sum() < cv:
            return
        problem = problem_on(graph, node)
        folds = Folds(problem, cv, "points", np.random.default_rng(seed)).assignment
        assert np.array_equal(folds >= 0, movable)
        assert np.ptp(np.bincount(folds[movable], minlength=cv)) <= 1
        for i in set(node[movable].tolist()):
            assert np.ptp(np.bincount(folds[node == i], minlength=cv)) <= 1
        for c in set(component[movable].tolist()):
            assert len(set(folds[component == c].tolist())) > 1

    def test_node_without_rows_left_is_unlabelled(self):
        problem = problem_on(CHAIN, NODE)
        folds = Folds(problem, 3, "points", np.random.default_rng(0))
        single = int(folds.assignment[NODE == 2][0])  # node 2 has one row
        (term,) = folds.training(single).losses.terms()
        assert 2 not in term["node"]
        assert folds.training(single).graph is problem.graph
        for k in range(3):
            kept, out = folds.training(k).losses.terms(), folds.held_out(k)
            together = np.concatenate([kept[0]["y"], out[0]["y"]])
            assert sorted(together.tolist()) == sorted(problem.losses.terms()[0]["y"].tolist())

    def test_classes_are_spread_evenly(self):
        """A rare class is in every training fold."""
        y = np.zeros(22)
        y[[1, 9, 20]] = 1.0
        losses = gtv.LogisticLoss.from_rows(np.ones((22, 1)), y, NODE, ridge=0.1)
        problem = gtv.GTVProblem(CHAIN, losses)
        for seed in range(5):
            folds = Folds(problem, 3, "points", np.random.default_rng(seed)).assignment
            assert sorted(folds[y == 1.0].tolist()) == [0, 1, 2]
            assert np.ptp(np.bincount(folds)) <= 1

    def test_nodes_are_held_out_whole(self):
        problem = problem_on(CHAIN, NODE)
        folds = Folds(problem, 3, "nodes", np.random.default_rng(0))
        assert np.bincount(folds.assignment[folds.assignment >= 0]).tolist() == [3, 2, 2]
        for k in range(3):
            (kept,), (out,) = folds.training(k).losses.terms(), folds.held_out(k)
            assert set(out["node"].tolist()) == set(np.flatnonzero(folds.assignment == k).tolist())
            assert not set(kept["node"].tolist()) & set(out["node"].tolist())

    def test_stay_in_every_fold_over_points(self):
        rng = np.random.default_rng(0)
        losses = {
            i: gtv.SquaredLoss(rng.standard_normal((3, 2)), rng.standard_normal(3)) for i in (0, 1)
        }
        losses |= {i: gtv.PointLoss([1.0, float(i)]) for i in (2, 3)}
        problem = gtv.GTVProblem(generators.chain(4, 1.0), losses)
        folds = Folds(problem, 3, "points", rng)
        assert folds.assignment.shape == (6,)
        for k in range(3):
            kept = {term["kind"]: term for term in folds.training(k).losses.terms()}
            assert kept["point"]["node"].tolist() == [2, 3]
            assert [term["kind"] for term in folds.held_out(k)] == ["squared"]
        both = Folds(problem, 4, "nodes", rng)
        assert sorted(both.assignment.tolist()) == [-1] * 4 + [0, 1, 2, 3]


BAD = [
    ({"over": "edges"}, ValueError, "over: one of .*'edges'"),
    ({"rule": "2se"}, ValueError, "rule: one of .*'2se'"),
    ({"cv": 1}, ValueError, "cv: at least 2 folds are expected, got 1"),
    ({"cv": 23}, ValueError, "cv: 23 folds need as many data points .* there are 22"),
    ({"cv": 8, "over": "nodes"}, ValueError, "cv: 8 folds need as many nodes with data"),
    ({"cv": 2.5}, TypeError, "cv: integers are expected"),
    ({"cv": "five"}, TypeError, "cv: integers are expected"),
    ({"cv": True}, TypeError, "cv: integers are expected"),
    ({"cv": [0, 1]}, ValueError, r"cv: .* shape \(22,\), the fold of each data point"),
    ({"cv": [0, 1], "over": "nodes"}, ValueError, r"cv: .* shape \(8,\), .* each node"),
    ({"cv": [-2] + [0, 1] * 10 + [1]}, ValueError, "cv: folds from 0, or -1"),
    ({"cv": [0] * 22}, ValueError, "cv: at least 2 folds"),
    ({"cv": [0, 2] * 11}, ValueError, "cv: fold 1 holds out nothing"),
    ({"lams": [0.0]}, ValueError, "lams: positive values"),
    ({"lams": None, "n_lams": 1}, ValueError, "n_lams"),
    ({"rtol": -1.0}, ValueError, "rtol: a positive"),
    ({"problem": {"schema": "x"}}, ValueError, "data: schema"),
    ({"problem": 7}, TypeError, "data: a mapping is expected"),
]


class TestRefusals:
    @pytest.mark.parametrize(("options", "error", "message"), BAD, ids=lambda x: str(x)[:40])
    def test_arguments(self, options, error, message):
        options = {"problem": problem_on(CHAIN, NODE), "lams": LAMS} | options
        with pytest.raises(error, match=message):
            cross_validate(**options)

    def test_component_without_data_left(self):
        graph = gtv.EmpiricalGraph(4, [[0, 1], [2, 3]], None, ["a", "b", "c", "d"])
        problem = problem_on(graph, np.arange(4))
        with pytest.raises(ValueError, match=r"cv: fold 1 leaves no data .* of node 'c'"):
            cross_validate(problem, LAMS, cv=[0, 2, 1, 1])

    def test_loss_that_cannot_be_taken_apart(self):
        class Opaque:
            def terms(self):
                return [{"kind": "opaque", "node": np.array([1]), "name": "mine"}]

        problem = problem_on(CHAIN, NODE)
        problem.losses = Opaque()
        with pytest.raises(ValueError, match="loss of node 1 is of kind 'opaque'"):
            cross_validate(problem, LAMS)

    def test_penalty_without_lambda_max(self):
        problem = problem_on(CHAIN, NODE, "squared")
        with pytest.raises(ValueError, match="lams: values are expected"):
            cross_validate(problem, cv=2)
        assert len(cross_validate(problem, LAMS, cv=2).lams) == 3
