"""Edge penalties phi of generalized total variation: norms and quadratics.

==================  =====================  ==============================
class               phi(v)                 domain of phi*
==================  =====================  ==============================
``L1Norm``          ||v||_1                ||z||_inf <= 1
``L2Norm``          ||v||_2                ||z||_2 <= 1
``LinfNorm``        ||v||_inf              ||z||_1 <= 1
``PNorm(p)``        ||v||_p, p >= 1        ||z||_q <= 1, 1/p + 1/q = 1
``SquaredNorm``     (1/2) ||v||_2^2        everything
``Quadratic(Q)``    (1/2) v^T Q v          range(Q)
``CvxpyPenalty(b)`` b(v), by CVXPY         convex, contains 0
==================  =====================  ==============================
"""

from ._base import KernelCode, Norm, Penalty
from ._cvxpy import CvxpyPenalty
from ._factory import as_penalty, penalty_from_data
from ._l1 import L1Norm
from ._l2 import L2Norm
from ._linf import LinfNorm
from ._pnorm import PNorm
from ._quadratic import Quadratic
from ._squared import SquaredNorm

__all__ = [
    "CvxpyPenalty",
    "KernelCode",
    "L1Norm",
    "L2Norm",
    "LinfNorm",
    "Norm",
    "PNorm",
    "Penalty",
    "Quadratic",
    "SquaredNorm",
    "as_penalty",
    "penalty_from_data",
]
