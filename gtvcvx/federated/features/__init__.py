"""Perturbed features: what a client does to its rows before it trains on them [Notes, Algorithm 6].

A map Phi makes features less informative about a private one: noise (`AdditiveNoise`), a linear map
that takes out the direction correlated with it (`PrivateProjection`), or a piecewise constant one
whose cells hold at least k points of the local data set (`KAnonymousQuantization`).

None of them gives differential privacy: there is no (eps, delta), and none may be stated. The
measure of [Notes] is the mutual information between the private feature and what is shared;
`gaussian_mutual_information` estimates it where all is jointly Gaussian.
"""

from gtvcvx.federated.features._mutual_information import gaussian_mutual_information
from gtvcvx.federated.features._noise import AdditiveNoise
from gtvcvx.federated.features._projection import PrivateProjection
from gtvcvx.federated.features._protocol import FeatureMap
from gtvcvx.federated.features._quantization import KAnonymousQuantization

__all__ = [
    "AdditiveNoise",
    "FeatureMap",
    "KAnonymousQuantization",
    "PrivateProjection",
    "gaussian_mutual_information",
]
