"""The experiments of [PGFL]: runs for tests, rules of verdicts, and formulas by other means."""

import numpy as np
import pytest
from _papers import experiments, module_of, tiny

from gtvcvx import federated as fed
from gtvcvx.datasets import LabelledImages
from gtvcvx.experiments import Verdict

NAMES = [f"pgfl-figure-{k}" for k in range(1, 10)]
experiments()  # puts examples/papers on the path
from pgfl import _claims, _digits, _runs, _setting, _systems, figure_4, figure_6  # noqa: E402

#: Two seeds where a deviation is to be seen, one for all others.
SEEDS = {name: 2 if name == "pgfl-figure-1" else 1 for name in NAMES}
YES, NO = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
TINY = _systems.TINY


@pytest.mark.parametrize("name", NAMES)
def test_every_curve_says_what_is_proved_and_has_its_optimum(name):
    outcome = tiny(name, seeds=SEEDS[name])
    for panel in outcome.panels:
        assert all(curve.final for curve in panel.curves)
        assert [level for level in panel.levels if level.kind == "optimum"]
    assert any(row.verdict for row in outcome.rows)
    numbers = [row for row in outcome.rows if row.verdict is None and row.mean is not None]
    # Of differences the optimum is zero.
    assert all(np.all(row.optimum >= 0.0) for row in numbers)


def test_digits_are_named_and_noise_has_its_budget():
    for name in NAMES[6:]:
        assert "8x8 digits" in experiments()[name].data
        assert any("same image" in note for note in tiny(name, seeds=SEEDS[name]).notes)
    for name in ("pgfl-figure-3", "pgfl-figure-6", "pgfl-figure-7"):
        assert any("eps (51)" in row.reason for row in tiny(name, seeds=SEEDS[name]).rows)


# Systems


def test_systems_are_what_the_paper_gives():
    system = _setting.draw(_systems.Setting(), 3)
    rows = [loss.X.shape for loss in system.losses]
    assert len(rows) == 150
    assert {d for _, d in rows} == {60}
    assert {m for m, _ in rows} == set(range(2, 10))
    assert np.bincount(system.labels).tolist() == [50, 50, 50]
    assert system.graph.n_edges == 15
    truth = system.score.keywords["truth"]
    ratios = truth / truth[0]
    assert np.allclose(ratios, ratios[:, :1])
    assert len(np.unique(ratios[:, 0].round(12))) == 3


def test_nmsd_is_that_of_53():
    models, truth = np.random.default_rng(0).standard_normal((2, 5, 3))
    slow = [
        sum((a - b) ** 2 for a, b in zip(w, t, strict=True)) / sum(t * t)
        for w, t in zip(models, truth, strict=True)
    ]
    assert np.allclose(_setting.nmsd(models, truth), slow)


@pytest.mark.parametrize("method", [_systems.NO_LEARNING, _systems.ALONE, _systems.ONE_MODEL])
def test_the_optimum_is_that_of_the_clients_who_are_pooled(method):
    system, servers = _setting.draw(TINY, 1), np.repeat(np.arange(TINY.servers), TINY.clients)
    found = _runs._solved(TINY, method, 1, _setting.REGRESSION)
    errors = np.empty(len(system.losses))
    for k, q in enumerate(system.labels):
        pooled = np.ones(len(servers), bool) if method.one_model else system.labels == q
        if not method.linked:
            pooled &= servers == servers[k]
        hessian, linear = np.zeros((TINY.dim, TINY.dim)), np.zeros(TINY.dim)
        for j in np.flatnonzero(pooled):
            X, y = system.losses[j].X, system.losses[j].y
            hessian += X.T @ X / len(X) + TINY.ridge / TINY.clients * np.eye(TINY.dim)
            linear += X.T @ y / len(X)
        w, truth = np.linalg.solve(hessian, linear), system.score.keywords["truth"][k]
        errors[k] = np.sum((w - truth) ** 2) / np.sum(truth**2)
    assert found["score"] == pytest.approx(errors.mean(), rel=1e-5)
    by_cluster = [errors[system.labels == q].mean() for q in range(3)]
    assert np.allclose(found["of_clusters"], by_cluster, rtol=1e-5)


