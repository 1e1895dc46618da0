"""Federated systems: message-passing programs, each certified against the problem it solves.

>>> import gtvcvx as gtv
>>> from gtvcvx import federated as fed
>>> problem = gtv.GTVProblem(
...     gtv.EmpiricalGraph(3, [(0, 1), (1, 2)]),
...     [gtv.SquaredLoss([[1.0]], [y]) for y in (0.0, 1.0, 5.0)],
...     penalty="l1",
...     lam=0.5,
... )
>>> run = fed.simulate(fed.FedADMM(rho=1.0), fed.Network.from_problem(problem), rounds=200)
>>> run.w.round(3).ravel()
array([0.25, 1.  , 4.75])
>>> run.certificate().status
'CERTIFIED'
"""

from gtvcvx.federated import features, models, privacy, selection
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms import Algorithm, EdgeTests, FedADMM, PrimalDual
from gtvcvx.federated.programs import (
    ClientProgram,
    Inbox,
    LocalLoss,
    Report,
    ServerProgram,
    View,
)
from gtvcvx.federated.runtime._availability import (
    Always,
    Availability,
    Bernoulli,
    Markov,
    Sampling,
    Trace,
)
from gtvcvx.federated.runtime._faults import Crash, Delay, Loss
from gtvcvx.federated.runtime._history import History
from gtvcvx.federated.runtime._run import Run, Uncertified
from gtvcvx.federated.runtime._simulate import NoClientWarning, StabilityWarning, simulate
from gtvcvx.federated.wire import Field, Message, Received, Schema, SchemaError

__all__ = [
    "Algorithm",
    "Always",
    "Availability",
    "Bernoulli",
    "ClientProgram",
    "Crash",
    "Delay",
    "EdgeTests",
    "FedADMM",
    "Field",
    "History",
    "Inbox",
    "LocalLoss",
    "Loss",
    "Markov",
    "Message",
    "Network",
    "NoClientWarning",
    "PrimalDual",
    "Received",
    "Report",
    "Run",
    "Sampling",
    "Schema",
    "SchemaError",
    "ServerProgram",
    "StabilityWarning",
    "Trace",
    "Uncertified",
    "View",
    "features",
    "models",
    "privacy",
    "selection",
    "simulate",
]


def __dir__() -> list[str]:
    return sorted(__all__)
