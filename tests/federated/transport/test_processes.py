"""Clients in processes of their own: the same run as in memory, to the last bit, and its end."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _systems import clustered_rows, small

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated.runtime._simulate import RoundProgress

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))
ROOT = Path(__file__).resolve().parents[3]

# Runs that go through all programs, with all that can happen on the way.
RUNS: dict[str, tuple[fed.Algorithm, dict[str, Any]]] = {
    "freeze, mini-batches": (
        fed.FedADMM(batch=3, decay=30.0),
        {"availability": fed.Bernoulli(0.7), "crashes": [fed.Crash(3, 20, 25), fed.Crash(0, 30)]},
    ),
    "owner, late and lost": (
        fed.FedADMM(exchange="owner"),
        {
            "availability": fed.Markov(0.5, 0.2),
            "delay": fed.Delay([0.6, 0.3, 0.1]),
            "loss": fed.Loss(0.1),
            "crashes": [fed.Crash(1, 5, 30)],
        },
    ),
    "server": (
        fed.FedADMM(absence="inverse", presence=0.7, decay=50.0),
        {"sampling": fed.Sampling(4)},
    ),
    "Algorithm 1": (fed.PrimalDual(), {}),
}


def assert_same(a: fed.Run, b: fed.Run) -> None:
    assert (a.status, a.rounds) == (b.status, b.rounds)
    for x, y in ((a.w, b.w), (a.models, b.models), (a.u, b.u)):
        np.testing.assert_array_equal(x, y)
    assert list(a.history) == list(b.history)
    for name in a.history:
        np.testing.assert_array_equal(a.history[name], b.history[name], err_msg=name)


@pytest.mark.parametrize("name", RUNS)
def test_processes_give_the_run_of_memory_to_the_last_bit(name: str) -> None:
    algorithm, options = RUNS[name]
    problem, _ = small()
    given = {"rounds": 40, "seed": 3, "record_every": 7, **options}
    here = fed.simulate(algorithm, problem, **given)
    there = fed.simulate(algorithm, problem, transport="processes", **given)
    assert_same(here, there)


class Killing:
    """Kills clients' processes from outside, after the record of some round."""

    def __init__(self, when: dict[int, tuple[int, ...]], **options: Any) -> None:
        self.transport = fed.Processes(**options)
        self._when = when

    def __call__(self, progress: RoundProgress) -> None:
        for client in self._when.get(progress.round, ()):
            os.kill(self.transport.pids[client], signal.SIGKILL)


@pytest.mark.parametrize("restart", [False, True])
def test_a_kill_from_outside_is_a_crash_that_nobody_announced(restart: bool) -> None:
    problem, _ = small()
    killing = Killing({10: (1,), 20: (4, 3)}, restart=restart)
    given: dict[str, Any] = {"rounds": 30, "seed": 1, "record_every": 1}
    with pytest.warns(fed.ClientLostWarning) as caught:
        run = fed.simulate(
            fed.FedADMM(), problem, transport=killing.transport, callback=killing, **given
        )
    texts = sorted(str(w.message) for w in caught)
    assert [text.split(":")[0] for text in texts] == ["client 1", "client 3", "client 4"]
    assert "lost in round 11: its process has ended" in texts[0]
    assert all(("started again" in text) == restart for text in texts)
    assert all(w.filename == __file__ for w in caught)
    crashes = [fed.Crash(i, t, t + 1 if restart else None) for i, t in ((1, 11), (3, 21), (4, 21))]
    assert_same(fed.simulate(fed.FedADMM(), problem, crashes=crashes, **given), run)


def test_clients_have_nothing_but_their_own_rows() -> None:
    from gtvcvx.federated._streams import Streams
    from gtvcvx.federated.process._worker import Start
    from gtvcvx.federated.transport._child import pickled
    from gtvcvx.federated.transport._deployment import Deployment

    problem, _ = small()
    net = fed.Network.from_problem(problem)
    deployment = Deployment(fed.FedADMM(), net, Streams(0), 10)
    starts = [
        pickled(Start(deployment.program(i), deployment.view(i), deployment.form(), "client"))
        for i in range(6)
    ]
    for i, model in enumerate(net.models):
        for term in model.terms:
            for value in np.concatenate([term["X"].ravel(), term["y"]]):
                inside = [np.float64(value).tobytes() in start for start in starts]
                assert inside == [k == i for k in range(6)]


