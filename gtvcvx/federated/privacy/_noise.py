"""Gaussian noise whose variance follows a schedule, and what one release of it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, is_integer, is_number

# Noise needs this many values between its deviation and zero to be a Gaussian: a million.
_SPACING = 1e-6
_TINY = float(np.finfo(np.float64).tiny)


def release_zcdp(sensitivity: float, variance: float) -> float:
    r"""ZCDP of one release with Gaussian noise, ``Delta^2 / (2 delta^2)`` ([PGFL] (46)).

    Parameters
    ----------
    sensitivity : float
        Delta >= 0, the most that the released vector moves (Euclidean norm) when one sample of the
        client is replaced.
    variance : float
        delta^2 > 0 of the noise of each entry.

    Returns
    -------
    float
        rho: the release is rho-zCDP. Infinite where it is beyond the largest double.

    Raises
    ------
    ValueError
        A number out of range, or NaN.
    """
    _positive("variance", variance)
    if not is_number(sensitivity) or not 0.0 <= sensitivity < math.inf:
        raise ValueError(f"sensitivity: a finite number >= 0 is expected, got {sensitivity!r}")
    ratio = float(sensitivity) / math.sqrt(float(variance))
    # What underflows is rounded up: eps goes with the root of rho.
    return max(0.5 * ratio * ratio, _TINY) if sensitivity else 0.0


@dataclass(frozen=True)
class GeometricVariance:
    r"""Noise variances ``delta^2(n) = zeta^(n-1) delta^2(1)`` of the rounds n = 1, 2, ....

    The paper fixes delta^2(0), of which there is no release; the variance of the first release is
    the parameter here. With zeta < 1 each release leaks 1 / zeta times as much as the one before,
    so that the last rounds own the budget.

    Parameters
    ----------
    first : float
        delta^2(1) > 0.
    zeta : float, default 1.0
        Factor from round to round, in (0, 1]; 1 is a constant variance.

    Raises
    ------
    ValueError
        A number out of range, or NaN.
    """

    first: float
    zeta: float = 1.0

    def __post_init__(self) -> None:
        _positive("first", self.first)
        if not is_number(self.zeta) or not 0.0 < self.zeta <= 1.0:
            raise ValueError(f"zeta: a number in (0, 1] is expected, got {self.zeta!r}")

    def variance(self, round: int) -> float:
        """Variance delta^2(n) of round n >= 1.

        Raises
        ------
        ValueError
            Below the smallest normal double, where noise would no longer be Gaussian.
        """
        if not is_integer(round) or round < 1:
            raise ValueError(f"round: an integer >= 1 is expected, got {round!r}")
        value = self.first * self.zeta ** (int(round) - 1)
        if value < _TINY:
            raise ValueError(
                f"zeta: the variance of round {round} is {value}, which is no noise; "
                "a larger zeta or fewer rounds are needed"
            )
        return value

    def total_zcdp(self, sensitivity: float, rounds: int) -> float:
        r"""ZCDP of a client that releases in each of the rounds 1, ..., n, in closed form.

        .. math:: \rho = \phi(1) \frac{1 - \zeta^n}{\zeta^{n-1} - \zeta^n},
                  \qquad \phi(1) = \frac{\Delta^2}{2 \delta^2(1)}

        `ZcdpAccountant` adds up what was released; this is for plans, and a check of that sum.
        """
        if not is_integer(rounds) or rounds < 0:
            raise ValueError(f"rounds: an integer >= 0 is expected, got {rounds!r}")
        first = release_zcdp(sensitivity, self.first)
        if rounds == 0:
            return 0.0
        self.variance(rounds)
        if self.zeta == 1.0:
            return first * rounds
        log_zeta = math.log(self.zeta)
        # No difference of powers that are nearly equal.
        series = math.expm1(-rounds * log_zeta) / math.expm1(-log_zeta)
        return first * series

    def leak_ratio(self, rounds: int) -> float:
        """Return the zCDP of release n over that of the first, ``zeta^-(n-1)``."""
        return self.first / self.variance(rounds)

    def late_share(self, rounds: int) -> float:
        """Share of the zCDP of n rounds that the last tenth of them owns, rounded up to one."""
        late = math.ceil(rounds / 10)
        # Backwards in time the costs are 1, zeta, zeta^2, ...
        self.variance(rounds)
        if self.zeta == 1.0:
            return late / rounds
        log_zeta = math.log(self.zeta)
        return math.expm1(late * log_zeta) / math.expm1(rounds * log_zeta)


class GaussianNoise:
    """Adds the noise of a schedule to what a client releases.

    Each release has a fresh generator that the operating system seeds, so that no run can be
    repeated, and copies of this object draw different noise. NumPy's floating-point Gaussians are
    not hardened against attacks on the least bits.

    Parameters
    ----------
    variances : GeometricVariance
        Variance of each round.
    insecure_seed : int, optional
        Fixes the noise, for tests: whoever knows the seed takes the noise off again. `insecure`
        is then true, and no `PrivacyReport` is made.
    """

    def __init__(self, variances: GeometricVariance, insecure_seed: int | None = None) -> None:
        if insecure_seed is not None and not is_integer(insecure_seed):
            raise TypeError(f"insecure_seed: an integer is expected, got {insecure_seed!r}")
        self.variances = variances
        self._insecure = None if insecure_seed is None else np.random.default_rng(insecure_seed)

    @property
    def insecure(self) -> bool:
        """Whether the noise comes from a fixed seed."""
        return self._insecure is not None

    def released(self, w: ArrayLike, round: int) -> FloatArray:
        """Return ``w + N(0, delta^2(n) I)``, a vector (d,) to be released in round n >= 1.

        The client's own dual update must use this vector, never w: else phi gives w away.

        Raises
        ------
        ValueError
            Entries that are not finite, or so large that rounding swallows the noise: whoever may
            choose where w lies could ask for that.
        """
        exact = finite_array(w, "w", 1)
        deviation = math.sqrt(self.variances.variance(round))
        spacing = float(np.spacing(np.max(np.abs(exact), initial=0.0)))
        if spacing > _SPACING * deviation:
            raise ValueError(
                f"w: entries are so large that noise of deviation {deviation:.3g} is lost in "
                "rounding, and w is not hidden"
            )
        # A new generator each time: one that is kept would be copied to processes along with its
        # state, and clients with equal noise hide nothing from each other.
        generator = np.random.default_rng() if self._insecure is None else self._insecure
        return exact + deviation * generator.standard_normal(len(exact))


def _positive(name: str, value: float) -> None:
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name}: a finite number > 0 is expected, got {value!r}")
