"""Local models of federated systems: what a client holds and trains.

A client needs value, gradient and proximal map of its training error as a function of a parameter
vector (`LocalModel`). Every `gtvcvx.Loss` has them; here are models that are not convex in their
parameters (`TwoLayerNetwork`, and any module of PyTorch by `TorchLoss`), and models that have no
parameter vector at all and exchange predictions instead (`RegressorModel`). No certificate can be
given for those: there is no convex problem that they solve.

PyTorch (extra ``torch``) and scikit-learn (extra ``ml``) are imported when they are used, and so is
each model: the process of a client loads its own.
"""

from typing import TYPE_CHECKING

from gtvcvx._lazy import names_from

__all__ = [
    "LocalModel",
    "RegressorModel",
    "TorchLoss",
    "TwoLayerNetwork",
    "fits_squared_loss",
    "regressor_objective",
]

if TYPE_CHECKING:
    from gtvcvx.federated.models._protocol import LocalModel
    from gtvcvx.federated.models._regressor import (
        RegressorModel,
        fits_squared_loss,
        regressor_objective,
    )
    from gtvcvx.federated.models._torch import TorchLoss
    from gtvcvx.federated.models._two_layer import TwoLayerNetwork
else:
    _HOMES = {
        "gtvcvx.federated.models._protocol": "LocalModel",
        "gtvcvx.federated.models._regressor": """
            RegressorModel fits_squared_loss regressor_objective
        """,
        "gtvcvx.federated.models._torch": "TorchLoss",
        "gtvcvx.federated.models._two_layer": "TwoLayerNetwork",
    }
    __getattr__ = names_from(__name__, _HOMES)