def test_a_model_that_cannot_be_sent_is_refused_by_name() -> None:
    losses = [gtv.SquaredLoss([[1.0]], [0.0]), gtv.CvxpyLoss(lambda w: w[0] ** 2, 1)]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, penalty="l1", lam=0.1)
    algorithm = fed.FedADMM(step="exact")
    assert fed.simulate(algorithm, problem, 3).status == "finished"
    with pytest.raises(TypeError, match="client 1: its program or model cannot be sent"):
        fed.simulate(algorithm, problem, 3, transport="processes")


def test_an_error_at_the_start_is_that_of_memory() -> None:
    losses = [gtv.SquaredLoss([[1.0]], [0.0]), gtv.AbsoluteLoss([[1.0]], [1.0])]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, penalty="l1", lam=0.1)
    for transport in ("memory", "processes"):
        with pytest.raises(ValueError, match="step: client 1: the gradient of"):
            fed.simulate(fed.FedADMM(), problem, 3, transport=transport)


@pytest.mark.parametrize("timeout", [0, -1.0, "1", True, np.nan])
def test_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    with pytest.raises(ValueError, match="timeout: a number"):
        fed.Processes(timeout=timeout)


def ended(pids: list[int]) -> bool:
    """Whether processes are gone within some seconds."""
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.1)
    return False


SCRIPT = """
    import os, signal, sys, threading, time
    import gtvcvx as gtv
    from gtvcvx import federated as fed

    class MyClient(fed.ClientProgram):
        def start(self, view):
            self.w = view.model.minimizer()
        def step(self, round_, inbox):
            time.sleep(300 if round_ > 5 else 0)
            return {}
        def report(self):
            return fed.Report(self.w)

    class Mine(fed.FedADMM):
        def client(self):
            return MyClient()

    def run(action):
        losses = [gtv.SquaredLoss([[1.0]], [y]) for y in (1.0, 2.0)]
        problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, penalty="l1", lam=0.1)
        transport = fed.Processes()
        def callback(progress):
            if progress.round == 5:
                print(*transport.pids.values(), flush=True)
                action()
        algorithm = Mine() if "own" in sys.argv else fed.FedADMM()
        out = fed.simulate(algorithm, problem, 10**9, transport=transport, callback=callback,
                           record_every=1, time_limit=60)
        print(out.status, out.message, out.w.ravel().tolist(), out.history["gap"].size, flush=True)
"""


