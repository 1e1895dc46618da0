"""Apps of Flower: ours is one pair of them for any algorithm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, integer_array, is_integer, is_number
from gtvcvx.federated._network import Network
from gtvcvx.federated._streams import Streams
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.flower._client import Client, Loader
from gtvcvx.federated.flower._directory import Directory
from gtvcvx.federated.flower._hidden import without_data
from gtvcvx.federated.flower._outcome import Outcome
from gtvcvx.federated.flower._post import RECORD, GridPost, as_content, flower_module, record_of
from gtvcvx.federated.flower._router import Router
from gtvcvx.federated.flower._state import KeptState
from gtvcvx.federated.transport import Deployment
from gtvcvx.graph import EmpiricalGraph

#: Entry of a run's configuration, called so in Flower's own examples.
ROUNDS = "num-server-rounds"
#: Who is linked to whom: a network, a graph, edges (m, 2), or a number of clients without links.
Links = Network | EmpiricalGraph | ArrayLike | int


def partition_of(context: Any) -> int:
    """Return the number of a client: the partition-id of its node's configuration.

    Parameters
    ----------
    context : flwr.app.Context

    Raises
    ------
    ValueError
        The node has none.
    """
    if "partition-id" not in context.node_config:
        raise ValueError(
            "a node is expected to have a partition-id; start it with "
            '--node-config "partition-id=3"'
        )
    return int(context.node_config["partition-id"])


def client_app(
    load_loss: Loader,
    algorithm: Algorithm,
    *,
    number_of: Callable[[Any], int] = partition_of,
    tell: bool = True,
    keep: Callable[[int, FloatArray], Any] | None = None,
) -> Any:
    """Return the ClientApp of an algorithm: each node runs the program of one client.

    Parameters
    ----------
    load_loss : callable
        Returns the loss, or the `LocalModel`, of a client by its number. It is called for every
        message, at the client alone.
    algorithm : Algorithm
        The same as the server's.
    number_of : callable
        Returns the number of the client from Flower's context. Default: its partition-id.
    tell : bool
        Whether the client's model and flows are told the server after the last round.
    keep : callable, optional
        ``keep(number, w)`` is called at the client after the last round.

    Returns
    -------
    flwr.clientapp.ClientApp

    Raises
    ------
    ImportError
        Flower is not installed; the message names the extra.
    TypeError, ValueError
        Naming the argument; an algorithm with a guarantee of privacy among them, whose releases
        cannot be counted here.

    Notes
    -----
    Between messages the program is kept, without data, in the client's ``context.state``, which
    does not leave its machine.
    """
    _check_algorithm(algorithm)
    client = Client(algorithm, load_loss, tell, keep)
    app = flower_module("clientapp").ClientApp()

    @app.train()
    def train(message: Any, context: Any) -> Any:
        kept = KeptState.of(record_of(context.state) if RECORD in context.state else None)
        answer, state = client.answer(number_of(context), record_of(message.content), kept)
        if state is not kept:
            context.state[RECORD] = as_content(vars(state))[RECORD]
        return flower_module("app").Message(as_content(answer), reply_to=message)

    return app


def server_app(
    algorithm: Algorithm,
    edges: Links,
    rounds: int | None = None,
    *,
    done: Callable[[Outcome], Any] | None = None,
    seed: int | None = None,
    timeout: float = 60.0,
    wait: float = 60.0,
) -> Any:
    """Return the ServerApp of an algorithm: it carries messages between clients and has no data.

    Parameters
    ----------
    algorithm : Algorithm
    edges : Network, EmpiricalGraph, array_like of shape (m, 2), or int
        Links of the clients; a number of clients for algorithms with a server. Of a network links,
        servers, clusters, penalty and lambda are taken, and no data.
    rounds : int, optional
        Default: the entry ``num-server-rounds`` of the run's configuration.
    done : callable, optional
        Is given the `Outcome`.
    seed : int, optional
        Makes random numbers of clients those of `simulate`; the server then knows them, and noise
        from them hides nothing. Default: each client has seeds of its own.
    timeout : float
        Seconds after which a client that has not answered counts as absent. Flower looks for
        answers every three seconds where nodes are not simulated.
    wait : float
        Seconds that are waited for all clients before the first round.

    Returns
    -------
    flwr.serverapp.ServerApp

    Raises
    ------
    ImportError
        Flower is not installed; the message names the extra.
    TypeError, ValueError
        Naming the argument.

    Notes
    -----
    In each phase of a round every client that is connected is sent what its neighbours have sent
    it. One that answers with an error, or not in time, was absent: its step is taken back, and its
    messages wait for it. Servers of the algorithm run in the ServerApp.
    """
    _check_algorithm(algorithm)
    planned = None if rounds is None else _rounds(rounds)
    for value, name in ((timeout, "timeout"), (wait, "wait")):
        if not (is_number(value) and value > 0):
            raise ValueError(f"{name}: a number > 0 is expected, got {value!r}")
    links = edges if isinstance(edges, Network) else _graph(edges)
    n = links.n_clients if isinstance(links, Network) else links.n_nodes
    app = flower_module("serverapp").ServerApp()

    @app.main()
    def main(grid: Any, context: Any) -> None:
        # Read before anybody is waited for.
        last = _rounds(context.run_config.get(ROUNDS)) if planned is None else planned
        post = GridPost(grid, float(timeout))
        directory = Directory(post, n)
        directory.wait(float(wait))
        net = algorithm.network(without_data(links, directory.dim()))
        streams = Streams(_own_seed() if seed is None else seed)
        deployment = Deployment(algorithm, net, streams, last)
        outcome = Router(deployment, directory, post, seed is not None).run()
        if done is not None:
            done(outcome)

    return app


def _check_algorithm(algorithm: Algorithm) -> None:
    if not isinstance(algorithm, Algorithm):
        raise TypeError(f"algorithm: an Algorithm is expected, got {type(algorithm).__name__}")
    if getattr(algorithm, "privacy", None) is not None:
        # A server that says an answer was lost would get two releases with the same noise.
        raise ValueError(
            f"algorithm: {algorithm.name} with privacy is for simulate alone: here steps whose "
            "answers are lost are taken back, and such releases would not be counted"
        )


def _rounds(value: Any) -> int:
    if not (is_integer(value) and value >= 1):
        raise ValueError(f"rounds, {ROUNDS}: a positive integer is expected, got {value!r}")
    return int(value)


def _own_seed() -> int:
    return int(np.random.SeedSequence().generate_state(1)[0])


def _graph(edges: EmpiricalGraph | ArrayLike | int) -> EmpiricalGraph:
    if isinstance(edges, EmpiricalGraph):
        return edges
    if is_integer(edges):
        return EmpiricalGraph(int(edges), [])
    pairs = integer_array(edges, "edges")
    return EmpiricalGraph(int(np.max(pairs, initial=-1)) + 1, pairs)
