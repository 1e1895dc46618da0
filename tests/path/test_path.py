"""Solutions along lambda: the same as cold ones, with true gaps, limits and events."""

from __future__ import annotations

import itertools
import signal

import numpy as np
import pytest
from _instances import Case, cases
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv
from gtvcvx import generators
from gtvcvx.path import LambdaPath, lambda_max, lambda_path
from gtvcvx.path._critical import CriticalLambda
from gtvcvx.path._events import cluster_changes
from verify._compilation import CLOCK

LAMS = [1.0, 0.3, 0.1, 0.02]


def geometric(n=150, penalty="l2", seed=0):
    rng = np.random.default_rng(seed)
    places = rng.random((n, 2))
    graph = generators.geometric(places, 8)
    means = np.array([[1.0, 2.0], [-2.0, 1.0]])[(places[:, 0] > 0.5).astype(int)]
    data = generators.regression_data(means, 3, 0.3, 0.6, rng)
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), penalty)


@pytest.fixture(scope="module")
def path():
    return lambda_path(geometric(), n_lams=12, min_ratio=1e-3)


@pytest.mark.parametrize(
    "case",
    [*cases(["connected", "d=1"], ["mix"]), *cases(["few-rows"], ["mix"], ["l2", "quadratic"])],
    ids=str,
)
def test_same_as_cold_solutions(case):
    problem = case.problem()
    path = lambda_path(problem, LAMS, rtol=1e-7)
    assert path.lams.tolist() == LAMS
    assert path.status == "complete"
    for lam, warm in zip(path.lams, path, strict=True):
        cold = problem.with_lam(lam).solve(rtol=1e-7)
        exact = problem.with_lam(lam).solve("CLARABEL", rtol=1e-9)
        assert abs(warm.value - cold.value) <= max(warm.gap, cold.gap)
        assert warm.rel_gap <= 1e-7
        assert warm.value == pytest.approx(problem.with_lam(lam).value(warm.w), rel=1e-12)
        assert warm.dual_value <= exact.value + 1e-9 * max(1.0, abs(exact.value))


def test_grid_from_lambda_max_down(path):
    problem = geometric()
    assert path.lams[0] == pytest.approx(lambda_max(problem), rel=1e-3)
    np.testing.assert_allclose(path.lams[1:] / path.lams[:-1], 1e-3 ** (1 / 11), rtol=1e-12)
    assert len(path) == len(path.solutions) == 12
    assert path.n_clusters[0] == problem.graph.components.max() + 1
    assert path.n_clusters[-1] > 10
    for c in range(path.n_clusters[0]):
        assert np.ptp(path[0].w[problem.graph.components == c], axis=0).max() == 0.0


def test_arrays_of_the_solutions(path):
    n = path[0].w.shape[0]
    assert path.w.shape == (12, n, 2)
    assert path.labels.shape == (12, n)
    for i, solution in enumerate(path):
        assert np.array_equal(path.w[i], solution.w)
        assert path.values[i] == solution.value
        assert path.gaps[i] == solution.gap
        assert path.rel_gaps[i] == solution.rel_gap
        assert path.seconds[i] == solution.seconds
        assert path.statuses[i] == solution.status == "optimal"
        assert np.array_equal(path.labels[i], solution.clusters())
    assert path.n_clusters.tolist() == [len(set(row)) for row in path.labels.tolist()]
    assert path.rel_gaps.max() <= 1e-6
    assert path.missing.size == 0


def test_optimal_values_are_monotone_and_concave(path):
    """As lambda grows the optimum grows, and less and less."""
    lams, upper = path.lams[::-1], path.values[::-1]
    lower = upper - path.gaps[::-1]
    assert (lower[:-1] <= upper[1:]).all()
    for i in range(1, len(lams) - 1):
        t = (lams[i] - lams[i - 1]) / (lams[i + 1] - lams[i - 1])
        assert upper[i] >= (1 - t) * lower[i - 1] + t * lower[i + 1]


