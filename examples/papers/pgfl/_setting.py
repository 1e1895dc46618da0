"""The regression experiments of [PGFL]: servers, clients, clusters, and what is run on them.

Given: 10 servers on a random connected graph of mean degree 3, 15 clients at each, 2 to 9 rows a
client, d = 60, three clusters at random with vectors ``w_q = (1 + gamma_q) w_0``, ridge
regression, about 300 rounds, the NMSD (53) of the clients' vectors. All else is ours, and `given`
says what.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.experiments import Study


@dataclass(frozen=True)
class Setting:
    """Numbers of an experiment, by the paper's symbols where it has some."""

    servers: int = 10  # S
    clients: int = 15  # of each server
    degree: int = 3  # of the servers' graph, on average
    dim: int = 60  # d
    clusters: int = 3  # Q
    spread: float = 0.15  # gamma_q is uniform on [-spread, spread]
    noise: float = 1.0  # deviation of the targets
    rounds: int = 300
    ridge: float = 0.1  # lambda
    rho: float = 2.0

    def at(self, **changes: Any) -> Setting:
        """Return the setting with some numbers changed."""
        return replace(self, **changes)


#: For tests: seconds, and no more than a sign of what happens.
TINY = Setting(servers=4, clients=6, dim=8, rounds=12)


def setting_of(study: Study, **changes: Any) -> Setting:
    """Return the paper's setting, which the default size has as well, or the tiny one."""
    chosen = study.choose(tiny=TINY, default=Setting(), paper=Setting())
    return chosen.at(**{k: v for k, v in changes.items() if k != "rounds" or chosen != TINY})


@dataclass(frozen=True)
class Method:
    """A curve of the figures.

    Attributes
    ----------
    label : str
        In the legend.
    tau : float or GeometricTau
        Inter-cluster learning.
    linked : bool
        Whether servers talk to each other; without, the paper calls it E empty.
    one_model : bool
        A single cluster, what the paper calls FedAvg: (4), (8) to (10) with Q = 1.
    scheduled : int or None
        Clients that each server draws a round; None is all.
    variance : float or None
        delta^2(1) of private releases; None is no noise.
    exact : bool
        `PGFLExact`, ours, in place of `PGFL`.
    """

    label: str
    tau: float | fed.GeometricTau = 0.0
    linked: bool = True
    one_model: bool = False
    scheduled: int | None = None
    variance: float | None = None
    exact: bool = False


SCHEDULED = 3
#: delta^2(n) = VARIANCE * ZETA^(n-1); the paper has zeta < 1 and no number.
VARIANCE, ZETA = 0.5, 0.98

NO_LEARNING = Method("tau = 0")
LEARNING = Method("tau = 0.4", tau=0.4)
FADING = Method("tau = 0.4 * 0.98^n", tau=fed.GeometricTau(0.4, 0.98))
ALONE = Method("E empty", linked=False)
ONE_MODEL = Method("one model (FedAvg)", one_model=True)
EXACT = Method("PGFLExact (ours)", exact=True)


class System(NamedTuple):
    """A draw: what there is at each client, and the truth."""

    losses: list[gtv.Loss]
    labels: IntArray  # (n,), cluster of each client
    truth: FloatArray  # (Q, d)
    graph: gtv.EmpiricalGraph  # of the servers


