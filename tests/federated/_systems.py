"""Instances of the federated tests: clusters of clients with linear models."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.federated.transport import InMemory
from gtvcvx.federated.wire import header_of


def clustered_rows(
    n: int, clusters: int, rows: int, d: int, seed: int | np.random.Generator
) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
    """Return labels (n,), true vectors (n, d), features (n, rows, d) and targets with noise."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) * clusters // n
    # Vectors of about unit length whatever d is, as in the FedADMM paper.
    truth = (rng.standard_normal((clusters, d)) * d**-0.25)[labels]
    X = rng.standard_normal((n, rows, d))
    y = np.einsum("nrd,nd->nr", X, truth) + rng.standard_normal((n, rows))
    return labels, truth, X, y


def corrupted_edges(labels: IntArray, share: float, seed: int | np.random.Generator) -> IntArray:
    """Edges within clusters, with a share of all pairs flipped."""
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(len(labels), 1)
    kept = (labels[i] == labels[j]) ^ (rng.random(len(i)) < share)
    return np.column_stack([i[kept], j[kept]])


@cache
def paper_like() -> tuple[gtv.GTVProblem, gtv.Solution, FloatArray]:
    """The size of FedADMM's simulations: 40 clients, 50 rows, d = 20, l1, 10% corrupted pairs."""
    rng = np.random.default_rng(1)
    labels, truth, X, y = clustered_rows(40, 5, 50, 20, rng)
    graph = gtv.EmpiricalGraph(40, corrupted_edges(labels, 0.1, rng))
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), penalty="l1", lam=0.04)
    return problem, problem.solve(rtol=1e-10), truth


@cache
def small(penalty: str = "l2") -> tuple[gtv.GTVProblem, gtv.Solution]:
    """Six clients, one of them without data and one without links, with edge weights."""
    _, _, X, y = clustered_rows(6, 2, 8, 3, 5)
    losses = [gtv.SquaredLoss(X[i], y[i]) for i in range(6)]
    losses[2] = gtv.ZeroLoss()
    graph = gtv.EmpiricalGraph(
        6, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)], weights=[1.0, 0.5, 2.0, 1.0, 0.3]
    )
    problem = gtv.GTVProblem(graph, losses, penalty=penalty, lam=0.3)
    return problem, problem.solve(rtol=1e-10)


@cache
def star_losses(kind: str = "squared", scale: float = 1.0) -> list[gtv.Loss]:
    """Losses of twelve clients in two clusters, d = 3, numbers of rows 4, ..., 9.

    Features are multiplied by the scale, but for an intercept where the scale is not one.
    """
    rng = np.random.default_rng(7)
    truth = rng.standard_normal((2, 3))
    losses: list[gtv.Loss] = []
    for i in range(12):
        X = rng.standard_normal((4 + i % 6, 3))
        y = X @ truth[i // 6] + 0.3 * rng.standard_normal(len(X))
        if scale != 1.0:
            X = np.column_stack([scale * X[:, :2], np.ones(len(X))])
        if kind == "logistic":
            losses.append(gtv.LogisticLoss(X, (y > 0).astype(float)))
        else:
            losses.append(gtv.SquaredLoss(X, y))
    return losses


def star_network(kind: str = "squared", scale: float = 1.0) -> fed.Network:
    """Return a star of these clients, with their clusters."""
    return fed.Network.star(star_losses(kind, scale), clusters=np.arange(12) // 6)


def row_bytes(d: int) -> int:
    """Bytes of a message of one vector."""
    return 8 * d + 20


def served_rows(
    servers: int, clients: int, clusters: int, d: int, gamma: float, noise: float, seed: int
) -> tuple[IntArray, FloatArray, list[FloatArray], list[FloatArray]]:
    """Return clusters (n,), their vectors (Q, d), and 2 to 9 rows of each client, as in [PGFL]."""
    rng = np.random.default_rng(seed)
    n = servers * clients
    labels = rng.permutation(np.arange(n) % clusters)
    truth = rng.standard_normal(d) * (1.0 + rng.uniform(-gamma, gamma, clusters))[:, None]
    X = [rng.standard_normal((rng.integers(2, 10), d)) for _ in range(n)]
    y = [X[k] @ truth[labels[k]] + noise * rng.standard_normal(len(X[k])) for k in range(n)]
    return labels, truth, X, y


def served_network(
    losses: Sequence[gtv.Loss], labels: IntArray, edges: Sequence[tuple[int, int]], servers: int
) -> fed.Network:
    """Clients with these losses, the same number at each server."""
    own = np.array_split(np.arange(len(losses)), servers)
    return fed.Network.servers(
        gtv.EmpiricalGraph(servers, list(edges)),
        [[losses[k] for k in part] for part in own],
        [labels[part].tolist() for part in own],
    )


class Unreliable(InMemory):
    """Loses frames, or brings them late by one to three rounds, in the first rounds of a run.

    Parameters
    ----------
    lost, late : float
        Shares of the frames.
    rounds : int
        The rounds after are reliable, but for what was late before.
    between : bool
        Whether frames from server to server are among them.
    """

    def __init__(self, lost: float, late: float, rounds: int, *, between: bool = True) -> None:
        self._lost, self._late, self._rounds, self._between = lost, late, rounds, between
        self._rng = np.random.default_rng(2)
        self._kept: dict[tuple[int, int], list[bytes]] = {}

    def _arrived(self, round_: int, recipient: int, frame: bytes) -> bool:
        n = self._deployment.net.n_clients
        if not self._between and recipient >= n and header_of(frame).sender >= n:
            return True
        luck = self._rng.random()
        if self._lost <= luck < self._lost + self._late:
            due = round_ + int(self._rng.integers(1, 4))
            self._kept.setdefault((due, recipient), []).append(frame)
        return bool(luck >= self._lost + self._late)

    def step(
        self,
        round_: int,
        phase: int,
        inboxes: Mapping[int, Sequence[bytes]],
        present: Mapping[int, IntArray],
    ) -> Any:
        """Let participants take a step with what has arrived."""
        if round_ <= self._rounds:
            inboxes = {
                i: [frame for frame in frames if self._arrived(round_, i, frame)]
                for i, frames in inboxes.items()
            }
        inboxes = {i: [*self._kept.pop((round_, i), ()), *f] for i, f in inboxes.items()}
        return super().step(round_, phase, inboxes, present)
