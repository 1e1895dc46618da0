"""[GTV] on linear models: the runs, the formulas against slow twins, and rules that can say no."""

from __future__ import annotations

import numpy as np
import pytest
from _papers import experiments, module_of, tiny

import verify
from gtvcvx.experiments import Outcome, Row, Verdict

NAMES = [
    "gtv-table-1",
    "gtv-figure-2",
    "gtv-figure-3",
    "gtv-figure-4",
    "gtv-figure-9",
    "gtv-figure-10",
    "gtv-covariance",
    "gtv-figure-11",
    "gtv-figure-13",
]
YES, OTHER, NO = Verdict.REPRODUCED, Verdict.OTHER_READING, Verdict.NOT_REPRODUCED


def shared(name):
    """A module that the experiments share."""
    experiments()
    return __import__(f"gtv_minimization.{name}", fromlist=["x"])


@pytest.fixture(scope="module")
def setting():
    return shared("_setting")


@pytest.fixture(scope="module")
def sweep():
    return shared("_sweep")


@pytest.fixture(scope="module")
def blocks(setting):
    """A small draw of two clusters."""
    return setting.two_blocks(3, 0.1, 0.5, 0.1, (6, 5))


class TestRuns:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_tiny_run_is_complete(self, name):
        outcome = tiny(name, None, 1)
        assert isinstance(outcome, Outcome)
        assert all((row.verdict is None) == (row.printed == "not given") for row in outcome.rows)
        for panel in outcome.panels:
            assert all(curve.final for curve in panel.curves)
            assert all(
                np.isfinite(np.asarray(c.values)).all() for c in panel.curves if c.kind == "run"
            )

    @pytest.mark.parametrize("name", ["gtv-table-1", "gtv-figure-3"])
    def test_the_notebooks_reading_reproduces_under_another_reading_only(self, name):
        verdicts = {row.verdict for row in tiny(name, "notebook", 1).rows}
        assert YES not in verdicts

    def test_a_run_is_repeated_by_its_seeds(self):
        experiment = experiments()["gtv-figure-13"]
        one, two = (experiment.run(experiment.study("tiny", seeds=1)).rows[1].ours for _ in "ab")
        np.testing.assert_array_equal(one, two)


def errors_of(instance, w):
    """(39) and label error, point by point."""
    distances = [sum((w[i] - instance.true_w[i]) ** 2) for i in range(len(w))]
    X, y = instance.data.X, instance.data.y
    labels = [(X[i, r] @ w[i] - y[i, r]) ** 2 for i in range(len(w)) for r in range(X.shape[1])]
    return sum(distances) / len(distances), sum(labels) / len(labels)


def printed_iterations(instance, method, iterations, summed=False, degrees=None):
    """Algorithm 1 as it is printed, node by node and edge by edge, for l1 and l2."""
    edges, n = instance.graph.edges, len(instance.true_w)
    X, y, accessible = instance.data
    deg = instance.graph.degrees
    w, u = np.zeros_like(instance.true_w), np.zeros((len(edges), instance.true_w.shape[1]))
    for _ in range(iterations):
        new = np.empty_like(w)
        for i in range(n):
            flow = sum(
                (u[e] * ((edges[e, 0] == i) - 1.0 * (edges[e, 1] == i)) for e in range(len(edges))),
                0.0,
            )
            v = w[i] - flow / deg[i]
            tau = 1.0 / (deg[i] if degrees is None else degrees[i])
            scale = 2.0 * tau / (1 if summed else X.shape[1])
            if accessible[i]:
                matrix = np.eye(len(v)) + scale * X[i].T @ X[i]
                new[i] = np.linalg.solve(matrix, v + scale * X[i].T @ y[i])
            else:
                new[i] = v
        ahead = 2.0 * new - w
        for e, (i, j) in enumerate(edges):
            u[e] += 0.5 * (ahead[i] - ahead[j])
            cap = method.lam * instance.graph.weights[e]
            if method.penalty == "l1":
                u[e] = u[e].clip(-cap, cap)
            else:
                u[e] *= min(1.0, cap / max(np.linalg.norm(u[e]), 1e-300))
        w = new
    return w


