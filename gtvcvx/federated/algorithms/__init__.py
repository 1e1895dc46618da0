"""Federated algorithms: one file each, and one for client programs that share much.

Names are loaded when they are first asked for: the process of a client loads its program, and not
the problems that the algorithms solve.
"""

from typing import TYPE_CHECKING

from gtvcvx._lazy import names_from

__all__ = ["Algorithm", "EdgeTests", "FedADMM", "PrimalDual"]

if TYPE_CHECKING:
    from gtvcvx.federated.algorithms._algorithm import Algorithm
    from gtvcvx.federated.algorithms._edge_tests import EdgeTests
    from gtvcvx.federated.algorithms._fedadmm import FedADMM
    from gtvcvx.federated.algorithms._primal_dual import PrimalDual
else:
    _HOMES = {
        "gtvcvx.federated.algorithms._algorithm": "Algorithm",
        "gtvcvx.federated.algorithms._edge_tests": "EdgeTests",
        "gtvcvx.federated.algorithms._fedadmm": "FedADMM",
        "gtvcvx.federated.algorithms._primal_dual": "PrimalDual",
    }
    __getattr__ = names_from(__name__, _HOMES)
