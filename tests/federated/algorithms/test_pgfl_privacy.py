"""Private PGFL: who can find out w_k, what counts as a release, what is refused."""

import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from _systems import served_network, served_rows
from scipy.stats import chi2

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated._streams import Streams
from gtvcvx.federated.algorithms._pgfl_report import rounds_of_releases
from gtvcvx.federated.privacy import release_zcdp
from gtvcvx.federated.programs import local_losses
from gtvcvx.federated.transport import Deployment, InMemory
from gtvcvx.federated.wire import Received, decoded

RHO = 2.0


@cache
def system() -> fed.Network:
    """Two servers and six clients, logistic losses in three dimensions."""
    labels, _, X, y = served_rows(2, 3, 2, 3, 0.15, 0.1, 0)
    losses = [gtv.LogisticLoss(rows, values > 0) for rows, values in zip(X, y, strict=True)]
    return served_network(losses, labels, ((0, 1),), 2)


def releases(**options: Any) -> fed.PrivateReleases:
    given = {"variance": 0.01, "zeta": 0.95, "row_bound": 1.0, "insecure_seed": 5} | options
    return fed.PrivateReleases(**given)


class Tapped(InMemory):
    """Keeps what the servers hear and say."""

    def start(self, deployment: Any) -> None:
        """Start all participants."""
        super().start(deployment)
        self.heard: list[Received] = []
        self.said: list[tuple[int, Received]] = []

    def step(
        self,
        round_: int,
        phase: int,
        inboxes: Mapping[int, Sequence[bytes]],
        present: Mapping[int, IntArray],
    ) -> Any:
        """Let participants take a step, and listen."""
        out = super().step(round_, phase, inboxes, present)
        for i, posted in out.items():
            for recipients, frame in posted:
                message = decoded(frame, self._form)
                if i < 6:
                    self.heard.append(message)
                else:
                    self.said += [(k, message) for k in recipients if k < 6]
        return out


def tapped(algorithm: fed.PGFL, rounds: int, **options: Any) -> Any:
    """Return a run, what went over the wire, and the clients' own w_k (rounds + 1, 6, 3)."""
    tap, own = Tapped(), []
    models = type(algorithm).models

    class Watched(fed.PGFL):
        def models(self, net: fed.Network, reports: Any) -> FloatArray:
            own.append(models(self, net, reports))
            return own[-1]

    algorithm.__class__ = Watched
    run = fed.simulate(algorithm, system(), rounds, transport=tap, record_every=1, **options)
    return run, tap, np.array(own)


def attacked(tap: Tapped, client: int) -> dict[int, FloatArray]:
    """What a server makes of a client's multipliers: ``w_qs - (phi(n) - phi(n-1)) / rho``.

    It takes phi as shown, and else as it follows from what it heard and said.
    """
    heard = {m.round: m.arrays for m in tap.heard if m.sender == client}
    said = {m.round: m.arrays["w"] for k, m in tap.said if k == client and m.kind == "aggregate"}
    phi, before = {}, np.zeros(3)
    for n in sorted(heard):
        phi[n] = heard[n].get("phi", before)
        before = phi[n] + RHO * (said[n] - heard[n]["w"])
    found = {}
    for n, after in pairwise(sorted(heard)):
        found[n] = said[n] - (phi[after] - phi[n]) / RHO
    return found


def test_the_server_learns_no_more_than_the_noisy_vectors() -> None:
    run, tap, own = tapped(fed.PGFL(RHO, ridge=0.3, privacy=releases()), 60)
    residuals = [
        (w - own[n, k]) / np.sqrt(0.01 * 0.95 ** (n - 1))
        for k in range(6)
        for n, w in attacked(tap, k).items()
    ]
    assert len(residuals) == 6 * 59
    total = float(np.sum(np.square(residuals)))
    degrees = 3 * len(residuals)
    # Of the size of the noise: two-sided, one in ten thousand.
    assert chi2.ppf(5e-5, degrees) < total < chi2.ppf(1 - 5e-5, degrees)
    assert {m.kind for m in tap.heard} == {"release"}
    assert "noisy" in run.certificate().reason
    # All else that a client's next vector depends on is what was sent and received.
    answer = releases().answer(system().models[1], RHO, 0.1, "client 1")
    said = {m.round: m.arrays["w"] for k, m in tap.said if k == 1 and m.kind == "aggregate"}
    phi = np.zeros(3)
    for message in [m for m in tap.heard if m.sender == 1][:-1]:
        n = message.round
        phi += RHO * (said[n] - message.arrays["w"])
        np.testing.assert_allclose(own[n + 1, 1], answer(phi, said[n]), atol=1e-7)


