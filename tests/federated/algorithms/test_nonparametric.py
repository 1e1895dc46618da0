"""Non-parametric FedRelax: linear regressors against the linear problem, trees by value."""

from typing import Any

import numpy as np
import pytest
from _systems import star_losses

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray

sklearn_linear = pytest.importorskip("sklearn.linear_model")
sklearn_tree = pytest.importorskip("sklearn.tree")

LAM, EDGES, WEIGHTS = 0.4, [(0, 1), (1, 2), (2, 3)], [1.0, 0.5, 2.0]
GRAPH = gtv.EmpiricalGraph(4, EDGES, WEIGHTS)
PUBLIC = np.random.default_rng(0).standard_normal((10, 3))


def network(regressor: Any) -> fed.Network:
    models = [fed.models.RegressorModel(loss.X, loss.y, regressor) for loss in star_losses()[4:8]]
    return fed.regressor_network(GRAPH, models, PUBLIC)


def linear_optimum(lam: float) -> FloatArray:
    """Optimum of (50) for linear regressors without intercept, by one linear system."""
    system, right = np.zeros((12, 12)), np.zeros(12)
    gram = PUBLIC.T @ PUBLIC / len(PUBLIC)
    for i, loss in enumerate(star_losses()[4:8]):
        own = slice(3 * i, 3 * i + 3)
        system[own, own] += loss.X.T @ loss.X / len(loss.y)
        right[own] = loss.X.T @ loss.y / len(loss.y)
    for (i, j), a in zip(EDGES, WEIGHTS, strict=True):
        for k, at, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            system[3 * k : 3 * k + 3, 3 * at : 3 * at + 3] += sign * lam * a * gram
    return np.asarray(np.linalg.solve(system, right).reshape(4, 3) @ PUBLIC.T)


@pytest.mark.parametrize("as_printed", [False, True])
def test_linear_regressors_reach_the_optimum_of_50(as_printed: bool) -> None:
    linear = sklearn_linear.LinearRegression(fit_intercept=False)
    run = fed.simulate(
        fed.FedRelaxNonparametric(LAM, as_printed), network(linear), 150, record_every=75
    )
    expected = linear_optimum(LAM / 2 if as_printed else LAM)
    np.testing.assert_allclose(run.w, expected, rtol=0, atol=1e-7)
    certificate = run.certificate()
    assert certificate.status == "UNPROVED"
    assert "not convex" in certificate.reason


def test_the_history_has_the_value_of_50() -> None:
    tree = sklearn_tree.DecisionTreeRegressor(max_depth=2, random_state=0)
    net = network(tree)
    run = fed.simulate(fed.FedRelaxNonparametric(LAM), net, 10, record_every=1)
    own = [
        fed.models.RegressorModel(model.model.X, model.model.y, tree).fit() for model in net.models
    ]
    start = fed.models.regressor_objective(own, GRAPH, PUBLIC, LAM)
    assert run.history["value"][0] == pytest.approx(start)
    assert run.history["value"][-1] < start
    assert run.w.shape == (4, 10)
    sent = 10 * 2 * len(EDGES)
    assert run.history["bytes_up"][-1] == sent * (8 * 10 + 20)


def test_absent_late_lost_and_crashed() -> None:
    linear = sklearn_linear.LinearRegression(fit_intercept=False)
    run = fed.simulate(
        fed.FedRelaxNonparametric(LAM),
        network(linear),
        300,
        availability=fed.Bernoulli(0.6),
        sampling=fed.Sampling(3),
        delay=fed.Delay([0.6, 0.4]),
        loss=fed.Loss(0.1),
        crashes=[fed.Crash(1, at=5, back=20)],
        record_every=50,
    )
    assert run.status == "finished"
    np.testing.assert_allclose(run.w, linear_optimum(LAM), rtol=0, atol=1e-6)


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="lam: a positive"):
        fed.FedRelaxNonparametric(-1.0)
    with pytest.raises(TypeError, match=r"net: client 0 .* regressor_network"):
        fed.simulate(fed.FedRelaxNonparametric(1.0), fed.Network(star_losses()[:4], GRAPH), 1)
    with pytest.raises(TypeError, match="models: RegressorModel"):
        fed.regressor_network(GRAPH, star_losses()[:4], PUBLIC)  # type: ignore[arg-type]
    model = fed.models.RegressorModel([[1.0]], [1.0], sklearn_linear.LinearRegression())
    with pytest.raises(ValueError, match="X_public: shape"):
        fed.regressor_network(gtv.EmpiricalGraph(1, []), [model], PUBLIC)
    net = network(sklearn_linear.LinearRegression())
    with pytest.raises(TypeError, match=r"a regressor has no .*; use FedRelaxNonparametric"):
        fed.simulate(fed.FedRelax(1.0), net, 1)


def test_perturbed_features_are_trained_on_and_certified_as_such() -> None:
    rng = np.random.default_rng(1)
    rows = [rng.standard_normal((9, 3)) for _ in range(4)]
    labels = [X @ np.ones(3) for X in rows]
    private = [X[:, 0] + 0.1 * rng.standard_normal(9) for X in rows]
    for make in (
        lambda i: fed.features.AdditiveNoise(0.3, seed=i),
        lambda i: fed.features.PrivateProjection(),
        lambda i: fed.features.KAnonymousQuantization(3),
    ):
        net = fed.perturbed_network(GRAPH, rows, labels, make, private=private)
        run = fed.simulate(fed.FedRelax(0.1), net, 400, record_every=400)
        assert run.certificate(rtol=1e-9).status == "CERTIFIED"
        perturbed = [make(i).fit(X, private[i]).transform(X) for i, X in enumerate(rows)]
        losses = [gtv.SquaredLoss(X, y) for X, y in zip(perturbed, labels, strict=True)]
        problem = gtv.GTVProblem(GRAPH, losses, "squared", 0.2)
        assert run.history["value"][-1] == pytest.approx(problem.solve(rtol=1e-10).value, abs=1e-9)


def test_perturbed_features_refuse_what_does_not_fit_by_name() -> None:
    rows, labels = [np.eye(3)] * 4, [np.ones(3)] * 4
    with pytest.raises(ValueError, match="y: one entry for each of the 4 clients"):
        fed.perturbed_network(GRAPH, rows, labels[:3], lambda i: fed.features.AdditiveNoise(1.0, i))
    few = fed.features.KAnonymousQuantization(5)
    with pytest.raises(ValueError, match="client 0: "):
        fed.perturbed_network(GRAPH, rows, labels, lambda i: few)
