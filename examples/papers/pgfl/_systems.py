"""Servers, clients and clusters of [PGFL], and the methods that its figures run on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    dim: int = 60  # d, of regression
    clusters: int = 3  # Q
    spread: float = 0.15  # gamma_q is uniform on [-spread, spread], in regression
    noise: float = 1.0  # deviation of the targets, in regression
    rounds: int = 300
    ridge: float = 0.1  # lambda
    rho: float = 2.0

    def at(self, **changes: Any) -> Setting:
        """Return the setting with some numbers changed."""
        return replace(self, **changes)


#: For tests: seconds, and no more than a sign of what happens.
TINY = Setting(servers=3, clients=4, dim=6, rounds=12)


def setting_of(study: Study, **changes: Any) -> Setting:
    """Return the paper's setting, which the default size has as well, or the tiny one."""
    if study.size == "tiny":
        return TINY.at(**{name: value for name, value in changes.items() if name != "rounds"})
    return Setting().at(**changes)


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
    """A draw: what there is at each client, and how its vector is judged."""

    losses: list[gtv.Loss]
    labels: IntArray  # (n,), cluster of each client
    graph: gtv.EmpiricalGraph  # of the servers
    score: Callable[[FloatArray], FloatArray]  # of the clients' vectors (n, d), one a client
    bounds: Mapping[str, float]  # of `PrivateReleases`, that all rows and vectors keep


class Source(NamedTuple):
    """Where systems come from."""

    name: str  # tells stored runs apart
    draw: Callable[[Setting, int], System]  # by the seed


def clusters_of(setting: Setting, rng: np.random.Generator) -> IntArray:
    """Draw the cluster of each client, (n,): as many of each as possible."""
    n = setting.servers * setting.clients
    return rng.permutation(np.arange(n) % setting.clusters)


def server_graph(setting: Setting, rng: np.random.Generator) -> gtv.EmpiricalGraph:
    """Draw graphs with the right number of edges until one is connected."""
    n = setting.servers
    m = min(n * setting.degree // 2, n * (n - 1) // 2)
    while True:
        drawn = nx.gnm_random_graph(n, m, seed=int(rng.integers(2**31)))
        if nx.is_connected(drawn):
            return gtv.EmpiricalGraph(n, sorted(map(sorted, drawn.edges)))


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


def releases(system: System, variance: float, seed: int) -> fed.PrivateReleases:
    """Return releases with noise of a fixed seed, and bounds that change nothing in the run."""
    return fed.PrivateReleases(variance, ZETA, insecure_seed=seed, **system.bounds)


def algorithm_of(setting: Setting, method: Method, system: System, seed: int) -> fed.Algorithm:
    """Return the algorithm of a curve."""
    if method.exact:
        return fed.PGFLExact(setting.rho, ridge=setting.ridge)
    private = None if method.variance is None else releases(system, method.variance, seed)
    return fed.PGFL(setting.rho, method.tau, ridge=setting.ridge, privacy=private)


def given(setting: Setting, *, scheduled: bool = False, private: bool = False) -> dict[str, str]:
    """Say what the paper gives of servers, clients and methods, and what is ours."""
    out = {
        "S, clients of each": f"{setting.servers}, {setting.clients}, given",
        "servers' graph": f"random, connected, mean degree {setting.degree}, given",
        "Q": f"{setting.clusters}, at random, given",
        "lambda, rho": f"not given: ours are {setting.ridge:g}, {setting.rho:g}",
    }
    if scheduled:
        out["scheduling"] = f"{SCHEDULED} clients of each server a round, given"
        out["server without a client of a cluster"] = "not given: ours keeps its last vector"
    if private:
        out["delta^2(1), zeta"] = f"not given: ours are {VARIANCE:g}, {ZETA:g}"
        out["C_k"] = "not given: eps is shown for C_k = 1, and for a bound that holds"
    return out
