"""scikit-learn estimators: ``pip install "gtvcvx[ml]"``.

Linear models of the nodes of an empirical graph that are trained together, and convex clustering,
with scikit-learn's conventions: parameters by keyword, ``fit`` / ``predict`` / ``score``, clones,
pipelines and searches over parameters.

Sources: [GTV] SarcheshmehPour, Tian, Zhang, Jung, "Clustered Federated Learning via Generalized
Total Variation Minimization". [nLasso] SarcheshmehPour, Leinonen, Jung, "Federated Learning from
Big Data over Networks".
"""

from gtvcvx._extras import extra_module

# Before the classes are imported, whose base classes are scikit-learn's.
extra_module("sklearn", "ml", "estimators")

from gtvcvx.estimators._classification import (  # noqa: E402
    NetworkLogisticRegression,
    NetworkLogisticRegressionCV,
)
from gtvcvx.estimators._clustering import ConvexClustering  # noqa: E402
from gtvcvx.estimators._counts import (  # noqa: E402
    NetworkPoissonRegression,
    NetworkPoissonRegressionCV,
)
from gtvcvx.estimators._regression import (  # noqa: E402
    NetworkLasso,
    NetworkLinearRegression,
    NetworkLinearRegressionCV,
)
from gtvcvx.estimators._robust import (  # noqa: E402
    NetworkHuberRegression,
    NetworkHuberRegressionCV,
    NetworkQuantileRegression,
)

__all__ = [
    "ConvexClustering",
    "NetworkHuberRegression",
    "NetworkHuberRegressionCV",
    "NetworkLasso",
    "NetworkLinearRegression",
    "NetworkLinearRegressionCV",
    "NetworkLogisticRegression",
    "NetworkLogisticRegressionCV",
    "NetworkPoissonRegression",
    "NetworkPoissonRegressionCV",
    "NetworkQuantileRegression",
]


def __dir__() -> list[str]:
    return sorted(__all__)