@pytest.mark.parametrize("solver", ["PDHG", "CLARABEL"])
def test_other_solvers(solver):
    problem = Case("connected", "squared", "l2").problem()
    found = lambda_path(problem, LAMS, rtol=1e-5, solver=solver)
    auto = lambda_path(problem, LAMS, rtol=1e-5)
    np.testing.assert_allclose(found.values, auto.values, rtol=1e-5)
    assert {solution.solver for solution in found} == {solver}


def test_values_in_any_order():
    problem = Case("connected", "squared", "l2").problem()
    assert lambda_path(problem, [0.1, 1.0, 0.3]).lams.tolist() == [1.0, 0.3, 0.1]


def test_penalty_that_is_no_norm_needs_values():
    problem = Case("connected", "squared", "squared").problem()
    with pytest.raises(ValueError, match="lams: values are expected for the penalty 'squared'"):
        lambda_path(problem)
    assert lambda_path(problem, LAMS).rel_gaps.max() <= 1e-6


class TestLimits:
    def test_callback(self):
        seen = []

        def callback(solution):
            seen.append(solution)
            return len(seen) == 2

        path = lambda_path(Case("connected", "squared", "l2").problem(), LAMS, callback=callback)
        assert path.status == "callback"
        assert path.solutions == seen
        assert path.missing.tolist() == LAMS[2:]
        assert path.lams.tolist() == LAMS[:2]

    def test_time(self):
        problem = geometric(400)
        path = lambda_path(problem, np.geomspace(1.0, 1e-3, 50), rtol=1e-12, time_limit=0.2)
        assert path.status == "time_limit"
        assert len(path) + len(path.missing) == 50
        assert 1 <= len(path) < 50
        assert np.isfinite(path.gaps).all()

    def test_interrupt_returns_what_is_done(self):
        def callback(solution):
            if solution.value < path_values[1]:
                signal.raise_signal(signal.SIGINT)

        problem = Case("connected", "squared", "l2").problem()
        path_values = lambda_path(problem, LAMS).values
        path = lambda_path(problem, LAMS, callback=callback)
        assert path.status == "interrupted"
        assert path.lams.tolist() == LAMS[:3]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_interrupt_within_a_solve(self, monkeypatch):
        """The solver takes Ctrl-C as its own end; the path must not go on."""
        solve, count = gtv.GTVProblem.solve, []

        def interrupted(self, *args, **options):
            count.append(self.lam)
            if len(count) == 3:
                options["callback"] = lambda progress: signal.raise_signal(signal.SIGINT)
                options["rtol"] = options["atol"] = 1e-15
            return solve(self, *args, **options)

        monkeypatch.setattr(gtv.GTVProblem, "solve", interrupted)
        path = lambda_path(Case("connected", "squared", "l2").problem(), LAMS)
        assert path.status == "interrupted"
        assert count == LAMS[:3]
        assert path[2].status == "user_limit"
        assert np.isfinite(path[2].gap)

    def test_interrupt_before_anything_is_done(self, monkeypatch):
        def interrupted(self, *args, **options):
            signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(gtv.GTVProblem, "solve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lambda_path(Case("connected", "squared", "l2").problem(), LAMS)


def test_progress(capsys):
    lambda_path(Case("connected", "squared", "l2").problem(), LAMS, verbose=True)
    assert "lambda path: iteration 4/4, gap " in capsys.readouterr().err
    lambda_path(Case("connected", "squared", "l2").problem(), LAMS, verbose=False)
    assert capsys.readouterr().err == ""


class TestFiles:
    def test_round_trip(self, path, tmp_path):
        path.save(tmp_path / "path.npz")
        loaded = LambdaPath.load(tmp_path / "path.npz")
        assert loaded.lams.tobytes() == path.lams.tobytes()
        assert loaded.status == path.status
        assert loaded.missing.tobytes() == path.missing.tobytes()
        assert len(loaded) == len(path)
        for a, b in zip(loaded, path, strict=True):
            for name in ("w", "u", "node_gaps", "edge_gaps", "slack", "edges"):
                assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
            for name in ("value", "dual_value", "gap", "status", "n_iter", "solver", "history"):
                assert getattr(a, name) == getattr(b, name)
            assert list(a.nodes) == list(b.nodes)
            assert a.info == b.info
        assert np.array_equal(loaded.labels, path.labels)

    def test_incomplete_path_and_labels(self, tmp_path):
        graph = gtv.EmpiricalGraph(3, [[0, 1], [1, 2]], None, ["a", "b", "c"])
        problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.eye(3)))
        path = lambda_path(problem, LAMS, callback=lambda solution: True)
        path.save(tmp_path / "path.npz")
        loaded = LambdaPath.load(tmp_path / "path.npz")
        assert loaded.status == "callback"
        assert loaded.missing.tolist() == LAMS[1:]
        assert list(loaded[0].nodes) == ["a", "b", "c"]

    def test_other_files_are_refused_by_name(self, path, tmp_path):
        path[0].save(tmp_path / "solution.npz")
        with pytest.raises(ValueError, match=r"solution.npz: schema 'gtv-path/1' is expected"):
            LambdaPath.load(tmp_path / "solution.npz")

    def test_incomplete_file(self, tmp_path):
        from gtvcvx.files import _storage

        _storage.save(tmp_path / "bad.npz", {"schema": "gtv-path/1", "lams": np.ones(2)})
        with pytest.raises(ValueError, match=r"bad.npz: not a complete path"):
            LambdaPath.load(tmp_path / "bad.npz")