def server_graph(setting: Setting, rng: np.random.Generator) -> gtv.EmpiricalGraph:
    """Draw graphs with the right number of edges until one is connected."""
    n = setting.servers
    m = min(n * setting.degree // 2, n * (n - 1) // 2)
    while True:
        drawn = nx.gnm_random_graph(n, m, seed=int(rng.integers(2**31)))
        if nx.is_connected(drawn):
            return gtv.EmpiricalGraph(n, sorted(map(sorted, drawn.edges)))


def draw(setting: Setting, seed: int) -> System:
    """Draw w_0, clusters, rows x ~ N(0, I) and targets ``x^T w_q + noise``, as seed says."""
    rng = np.random.default_rng([seed, 0])
    n = setting.servers * setting.clients
    labels = rng.permutation(np.arange(n) % setting.clusters)
    gamma = rng.uniform(-setting.spread, setting.spread, setting.clusters)
    truth = rng.standard_normal(setting.dim) * (1.0 + gamma)[:, None]
    losses = []
    for q in labels:
        X = rng.standard_normal((rng.integers(2, 10), setting.dim))
        losses.append(
            gtv.SquaredLoss(X, X @ truth[q] + setting.noise * rng.standard_normal(len(X)))
        )
    return System(losses, labels, truth, server_graph(setting, rng))


def network_of(system: System, method: Method) -> fed.Network:
    """Return clients behind servers, as many at each."""
    n = system.graph.n_nodes
    graph = system.graph if method.linked else gtv.EmpiricalGraph(n, [])
    labels = np.zeros_like(system.labels) if method.one_model else system.labels
    own = np.split(np.arange(len(labels)), n)
    return fed.Network.servers(
        graph,
        [[system.losses[k] for k in part] for part in own],
        [labels[part].tolist() for part in own],
    )


def private_releases(setting: Setting, variance: float, seed: int) -> fed.PrivateReleases:
    """Return releases with noise, and bounds that no row, target or vector comes near.

    So the run is the printed one: the paper's squared loss has no bounds, and no sensitivity. By
    these bounds it has one, which says what its noise protects. ``||x||`` is about sqrt(d), targets
    deviate by about as much, and so is ``||w_0||``; a factor of 3, of 20 and of 10 is never met.
    """
    size = math.sqrt(setting.dim)
    return fed.PrivateReleases(
        variance,
        ZETA,
        row_bound=3.0 * size,
        target_bound=20.0 * size,
        radius=10.0 * size,
        insecure_seed=seed,
    )


def algorithm_of(setting: Setting, method: Method, seed: int) -> fed.Algorithm:
    """Return the algorithm of a curve."""
    if method.exact:
        return fed.PGFLExact(setting.rho, ridge=setting.ridge)
    private = None
    if method.variance is not None:
        private = private_releases(setting, method.variance, seed)
    return fed.PGFL(setting.rho, method.tau, ridge=setting.ridge, privacy=private)


def nmsd(models: FloatArray, truth: FloatArray) -> FloatArray:
    r"""Return ``||w_k - w_q||^2 / ||w_q||^2`` of each client (n,); (53) is its mean.

    Parameters
    ----------
    models, truth : ndarray, shape (n, d)
        What each client has, and what is true in its cluster.
    """
    return np.asarray(np.sum((models - truth) ** 2, axis=1) / np.sum(truth**2, axis=1))


def given(setting: Setting, *methods: Method) -> Mapping[str, str]:
    """Say what the paper gives, and what is ours."""
    out = {
        "S, clients of each": f"{setting.servers}, {setting.clients}, given",
        "servers' graph": f"random, connected, mean degree {setting.degree}, given",
        "d, Q, rows": f"{setting.dim}, {setting.clusters}, 2 to 9 uniformly, given",
        "w_q": f"(1 + gamma_q) w_0, gamma_q ~ U(-{setting.spread:g}, {setting.spread:g}), given",
        "w_0, x": "not given: ours are N(0, I)",
        "noise of targets": "not given: ours is N(0, 1), and .1 and 3 where that matters",
        "lambda, rho": f"not given: ours are {setting.ridge:g}, {setting.rho:g}",
    }
    if any(method.scheduled for method in methods):
        out["scheduling"] = f"{SCHEDULED} clients of each server a round, given"
        out["server without a client of a cluster"] = "not given: ours keeps its last vector"
    if any(method.variance for method in methods):
        out["delta^2(1), zeta"] = f"not given: ours are {VARIANCE:g}, {ZETA:g}"
        out["C_k"] = "not given, and the squared loss has none: eps is shown for C_k = 1"
    return out