class TestSetting:
    def test_errors_are_those_of_the_formulas(self, blocks):
        w = np.random.default_rng(0).standard_normal(blocks.true_w.shape)
        mse, labels = errors_of(blocks, w)
        assert blocks.error(w, "paper") == pytest.approx(mse)
        assert blocks.error(w, "notebook") == pytest.approx(labels)

    @pytest.mark.parametrize("penalty", ["l1", "l2"])
    @pytest.mark.parametrize("reading", ["paper", "notebook"])
    def test_algorithm1_is_the_printed_one(self, setting, blocks, penalty, reading):
        method = setting.Method(penalty, 0.05)
        points = setting.algorithm1(blocks.problem(method, reading), [4, 9])
        for k, w in points.items():
            twin = printed_iterations(blocks, method, k, reading == "notebook")
            np.testing.assert_allclose(w, twin, rtol=1e-9, atol=1e-12)

    def test_other_degrees_are_those_of_the_update_alone(self, setting, blocks):
        method, degrees = setting.Method("l1", 0.05), np.arange(1.0, 12.0)
        w = setting.algorithm1(blocks.problem(method, "paper"), [7], degrees)[7]
        twin = printed_iterations(blocks, method, 7, degrees=degrees)
        np.testing.assert_allclose(w, twin, rtol=1e-9, atol=1e-12)

    def test_the_loss_is_a_mean_or_a_sum(self, setting, blocks):
        method = setting.Method("l2", 0.3)
        w = np.random.default_rng(1).standard_normal(blocks.true_w.shape)
        X, y, accessible = blocks.data
        squares = ((np.einsum("nmd,nd->nm", X, w) - y) ** 2)[accessible].sum()
        heads, tails = blocks.graph.edges.T
        variation = 0.3 * np.linalg.norm(w[heads] - w[tails], axis=1).sum()
        assert blocks.problem(method, "paper").value(w) == pytest.approx(squares / 5 + variation)
        assert blocks.problem(method, "notebook").value(w) == pytest.approx(squares + variation)

    def test_mocha_is_the_square_and_in_the_notebooks_a_quarter(self, setting, blocks):
        method, sigma = setting.Method("MOCHA", 0.05), np.full(len(blocks.graph.edges), 0.5)
        u = np.ones((len(sigma), 2))
        for reading, factor in (("paper", 1 + 0.5 / (2 * 0.05)), ("notebook", 1 + 2 * 0.5 / 0.05)):
            problem = blocks.problem(method, reading)
            moved = problem.penalty.prox_conjugate(u, sigma, problem.capacities)
            np.testing.assert_allclose(moved, u / factor)

    @pytest.mark.parametrize("penalty", ["l1", "l2"])
    def test_no_run_is_better_than_its_speed_limit(self, setting, penalty):
        instance = setting.two_paths(1, 1.2, 0.3, half=10)
        method, at = setting.Method(penalty, 0.02), [1, 5, 20, 60]
        points = setting.algorithm1(instance.problem(method, "paper"), at)
        least = instance.least_mse(method, at)
        assert (least <= [instance.mse(points[k]) for k in at]).all()
        assert least[0] > 0

    def test_the_speed_limit_is_reached_on_one_edge(self, setting):
        plain = setting.two_paths(0, 1.0, 1.0, half=1)
        accessible = np.array([True, False])
        true_w = np.tile([3.0, 4.0], (2, 1))
        y = np.einsum("nmd,nd->nm", plain.data.X, true_w)
        data = plain.data._replace(y=y, labelled=accessible)
        instance = setting.Instance(plain.graph, data, true_w)
        method = setting.Method("l2", 0.1)
        w = setting.algorithm1(instance.problem(method, "paper"), [20])[20]
        # Two iterations pass until the flow is at its capacity; then every one moves by lambda.
        assert instance.mse(w) <= instance.least_mse(method, [17])[0] * 1.1
        assert instance.least_mse(method, [20])[0] == pytest.approx(0.5 * (5 - 2.0) ** 2)

    def test_the_speed_limit_is_that_of_what_data_leave_open(self, setting):
        rng = np.random.default_rng(0)
        X, true_w = rng.standard_normal((2, 1, 2)), rng.standard_normal((2, 2))
        y = np.einsum("nmd,nd->nm", X, true_w)
        data = setting.RegressionData(X, y, np.ones(2, dtype=bool))
        instance = setting.Instance(setting.chain(1, 1.0), data, true_w)
        normal = np.stack([-X[:, 0, 1], X[:, 0, 0]], axis=1)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        open_part = np.sum(normal * true_w, axis=1)
        least = instance.least_mse(setting.Method("l2", 1.0), [0])[0]
        assert least == pytest.approx(np.mean(open_part**2))

    def test_gaps_are_bounds(self, setting, blocks):
        problem = blocks.problem(setting.Method("l2", 0.05), "paper")
        solved = setting.optimum(problem)
        w = setting.algorithm1(problem, [5])[5]
        behind = (problem.value(w) - problem.value(solved.w)) / max(1.0, problem.value(w))
        for gap in (setting.proved(problem, w, solved), setting.valid_gap(problem, w, solved)):
            assert behind - 1e-12 <= gap <= behind + 1e-6

    def test_near_is_up_to_a_factor(self, setting):
        assert setting.near(2.0, [2.9, 2.9], 1.5)
        assert not setting.near(2.0, [3.1], 1.5)
        assert not setting.near(2.0, [1.3], 1.5)


