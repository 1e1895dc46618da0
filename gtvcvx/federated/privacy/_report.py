"""The report: what each client has lost, and what that statement rests on."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray

#: What every guarantee of this package rests on.
ASSUMPTIONS = (
    "local: each client adds its own noise, honestly; nobody else is trusted with w",
    "sample level: neighbours differ by one replaced row; the number of rows is public",
    "bounds, clipping level and all other parameters were chosen without a look at the rows",
    "the dual update uses the released vector, so that all else that leaves is post-processing",
    "no amplification by sampling: the server sees who takes part",
    "node problems are solved to 1e-4 of the sensitivity, not exactly; floating-point Gaussians "
    "are not hardened against attacks on the least bits",
)
# One screen of 24 lines: this many clients, and this many characters a line.
_SHOWN = 8
_WIDTH = 100


@dataclass(frozen=True, repr=False)
class PrivacyReport:
    """Differential privacy of each client's rows, after all that it has released.

    The three eps are upper bounds, at most this much is lost: the paper's formula, the best one
    for zCDP, and that for Gaussian noise, each at most the one before. What was really lost may be
    less, as sensitivities are worst cases.

    Parameters
    ----------
    clients : tuple
        Labels of the k clients.
    releases : ndarray of int, shape (k,)
        How often each has released something.
    rho : ndarray, shape (k,)
        Total zCDP.
    epsilon_simple, epsilon_zcdp, epsilon_gaussian : ndarray, shape (k,)
        Upper bounds on eps, by the functions of these names.
    delta : float
        For all of them.
    assumptions : tuple of str
        What the guarantee rests on.
    warnings : tuple of str
        Whether late rounds leak most.
    """

    clients: tuple[Any, ...]
    releases: IntArray
    rho: FloatArray
    epsilon_simple: FloatArray
    epsilon_zcdp: FloatArray
    epsilon_gaussian: FloatArray
    delta: float
    assumptions: tuple[str, ...] = ASSUMPTIONS
    warnings: tuple[str, ...] = ()

    @property
    def epsilon(self) -> float:
        """Largest eps of all clients, an upper bound: the least of the three for each."""
        return float(np.max(self.epsilon_gaussian))

    def __repr__(self) -> str:
        worst = np.argsort(-self.rho, kind="stable")[:_SHOWN]
        title = f"PrivacyReport: {len(self.clients)} clients, delta {self.delta:.3g}, eps at most"
        names = "releases", "rho", "by (51)", "by zCDP", "Gaussian"
        lines = [title, f"{'client':<20}" + "".join(f"{name:>12}" for name in names)]
        lines += [self._line(int(k)) for k in worst]
        if len(self.clients) > len(worst):
            lines.append(f"... and {len(self.clients) - len(worst)} clients that lost no more")
        warned = [f"WARNING: {text}" for text in self.warnings]
        assumed = ["assumes " + "; ".join(self.assumptions)]
        for text, most in ((warned, 2), (assumed, 11)):
            lines += textwrap.wrap(" ".join(text), _WIDTH, max_lines=most, placeholder=" ...")
        return "\n".join(lines)

    def _line(self, k: int) -> str:
        label = " ".join(str(self.clients[k]).split())
        label = label if len(label) <= 20 else f"{label[:17]}..."
        values = self.rho, self.epsilon_simple, self.epsilon_zcdp, self.epsilon_gaussian
        numbers = "".join(f"{float(column[k]):>12.4g}" for column in values)
        return f"{label:<20}{int(self.releases[k]):>12}{numbers}"
