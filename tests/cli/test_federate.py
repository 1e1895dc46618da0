"""``gtvcvx federate``: runs as the library does, proves, writes, and names what is wrong."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from gtvcvx import federated as fed
from gtvcvx.cli.parsers._federate import METHODS
from gtvcvx.federated.transport import InMemory

# Not for the command line: they need several servers, or clusters that clients are told, which no
# problem file says; train what is no loss; or test edges and train nothing.
ELSEWHERE = {"ClusteredFedAvg", "EdgeTests", "FedRelaxNonparametric", "PGFL", "PGFLExact"}


@pytest.fixture
def path(tmp_path):
    """Four clients on a path, two coefficients."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4, 6, 2)), rng.standard_normal((4, 6))
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)], nodes=list("abcd"))
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), "l1", 0.1)
    problem.save(tmp_path / "p.npz")
    problem.solve(rtol=1e-9, verbose=False).save(tmp_path / "s.npz")
    return tmp_path


@pytest.fixture
def federate(path, run):
    def call(*extra, algorithm="fedadmm", rounds="200"):
        return run(
            *("federate", path / "p.npz", "--algorithm", algorithm, "--rounds", rounds),
            *("-o", path / "run.npz", *extra),
        )

    return call


def test_run_is_that_of_the_library_and_proved(path, federate):
    options = ["--availability", ".8", "--sampling", "3", "--seed", "2", "--record-every", "7"]
    outcome = federate(
        *("--rho", ".5", *options, "--reference", path / "s.npz"),
        *("--certificate", path / "c.json", "--json"),
    )
    assert (outcome.status, outcome.err) == (0, "")
    problem = gtv.GTVProblem.load(path / "p.npz")
    expected = fed.simulate(
        *(fed.FedADMM(rho=0.5), problem, 200),
        availability=fed.Bernoulli(0.8), sampling=fed.Sampling(3), seed=2, record_every=7,
        reference=gtv.Solution.load(path / "s.npz"),
    )  # fmt: skip
    saved = fed.SavedRun.load(path / "run.npz")
    assert np.array_equal(saved.w, expected.w)
    assert {k: v.tolist() for k, v in saved.history.items()} == {
        k: v.tolist() for k, v in expected.history.items()
    }
    assert saved.nodes == list("abcd")
    said = outcome.json
    assert said["last"] == expected.history.last()
    assert said["algorithm"] == saved.algorithm == "FedADMM(rho=0.5)"
    assert said["certificate"]["status"] == "CERTIFIED"
    assert said["written"]["certificate"] == str(path / "c.json")
    assert verify.check(path / "c.json", problem.to_data()).status == "CERTIFIED"


def test_report_in_words(path, federate):
    outcome = federate("--delay", ".5,.5", "--loss", ".1", algorithm="primal-dual", rounds="20")
    assert outcome.status == 1
    lines = dict(line.split(maxsplit=1) for line in outcome.out.splitlines() if line[0] != " ")
    assert lines["Problem"] == "4 clients, 3 links, 2 coefficients each; penalty l1, lambda = 0.1"
    # A certificate is about what the algorithm solves, which need not be PROBLEM.
    assert lines["Solves"] == fed.PrimalDual.guarantee
    assert lines["Rounds"] == "20, finished"
    assert lines["Clients"] == "4 of 4 active on average"
    problem = gtv.GTVProblem.load(path / "p.npz")
    with pytest.warns(fed.StabilityWarning):
        expected = fed.simulate(
            fed.PrimalDual(), problem, 20, delay=fed.Delay([0.5, 0.5]), loss=fed.Loss(0.1)
        )
    last = fed.SavedRun.load(path / "run.npz").history.last()
    assert last == expected.history.last()
    assert lines["Bytes"].startswith(f"{last['bytes_up']} up, {last['bytes_down']} down")
    assert lines["Gap"] == f"{last['gap']:.3g}"
    assert lines["Warning"].startswith("delay, loss: PrimalDual: the two ends")
    assert lines["Certificate"].startswith(("UNPROVED", "REFUTED"))
    assert lines["Written"] == str(path / "run.npz")