class TestChanges:
    def test_by_hand(self):
        before = np.array([0, 0, 1, 2, 3, 3, 4, 5, 5])
        after = np.array([0, 0, 0, 0, 1, 2, 3, 3, 4])
        merge, split, regroup = cluster_changes(before, after, 0.1, 0.2)
        assert (merge.kind, merge.before, merge.after) == ("merge", (0, 1, 2), (0,))
        assert merge.nodes.tolist() == [0, 1, 2, 3]
        assert (split.kind, split.before, split.after) == ("split", (3,), (1, 2))
        assert (regroup.kind, regroup.before, regroup.after) == ("regroup", (4, 5), (3, 4))
        assert (regroup.lam, regroup.larger_lam) == (0.1, 0.2)

    @given(labels=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
    def test_against_their_definition(self, labels):
        """Clusters that are not in a change are the same; those in one touch no others."""
        before, after = (np.unique(column, return_inverse=True)[1] for column in np.array(labels).T)
        changes = cluster_changes(before, after, 0.1, 0.2)
        changed = np.zeros(len(before), dtype=bool)
        for change in changes:
            assert not changed[change.nodes].any()
            changed[change.nodes] = True
            assert set(before[change.nodes].tolist()) == set(change.before)
            assert set(after[change.nodes].tolist()) == set(change.after)
            sizes = len(change.before), len(change.after)
            kind = {True: "merge", False: "regroup"}[sizes[1] == 1]
            assert change.kind == ("split" if sizes[0] == 1 else kind)
            assert max(sizes) > 1
        same = np.equal.outer(before, before) == np.equal.outer(after, after)
        assert same[~changed].all()

    def test_clusters_of_a_chain_only_merge(self):
        """Total variation of a chain with equal weights: what is fused stays fused."""
        rng = np.random.default_rng(3)
        signal_ = np.repeat([0.0, 2.0, -1.0], 8)[:, None] + rng.standard_normal((24, 1))
        problem = gtv.GTVProblem(generators.chain(12, 1.0), gtv.PointLoss.stack(signal_), "l1")
        path = lambda_path(problem, n_lams=15)
        assert path.nested
        assert path.n_clusters[0] == 1
        assert (np.diff(path.n_clusters) >= 0).all()
        merged = sum(len(change.before) - 1 for change in path.changes)
        assert merged == path.n_clusters[-1] - 1
        assert all(change.lam < change.larger_lam for change in path.changes)


BAD = [
    ({"problem": None}, TypeError, "problem: a GTVProblem is expected, got NoneType"),
    ({"lams": []}, ValueError, "lams: at least one value"),
    ({"lams": [0.1, 0.0]}, ValueError, "lams: positive values are expected, got 0.0"),
    ({"lams": [0.1, -1.0]}, ValueError, "lams: positive"),
    ({"lams": [0.1, np.nan]}, ValueError, "lams: entry"),
    ({"lams": [0.1, np.inf]}, ValueError, "lams: entry"),
    ({"lams": [0.1, 0.2, 0.1]}, ValueError, "lams: 0.1 occurs twice"),
    ({"lams": [[0.1]]}, ValueError, "lams: 1 axes"),
    ({"lams": "0.1"}, TypeError, "lams: an array of numbers"),
    ({"n_lams": 1}, ValueError, "n_lams: an integer of at least 2"),
    ({"n_lams": 2.5}, ValueError, "n_lams: an integer"),
    ({"min_ratio": 0.0}, ValueError, "min_ratio: a number between 0 and 1"),
    ({"min_ratio": 1.0}, ValueError, "min_ratio"),
    ({"min_ratio": np.nan}, ValueError, "min_ratio"),
    ({"lams": LAMS, "rtol": 0.0}, ValueError, "rtol: a positive finite number"),
    ({"lams": LAMS, "rtol": None}, ValueError, "rtol: a positive finite number is expected, got N"),
    ({"lams": LAMS, "time_limit": 0.0}, ValueError, "time_limit: a positive finite number"),
    ({"lams": LAMS, "time_limit": np.nan}, ValueError, "time_limit"),
    ({"lams": LAMS, "max_iter": 0}, ValueError, "max_iter"),
    ({"lams": LAMS, "solver": "SIMPLEX"}, ValueError, "SIMPLEX"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD, ids=lambda x: str(x)[:40])
def test_bad_input(options, error, message):
    options = {"problem": Case("connected", "squared", "l2").problem()} | options
    with pytest.raises(error, match=message):
        lambda_path(**options)


def test_nothing_to_vary():
    problem = gtv.GTVProblem(generators.chain(2, 1.0), gtv.PointLoss.stack(np.ones((4, 1))))
    with pytest.raises(ValueError, match="lams: lambda_max is 0"):
        lambda_path(problem)


def test_a_grid_needs_an_upper_bound_of_lambda_max(monkeypatch):
    """Rounding can keep one away, as of absolute errors with features of a million."""
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [[0, 1]]), gtv.PointLoss.stack([[0.0], [1.0]]))
    unknown = CriticalLambda(3.0, np.inf, np.zeros((2, 1)), np.zeros((1, 1)))
    monkeypatch.setattr("gtvcvx.path._solve.critical", lambda *args, **options: unknown)
    with pytest.raises(ValueError, match=r"lams: lambda_max is above 3, but .* no upper bound"):
        lambda_path(problem)
    assert len(lambda_path(problem, [1.0])) == 1


