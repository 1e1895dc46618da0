"""Federated algorithms: one file each, and one for client programs that share much.

Names are loaded when they are first asked for: the process of a client loads its program, and not
the problems that the algorithms solve.
"""

from typing import TYPE_CHECKING

from gtvcvx._lazy import names_from

__all__ = [
    "IFCA",
    "MOCHA",
    "PGFL",
    "Algorithm",
    "ClusteredFedAvg",
    "EdgeTests",
    "FedADMM",
    "FedAvg",
    "FedRelax",
    "FedRelaxNonparametric",
    "FedSGD",
    "GeometricTau",
    "Global",
    "Local",
    "PFedMe",
    "PGFLExact",
    "PrimalDual",
    "PrivateReleases",
    "bound_theorem2",
    "perturbed_network",
    "regressor_network",
]

if TYPE_CHECKING:
    from gtvcvx.federated.algorithms._algorithm import Algorithm
    from gtvcvx.federated.algorithms._baselines import Global, Local
    from gtvcvx.federated.algorithms._edge_tests import EdgeTests
    from gtvcvx.federated.algorithms._fedadmm import FedADMM
    from gtvcvx.federated.algorithms._fedavg import ClusteredFedAvg, FedAvg
    from gtvcvx.federated.algorithms._fedrelax import MOCHA, FedRelax
    from gtvcvx.federated.algorithms._fedsgd import FedSGD
    from gtvcvx.federated.algorithms._ifca import IFCA
    from gtvcvx.federated.algorithms._nonparametric import FedRelaxNonparametric, regressor_network
    from gtvcvx.federated.algorithms._perturbed_features import perturbed_network
    from gtvcvx.federated.algorithms._pfedme import PFedMe
    from gtvcvx.federated.algorithms._pgfl import PGFL
    from gtvcvx.federated.algorithms._pgfl_exact import PGFLExact
    from gtvcvx.federated.algorithms._pgfl_privacy import PrivateReleases
    from gtvcvx.federated.algorithms._pgfl_tau import GeometricTau, bound_theorem2
    from gtvcvx.federated.algorithms._primal_dual import PrimalDual
else:
    _HOMES = {
        "gtvcvx.federated.algorithms._algorithm": "Algorithm",
        "gtvcvx.federated.algorithms._baselines": "Global Local",
        "gtvcvx.federated.algorithms._edge_tests": "EdgeTests",
        "gtvcvx.federated.algorithms._fedadmm": "FedADMM",
        "gtvcvx.federated.algorithms._fedavg": "ClusteredFedAvg FedAvg",
        "gtvcvx.federated.algorithms._fedrelax": "MOCHA FedRelax",
        "gtvcvx.federated.algorithms._fedsgd": "FedSGD",
        "gtvcvx.federated.algorithms._ifca": "IFCA",
        "gtvcvx.federated.algorithms._nonparametric": "FedRelaxNonparametric regressor_network",
        "gtvcvx.federated.algorithms._perturbed_features": "perturbed_network",
        "gtvcvx.federated.algorithms._pfedme": "PFedMe",
        "gtvcvx.federated.algorithms._pgfl": "PGFL",
        "gtvcvx.federated.algorithms._pgfl_exact": "PGFLExact",
        "gtvcvx.federated.algorithms._pgfl_privacy": "PrivateReleases",
        "gtvcvx.federated.algorithms._pgfl_tau": "GeometricTau bound_theorem2",
        "gtvcvx.federated.algorithms._primal_dual": "PrimalDual",
    }
    __getattr__ = names_from(__name__, _HOMES)