def test_processes_do_what_memory_does(path, federate):
    for transport in ("memory", "processes"):
        federate("--transport", transport, "--availability", ".8", rounds="20")
        saved = fed.SavedRun.load(path / "run.npz")
        if transport == "memory":
            expected = saved.w
    assert np.array_equal(saved.w, expected)


def test_lambda_and_parameters_by_name(path, federate):
    outcome = federate(
        *("--lam", ".3", "--set", "step=exact", "--set", "rho=2", "--no-search", "--json")
    )
    assert outcome.status == 0
    assert outcome.json["algorithm"] == "FedADMM(rho=2.0, step='exact')"
    problem = gtv.GTVProblem.load(path / "p.npz").with_lam(0.3)
    assert outcome.json["last"]["value"] == pytest.approx(problem.solve(rtol=1e-9).value, rel=1e-6)


def test_tolerance_and_limits_are_kept(federate):
    assert federate("--rtol", "1e-30", "--no-search").status == 1
    early = federate("--no-search", "--json", rounds="5").json
    assert early["certificate"]["status"] == "UNPROVED"  # a search would have found a better point
    assert federate("--time-limit", "1e-9", "--json", rounds="5").json["status"] == "time_limit"


def test_divergence_is_not_proved(path, federate):
    outcome = federate("--set", "step=printed", "--set", "scale=1e9", "--certificate", path / "c")
    assert outcome.status == 1
    assert "diverged: round" in outcome.out
    assert "Certificate UNPROVED: the run diverged" in outcome.out
    assert fed.SavedRun.load(path / "run.npz").status == "diverged"
    assert not (path / "c").exists()


def test_without_a_convex_problem_nothing_is_proved(federate):
    outcome = federate("--set", "absence=ignore", "--availability", ".5", rounds="20")
    assert outcome.status == 1
    assert "UNPROVED: absent clients without inverse weights" in outcome.out
    assert "distance to the optimum" in outcome.out


def test_interrupt_writes_what_there_is(path, federate, monkeypatch):
    step = InMemory.step

    def interrupted(self, round_, *rest):
        if round_ == 6:
            raise KeyboardInterrupt
        return step(self, round_, *rest)

    monkeypatch.setattr(InMemory, "step", interrupted)
    outcome = federate("--record-every", "1")
    assert outcome.status == 1
    assert "6, interrupted: Ctrl-C in round 6" in outcome.out
    saved = fed.SavedRun.load(path / "run.npz")
    assert saved.history["round"].tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_interrupt_during_certification_keeps_the_run(path, federate, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("verify.certify", interrupted)
    outcome = federate()
    assert outcome.status == 1
    assert outcome.err.endswith(f"interrupted during certification; the run is in {path}/run.npz\n")
    assert fed.SavedRun.load(path / "run.npz").status == "finished"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--availability", "0"], ["--availability", "(0, 1]", "'0'"]),
        (["--availability", "2"], ["--availability", "probability", "'2'"]),
        (["--rounds", "0"], ["--rounds", "positive integer"]),
        (["--algorithm", "sgd"], ["--algorithm", *METHODS, "'sgd'"]),
        (["--sampling", "0"], ["--sampling", "positive integer"]),
        (["--loss", "1"], ["--loss", "[0, 1)"]),
        (["--delay", ".5,.6"], ["probabilities", "add up to 1"]),
        (["--delay", "x"], ["--delay", "'x'"]),
        (["--rho", "-1"], ["--rho", "positive"]),
        (["--lam", "0"], ["--lam", "positive"]),
        (["--transport", "pigeons"], ["--transport", "memory", "processes"]),
        (["--set", "step"], ["--set", "NAME=VALUE"]),
        (["--set", "step=long"], ["step: one of", "'adaptive'", "'long'"]),
        (["--set", "pace=1"], ["FedADMM has no parameter 'pace'", "rho, penalty"]),
        (["--rho", "1", "--set", "rho=2"], ["rho is given twice"]),
        (["--algorithm", "primal-dual", "--rho", "1"], ["PrimalDual has no parameter 'rho'"]),
        (["--algorithm", "local", "--lam", "1"], ["Local has no parameter 'lam'"]),
        (["--algorithm", "ifca"], ["IFCA needs k=VALUE"]),
        (["--algorithm", "fedrelax"], ["FedRelax", "squared"]),
        (["--reference", "nothing.npz"], ["nothing.npz: there is no such file"]),
        (["--reference", "{path}/p.npz"], ["p.npz: schema"]),
        (["-o", "{path}/p.npz"], ["--output", "already given for PROBLEM"]),
        (["--certificate", "{path}/run.npz"], ["--certificate", "already given for --output"]),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(path, federate, options, words):
    outcome = federate(*(option.format(path=path) for option in options))
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith("gtvcvx federate: error: ")
    assert outcome.err.count("\n") == 1
    assert all(word in outcome.err for word in words)
    assert {file.name for file in path.iterdir()} == {"p.npz", "s.npz"}


def test_missing_and_damaged_problems_are_named(path, run):
    for name, words in (("gone.npz", "there is no such file"), ("s.npz", "schema")):
        outcome = run(
            "federate", path / name, "--algorithm", "fedadmm", "--rounds", 5, "-o", path / "r.npz"
        )
        assert outcome.status == 2
        assert f"{path / name}: {words}" in outcome.err


def test_losses_with_kinks_need_exact_steps(path, federate):
    losses = [gtv.AbsoluteLoss([[1.0, 0.0], [1.0, 2.0]], [1.0, y]) for y in (0.0, 1.0)]
    gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, "l2", 0.1).save(path / "p.npz")
    for transport in ("memory", "processes"):
        outcome = federate("--transport", transport, rounds="3")
        assert outcome.status == 2
        assert outcome.err.startswith("gtvcvx federate: error: ")
        assert "the gradient of LocalLoss(absolute" in outcome.err
    assert not (path / "run.npz").exists()
    assert federate("--set", "step=exact", rounds="2000").status == 0


