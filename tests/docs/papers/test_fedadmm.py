"""Experiments of [FedADMM]: they run, their rules judge, their formulas are right."""

import csv
import math

import numpy as np
import pytest
from _papers import module_of, tiny
from fedadmm import _election, _estimators, _figures, _setting, figure_4, table_1

import gtvcvx as gtv
from gtvcvx.experiments import Verdict

FIGURE_2, FIGURE_3 = "fedadmm-figure-2", "fedadmm-figure-3"
FIGURE_4, TABLE_1 = "fedadmm-figure-4", "fedadmm-table-1"
YES, OTHER, NO = Verdict.REPRODUCED, Verdict.OTHER_READING, Verdict.NOT_REPRODUCED


@pytest.mark.parametrize("name", [FIGURE_2, FIGURE_3, FIGURE_4, TABLE_1])
def test_tiny_run(name):
    outcome = tiny(name)
    for row in outcome.rows:
        assert isinstance(row.ours, np.ndarray)
        assert np.isfinite(row.ours).all()
    for panel in outcome.panels:
        assert all(curve.final for curve in panel.curves)


@pytest.mark.parametrize("name", [FIGURE_2, FIGURE_3])
def test_estimates_are_proved(name):
    finals = {c.label: c.final for panel in tiny(name).panels for c in panel.curves}
    assert finals["FedADMM(G)"].startswith("CERTIFIED 1e-06 for the first seed")
    assert finals["Local"] == "least squares, solved directly"


def values(*numbers):
    return np.array(numbers, dtype=float)


def test_rules_of_figures_2_and_3():
    near = module_of(FIGURE_2).near_oracle
    assert near(values(1.0, 1.09), values(9.0, 9.0)) == YES
    assert near(values(1.0, 1.2), values(1.0, 1.05)) == OTHER
    assert near(values(1.0, 1.2), values(1.0, 1.2)) == NO
    better = module_of(FIGURE_3).better_than_local
    assert better(values(0.9, 0.99), values(2.0, 2.0)) == YES
    assert better(values(0.9, 1.01), values(0.9, 0.9)) == OTHER
    assert better(values(0.9, 1.01), values(0.9, 1.01)) == NO
    assert module_of(FIGURE_3).unaffected(values(0, 0)) == YES
    assert module_of(FIGURE_3).unaffected(values(0, 1)) == NO
    assert _figures.worse_than_local(values(1.01, 2.0)) == YES
    assert _figures.worse_than_local(values(0.99, 2.0)) == NO


def test_rules_of_figure_4():
    assert figure_4.optimal(values(1e-9, 1e-6)) == YES
    assert figure_4.optimal(values(1e-9, 2e-6)) == NO
    rounds = np.arange(0.0, 101.0, 10.0)
    slow = 1.0 / np.sqrt(np.maximum(rounds, 1.0))
    assert figure_4.rate(rounds, np.stack([slow**2, slow**4])) == YES
    assert figure_4.rate(rounds, np.stack([slow**2, slow])) == NO


def test_rule_of_table_1():
    printed = (0.75, 0.01)
    assert table_1.judged(values(0.74, 0.79), printed, synthetic=False) == YES
    assert table_1.judged(values(0.78, 0.79), printed, synthetic=False) == NO
    assert table_1.judged(values(0.75, 0.75), printed, synthetic=True) == NO


def test_stand_in_is_called_synthetic():
    outcome = tiny(TABLE_1)
    assert outcome.data.startswith("synthetic")
    printed = [row for row in outcome.rows if row.printed != "not given"]
    assert len(printed) == len(table_1.PRINTED)
    assert all("cannot be judged" in row.reason for row in printed)