def script(path: Path, text: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    path.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
    return subprocess.Popen(
        [sys.executable, str(path), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **options,
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_clients_do_not_outlive_their_parent(tmp_path: Path) -> None:
    parent = script(
        tmp_path / "dies.py",
        """
        if __name__ == "__main__":
            # A moment later, when clients are in the middle of a long step.
            run(threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start)
        """,
        "own",
    )
    out, err = parent.communicate(timeout=120)
    assert parent.returncode == -signal.SIGKILL, err
    pids = [int(pid) for pid in out.split()]
    assert len(pids) == 2
    assert ended(pids)
    assert err == ""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc")
def test_ctrl_c_goes_to_the_whole_group_and_the_run_has_a_result(tmp_path: Path) -> None:
    parent = script(
        tmp_path / "stops.py",
        """
        if __name__ == "__main__":
            run(lambda: os.killpg(0, signal.SIGINT))
        """,
        "own",
        start_new_session=True,
    )
    out, err = parent.communicate(timeout=120)
    assert err == ""
    pids, result = out.strip().split("\n")
    assert result.startswith("interrupted Ctrl-C in round 5 [1.0, 2.0]")
    assert ended([int(pid) for pid in pids.split()])


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    parent = script(tmp_path / "unguarded.py", "run(lambda: None)\n", "own")
    _, err = parent.communicate(timeout=120)
    assert parent.returncode == 1
    assert 'if __name__ == "__main__"' in err
    assert "client 0" in err


def test_clients_load_no_solver() -> None:
    code = (
        "import sys; import gtvcvx.federated.process._worker, gtvcvx.federated.algorithms."
        "_fedadmm_clients, gtvcvx.federated.algorithms._primal_dual_client; print(*sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    loaded = set(out.stdout.split())
    assert "gtvcvx.federated.programs" in loaded
    slow = {"cvxpy", "numba", "scipy.sparse", "networkx", "gtvcvx.solvers", "gtvcvx.problem"}
    assert loaded & (slow | {"gtvcvx.federated.runtime._simulate", "torch", "sklearn"}) == set()


def ring(n: int) -> tuple[gtv.GTVProblem, gtv.Solution]:
    """Clients on a ring with chords, four clusters."""
    _, _, X, y = clustered_rows(n, min(4, n), 12, 3, 2)
    edges = [(i, (i + 1) % n) for i in range(n)] + [(i, i + n // 2) for i in range(n // 2)]
    losses = [gtv.SquaredLoss(X[i], y[i]) for i in range(n)]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, penalty="l2", lam=0.1)
    return problem, problem.solve(rtol=1e-12)


# Late enough for the client that stays dead: what it knew when it was killed stays in the answer.
# 32 clients take a minute of CPU.
ACCEPTANCE = [
    pytest.param(6, 800, id="6"),
    pytest.param(
        *(32, 2000),
        id="32",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(MULTIPLIER == 1, reason="set GTVCVX_TEST_MULTIPLIER above 1"),
        ],
    ),
]


@pytest.mark.parametrize(("n", "rounds"), ACCEPTANCE)
def test_kills_in_mid_run_change_nothing_in_the_certificate(n: int, rounds: int) -> None:
    problem, optimum = ring(n)
    given: dict[str, Any] = {
        "rounds": rounds,
        "availability": fed.Bernoulli(0.7),
        "reference": optimum,
        "seed": 0,
        "record_every": rounds // 20,
    }
    undisturbed = fed.simulate(fed.FedADMM(), problem, transport="processes", **given)
    assert undisturbed.history["distance"][-1] < 1e-8
    middle = rounds // 2
    transport = fed.Processes()

    def kill(progress: RoundProgress) -> None:
        if progress.round == middle:
            os.kill(transport.pids[2], signal.SIGKILL)

    crashes = [fed.Crash(i, middle + 1, middle + 20) for i in (0, 4)]
    with pytest.warns(fed.ClientLostWarning, match="client 2: lost in round"):
        disturbed = fed.simulate(
            fed.FedADMM(), problem, transport=transport, callback=kill, crashes=crashes, **given
        )
    for run in (undisturbed, disturbed):
        certificate = run.certificate(rtol=1e-9, search=False)
        assert certificate.status == "CERTIFIED"


def test_reports_of_another_length_than_d_come_through() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    r = np.random.default_rng(1)
    models = [
        fed.models.RegressorModel(
            r.standard_normal((4, 2)), r.standard_normal(4), linear_model.LinearRegression()
        )
        for _ in range(2)
    ]
    graph = gtv.EmpiricalGraph(2, [(0, 1)])
    net = fed.regressor_network(graph, models, r.standard_normal((5, 2)))
    here, there = (
        fed.simulate(fed.FedRelaxNonparametric(0.3), net, 3, transport=transport)
        for transport in ("memory", "processes")
    )
    np.testing.assert_array_equal(here.w, there.w)
    np.testing.assert_array_equal(here.history["value"], there.history["value"])


def test_a_client_lost_before_its_first_state_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = fed.Processes()
    asked = transport.reports
    killed: list[int] = []

    def reports() -> Any:
        if not killed:
            killed.append(transport.pids[0])
            os.kill(killed[0], signal.SIGKILL)
        return asked()

    monkeypatch.setattr(transport, "reports", reports)
    net = fed.Network.star([gtv.SquaredLoss([[1.0]], [1.0])] * 2)
    with pytest.raises(fed.ClientError, match=r"^client 0: lost before its first state"):
        fed.simulate(fed.FedAvg(1.0), net, 3, transport=transport)