class TestSweeps:
    @pytest.mark.parametrize(
        ("end", "error", "least", "fits"),
        [
            (1e-10, 5e-10, True, True),
            (1e-10, 1e-30, True, True),
            (1e-10, 2e-9, True, False),
            (1.0, 5.0, False, True),
            (1.0, 11.0, False, False),
            (1.0, 0.05, False, False),
        ],
    )
    def test_an_axis_is_met_within_a_tick(self, sweep, end, error, least, fits):
        assert sweep.axis_verdict(end, error, least, "paper") is (YES if fits else NO)
        assert sweep.axis_verdict(end, error, least, "notebook") is (OTHER if fits else NO)

    def test_noise_may_add_its_variance(self, sweep):
        sigmas = np.array([0.01, 1.0])
        quiet = np.array([[0.1, 0.2], [1.1, 1.3]])
        assert sweep.robust(quiet, sigmas, "paper") is YES
        assert sweep.robust(np.array([[0.1, 0.2], [1.1, 1.5]]), sigmas, "paper") is NO

    def test_the_last_place_before_an_error_is_large(self, sweep):
        errors = np.array([[0.0, 0.01, 3.0, 0.0], [5.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
        np.testing.assert_array_equal(sweep.last_apart([0, 1, 2, 3], errors), [1, -1, 3])

    def test_the_other_reading_helps_where_the_text_does_not_fit(self, sweep):
        def row(verdict):
            return Row("a", "b", [1.0], None, verdict, "c")

        assert sweep._better(row(NO), row(OTHER)).verdict is OTHER
        assert sweep._better(row(NO), row(NO)).verdict is NO
        assert sweep._better(row(YES), row(OTHER)).verdict is YES


class TestNotebookDraw:
    def test_normal_numbers_are_pytorchs(self):
        # What torch.manual_seed(0) and torch.randn print, in PyTorch's own examples among others.
        notebook = shared("_notebook")
        few = notebook.TorchNormals(0).draw(3)
        np.testing.assert_allclose(few, [1.5410, -0.2934, -2.1788], atol=5e-5)
        many = notebook.TorchNormals(0).draw(20)
        np.testing.assert_allclose(many[:4], [-1.1258, -1.1524, -0.2506, -0.4339], atol=5e-5)

    def test_the_draw_of_table_1_is_the_notebooks(self):
        # Measured with PyTorch on the authors' notebook: both errors of the pooled least squares.
        instance = shared("_notebook").draw(100, 10, 100, 1e-3)
        assert ((instance.true_w[0] - instance.true_w[-1]) ** 2).sum() / 4 == 2.875
        X, y = instance.data.X.reshape(-1, 100), instance.data.y.ravel()
        w = np.tile(np.linalg.lstsq(X, y)[0], (200, 1))
        assert instance.label_error(w) == pytest.approx(2.848, abs=5e-4)
        assert instance.mse(w) == pytest.approx(3.018, abs=5e-4)


class TestRules:
    def test_table_1(self):
        rule = module_of("gtv-table-1").verdict
        assert rule(2.0, {"l1": [9.0], "l2": [2.5, 2.0]}, [], "paper") is YES
        assert rule(2.0, {"l1": [4.0, 1e-6]}, [], "paper") is NO  # the mean alone would be near
        assert rule(2.0, {"l1": [2.0, 2.1, 1e-6]}, [], "paper") is NO  # some starts are lucky
        assert rule(2.0, {"l1": [2.0]}, [], "notebook") is OTHER
        assert rule(2.0, {"l1": [9.0]}, [2.1], "paper") is OTHER
        assert rule(2.0, {"l1": [9.0]}, [0.9], "paper") is NO

    def test_ifca_fails_where_nearly_all_starts_do(self):
        fails = module_of("gtv-table-1").fails
        reference = np.full(4, 3.0)
        assert fails(np.array([2.9, 1e-6, 1e-6, 1e-6]), reference, "paper") is NO
        # Three of four or of five are a coin, which says something about starts alone.
        assert fails(np.array([2.9, 2.8, 2.8, 1e-6]), reference, "paper") is NO
        assert fails(np.array([2.9, 2.8, 2.8, 2.7]), reference, "paper") is YES

    def test_starts_are_counted(self):
        count = module_of("gtv-table-1").count
        assert count(np.array([2.9, 1e-6, 3e-6]), 3.0).startswith("1 of 3 starts")

    def test_covariances(self):
        rule = module_of("gtv-covariance").verdict
        errors = {"paper": np.array([1.0, 3.0]), "notebook": np.array([0.1])}
        assert rule(2.0, errors, "paper") is YES
        assert rule(0.15, errors, "paper") is OTHER
        assert rule(0.15, errors, "notebook") is OTHER
        assert rule(20.0, errors, "paper") is NO

    def test_the_covariances_of_features_are_the_printed_ones(self):
        module = module_of("gtv-covariance")
        instance = module.draw(0, 400)
        for X, covariance in zip(np.split(instance.data.X, 2), module.COVARIANCES, strict=True):
            rows = X.reshape(-1, 2)
            np.testing.assert_allclose(rows.T @ rows / len(rows), covariance, atol=0.3)
        residuals = np.einsum("nmd,nd->nm", instance.data.X, instance.true_w) - instance.data.y
        np.testing.assert_allclose(residuals, 0.0, atol=1e-12)

    def test_optima_agree_with_the_critical_lambda_or_do_not(self):
        agrees = module_of("gtv-figure-13").agrees
        lower, upper = np.array([1.0, 1.0]), np.array([1.1, 1.1])
        assert agrees(np.array([0.5, 0.0]), np.array([0.9, 1.2]), lower, upper)
        assert not agrees(np.array([0.0, 0.0]), np.array([0.9, 1.2]), lower, upper)
        assert not agrees(np.array([0.5, 0.5]), np.array([0.9, 1.2]), lower, upper)

    def test_the_critical_lambda_of_a_star_is_its_steepest_leaf(self, setting):
        instance = module_of("gtv-figure-13").draw(0, 6)
        found = verify.critical_lambda(instance.problem(setting.Method("l2", 1.0), "paper"))
        X, y = instance.data.X, instance.data.y
        w = np.linalg.lstsq(X.reshape(-1, 2), y.ravel())[0]
        slopes = [2.0 / 5 * X[i].T @ (X[i] @ w - y[i]) for i in range(1, 6)]
        assert found.upper == pytest.approx(max(map(np.linalg.norm, slopes)), rel=1e-6)

    def test_perturbed_models_are_those_of_the_data(self):
        module = module_of("gtv-figure-11")
        instance = module.draw(100, 1e-3, 0, 10)
        assert len(instance.true_w) == 30
        assert len(np.unique(instance.true_w, axis=0)) == 30
        residuals = np.einsum("nmd,nd->nm", instance.data.X, instance.true_w) - instance.data.y
        np.testing.assert_allclose(residuals, 0.0, atol=1e-12)

    def test_the_oracle_is_least_squares(self, sweep):
        rng = np.random.default_rng(0)
        rows, sigma, errors = 30, 0.5, []
        for _ in range(4000):
            X = rng.standard_normal((rows, 2))
            errors.append(np.sum(np.linalg.lstsq(X, sigma * rng.standard_normal(rows))[0] ** 2))
        assert sweep.oracle_error(sigma, rows) == pytest.approx(np.mean(errors), rel=0.1)