class TestSetting:
    V, n, seed = 20, 30, 5

    def test_few_rows_have_the_same_loss(self):
        data = _setting.draw(self.V, self.n, self.seed)
        graph, _ = _setting.graphs(data, 0.2, self.seed)
        theta = np.random.default_rng(0).standard_normal(data.truth.shape)
        slow = sum(
            0.5 * np.mean((data.y[v] - data.X[v] @ theta[v]) ** 2) for v in range(self.V)
        ) + 0.3 * sum(np.abs(theta[i] - theta[j]).sum() for i, j in graph.edges)
        assert data.problem(graph, 0.3).value(theta) / 2 == pytest.approx(slow, rel=1e-12)

    def test_folds_as_the_package_cuts_and_scores_them(self):
        data = _setting.draw(self.V, self.n, self.seed)
        graph, _ = _setting.graphs(data, 0.1, self.seed)
        errors = _estimators.fold_errors(data, graph, self.seed)
        order = np.random.default_rng([self.seed, self.V, self.n, 2]).random((self.V, self.n))
        fold = np.argsort(order, axis=1) % 5
        twin = gtv.cross_validate(
            gtv.GTVProblem(graph, gtv.SquaredLoss.stack(data.X, data.y), "l1", 1.0),
            2.0 * _estimators.GRID,
            cv=fold.ravel(),
            rtol=1e-6,
            verbose=False,
        )
        tried = [lam / 2 in errors for lam in twin.lams]
        ours = [errors[lam / 2] for lam in twin.lams[tried]]
        # Tolerance of the folds' solutions; neighbouring errors differ by more.
        np.testing.assert_allclose(ours, twin.mean_errors[tried], rtol=4e-3)
        # What is left out is worse, and the choice that of the whole grid.
        assert not all(tried)
        assert max(errors, key=lambda lam: -errors[lam]) == twin.lam / 2

    def test_lambda_zero_is_local(self):
        data = _setting.draw(self.V, self.n, self.seed)
        empty = gtv.EmpiricalGraph(self.V, np.zeros((0, 2), dtype=np.int64))
        found = _estimators.fit(data, empty, self.seed)
        twin = [np.linalg.lstsq(X, y)[0] for X, y in zip(data.X, data.y, strict=True)]
        np.testing.assert_allclose(found.theta, twin, rtol=1e-8)
        assert found.lam == 0.0

    def test_closed_forms(self):
        draws = [_setting.draw(self.V, self.n, seed) for seed in range(100)]
        one = np.zeros(self.V, dtype=int)
        for theta, expected in [
            (lambda d: d.local(), _setting.local_closed_form(self.n)),
            (lambda d: d.pooled(d.clique), _setting.oracle_closed_form(self.V, self.n)),
            (lambda d: d.pooled(one), _setting.global_closed_form(self.V, self.n)),
        ]:
            errors = np.array([d.error(theta(d)) for d in draws])
            assert abs(errors.mean() - expected) < 3 * errors.std() / math.sqrt(len(errors))

    def test_corruption_flips_pairs(self):
        data = _setting.draw(100, self.n, self.seed)
        clean, right = _setting.graphs(data, 0.0, self.seed)
        assert clean.n_edges == 5 * 190
        assert right.all()
        edges, right = _setting.graphs(data, 0.3, self.seed)
        pairs = 100 * 99 / 2
        assert right.sum() / 950 == pytest.approx(0.7, abs=0.05)
        assert (~right).sum() / (pairs - 950) == pytest.approx(0.3, abs=0.03)
        more, _ = _setting.graphs(data, 0.4, self.seed)
        kept = {tuple(e) for e in edges.edges} - {tuple(e) for e in clean.edges}
        assert kept <= {tuple(e) for e in more.edges}  # wrong edges stay


def test_descent_against_a_slow_twin():
    V, n, rounds = 10, 30, 3
    found = figure_4.descent(V, n, 0, rounds, None)
    instance = figure_4.Instance.of(V, n, 0)
    X, y, graph = instance.data.X, instance.data.y, instance.problem.graph
    theta = np.zeros((V, 20))
    for t in range(1, rounds + 1):
        before = theta.copy()
        for v in range(V):
            slope = X[v].T @ (X[v] @ before[v] - y[v]) / n
            for i, j in graph.edges:
                if v in (i, j):
                    slope = slope + figure_4.LAM * np.sign(before[v] - before[i + j - v])
            length = np.linalg.norm(X[v], 2) ** 2 / n
            theta[v] -= slope / length * figure_4.DECAY / (figure_4.DECAY + t)
    assert found["error"][-1] == pytest.approx(instance.data.error(theta), rel=1e-10)
    assert list(found["round"]) == [0, 1, 2, 3]


