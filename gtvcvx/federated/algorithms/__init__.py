"""Federated algorithms: one file each."""

from gtvcvx.federated.algorithms._algorithm import Algorithm
from gtvcvx.federated.algorithms._edge_tests import EdgeTests
from gtvcvx.federated.algorithms._fedadmm import FedADMM
from gtvcvx.federated.algorithms._primal_dual import PrimalDual

__all__ = ["Algorithm", "EdgeTests", "FedADMM", "PrimalDual"]