def test_multipliers_of_the_exact_vector_give_it_away() -> None:
    algorithm = fed.PGFL(RHO, privacy=releases(insecure_dual=True, variance=1.0))
    run, tap, own = tapped(algorithm, 20)
    found = {(k, n): w for k in range(6) for n, w in attacked(tap, k).items()}
    assert len(found) == 6 * 19
    assert max(np.abs(w - own[n, k]).max() for (k, n), w in found.items()) < 1e-12
    with pytest.raises(ValueError, match="insecure_dual"):
        run.privacy_report()


def test_only_releases_count_and_they_are_on_the_wire() -> None:
    private = releases(insecure_seed=None, delta=1e-6)
    run, tap, _ = tapped(fed.PGFL(RHO, privacy=private), 40, sampling=fed.Sampling(1))
    report = run.privacy_report()
    rounds = [[m.round for m in tap.heard if m.sender == k] for k in range(6)]
    np.testing.assert_array_equal(report.releases, [len(r) for r in rounds])
    assert run.history["bytes_up"][-1] == report.releases.sum() * (8 * 3 + 20)
    for k, own in enumerate(rounds):
        sensitivity = 2.0 / (RHO * system().models[k].n_rows)
        costs = [release_zcdp(sensitivity, 0.01 * 0.95 ** (n - 1)) for n in own]
        assert report.rho[k] == pytest.approx(sum(costs), rel=1e-12)
    assert report.delta == 1e-6
    assert (report.epsilon_gaussian <= report.epsilon_zcdp).all()
    assert (report.epsilon_zcdp <= report.epsilon_simple).all()
    assert "late rounds" in report.warnings[0]
    # With one variance for all rounds none leaks more, whoever was drawn late.
    even = fed.PGFL(RHO, privacy=releases(insecure_seed=None, zeta=1.0))
    run = fed.simulate(even, system(), 20, sampling=fed.Sampling(1))
    assert run.privacy_report().warnings == ()


def test_no_crash_or_loss_makes_the_count_too_small() -> None:
    private = releases(insecure_seed=None)
    crashes = [fed.Crash(0, 7, 12), fed.Crash(4, 9)]
    run, tap, _ = tapped(fed.PGFL(RHO, privacy=private), 25, crashes=crashes, loss=fed.Loss(0.1))
    counted = run.privacy_report().releases
    sent = np.bincount([m.sender for m in tap.heard], minlength=6)
    assert (counted >= sent).all()
    assert (counted <= [20, 25, 25, 25, 8, 25]).all()
    assert counted.sum() > sent.sum()
    # Records are rare: clients that are gone have released since the last one.
    rare = fed.simulate(
        fed.PGFL(RHO, privacy=private), system(), 25, record_every=25, crashes=crashes
    )
    assert rare.privacy_report().releases.tolist() == [20, 25, 25, 25, 8, 25]
    # Of rounds after a server's last report nothing is known: they all count.
    counted_rounds = rounds_of_releases(rare.reports, 6, 27)
    assert counted_rounds[4] == [*range(1, 9), 26, 27]


def test_noise_is_fresh_unless_it_is_insecure() -> None:
    def models(**options: Any) -> FloatArray:
        algorithm = fed.PGFL(RHO, privacy=releases(**options))
        return fed.simulate(algorithm, system(), 3, seed=1).models

    assert np.abs(models(insecure_seed=None) - models(insecure_seed=None)).max() > 1e-6
    np.testing.assert_array_equal(models(insecure_seed=1), models(insecure_seed=1))
    assert np.abs(models(insecure_seed=1) - models(insecure_seed=2)).max() > 1e-6
    run = fed.simulate(fed.PGFL(RHO, privacy=releases()), system(), 3)
    assert "insecure_seed=5" in repr(run)
    with pytest.raises(ValueError, match="insecure_seed"):
        run.privacy_report()


def test_noise_differs_between_clients_and_rounds() -> None:
    same = gtv.LogisticLoss([[0.5, 0.5, 0.1]], [1.0])
    net = fed.Network.star([same] * 6)
    tap = Tapped()
    fed.simulate(fed.PGFL(RHO, privacy=releases()), net, 4, transport=tap)
    first = np.array([m.arrays["w"] for m in tap.heard])
    assert len(np.unique(first)) == first.size


@pytest.mark.parametrize("by_gradients", [False, True])
def test_little_noise_changes_little(by_gradients: bool) -> None:
    """Bounds that clip nothing, and hardly any noise: the limit is that without privacy."""
    options = {"clip": 50.0, "row_bound": None} if by_gradients else {"row_bound": 50.0}
    private = releases(variance=1e-14, zeta=1.0, **options)
    rounds = 400
    noisy = fed.simulate(fed.PGFL(RHO, ridge=0.3, privacy=private), system(), rounds)
    exact = fed.simulate(fed.PGFL(RHO, ridge=0.3), system(), rounds)
    np.testing.assert_allclose(noisy.w, exact.w, atol=1e-5)


def squared(rows: Any, targets: Any) -> gtv.Loss:
    return gtv.SquaredLoss(rows, targets)


