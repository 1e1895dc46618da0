"""The random instances and real tables of tests/benchmarks: drawn, modelled, tried, reported."""

import json
import subprocess
import sys
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from _benchmark_modules import FOLDER, module, siblings

__all__ = ["siblings"]  # a fixture for all of the tests


def small(loss, penalty="l2", scale="unit"):
    """Return an instance of five nodes."""
    chosen = module("fuzz").draw(3, 0)
    changes = {"loss": loss, "penalty": penalty, "scale": scale, "shape": "cycle"}
    return replace(chosen, n=5, dim=2, rows=3, labelled=0.8, lam=0.3, **changes).instance()


def every_kind():
    """Return each loss once, and each penalty and scale once with some loss."""
    sys.path.insert(0, str(FOLDER))
    try:
        fuzz = module("fuzz")
    finally:
        sys.path.remove(str(FOLDER))
    yield from ((loss, "l2", "unit") for loss in fuzz.LOSSES)
    yield from (("squared", penalty, "unit") for penalty in fuzz.PENALTIES)
    yield from (("huber", "l1", scale) for scale in fuzz.SCALES)


@pytest.mark.parametrize(("loss", "penalty", "scale"), list(every_kind()))
def test_the_independent_model_has_the_values_of_the_problem(loss, penalty, scale):
    truth, instance = module("truth"), small(loss, penalty, scale)
    problem, (model, variable) = instance.problem(), truth.model(instance)
    for seed in range(2):
        w = np.random.default_rng(seed).standard_normal((instance.n, instance.dim))
        w = truth.feasible(instance, w / (1 + max(abs(r.X).max(initial=0) for r in instance.rows)))
        value, digits = truth.value(instance, w)
        assert 0 < digits < 1e-9 * max(1.0, abs(value))
        assert value == pytest.approx(problem.value(w), rel=1e-15, abs=digits)
        variable.value = w
        assert model.objective.value == pytest.approx(value, rel=1e-10)
        assert all(constraint.value(1e-9) for constraint in model.constraints)


def test_weights_of_rows_and_nodes_are_among_them():
    """Every fifth draw has some; values agree with the formula."""
    truth, fuzz = module("truth"), module("fuzz")
    drawn = [replace(fuzz.draw(1, k), n=6, shape="cycle", scale="unit") for k in range(60)]
    some = [d for d in (d.instance() for d in drawn) if d.rows[0].weight is not None]
    assert 5 <= len(some) <= 20
    for instance in some:
        w = truth.feasible(instance, np.full((instance.n, instance.dim), 0.25))
        value, digits = truth.value(instance, w)
        assert value == pytest.approx(instance.problem().value(w), rel=1e-13, abs=digits)


def test_draws_are_the_same_again_and_cover_what_they_should():
    fuzz, graphs = module("fuzz"), module("fuzz_graphs")
    drawn = [fuzz.draw(1, k) for k in range(400)]
    assert drawn == [fuzz.draw(1, k) for k in range(400)]
    assert drawn[5] != fuzz.draw(2, 5)
    assert {d.loss for d in drawn} == set(fuzz.LOSSES)
    assert {d.penalty for d in drawn} == set(fuzz.PENALTIES)
    assert {d.scale for d in drawn} == set(fuzz.SCALES)
    assert {d.shape for d in drawn} == set(graphs.SHAPES)
    assert {d.dim for d in drawn} == set(range(1, 21))
    assert len(graphs.SHAPES) == 13
    a, b = drawn[7].instance(), drawn[7].instance()
    np.testing.assert_array_equal(a.rows[0].X, b.rows[0].X)
    np.testing.assert_array_equal(a.edges, b.edges)


@pytest.mark.parametrize("n", [3, 4, 7, 30])
def test_shapes_are_graphs_of_the_size_asked_for(n):
    for name, shape in module("fuzz_graphs").SHAPES.items():
        edges = shape(n, np.random.default_rng(0))
        assert edges.shape == (len(edges), 2), name
        assert len(edges) == 0 or 0 <= edges.min() <= edges.max() < n, name
        assert (edges[:, 0] != edges[:, 1]).all(), name


def test_a_trial_solves_compares_and_certifies():
    trial = module("trial")
    result = trial.run(small("squared"), 20.0, 1)
    assert result.solved
    assert result.right
    assert result.certified
    assert result.faults == []
    assert result.clarabel_error < 1e-6
    assert result.best == pytest.approx(result.value, rel=1e-6)
    assert result.ratio("clarabel") > 0
    assert result.ratio("direct") > 0


def test_an_invalid_gap_and_an_exception_are_faults(monkeypatch):
    trial, instance = module("trial"), small("squared")
    solve = type(instance.problem()).solve

    def wrong(problem, **options):
        found = solve(problem, **options)
        return replace(found, w=found.w + 1.0, value=problem.value(found.w + 1.0))

    monkeypatch.setattr(type(instance.problem()), "solve", wrong)
    faults = trial.run(instance, 20.0, 1).faults
    assert any("below the suboptimality" in fault for fault in faults)
    monkeypatch.setattr(type(instance.problem()), "solve", lambda *_, **__: 1 / 0)
    result = trial.run(instance, 20.0, 1)
    assert result.status == "exception"
    assert "ZeroDivisionError" in result.faults[0]
    text = module("fuzz_report").markdown([result], 1, 1)
    assert "FAULT exception" in text


def test_a_solver_that_fails_is_no_answer():
    w = cp.Variable((1, 1))
    built = cp.Problem(cp.Minimize(cp.sum(w)), [w >= 1, w <= 0]), w
    answer = module("truth").solve(built, "CLARABEL")
    assert answer.w is None
    assert answer.status.startswith("infeasible")


def test_tables_have_instances_in_raw_units():
    tables = module("tables")
    posed = tables.posed()
    assert {p.table for p in posed} | set(tables.absent()) == set(tables.TABLES)
    instance = next(p for p in posed if p.table == "US income").instance()
    assert instance.n == 48
    assert instance.rows[0].X[:, 1].max() == 2009
    names = [p.name for p in posed]
    assert len(set(names)) == len(names)


def test_one_command_runs_the_family(tmp_path):
    # Number 1 of this seed has four nodes.
    command = [sys.executable, FOLDER, "--family", "F8", "--seed", "1", "--only", "1"]
    command += ["--time-limit", "10", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "solved to 1e-06: 1 of 1" in done.stdout, done.stderr
    result = json.loads((tmp_path / "fuzz-1-1.jsonl").read_text())
    assert result["name"] == "1"
    assert result["clarabel"] > 0
    assert (tmp_path / "fuzz-1-1.md").read_text() in done.stdout + "\n"


def test_directions_that_no_rows_determine_do_not_run_away():
    """Components of few rows, raw units: in twice the digits, points went for 1e20 along them."""
    drawn = replace(module("fuzz").draw(20261201, 60), loss="logistic")
    problem = drawn.instance().problem()
    found = problem.solve(rtol=1e-9, atol=1e-6, max_iter=100, verbose=False)
    assert found.status == "optimal"


def test_shares_beside_large_features_and_capacities_of_eight_decades():
    """In units of the features Clarabel's points were off by 1e-3, and nothing else ended."""
    drawn = replace(module("fuzz").draw(20264801, 216), loss="squared, simplex")
    found = drawn.instance().problem().solve(rtol=1e-6, max_iter=1_000, verbose=False)
    assert found.status == "optimal"
    assert found.value == pytest.approx(65.70668, rel=1e-6)
