"""Differential privacy of releases: sensitivities, Gaussian noise, zCDP, and reports.

What is guaranteed is local and at the level of samples: whoever sees all that a client releases
learns little about any one of its rows, if the client adds its noise honestly. The notes'
perturbed updates come with no such guarantee. Source: [PGFL] sections II-B and IV.
"""

from gtvcvx.federated.privacy._accountant import ZcdpAccountant
from gtvcvx.federated.privacy._admissible import PrivateLoss, private_loss
from gtvcvx.federated.privacy._conversions import epsilon_gaussian, epsilon_simple, epsilon_zcdp
from gtvcvx.federated.privacy._linearized import (
    linearized_sensitivity,
    linearized_step,
    sample_gradients,
)
from gtvcvx.federated.privacy._noise import GaussianNoise, GeometricVariance, release_zcdp
from gtvcvx.federated.privacy._report import PrivacyReport

__all__ = [
    "GaussianNoise",
    "GeometricVariance",
    "PrivacyReport",
    "PrivateLoss",
    "ZcdpAccountant",
    "epsilon_gaussian",
    "epsilon_simple",
    "epsilon_zcdp",
    "linearized_sensitivity",
    "linearized_step",
    "private_loss",
    "release_zcdp",
    "sample_gradients",
]