@pytest.mark.parametrize(
    "options",
    [
        {"row_bound": 1.0, "target_bound": 2.0, "radius": 3.0},
        {"row_bound": None, "clip": 0.5},
    ],
)
def test_one_row_moves_the_answer_by_no_more_than_the_sensitivity(options: dict[str, Any]) -> None:
    private, rng = releases(**options), np.random.default_rng(1)
    largest = 0.0
    for _ in range(30):
        rows, targets = 3.0 * rng.standard_normal((3, 2)), 3.0 * rng.standard_normal(3)
        other, values = rows.copy(), targets.copy()
        other[0], values[0] = -rows[0], -values[0] if rng.random() < 0.5 else 5.0
        pair = local_losses([squared(rows, targets), squared(other, values)], 2, 2)
        one, two = (private.answer(model, RHO, 0.1, "client") for model in pair)
        phi, received = rng.standard_normal((2, 2))
        moved = np.linalg.norm(one(phi, received) - two(phi, received))
        largest = max(largest, float(moved) / one.sensitivity)
    assert 0.1 < largest <= 1.0 + 1e-9


def test_networks_along_clipped_gradients() -> None:
    rng = np.random.default_rng(0)
    networks = [
        fed.models.TwoLayerNetwork(
            rng.standard_normal((8, 2)), rng.integers(0, 2, 8), [0, 1], 3, ridge=0.2
        )
        for _ in range(3)
    ]
    start = rng.standard_normal(networks[0].dim)
    private = releases(row_bound=None, clip=0.5, insecure_seed=None)
    net = fed.Network.star(networks)
    run = fed.simulate(fed.PGFL(4.0, ridge=0.3, start=start, privacy=private), net, 12)
    np.testing.assert_array_equal(run.privacy_report().releases, 12)
    # The step itself: gradients of rows are clipped, those of both ridge terms are not.
    answer, phi = private.answer(networks[0], 4.0, 0.1, "client"), rng.standard_normal(len(start))
    rows = networks[0].sample_gradients(start)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    assert norms.max() > 0.5 > norms.min()
    mean = (rows * np.minimum(1.0, 0.5 / norms)).mean(axis=0)
    expected = start + (phi - mean - (0.2 + 0.2) * start) / 4.0
    np.testing.assert_allclose(answer(phi, start), expected, atol=1e-12)


def test_programs_and_views_can_be_sent_to_processes() -> None:
    algorithm = fed.PGFL(RHO, fed.GeometricTau(), privacy=releases())
    net = algorithm.network(system())
    deployment = Deployment(algorithm, net, Streams(0), 5)
    for i in range(net.n_participants):
        program, view = pickle.loads(pickle.dumps((deployment.program(i), deployment.view(i))))
        program.start(view)


def test_the_target_is_that_of_the_clipped_rows() -> None:
    net = fed.Network.star([squared([[3.0, 4.0]], [9.0])])
    private = releases(target_bound=2.0, radius=1.0)
    problem = fed.PGFL(privacy=private).target(net)
    assert problem is not None
    (term,) = problem.losses.terms()
    np.testing.assert_allclose(term["X"], [[0.6, 0.8]], rtol=1e-12)
    np.testing.assert_allclose(term["y"], [2.0])


def test_losses_without_a_bound_are_refused_by_client() -> None:
    logistic = gtv.LogisticLoss([[1.0]], [1.0])
    wrong = [squared([[1.0]], [1.0]), gtv.PoissonLoss([[1.0]], [1.0]), gtv.ZeroLoss()]
    for loss in wrong:
        net = fed.Network.star([logistic, loss], nodes=["a", "b"])
        with pytest.raises(ValueError, match="client 'b'"):
            fed.simulate(fed.PGFL(privacy=releases()), net, 2)
    for loss in (gtv.AbsoluteLoss([[1.0]], [1.0]), gtv.PointLoss([1.0])):
        net = fed.Network.star([logistic, loss], nodes=["a", "b"])
        with pytest.raises(ValueError, match="client 'b'"):
            fed.simulate(fed.PGFL(privacy=releases(row_bound=None, clip=1.0)), net, 2)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"variance": 0.0}, "first"),
        ({"zeta": 1.5}, "zeta"),
        ({"row_bound": None}, "row_bound, clip"),
        ({"clip": 1.0}, "row_bound, clip"),
        ({"row_bound": None, "clip": 1.0, "radius": 1.0}, "radius"),
        ({"row_bound": -1.0}, "row_bound"),
        ({"delta": 1.0}, "delta"),
        ({"insecure_seed": -1}, "insecure_seed"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        releases(**options)


def test_client_programs_load_no_solver() -> None:
    code = (
        "import sys, gtvcvx.federated.algorithms._pgfl_privacy, "
        "gtvcvx.federated.algorithms._pgfl_exact_programs; print(*sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "gtvcvx.federated.programs" in out.stdout.split()
    assert "gtvcvx.solvers" not in out.stdout.split()