class TestTimeLimit:
    """On a clock that goes on by a little whenever somebody looks."""

    @pytest.fixture
    def limits(self, monkeypatch):
        ticks = itertools.count()
        monkeypatch.setattr(CLOCK, "_clock", lambda: 1e-3 * next(ticks))
        return [0.002, 0.05, 0.2, 1.0]

    def test_the_first_solution_comes_back_though_lambda_max_is_not_yet_known(self, limits):
        problem = geometric()
        sizes = []
        for limit in limits:
            path = lambda_path(problem, n_lams=8, time_limit=limit)
            sizes.append(len(path))
            assert path.status in ("time_limit", "complete")
            assert len(path) + len(path.missing) == 8
            assert path.lams[0] >= lambda_max(problem) * (1.0 - 1e-3)
            assert np.isfinite(path.gaps).all()
        assert sizes[0] >= 1
        assert sizes[0] < sizes[-1]


def test_a_path_warns_once_of_small_objectives():
    rng = np.random.default_rng(0)
    n = 12
    graph = gtv.EmpiricalGraph(n, [(i, (i + 1) % n) for i in range(n)])
    points = gtv.PointLoss.stack(1e-5 * rng.standard_normal((n, 2)))
    small = gtv.GTVProblem(graph, points, "l2")
    lams = 1e-5 * np.array([1.0, 0.5, 0.1])
    with pytest.warns(gtv.SmallObjectiveWarning, match="atol") as seen:
        lambda_path(small, lams, solver="PDHG", max_iter=1)
    assert [str(warning.filename) for warning in seen] == [__file__]
    path = lambda_path(small, lams, rtol=1e-4, atol=0.0)
    assert (path.gaps <= 1e-4 * path.values).all()
