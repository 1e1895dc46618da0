"""The warning where lambda is far above the value from which on all nodes share one model."""

import warnings
from functools import cache

import cvxpy as cp
import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx import estimators
from gtvcvx.solvers import warn_if_consensus
from gtvcvx.solvers._consensus import _used_at_most, _used_by_one

# The suite ignores it.
pytestmark = pytest.mark.filterwarnings("error::gtvcvx.ConsensusWarning")

RNG = np.random.default_rng(0)
EDGES = [[i, j] for i in range(8) for j in range(i + 1, 8)]
X = RNG.standard_normal((8, 5, 2))
Y = np.einsum("nmd,nd->nm", X, np.repeat([[2.0, 2.0], [-2.0, 2.0]], 4, axis=0))


def problem(lam: float = 1.0, penalty="l2", edges: list = EDGES) -> gtv.GTVProblem:
    return gtv.GTVProblem(gtv.EmpiricalGraph(8, edges), gtv.SquaredLoss.stack(X, Y), penalty, lam)


@cache
def most() -> float:
    """Return the largest lambda that is of use; what it compiles is no matter of collecting."""
    return gtv.lambda_max(problem())


@pytest.mark.parametrize("solver", ["AUTO", "CLARABEL"])
def test_a_lambda_far_above_is_said_once(solver):
    with pytest.warns(gtv.ConsensusWarning, match="all nodes agree: one model") as caught:
        solution = problem(100.0 * most()).solve(solver)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert solution.clusters().max() == 0


@pytest.mark.parametrize("loss", [gtv.SquaredLoss, gtv.AbsoluteLoss, gtv.HuberLoss])
def test_a_flow_of_rounding_proves_no_agreement(loss):
    """The objective is 1e16, the gap 1e2 or more, and lambda 1e-6: any flow would do for it."""
    rng = np.random.default_rng(0)
    features = 1e6 * rng.standard_normal((4, 3, 2))
    targets = 1e10 + rng.standard_normal((4, 3))
    parameters = {"delta": 1.0} if loss is gtv.HuberLoss else {}
    losses = loss.stack(features, targets, **parameters)
    solution = gtv.GTVProblem(gtv.generators.grid(2, 2), losses, "l1", 1e-6).solve()
    assert solution.clusters().max() == 3


def test_slacks_of_a_penalty_by_cvxpy_are_not_computed_for_it():
    norm = gtv.CvxpyPenalty(cp.norm, norm=True, dim=2)
    with pytest.warns(gtv.ConsensusWarning):
        found = [problem(100.0 * most(), norm).solve()]
    # Nodes agree where it is 3, too, but nothing is said.
    found += [problem(share * most(), norm).solve() for share in (0.5, 3.0)]
    assert all(callable(vars(solution)["slack"]) for solution in found)


def test_bounds_of_the_share_hold_it():
    penalty = gtv.CvxpyPenalty(lambda v: cp.norm(v) + cp.norm1(v), norm=True, dim=2)
    one = problem(2.0, penalty)
    for u in np.random.default_rng(1).standard_normal((20, len(EDGES), 2)):
        below, above = (
            bound(penalty, one.capacities, u) for bound in (_used_by_one, _used_at_most)
        )
        share = (penalty.dual_norm(u) / one.capacities).max()
        assert 0.3 * share <= below <= share <= above <= 2.0 * share
    assert _used_by_one(penalty, one.capacities, 0.0 * u) == 0.0


@pytest.mark.parametrize("share", [0.5, 1.01, 3.0])
def test_others_are_not(share):
    problem(share * most()).solve()


def test_what_is_proved_by_the_flow(recwarn):
    """Of a smaller lambda, by the factor of the warning, the solution is the same."""
    far = problem(100.0 * most()).solve(atol=1e-9)
    assert len(recwarn) == 0  # whoever gives atol looks after the solution
    near = problem(10.0 * most())
    assert near.lower_bound(far.u)[0] == pytest.approx(near.value(far.w), rel=1e-6)
    with pytest.warns(gtv.ConsensusWarning):
        warn_if_consensus(problem(100.0 * most()), far)


def test_components_count_by_themselves():
    two = [edge for edge in EDGES if edge[0] % 2 == edge[1] % 2]
    with pytest.warns(gtv.ConsensusWarning, match="for each connected component"):
        problem(100.0 * most(), edges=two).solve()


@pytest.mark.filterwarnings("ignore::gtvcvx.SmallObjectiveWarning")
def test_nodes_that_agree_by_themselves_need_no_lambda():
    same = gtv.SquaredLoss.stack(X, X @ [1.0, 2.0])
    gtv.GTVProblem(gtv.EmpiricalGraph(8, EDGES), same, "l2", 100.0).solve()
    near = gtv.PointLoss.stack(0.1 + 1e-13 * RNG.standard_normal((8, 2)))
    gtv.GTVProblem(gtv.EmpiricalGraph(8, EDGES), near, "l2", 100.0).solve()
    alone = gtv.SquaredLoss.stack(X, Y, labelled=np.arange(8) == 3)
    gtv.GTVProblem(gtv.EmpiricalGraph(8, EDGES), alone, "l2", 100.0).solve()


def test_penalties_without_lambda_max_and_graphs_without_edges():
    problem(1e6, "squared").solve()
    problem(1e6, edges=[]).solve()


def test_paths_and_cross_validation_are_quiet():
    gtv.lambda_path(problem(), [1000.0 * most(), 100.0 * most(), most()])
    gtv.cross_validate(problem(), [1000.0 * most(), most()], cv=2)


def test_a_loop_over_lambdas_is_warned_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for factor in (100.0, 200.0, 400.0):
            problem(factor * most()).solve()
    assert len(caught) == 1


def test_estimators_say_so_where_fit_is_called():
    graph = gtv.EmpiricalGraph(8, EDGES)
    node = np.repeat(np.arange(8), 5)
    model = estimators.NetworkLinearRegression(graph=graph, fit_intercept=False, lam=100.0 * most())
    with pytest.warns(gtv.ConsensusWarning) as caught:
        model.fit(X.reshape(-1, 2), Y.ravel(), node=node)
    assert [warning.filename for warning in caught] == [__file__]
    # The default has no units, and is a share of the least lambda at which all nodes agree.
    with warnings.catch_warnings():
        warnings.simplefilter("error", gtv.ConsensusWarning)
        estimators.NetworkLinearRegression(graph=graph).fit(
            X.reshape(-1, 2), 1e-3 * Y.ravel(), node=node
        )
    model = estimators.ConvexClustering(lam=100.0)
    with pytest.warns(gtv.ConsensusWarning) as caught:
        model.fit(RNG.standard_normal((8, 2)))
    assert [warning.filename for warning in caught] == [__file__]
    assert model.n_clusters_ == 1