def test_bounds_of_private_runs_change_nothing():
    quiet = _systems.Method("", scheduled=3)
    hushed = _systems.Method("", scheduled=3, variance=1e-16)
    for source in (_setting.REGRESSION, SMALL):
        plain, private = (_runs._run(TINY, m, 2, source)["scores"] for m in (quiet, hushed))
        assert np.allclose(plain, private, rtol=1e-5)


# Budgets


def test_eps_is_that_of_51():
    present = {0: (1, 2, 5), 1: (3,)}
    rho = [
        sum(s**2 / (2 * 0.5 * 0.98 ** (n - 1)) for n in present[k])
        for k, s in enumerate((0.3, 0.4))
    ]
    eps = max(r + 2 * np.sqrt(r * np.log(1 / 1e-5)) for r in rho)
    assert _runs.largest_eps([0.3, 0.4], present, 0.5) == pytest.approx(eps)


@pytest.mark.parametrize("name", ["regression", "digits"])
def test_budgets_are_those_of_a_report_with_fresh_noise(name):
    source = {"regression": _setting.REGRESSION, "digits": SMALL}[name]
    system = source.draw(TINY, 0)
    private = fed.PrivateReleases(0.5, _systems.ZETA, delta=_runs.DELTA, **system.bounds)
    run = fed.simulate(
        fed.PGFL(TINY.rho, ridge=TINY.ridge, privacy=private),
        _systems.network_of(system, _systems.NO_LEARNING),
        TINY.rounds,
        sampling=fed.Sampling(3),
    )
    found = _runs._budgets(TINY, _systems.Method("", variance=0.5), system, run)
    assert found["proved_eps"] == pytest.approx(run.privacy_report().epsilon_simple.max())
    share = 2.0 / (TINY.rho * system.losses[0].X.shape[0])
    proved = private.answer(run.net.models[0], TINY.rho, 0.0, "").sensitivity
    rho = {key: found[key] for key in ("assumed_eps", "proved_eps")}
    budgets = [(np.sqrt(np.log(1e5) + eps) - np.sqrt(np.log(1e5))) ** 2 for eps in rho.values()]
    assert budgets[0] / budgets[1] == pytest.approx((share / proved) ** 2)


def test_the_variance_gives_the_budget_that_it_is_named_after():
    variance = figure_6.variance_of(0.03, 2.0)
    # A client with two rows and C_k = 1.
    assert fed.privacy.release_zcdp(2.0 / (2.0 * 2), variance) == pytest.approx(0.03)


# Rules


def runs(last, optimum=1.0):
    last = np.atleast_1d(np.asarray(last, float))
    none = np.full(len(last), np.nan)
    best = np.full(len(last), optimum)
    rounds = np.array([0.0, 1.0])
    scores = np.column_stack([last, last])
    return _runs.Runs("", rounds, scores, best, best[:, None], "", none, none)


@pytest.mark.parametrize(
    ("ours", "other", "verdict", "said"),
    [
        ([1.0, 1.1, 0.9], [2.0, 2.1, 2.2], YES, "smaller"),
        ([2.0, 2.1, 2.2], [1.0, 1.1, 0.9], NO, "reversed"),
        ([1.0, 3.0, 2.0], [2.0, 1.5, 2.1], NO, "no clear"),
        ([1.0], [2.0], YES, "smaller"),
    ],
)
def test_smaller(ours, other, verdict, said):
    row = _claims.smaller("a", "b", runs(ours), runs(other, 2.0))
    assert row.verdict is verdict
    assert said in row.reason
    assert "0.5 at the certified optima" in row.reason
    flipped = _digits.ahead("a", "b", runs(np.negative(ours)), runs(np.negative(other)))
    assert flipped.verdict is verdict


def test_near():
    assert _claims.near("a", "b", runs([1.2, 1.1]), runs([1.0, 1.0])).verdict is YES
    assert _claims.near("a", "b", runs([1.4, 1.3]), runs([1.0, 1.0])).verdict is NO
    assert _claims.near("a", "b", runs([0.7, 0.7]), runs([1.0, 1.0])).verdict is NO


def test_best_inside():
    bowl = np.array([[3.0, 1.0, 2.0], [3.1, 1.1, 2.2]])
    assert _claims.best_inside(bowl, [1]) is YES
    assert _claims.best_inside(bowl, [2]) is NO
    assert _claims.best_inside(bowl[:, ::-1] * [1.0, 1.0, 0.1], [1]) is NO
    # Not clearly worse at one end.
    assert _claims.best_inside(bowl * [[1.0, 1.0, 1.0], [1.0, 2.1, 1.0]], [1]) is NO


