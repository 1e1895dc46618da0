"""Federated systems: message-passing programs, each certified against the problem it solves.

Names are loaded when they are first asked for, so that the process of a client loads no more than
it needs.

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

from typing import TYPE_CHECKING

from gtvcvx._lazy import names_from

__all__ = [
    "IFCA",
    "MOCHA",
    "PGFL",
    "Algorithm",
    "Always",
    "Availability",
    "Bernoulli",
    "ClientError",
    "ClientLostWarning",
    "ClientProgram",
    "ClusteredFedAvg",
    "Crash",
    "Delay",
    "EdgeTests",
    "FedADMM",
    "FedAvg",
    "FedRelax",
    "FedRelaxNonparametric",
    "FedSGD",
    "Field",
    "GeometricTau",
    "Global",
    "History",
    "InMemory",
    "Inbox",
    "Local",
    "LocalLoss",
    "Loss",
    "Markov",
    "Message",
    "Network",
    "NoClientWarning",
    "PFedMe",
    "PGFLExact",
    "PrimalDual",
    "PrivateReleases",
    "Processes",
    "Received",
    "Recorded",
    "Report",
    "RoundCallback",
    "RoundProgress",
    "Run",
    "Sampling",
    "SavedRun",
    "Schema",
    "SchemaError",
    "ServerProgram",
    "StabilityWarning",
    "Trace",
    "Uncertified",
    "View",
    "bound_theorem2",
    "features",
    "flower",
    "models",
    "perturbed_network",
    "privacy",
    "regressor_network",
    "selection",
    "simulate",
]

if TYPE_CHECKING:
    from gtvcvx._callbacks import RoundCallback, RoundProgress
    from gtvcvx.federated import features, flower, models, privacy, selection
    from gtvcvx.federated._network import Network
    from gtvcvx.federated.algorithms import (
        IFCA,
        MOCHA,
        PGFL,
        Algorithm,
        ClusteredFedAvg,
        EdgeTests,
        FedADMM,
        FedAvg,
        FedRelax,
        FedRelaxNonparametric,
        FedSGD,
        GeometricTau,
        Global,
        Local,
        PFedMe,
        PGFLExact,
        PrimalDual,
        PrivateReleases,
        bound_theorem2,
        perturbed_network,
        regressor_network,
    )
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
    from gtvcvx.federated.runtime._lost import ClientLostWarning
    from gtvcvx.federated.runtime._run import Run, Uncertified
    from gtvcvx.federated.runtime._saved import SavedRun
    from gtvcvx.federated.runtime._simulate import NoClientWarning, StabilityWarning, simulate
    from gtvcvx.federated.transport import ClientError, InMemory, Processes, Recorded
    from gtvcvx.federated.wire import Field, Message, Received, Schema, SchemaError
else:
    # Unseen by type checkers, for which every misspelt name would be there. Folders load by their
    # own names.
    _HOMES = {
        "gtvcvx.federated._network": "Network",
        "gtvcvx.federated.algorithms": """
            IFCA MOCHA Algorithm ClusteredFedAvg EdgeTests FedADMM FedAvg FedRelax
            FedRelaxNonparametric FedSGD Global Local PFedMe PGFL PGFLExact
            GeometricTau bound_theorem2 PrivateReleases PrimalDual perturbed_network
            regressor_network
        """,
        "gtvcvx.federated.programs": "ClientProgram Inbox LocalLoss Report ServerProgram View",
        "gtvcvx.federated.runtime._availability": """
            Always Availability Bernoulli Markov Sampling Trace
        """,
        "gtvcvx.federated.runtime._faults": "Crash Delay Loss",
        "gtvcvx.federated.runtime._history": "History",
        "gtvcvx.federated.runtime._lost": "ClientLostWarning",
        "gtvcvx._callbacks": "RoundCallback RoundProgress",
        "gtvcvx.federated.runtime._run": "Run Uncertified",
        "gtvcvx.federated.runtime._saved": "SavedRun",
        "gtvcvx.federated.runtime._simulate": "NoClientWarning StabilityWarning simulate",
        "gtvcvx.federated.transport": "ClientError InMemory Processes Recorded",
        "gtvcvx.federated.wire": "Field Message Received Schema SchemaError",
    }
    __getattr__ = names_from(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
