"""From zCDP to (eps, delta): three upper bounds on eps, none ever below the exact value.

rho-zCDP of Gaussian releases is what one Gaussian release with mu = sqrt(2 rho) loses: adaptive
sums of Gaussian mechanisms are no worse than that one. All results lie on the upper side: what
rounding may have taken is added.

Sources: [BS16] Bun, Steinke, "Concentrated differential privacy", TCC 2016, Proposition 1.3, which
is [PGFL] (51). [CKS20] Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy",
NeurIPS 2020, Proposition 12. [BW18] Balle, Wang, "Improving the Gaussian mechanism for differential
privacy", ICML 2018, Theorem 8.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import erfcx

from gtvcvx._arrays import FloatArray, is_number

_UNIT = float(np.finfo(np.float64).eps)
# A sum of a dozen rounded operations is off by less than this share of the sum of its parts.
_SUM = 16 * _UNIT
# Orders alpha - 1 that are tried at first, on a grid of logarithms: fine enough that the best of
# them and its two neighbours enclose a minimum, coarse enough to take a tenth of a millisecond.
_ORDERS = 1001
# Halvings of an interval of the order of max(1, mu): to the last bit, and a few more.
_BISECTIONS = 64
# With 16 nodes the integral below is exact to rounding on intervals of this length.
_SHORT = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


def epsilon_simple(rho: float, delta: float) -> float:
    r"""Upper bound on eps by the formula of the paper ([PGFL] (51), [BS16]).

    .. math:: \epsilon = \rho + 2 \sqrt{\rho \ln(1 / \delta)}

    Parameters
    ----------
    rho : float
        Total zCDP, >= 0 and finite.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Every mechanism with rho-zCDP is (eps, delta)-differentially private.

    Raises
    ------
    ValueError
        rho or delta out of range, or NaN.
    """
    rho, delta = _checked(rho, delta)
    return (rho + 2.0 * math.sqrt(rho) * math.sqrt(-math.log(delta))) * (1.0 + _SUM)


def epsilon_zcdp(rho: float, delta: float) -> float:
    r"""Upper bound on eps by the best order of Renyi divergence ([CKS20]).

    .. math:: \epsilon = \inf_{\alpha > 1} \rho \alpha + \ln(1 - 1/\alpha)
              - \frac{\ln \delta + \ln \alpha}{\alpha - 1}

    Never above `epsilon_simple`. Any order gives a bound, so that an infimum that is missed by a
    little stays on the upper side.

    Parameters
    ----------
    rho : float
        Total zCDP, >= 0 and finite.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        Every mechanism with rho-zCDP is (eps, delta)-differentially private.

    Raises
    ------
    ValueError
        rho or delta out of range, or NaN.
    """
    rho, delta = _checked(rho, delta)
    if rho == 0.0:
        return 0.0
    log_inverse = -math.log(delta)
    # The order of (51): the best one is smaller, but rarely by more than 1 / delta.
    order = 0.5 * (math.log(log_inverse) - math.log(rho))
    grid = np.linspace(min(-20.0, order - 5.0), max(20.0, order + 5.0), _ORDERS)
    values = _order_bound(grid, rho, log_inverse)
    k = int(np.argmin(values))
    inside = grid[max(k - 1, 0)], grid[min(k + 1, _ORDERS - 1)]
    finer = minimize_scalar(
        lambda x: _order_bound(np.array([x]), rho, log_inverse)[0],
        bounds=inside,
        method="bounded",
        options={"xatol": 1e-9},
    ).fun
    best = min(float(values[k]), float(finer), epsilon_simple(rho, delta))
    return max(best, 0.0)


def _order_bound(log_order: FloatArray, rho: float, log_inverse: float) -> FloatArray:
    """Bounds of the orders alpha = 1 + exp(log_order), rounding included."""
    x = np.exp(log_order)
    with np.errstate(over="ignore"):  # orders far off, of infinite bounds
        parts = rho * (1.0 + x), np.log1p(1.0 / x), log_inverse / x, np.log1p(x) / x
        value = parts[0] - parts[1] + (parts[2] - parts[3])
        return np.asarray(value + _SUM * (parts[0] + parts[1] + parts[2] + parts[3]))


def epsilon_gaussian(rho: float, delta: float) -> float:
    r"""Upper bound on eps that Gaussian releases attain ([BW18]).

    It is the solution of

    .. math:: \Phi(\mu/2 - \epsilon/\mu) - e^\epsilon \Phi(-\mu/2 - \epsilon/\mu) = \delta,
              \qquad \mu = \sqrt{2 \rho}

    For Gaussian noise of given sensitivity and variance there is no smaller one, and none below
    it is returned; a mechanism that happens to move less than its sensitivity may lose less. It
    holds for sums of Gaussian releases alone, not for all of rho-zCDP. Never above `epsilon_zcdp`.

    Parameters
    ----------
    rho : float
        Total zCDP of Gaussian releases, >= 0 and finite.
    delta : float
        Strictly between 0 and 1.

    Returns
    -------
    float
        The releases are (eps, delta)-differentially private together; 0 where delta is at least
        the total variation distance ``2 Phi(mu/2) - 1``.

    Raises
    ------
    ValueError
        rho or delta out of range, or NaN.
    """
    rho, delta = _checked(rho, delta)
    mu = math.sqrt(2.0 * rho)
    if mu == 0.0 or math.erf(mu / math.sqrt(8.0)) * (1.0 + _SUM) <= delta:
        return 0.0
    bound = epsilon_zcdp(rho, delta)
    low, high = -mu / 2.0, max(bound / mu - mu / 2.0, -mu / 2.0)
    target = math.log(delta)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        value, slack = _log_delta(middle, mu)
        if value + slack <= target:
            high = middle
        else:
            low = middle
    # eps = mu (a + mu / 2), of which the sum rounds.
    return min(mu * (high + mu / 2.0) * (1.0 + _SUM) + _SUM * mu * (abs(high) + mu), bound)


def _log_delta(a: float, mu: float) -> tuple[float, float]:
    """Logarithm of delta at eps = mu (a + mu / 2), and how far off rounding may have put it.

    With the Mills ratio R(x) = Phi(-x) / phi(x) it is ln phi(a) + ln(R(a) - R(a + mu)), as
    exp(eps) phi(a + mu) = phi(a).
    """
    if a < -8.0:  # R would overflow; exp(eps) Phi(-a - mu) is less than rounding here
        return math.log1p(-0.5 * math.erfc(-a / math.sqrt(2.0))), _SUM
    drop, relative = _mills_drop(a, mu)
    if drop <= 0.0:
        return math.inf, 0.0
    log_density = -0.5 * a * a - 0.5 * math.log(2.0 * math.pi)
    value = log_density + math.log(drop)
    return value, relative + _SUM * (abs(log_density) + abs(value) + 1.0)


def _mills_drop(a: float, mu: float) -> tuple[float, float]:
    """Return R(a) - R(a + mu) and its relative error; by R' = x R - 1 where it would cancel."""
    if mu <= _SHORT:
        x = a + 0.5 * mu * (1.0 + _NODES)
        # 1 - x R(x) is about 1 / x^2 for large x, what rounding does to it about one unit.
        slopes = 1.0 - x * _mills(x)
        drop = 0.5 * mu * float(_WEIGHTS @ slopes)
        return drop, _SUM * (2.0 + max(a, 0.0) ** 2 + 2.0 * abs(a))
    ends = _mills(np.array([a, a + mu]))
    drop = float(ends[0] - ends[1])
    return drop, _SUM * float(ends[0] + ends[1]) / drop if drop > 0.0 else math.inf


def _mills(x: FloatArray) -> FloatArray:
    return np.asarray(math.sqrt(math.pi / 2.0) * erfcx(x / math.sqrt(2.0)))


def _checked(rho: float, delta: float) -> tuple[float, float]:
    if not is_number(rho) or not 0.0 <= rho < math.inf:
        raise ValueError(f"rho: a finite number >= 0 is expected, got {rho!r}")
    if not is_number(delta) or not 0.0 < delta < 1.0:
        raise ValueError(f"delta: a number strictly between 0 and 1 is expected, got {delta!r}")
    return float(rho), float(delta)