@pytest.mark.parametrize("name", METHODS)
def test_every_algorithm_is_proved_or_says_why_not(path, federate, name):
    """On a squared penalty, which all of them take."""
    problem = gtv.GTVProblem.load(path / "p.npz")
    squared = gtv.GTVProblem(problem.graph, problem.losses, "squared", 0.1)
    squared.save(path / "p.npz")
    extra = ["--set", "k=2"] if name == "ifca" else []
    outcome = federate("--json", *extra, algorithm=name, rounds="400")
    status = outcome.json["certificate"]["status"]
    if name == "ifca":
        assert (outcome.status, status) == (1, "UNPROVED")
        assert outcome.json["certificate"]["reason"]
    else:
        assert (outcome.status, status) == (0, "CERTIFIED")
    assert fed.SavedRun.load(path / "run.npz").models.shape == (4, 2)


def test_lambda_is_the_problems_or_the_algorithms_own(path, federate):
    problem = gtv.GTVProblem.load(path / "p.npz")
    assert federate("--json", algorithm="fedavg", rounds="5").json["algorithm"] == "FedAvg(lam=0.1)"
    given = federate("--json", "--lam", "2", algorithm="pfedme", rounds="5").json["algorithm"]
    assert given == "PFedMe(lam=2.0, eta=0.5)"
    steps = federate("--json", "--set", "steps=3", algorithm="fedavg", rounds="5").json
    assert steps["algorithm"] == "FedAvg(steps=3)"
    assert "biased" in steps["certificate"]["reason"]
    gtv.GTVProblem(problem.graph, problem.losses, "squared", 0.1).save(path / "p.npz")
    relaxed = federate("--json", "--lam", ".7", algorithm="fedrelax").json
    expected = gtv.GTVProblem(problem.graph, problem.losses, "squared", 0.7).solve(rtol=1e-9)
    assert relaxed["last"]["value"] == pytest.approx(expected.value, rel=1e-6)


def test_all_algorithms_are_in_the_table():
    """A new algorithm is in the table, or among those that need more than a problem."""
    public = {name for name in fed.__all__ if inspect.isclass(getattr(fed, name))}
    known = {name for name in public if issubclass(getattr(fed, name), fed.Algorithm)}
    table = [method.kind for method in METHODS.values()]
    assert len(table) == len(set(table))
    assert {*table} == known - {"Algorithm"} - ELSEWHERE
