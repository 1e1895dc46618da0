"""Cross-validation of every kind of loss, against a fold rebuilt from arrays."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.losses import stacked_from_terms
from gtvcvx.model_selection import cross_validate
from gtvcvx.model_selection._errors import ROW_ERRORS, own_errors
from gtvcvx.model_selection._folds import Folds

GRAPH = gtv.EmpiricalGraph(6, [(i, (i + 1) % 6) for i in range(6)])
RIDGE = {"kind": "ridge", "node": np.arange(6), "mu": np.full(6, 0.5)}


def row_term(kind):
    rng = np.random.default_rng(0)
    node = np.repeat(np.arange(5), 4)
    y = {
        "logistic": rng.integers(0, 2, 20).astype(float),
        "poisson": rng.integers(0, 4, 20).astype(float),
        "hinge": rng.choice([-1.0, 1.0], 20),
        "multinomial": rng.permutation(np.arange(20) % 3).astype(float),
    }.get(kind, rng.standard_normal(20))
    term = {"kind": kind, "node": node, "X": rng.standard_normal((20, 2)), "y": y}
    delta = {"delta": np.full(20, 0.5)}
    more = {"huber": delta, "pseudohuber": delta, "quantile": {"level": np.full(20, 0.3)}}
    return term | more.get(kind, {})


def subset(term, chosen):
    return {name: value if name == "kind" else value[chosen] for name, value in term.items()}


@pytest.mark.parametrize("over", ["points", "nodes"])
@pytest.mark.parametrize("kind", ROW_ERRORS)
def test_against_a_fold_by_hand(kind, over):
    term = row_term(kind)
    dim = 6 if kind == "multinomial" else 2  # two features, three classes
    problem = gtv.GTVProblem(GRAPH, stacked_from_terms([term, RIDGE], dim), "l2")
    found = cross_validate(problem, [0.1], cv=2, over=over, rtol=1e-8)
    fold_of_row = found.folds if over == "points" else found.folds[term["node"]]
    for k in range(2):
        rest = stacked_from_terms([subset(term, fold_of_row != k), RIDGE], dim)
        w = gtv.GTVProblem(GRAPH, rest, "l2", 0.1).solve("CLARABEL", rtol=1e-9).w
        errors = own_errors(subset(term, fold_of_row == k), w)
        assert found.fold_errors[k, 0] == pytest.approx(errors.mean(), rel=1e-3, abs=1e-4)


def test_regularizers_stay_in_every_fold():
    others = [
        RIDGE,
        {"kind": "l1", "node": np.array([0, 2]), "kappa": np.full((2, 2), 0.1)},
        {"kind": "box", "node": np.array([1]), "lower": np.full((1, 2), -np.inf),
         "upper": np.ones((1, 2))},
        {"kind": "simplex", "node": np.array([5]), "total": np.ones(1)},
    ]  # fmt: skip
    losses = stacked_from_terms([row_term("huber"), *others], 2)
    problem = gtv.GTVProblem(GRAPH, losses, "l2")
    folds = Folds(problem, 2, "nodes", np.random.default_rng(0))
    for k in range(2):
        kept = [t for t in folds.training(k).losses.terms() if t["kind"] != "huber"]
        expected = [t for t in problem.losses.terms() if t["kind"] != "huber"]
        assert sorted(t["kind"] for t in kept) == sorted(t["kind"] for t in expected)
        for name in ("ridge", "l1", "box", "simplex"):
            a, b = ([t for t in terms if t["kind"] == name] for terms in (kept, expected))
            assert sorted(np.concatenate([t["node"] for t in a])) == sorted(
                np.concatenate([t["node"] for t in b])
            )
        assert [t["kind"] for t in folds.held_out(k)] == ["huber"]


def test_loss_of_a_callable_is_refused():
    cvxpy_loss = gtv.losses.CvxpyLoss(cp.sum_squares, dim=2)
    losses = {0: gtv.SquaredLoss(np.eye(2), [1.0, 2.0]), 4: cvxpy_loss}
    problem = gtv.GTVProblem(GRAPH, losses, "l2")
    with pytest.raises(ValueError, match="loss of node 4 is of kind 'opaque'"):
        cross_validate(problem, [0.1], cv=2)
