"""Cross-validation against a naive loop; its rules, scores and invariances."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.model_selection import CrossValidation, cross_validate
from verify._compilation import CLOCK

LAMS = [1.0, 0.2, 0.04]


def small_graph(n=8):
    edges = [(i, (i + 1) % n) for i in range(n)] + [(0, n // 2)]
    return gtv.EmpiricalGraph(n, edges, np.random.default_rng(0).uniform(0.5, 2.0, len(edges)))


def rows(seed=0, counts=(3, 4, 1, 0, 5, 2, 3, 4), d=2):
    """Data points X, y and the nodes that hold them, in no order."""
    rng = np.random.default_rng(seed)
    node = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    X = rng.standard_normal((len(node), d))
    w = np.where(np.arange(len(counts))[:, None] < 4, [1.0, -1.0][:d], [0.0, 2.0][:d])
    return X, np.sum(X * w[node], axis=1) + 0.3 * rng.standard_normal(len(node)), node


def squared(X, y, node, graph=None, penalty="l2"):
    losses = gtv.SquaredLoss.from_rows(X, y, node)
    return gtv.GTVProblem(graph or small_graph(), losses, penalty)


def in_term_order(node):
    """Numbers of the rows in the order in which the losses keep them."""
    return np.argsort(node, kind="stable")


@pytest.fixture(scope="module")
def by_points():
    return cross_validate(squared(*rows()), LAMS, cv=3, rtol=1e-8)


@pytest.fixture(scope="module")
def by_nodes():
    return cross_validate(squared(*rows()), LAMS, cv=3, over="nodes", rtol=1e-8)


class TestAgainstANaiveLoop:
    """Every sub-problem is built anew from arrays and solved by CVXPY."""

    def check(self, found, fold_of_row):
        X, y, node = rows()
        for k in range(3):
            out = fold_of_row == k
            assert found.fold_sizes[k] == out.sum() > 0
            for j, lam in enumerate(LAMS):
                rest = squared(X[~out], y[~out], node[~out]).with_lam(lam)
                w = rest.solve("CLARABEL", rtol=1e-10).w
                errors = (np.sum(X[out] * w[node[out]], axis=1) - y[out]) ** 2
                assert found.fold_errors[k, j] == pytest.approx(errors.mean(), rel=1e-3)

    def test_over_points(self, by_points):
        fold_of_row = np.empty(len(rows()[2]), dtype=int)
        fold_of_row[in_term_order(rows()[2])] = by_points.folds
        self.check(by_points, fold_of_row)

    def test_over_nodes(self, by_nodes):
        assert by_nodes.folds[3] == -1  # it has no data
        self.check(by_nodes, by_nodes.folds[rows()[2]])

    def test_means_and_standard_errors(self, by_points):
        sizes, errors = by_points.fold_sizes, by_points.fold_errors
        for j in range(len(LAMS)):
            mean = sum(s * e for s, e in zip(sizes, errors[:, j], strict=True)) / sum(sizes)
            spread = sum(
                s * (e - mean) ** 2 for s, e in zip(sizes, errors[:, j], strict=True)
            ) / sum(sizes)
            assert by_points.mean_errors[j] == pytest.approx(mean)
            assert by_points.std_errors[j] == pytest.approx(np.sqrt(spread / 2))

    def test_solution_is_that_of_all_data(self, by_points):
        problem = squared(*rows()).with_lam(by_points.lam)
        exact = problem.solve("CLARABEL", rtol=1e-9)
        assert by_points.solution.value == pytest.approx(exact.value, rel=1e-7)
        assert by_points.path.lams.tolist() == by_points.lams.tolist() == LAMS
        assert by_points.fold_rel_gaps.shape == (3, 3)
        assert by_points.fold_rel_gaps.max() <= 1e-8


class TestInvariance:
    def test_seed(self, by_points):
        problem = squared(*rows())
        again = cross_validate(problem, LAMS, cv=3, rtol=1e-8, seed=0)
        # The solver looks at the clock: when it checks the gap is not the same every time.
        np.testing.assert_allclose(again.fold_errors, by_points.fold_errors, rtol=1e-4)
        assert again.folds.tobytes() == by_points.folds.tobytes()
        other = cross_validate(problem, LAMS, cv=3, seed=1)
        assert not np.array_equal(other.folds, by_points.folds)

    def test_order_of_the_rows(self, by_points):
        """The same rows in another order, with the same folds."""
        X, y, node = rows()
        shuffled = np.random.default_rng(5).permutation(len(node))
        fold_of_row = np.empty(len(node), dtype=int)
        fold_of_row[in_term_order(node)] = by_points.folds
        other = squared(X[shuffled], y[shuffled], node[shuffled])
        folds = fold_of_row[shuffled][in_term_order(node[shuffled])]
        found = cross_validate(other, LAMS, cv=folds, rtol=1e-8)
        np.testing.assert_allclose(found.fold_errors, by_points.fold_errors, rtol=1e-4)
        assert found.fold_sizes.tolist() == by_points.fold_sizes.tolist()

    def test_two_graphs_side_by_side(self, by_points):
        """Errors of a union are those of its parts, weighted by their numbers of data points."""
        X, y, node = rows()
        graph = small_graph()
        both = gtv.EmpiricalGraph(
            16, np.concatenate([graph.edges, 8 + graph.edges]), np.tile(graph.weights, 2)
        )
        second = rows(seed=4)
        union = squared(
            np.concatenate([X, second[0]]),
            np.concatenate([y, second[1]]),
            np.concatenate([node, 8 + second[2]]),
            both,
        )
        folds = np.concatenate([by_points.folds, by_points.folds])
        found = cross_validate(union, LAMS, cv=folds, rtol=1e-8)
        alone = cross_validate(squared(*second), LAMS, cv=by_points.folds, rtol=1e-8)
        expected = 0.5 * (by_points.fold_errors + alone.fold_errors)
        np.testing.assert_allclose(found.fold_errors, expected, rtol=1e-4)


class TestRules:
    def example(self, rule, means, errors):
        k = len(means)
        path = type("Path", (), {"__getitem__": lambda self, i: f"solution {i}"})()
        return CrossValidation(
            lams=np.geomspace(1.0, 0.1, k),
            fold_errors=np.zeros((2, k)),
            fold_sizes=np.array([3, 3]),
            fold_weights=np.array([3.0, 3.0]),
            fold_rel_gaps=np.zeros((2, k)),
            mean_errors=np.array(means),
            std_errors=np.array(errors),
            folds=np.zeros(3, dtype=int),
            over="points",
            rule=rule,
            path=path,
        )

    def test_one_standard_error(self):
        found = self.example("1se", [9.0, 5.4, 4.0, 3.0, 5.0], [0.1, 9.0, 0.2, 1.0, 0.0])
        assert (found.index_min, found.index_1se, found.index) == (3, 2, 2)
        assert found.lam == found.lam_1se == found.lams[2]
        assert found.lam_min == found.lams[3]
        assert found.solution == "solution 2"
        least = dataclasses.replace(found, rule="min")
        assert least.lam == least.lam_min
        assert least.solution == "solution 3"

    def test_ties_go_to_the_larger_lambda(self):
        found = self.example("min", [4.0, 3.0, 3.0], [0.0, 0.0, 0.0])
        assert found.index_min == found.index_1se == 1


class TestScoring:
    def test_callable(self, by_points):
        found = cross_validate(
            squared(*rows()),
            LAMS,
            cv=3,
            rtol=1e-8,
            scoring=lambda y, z: np.mean((y - z) ** 2),
        )
        np.testing.assert_allclose(found.fold_errors, by_points.fold_errors, rtol=1e-4)

    def test_sees_targets_and_predictions(self):
        X, y, node = rows()
        seen = []

        def scoring(target, prediction):
            assert target.shape == prediction.shape
            seen.append(target)
            return float(np.abs(target - prediction).max())

        cross_validate(squared(X, y, node), [0.1], cv=4, scoring=scoring)
        assert sorted(np.concatenate(seen).tolist()) == sorted(y.tolist())

    @pytest.mark.parametrize(
        ("score", "error", "message"),
        [
            (np.nan, ValueError, "scoring: the mean error of fold 0 is nan"),
            (np.inf, ValueError, "scoring: the mean error of fold 0 is inf"),
            ("good", TypeError, "scoring: a number is expected, got 'good'"),
            (None, TypeError, "scoring: a number is expected, got None"),
        ],
    )
    def test_no_number(self, score, error, message):
        with pytest.raises(error, match=message):
            cross_validate(squared(*rows()), LAMS, cv=3, scoring=lambda y, z: score)


class TestWeights:
    """Rows that weigh differently: weighted means of what is left, and of the errors."""

    weight = np.random.default_rng(9).uniform(0.2, 3.0, 22)

    def check(self, error_weight_of_row, **options):
        X, y, node = rows()
        losses = gtv.SquaredLoss.from_rows(X, y, node, sample_weight=self.weight)
        problem = gtv.GTVProblem(small_graph(), losses)
        # The only row of node 2 has no weight to speak of: it comes first, with the other means.
        order = np.lexsort((np.arange(22), node, node != 2))
        weights = None if error_weight_of_row is None else error_weight_of_row[order]
        found = cross_validate(problem, LAMS, cv=3, rtol=1e-9, error_weight=weights, **options)
        fold = np.empty(22, dtype=int)
        fold[order] = found.folds
        if error_weight_of_row is None:
            total = np.bincount(node, self.weight)[node]
            error_weight_of_row = self.weight / total * np.bincount(node)[node]
        for k in range(3):
            out = fold == k
            own = gtv.SquaredLoss.from_rows(
                X[~out], y[~out], node[~out], sample_weight=self.weight[~out]
            )
            w = gtv.GTVProblem(small_graph(), own, "l2", LAMS[1]).solve("CLARABEL", rtol=1e-10).w
            errors = (np.sum(X[out] * w[node[out]], axis=1) - y[out]) ** 2
            mean = np.average(errors, weights=error_weight_of_row[out])
            assert found.fold_errors[k, 1] == pytest.approx(mean, rel=1e-3)
            assert found.fold_weights[k] == pytest.approx(error_weight_of_row[out].sum())
        expected = np.average(found.fold_errors[:, 1], weights=found.fold_weights)
        assert found.mean_errors[1] == pytest.approx(expected)

    def test_of_the_losses(self):
        self.check(None)

    def test_of_the_errors(self):
        self.check(self.weight)

    def test_bad_weights(self):
        for weights in (np.ones(21), np.zeros(22)):
            with pytest.raises(ValueError, match="error_weight: a number > 0 for each of 22 data"):
                cross_validate(squared(*rows()), LAMS, cv=3, error_weight=weights)

    def test_equal_weights_change_nothing(self, by_points):
        found = cross_validate(
            squared(*rows()), LAMS, cv=3, rtol=1e-8, error_weight=np.full(22, 2.0)
        )
        np.testing.assert_allclose(found.fold_errors, by_points.fold_errors, rtol=1e-12)
        np.testing.assert_allclose(found.mean_errors, by_points.mean_errors, rtol=1e-12)


class TestPoints:
    """Convex clustering: whole points are predicted from their neighbours."""

    points = np.random.default_rng(2).standard_normal((9, 2)) + np.repeat([[3.0], [0.0]], [5, 4], 0)

    def problem(self):
        return gtv.GTVProblem(small_graph(9), gtv.PointLoss.stack(self.points), "l2")

    def test_over_nodes(self):
        found = cross_validate(self.problem(), LAMS, cv=3, over="nodes", rtol=1e-8)
        assert sorted(found.folds.tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        for k in range(3):
            out = found.folds == k
            losses = [
                gtv.ZeroLoss() if held else gtv.PointLoss(a)
                for held, a in zip(out, self.points, strict=True)
            ]
            rest = gtv.GTVProblem(small_graph(9), losses, "l2", LAMS[1])
            w = rest.solve("CLARABEL", rtol=1e-10).w
            errors = np.sum((w[out] - self.points[out]) ** 2, axis=1)
            assert found.fold_errors[k, 1] == pytest.approx(errors.mean(), rel=1e-3)

    def test_not_over_points(self):
        with pytest.raises(
            ValueError, match=r"over: .* no data points .* over='nodes' holds out points"
        ):
            cross_validate(self.problem(), LAMS, cv=3)


def test_plain_data():
    problem = squared(*rows())
    a, b = (cross_validate(x, LAMS, cv=2, rtol=1e-6) for x in (problem, problem.to_data()))
    np.testing.assert_allclose(a.fold_errors, b.fold_errors, rtol=1e-4)


def test_grid_of_its_own():
    found = cross_validate(squared(*rows()), cv=2, n_lams=4, min_ratio=0.1)
    assert len(found.lams) == 4
    assert found.lams[-1] == pytest.approx(0.1 * found.lams[0])
    assert found.path.n_clusters[0] == 1


def test_progress(capsys):
    cross_validate(squared(*rows()), LAMS, cv=2, verbose=True)
    assert "cross-validation: iteration 9/9, gap " in capsys.readouterr().err


def test_interrupt_is_not_a_result(monkeypatch):
    solve, count = gtv.GTVProblem.solve, []

    def interrupted(self, *args, **options):
        count.append(self)
        if len(count) == 9:  # the last one of all
            options["callback"] = lambda progress: signal.raise_signal(signal.SIGINT)
            options["rtol"] = 1e-15
        return solve(self, *args, **options)

    monkeypatch.setattr(gtv.GTVProblem, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt, match="during cross-validation"):
        cross_validate(squared(*rows()), LAMS, cv=2)
    assert len(count) == 9


def test_a_time_limit_leaves_the_same_values_of_lambda_for_all_folds(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(CLOCK, "_clock", lambda: 1e-3 * next(ticks))
    lams = np.geomspace(1.0, 1e-3, 12)
    sizes = []
    for limit in (1e-3, 1.0, 1e3):
        found = cross_validate(squared(*rows()), lams, cv=3, time_limit=limit)
        k = len(found.lams)
        sizes.append(k)
        np.testing.assert_array_equal([*found.path.lams, *found.path.missing], lams)
        assert found.fold_errors.shape == found.fold_rel_gaps.shape == (3, k)
        assert np.isfinite(found.fold_errors).all()
        assert found.lam in found.lams
        assert len(found.path) == k
    assert 1 <= sizes[0] < sizes[2] == 12
    with pytest.raises(ValueError, match="time_limit"):
        cross_validate(squared(*rows()), lams, cv=3, time_limit=0.0)


class TestProcesses:
    def test_the_same_bit_for_bit(self, by_points):
        options = {"lams": LAMS, "cv": 3, "rtol": 1e-8}
        found = cross_validate(squared(*rows()), n_jobs=2, **options)
        for name in ("lams", "fold_errors", "fold_rel_gaps", "fold_sizes", "mean_errors", "folds"):
            assert getattr(found, name).tobytes() == getattr(by_points, name).tobytes()

    def test_errors_arrive(self):
        with pytest.raises(ValueError, match="scoring: the mean error of fold 0 is nan"):
            cross_validate(squared(*rows()), [0.1], cv=2, n_jobs=2, scoring=lambda y, z: np.nan)

    def test_progress_and_limit(self, capsys):
        found = cross_validate(
            squared(*rows()), LAMS, cv=2, n_jobs=2, verbose=True, time_limit=60.0
        )
        assert len(found.lams) == 3
        assert "cross-validation: iteration 9/9, gap " in capsys.readouterr().err

    def test_a_callback_sees_all_solves(self):
        seen, alone = [], []
        for n_jobs, calls in ((2, seen), (1, alone)):
            cross_validate(squared(*rows()), LAMS, cv=2, n_jobs=n_jobs, callback=calls.append)
        assert [(p.fold, p.position, p.done) for p in seen] == [
            (p.fold, p.position, p.done) for p in alone
        ]
        for one, other in zip(seen, alone, strict=True):
            np.testing.assert_array_equal(one.solution.w, other.solution.w)

    @pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
    def test_bad_number(self, n_jobs):
        with pytest.raises(ValueError, match="n_jobs: a number of processes"):
            cross_validate(squared(*rows()), LAMS, cv=2, n_jobs=n_jobs)

    def test_joblib_is_named_when_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "joblib", None)
        with pytest.raises(ImportError, match=r"several processes need joblib: .* extra 'ml'"):
            cross_validate(squared(*rows()), LAMS, cv=2, n_jobs=2)
        assert cross_validate(squared(*rows()), LAMS, cv=2, n_jobs=1).lam in LAMS

    def test_interrupt(self, tmp_path):
        """Ctrl-C ends it while workers are busy, and they end, too."""
        code = """
            import pathlib, sys, time
            begun = sys.argv[1]  # workers have arguments of their own
            import numpy as np
            import gtvcvx as gtv

            def scoring(y, z):
                pathlib.Path(begun).touch()
                time.sleep(100.0)

            losses = gtv.SquaredLoss.stack(np.ones((4, 2, 1)), np.eye(4, 2))
            problem = gtv.GTVProblem(gtv.generators.chain(2, 1.0), losses)
            gtv.cross_validate(problem, [0.1], cv=2, n_jobs=2, scoring=scoring)
        """
        begun = tmp_path / "begun"
        with subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), begun],
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            end = time.monotonic() + 60.0
            while not begun.exists() and time.monotonic() < end and process.poll() is None:
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGINT)
            # Workers hold the pipe: all of them have ended when it does.
            message = process.communicate(timeout=50.0)[1]
        assert begun.exists()
        # How Python ends on an unhandled KeyboardInterrupt. What joblib's resource tracker, a
        # process of its own, says of semaphores may come after the traceback.
        assert process.returncode == -signal.SIGINT
        assert "\nKeyboardInterrupt\n" in message
