"""What the exact kernel can prove about the recovery of a partition.

For any dual feasible flow u, any solution w_hat and the gap P(w) - Dual(u) of any point w, the
share of an edge in the gap at w_hat gives

    (lambda A_e - ||u_e||_*) phi((D w_hat)_e)  <=  P(w_hat) - Dual(u)  <=  gap.

An exact certificate of a pair (w, u) with w constant on the clusters and ||u_e||_* < lambda A_e on
all edges inside them therefore proves two things: some point that is constant on the clusters is
within gap of optimal, and every solution is constant on them up to the spread

    ||w_hat_i - w_hat_j||  <=  gap / min over inner e of (lambda A_e - ||u_e||_*)

for all i, j in a connected cluster (the shares of a path's edges add up to no more than the gap).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from verify._arrays import BoolArray, FloatArray
from verify._display import html_report
from verify.certificates._certificate import Certificate
from verify.certificates._entry import certify
from verify.partitions._data import ProblemData
from verify.partitions._rounding import gamma
from verify.partitions.constants._room import flow_room


@dataclass(frozen=True)
class RecoveryProof:
    """Result of ``RecoveryReport.prove``.

    Attributes
    ----------
    holds : bool
        Whether the certificate is CERTIFIED and its flow proves a finite ``spread``.
    certificate : Certificate
        Of the pair (w, u), w constant on the clusters; ``certificate.save(path)`` writes it.
    slack : float
        Least 1 - ||u_e||_* / (lambda A_e) over the edges inside clusters, for the certified flow.
    spread : float
        Every solution w_hat has ||w_hat_i - w_hat_j|| <= spread, in the penalty's norm, for i and j
        in the same cluster; inf if the slack is not positive or a cluster is not connected.
    """

    holds: bool
    certificate: Certificate
    slack: float
    spread: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, the certificate's document left out."""
        return {
            "holds": self.holds,
            "status": self.certificate.status,
            "rel_gap": self.certificate.rel_gap,
            "slack": self.slack if np.isfinite(self.slack) else str(self.slack),
            "spread": self.spread if np.isfinite(self.spread) else str(self.spread),
        }

    def __str__(self) -> str:
        text = (
            f"a point that is constant on the clusters is {self.certificate.status}:"
            f" relative gap {self.certificate.rel_gap:.3g}"
        )
        if self.holds:
            return f"{text}\n  every solution is constant on them up to {self.spread:.3g} (proved)"
        return f"{text}\n  nothing is proved about all solutions"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show the report."""
        return html_report(str(self))


def prove_recovery(
    plain: Mapping[str, Any],
    data: ProblemData,
    w: FloatArray,
    u: FloatArray,
    inner: BoolArray,
    connected: bool,
    rtol: float,
) -> RecoveryProof:
    """Certify (w, u) and bound the spread of all solutions.

    Parameters
    ----------
    plain, data : mapping and ProblemData
        The problem.
    w, u : ndarray
        (n, d) constant on clusters, (m, d) flow.
    inner : ndarray of bool, shape (m,)
        Edges inside clusters.
    connected : bool
        Whether every cluster is connected.
    rtol : float
        Tolerance of the certificate.
    """
    certificate = certify(plain, w, u, rtol)
    certified = certificate.status == "CERTIFIED" and certificate.exact
    room = np.zeros(0)
    slack = inf
    if inner.any():
        room, capacity = flow_room(
            certificate.u[inner], data.weights[inner], data.lam, str(data.norm)
        )
        slack = float((room / capacity).min()) - float(gamma(8))
    spread = inf
    if certified and connected and slack > 0.0:
        least = float(room.min(initial=inf)) * (1.0 - float(gamma(8)))
        spread = max(certificate.gap, 0.0) * (1.0 + float(gamma(8))) / least
    return RecoveryProof(certified and spread < inf, certificate, slack, spread)
