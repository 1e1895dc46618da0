"""Edge penalties phi of generalized total variation: norms and quadratics.

==================== ===================== ==============================
class                phi(v)                domain of phi*
==================== ===================== ==============================
``L1Norm``           ||v||_1               ||z||_inf <= 1
``L2Norm``           ||v||_2               ||z||_2 <= 1
``LinfNorm``         ||v||_inf             ||z||_1 <= 1
``PNorm(p)``         ||v||_p, p >= 1       ||z||_q <= 1, 1/p + 1/q = 1
``SquaredNorm``      (1/2) ||v||_2^2       everything
``Quadratic(Q)``     (1/2) v^T Q v         range(Q)
``CvxpyPenalty(b)``  b(v), by CVXPY        convex, contains 0
==================== ===================== ==============================
"""

from gtvcvx.penalties._base import CompiledForm, Norm, Penalty
from gtvcvx.penalties._cvxpy import CvxpyPenalty
from gtvcvx.penalties._factory import as_penalty, penalty_from_data
from gtvcvx.penalties._l1 import L1Norm
from gtvcvx.penalties._l2 import L2Norm
from gtvcvx.penalties._linf import LinfNorm
from gtvcvx.penalties._pnorm import PNorm
from gtvcvx.penalties._quadratic import Quadratic
from gtvcvx.penalties._squared import SquaredNorm

__all__ = [
    "CompiledForm",
    "CvxpyPenalty",
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


def __dir__() -> list[str]:
    return sorted(__all__)
