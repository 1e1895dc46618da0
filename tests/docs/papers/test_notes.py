"""The exercises of [Notes]: formulas against slow twins, and rules of verdicts."""

from __future__ import annotations

import numpy as np
import pytest
from _papers import experiments, module_of, tiny
from scipy.optimize import minimize

pytest.importorskip("sklearn")
from gtvcvx.datasets import synthetic_weather_stations
from gtvcvx.experiments import Verdict

NAMES = [f"notes-exercise-{n}" for n in ("4-1", "6-1", "9-1", "9-2")]
OK, NOT, OTHER = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.OTHER_READING


def test_the_exercises_are_in_the_catalogue():
    assert [name for name in experiments() if name.startswith("notes-")] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_tiny_runs_end_with_certified_curves(name):
    outcome = tiny(name)
    for panel in outcome.panels:
        assert all(curve.final for curve in panel.curves)
    assert all(row.verdict is not None or row.printed == "not given" for row in outcome.rows)


def test_least_squares_on_augmented_rows_minimizes_14():
    module = module_of("notes-exercise-4-1")
    rng = np.random.default_rng(0)
    X, y, c = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal(3)
    for lam in (0.01, 1.0, 30.0):

        def objective(w, lam=lam):
            return np.mean((y - X @ w) ** 2) + lam / 2 * np.sum((w - c) ** 2)

        w = module.least_squares(*module.augmented(X, y, lam, c))
        assert w == pytest.approx(minimize(objective, np.zeros(3), tol=1e-12).x, abs=1e-5)
        problem = module.ridge_problem(X, y, lam)
        ridge = np.mean((y - X @ w) ** 2) + lam / 2 * w @ w
        assert problem.value(w[None]) == pytest.approx(ridge)


def test_exercise_4_1_is_judged_by_the_differences():
    module = module_of("notes-exercise-4-1")
    assert module.verdict(np.array([[1e-12, 0.0]])) is OK
    assert module.verdict(np.array([[1e-12, 1e-3]])) is NOT
    assert tiny("notes-exercise-4-1").rows[0].verdict is OK


def test_a_step_of_fedrelax_is_the_minimum_of_its_definition():
    module = module_of("notes-exercise-9-1")
    problem, lam = module.network(0, 0.3), 0.3
    w = module.by_prox(problem, lam, 3)
    graph, X, y = module.draw(0)
    for i in (0, 13):
        pairs = list(zip(graph.edges.tolist(), graph.weights, strict=True))
        near = [(e[0] + e[1] - i, a) for e, a in pairs if i in e]

        def update(v, i=i, near=near):
            ties = sum(a * np.sum((v - w[2, j]) ** 2) for j, a in near)
            return np.mean((y[i] - X[i] @ v) ** 2) + lam * ties

        assert w[3, i] == pytest.approx(minimize(update, np.zeros(3), tol=1e-12).x, abs=1e-5)


def test_exercise_9_1_is_judged_by_the_distances_from_the_optimum():
    module = module_of("notes-exercise-9-1")
    tie, far = np.array([1e-9, 1e-8]), np.array([1e-9, 0.1])
    assert module.limit(tie, far) is OK
    assert module.limit(far, tie) is OTHER
    assert module.limit(far, far) is NOT
    assert (module.same_step(tie / 1e4), module.same_step(far)) == (OK, NOT)
    printed = tiny("notes-exercise-9-1").panels[0].curves[1]
    assert "gap" in printed.final
    assert [row.verdict for row in tiny("notes-exercise-9-1").rows] == [OK, OTHER]


def test_exercise_9_2_is_judged_by_steps_and_limits():
    module = module_of("notes-exercise-9-2")
    assert (module.same_step(np.array([[1e-12]])), module.same_step(np.array([[1e-3]]))) == (
        OK,
        NOT,
    )
    assert (module.limit(np.array([[1e-8]])), module.limit(np.array([[1e-3]]))) == (OK, NOT)
    rows = tiny("notes-exercise-9-2").rows
    assert rows[0].verdict is OK
    assert rows[1].mean > 1e-3  # eight rounds do not suffice, and the row shows it


def test_the_star_of_exercise_9_2_is_what_the_rounds_minimize():
    module = module_of("notes-exercise-9-2")
    _, X, y = module.draw(1)
    rng = np.random.default_rng(0)
    w, c = rng.standard_normal((20, 3)), rng.standard_normal(3)
    losses = np.mean((y - np.einsum("nmd,nd->nm", X, w)) ** 2, axis=1)
    value = losses.sum() + 0.7 * np.sum((w - c) ** 2)
    assert module.star(X, y, 0.7).value(np.vstack([w, c])) == pytest.approx(value)


def test_weights_of_near_stations_are_larger_with_the_kernel_only():
    module = module_of("notes-exercise-6-1")
    data = synthetic_weather_stations(0, 40)
    kernel, ones, distance = (
        module.problem_of(data, weighting, 0.1).graph for weighting in module.WEIGHTINGS.values()
    )
    np.testing.assert_array_equal(kernel.edges, distance.edges)
    assert (np.argsort(kernel.weights) == np.argsort(-distance.weights)).all()
    for graph in (kernel, ones, distance):
        assert graph.weights.mean() == pytest.approx(1.0)
    assert module.likeness(data, ones) == 0.0
    assert module.likeness(data, kernel) == pytest.approx(-module.likeness(data, distance))
    found = []
    for seed in range(3):
        drawn = synthetic_weather_stations(seed, 40)
        graph = module.problem_of(drawn, "gaussian", 0.1).graph
        found.append(module.likeness(drawn, graph))
    assert np.mean(found) > 0.1  # .18, .37, .28: near stations are more alike


def test_exercise_6_1_is_judged_by_correlations():
    module = module_of("notes-exercise-6-1")
    assert module.verdict(np.array([0.2, -0.1]), np.array([0.1])) is OK
    assert module.verdict(np.array([-0.2, 0.1]), np.array([0.1])) is OTHER
    assert module.verdict(np.array([-0.2, 0.1]), np.array([-0.1])) is NOT


def test_exercise_6_1_takes_the_users_stations(tmp_path):
    experiment = experiments()["notes-exercise-6-1"]
    data = synthetic_weather_stations(5, 12, 14)
    lines = ["station,latitude,longitude,day,minimum,maximum"]
    for i, name in enumerate(data.stations):
        lines += [
            f"{name},{data.places[i, 0]},{data.places[i, 1]},{day},{data.minimum[i, t]},"
            f"{data.maximum[i, t]}"
            for t, day in enumerate(data.days)
        ]
    (tmp_path / "stations.csv").write_text("\n".join(lines))
    outcome = experiment.run(experiment.study("tiny", data=tmp_path))
    assert outcome.data == "the user's stations.csv"
    module = module_of("notes-exercise-6-1")
    errors = outcome.panels[0].curves[0].values
    solution = module.problem_of(data, "gaussian", module.LAMS[3]).solve(rtol=1e-9)
    assert errors[0, 3] == pytest.approx(module.error(data, solution.w, slice(10, None)), rel=1e-4)
    with pytest.raises(FileNotFoundError, match=r"stations\.csv"):
        experiment.run(experiment.study("tiny", data=tmp_path / "gone"))