def test_the_best_tau_is_looked_for_from_one_to_five_tenths():
    taus, values = (0.0, 0.05, 0.3, 0.9), np.array([[3.0, 2.0, 1.0, 4.0]])
    assert figure_4.claim(1.0, taus, values).verdict is YES
    assert figure_4.claim(1.0, taus, values[:, [0, 2, 1, 3]]).verdict is NO


def test_errors_fall_with_the_budget():
    def verdict(*errors):
        return figure_6.claim(_systems.NO_LEARNING, [runs([e, 1.1 * e]) for e in errors]).verdict

    assert verdict(3.0, 2.0, 1.0) is YES
    assert verdict(3.0, 0.5, 1.0) is NO
    assert verdict(1.0, 2.0, 3.0) is NO


def test_the_least_budget_is_the_first_within_a_quarter_of_no_noise():
    def said(*errors):
        several = [
            _runs.Runs(**{**vars(runs(e)), "assumed_eps": np.array([eps])})
            for e, eps in zip(errors, (1.0, 10.0, 100.0), strict=True)
        ]
        return figure_6.price(_systems.NO_LEARNING, several, (0.1, 1.0, 10.0), runs(1.0)).ours

    assert said(3.0, 1.2, 1.0) == "eps (51) 10, phi(1) 1"
    assert said(3.0, 2.0, 1.3).startswith("more than 100")


# Digits


def pictures(n=400, side=28):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 10
    grey = (rng.random((n, side, side)) * 60).astype(np.uint8)
    grey[np.arange(n), labels] += 100
    return LabelledImages(grey, labels, 255.0, "made up")


SMALL = _systems.Source(
    "", lambda setting, seed: _digits.draw(pictures(side=12), _digits.PAIRS, setting, seed)
)


@pytest.mark.parametrize("tasks", [_digits.PAIRS, _digits.TRIPLETS])
def test_clients_have_images_of_their_tasks_and_none_of_the_tests(tasks):
    images = pictures()
    system = _digits.draw(images, tasks, TINY, 0)
    features = np.column_stack([images.features(), np.ones(len(images.labels))])
    place = {row.tobytes(): k for k, row in enumerate(features)}
    seen = set()
    for loss, q in zip(system.losses, system.labels, strict=True):
        rows = [place[row.tobytes()] for row in loss.X]
        assert len(set(rows)) == len(rows)
        assert tasks.fewest <= len(rows) / 2 <= tasks.most
        first, second = tasks.sides[q]
        assert set(images.labels[rows][loss.y == 0]) <= set(first)
        assert set(images.labels[rows][loss.y == 1]) <= set(second)
        assert (loss.y == 0).sum() == (loss.y == 1).sum()
        seen |= set(rows)
    tests = system.score.args[1]
    for (rows, second), sides in zip(tests, tasks.sides, strict=True):
        digits = images.labels[[place[row.tobytes()] for row in rows]]
        assert (set(digits[~second]), set(digits[second])) == (set(sides[0]), set(sides[1]))
    assert not seen & {place[row.tobytes()] for rows, _ in tests for row in rows}
    assert (
        max(np.linalg.norm(loss.X, axis=1).max() for loss in system.losses)
        <= (system.bounds["row_bound"])
    )


def test_accuracy_is_the_share_that_is_right():
    system = _digits.draw(pictures(side=12), _digits.PAIRS, TINY, 0)
    models = np.random.default_rng(1).standard_normal((len(system.labels), 145))
    tests = system.score.args[1]
    slow = [
        np.mean([(row @ w > 0) == right for row, right in zip(*tests[q], strict=True)])
        for w, q in zip(models, system.labels, strict=True)
    ]
    assert np.allclose(system.score(models), slow)


def test_missing_files_of_the_user_are_named(tmp_path):
    experiment = experiments()["pgfl-figure-7"]
    with pytest.raises(FileNotFoundError, match="t10k-images"):
        experiment.run(experiment.study("tiny", data=tmp_path))
    assert module_of("pgfl-figure-7").EXPERIMENT is experiment