def test_batches_are_rows_of_the_device():
    data = _setting.draw(10, 30, 0)
    theta = np.ones(data.truth.shape)
    rng = np.random.default_rng(0)
    mean = np.mean([figure_4.gradient(data.X, data.y, theta, 10, rng) for _ in range(2000)], axis=0)
    whole = figure_4.gradient(data.X, data.y, theta, None, rng)
    assert np.abs(mean - whole).max() < 0.1 * np.abs(whole).max()


class TestElection:
    def test_codes_are_those_of_the_states(self):
        names = dict(zip(_election.CODES, gtv.datasets.load_us_income().states, strict=True))
        assert [names[code] for code in ("01", "06", "12", "48", "56")] == [
            "Alabama",
            "California",
            "Florida",
            "Texas",
            "Wyoming",
        ]

    def test_states_that_adjoin(self):
        # Texas, Oklahoma, Florida, Alabama, and no state.
        assert _election.adjoining(["48", "40", "12", "01", "02"]).tolist() == [[2, 3], [0, 1]]

    def test_history_and_groups(self):
        first = {"01001": (1.0, 5.0), "01003": (3.0, 1.0), "06001": (9.0, 1.0), "12001": (2.0, 1.0)}
        second = {
            "01001": (1.0, 5.0),
            "06001": (9.0, 1.0),
            "12001": (1.0, 2.0),
            "99001": (1.0, 0.0),
        }
        group = _election.history(["01", "06", "12"], [first, second])
        assert group.tolist() == [0, 1, 2]
        assert _election.joined(np.array([0, 1, 0, 0])).tolist() == [[0, 2], [0, 3], [2, 3]]

    def test_majority(self):
        split = _election.Split.of(_election.stand_in(), 0)
        accuracy, balanced, loss = split.majority()
        share = split.y[np.concatenate(split.train)].mean()
        test = split.y[np.concatenate(split.test)].mean()
        assert balanced == 0.5
        assert accuracy == pytest.approx(1.0 - test)
        assert loss == pytest.approx(-test * math.log(share) - (1 - test) * math.log(1 - share))

    def test_users_files(self, tmp_path):
        write_counties(tmp_path)
        devices = _election.of_user(tmp_path)
        assert not devices.synthetic
        assert [len(rows) for rows in devices.rows] == [60, 60, 60]
        assert devices.edges["D_loc"].tolist() == [[0, 1], [1, 2]]
        assert devices.edges["D_his"].tolist() == [[0, 2]]
        module = module_of(TABLE_1)
        outcome = module.run(module.EXPERIMENT.study("tiny", seeds=1, data=tmp_path))
        assert "countypres" in outcome.data
        local = next(row for row in outcome.rows if row.name == "Local, accuracy")
        assert "printed deviations away" in local.reason

    def test_missing_files_are_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="countypres_2000-2020"):
            _election.of_user(tmp_path)


def write_counties(folder):
    """Three states in a row (Alabama, Georgia, South Carolina), the middle one Democratic."""
    rng = np.random.default_rng(0)
    counties = [
        (f"{code}{k:03d}", state)
        for code, state in [("01", "AL"), ("13", "GA"), ("45", "SC")]
        for k in range(1, 61)
    ]
    with (folder / "county_facts.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["fips", "area_name", "state_abbreviation", *"abcdefghi"])
        for fips, state in counties:
            writer.writerow([fips, f"county {fips}", state, *rng.standard_normal(9).round(3)])
    with (folder / "countypres_2000-2020.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["year", "county_fips", "party", "candidatevotes", "mode"])
        for year in range(2000, 2021, 4):
            for fips, state in counties:
                share = rng.integers(0, 100) if year == 2020 else 80 if state == "GA" else 20
                writer.writerow([year, fips, "DEMOCRAT", share, "TOTAL"])
                writer.writerow([year, fips, "REPUBLICAN", 100 - share, "TOTAL"])
