"""What private runs of PGFL have cost each client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms._pgfl_privacy import PrivateReleases
from gtvcvx.federated.algorithms._pgfl_server import ServerReport
from gtvcvx.federated.privacy import GeometricVariance, PrivacyReport, ZcdpAccountant
from gtvcvx.federated.programs import Report


def privacy_report(
    private: PrivateReleases, net: Network, rho: float, ridges: FloatArray, run: Any
) -> PrivacyReport:
    """Return what each client has lost in a run, over the rounds in which it released something.

    Raises
    ------
    ValueError
        The noise has a fixed seed, or w_k itself goes into the multipliers.
    """
    if private.insecure_dual:
        raise ValueError("insecure_dual: the multipliers give w_k away exactly; no report is made")
    accountant = ZcdpAccountant(net.nodes)
    variances = GeometricVariance(private.variance, private.zeta)
    released = rounds_of_releases(run.reports, net.n_clients, run.rounds)
    for k, rounds in released.items():
        answer = private.answer(net.models[k], rho, float(ridges[k]), net.label(k))
        for round_ in rounds:
            accountant.record(net.nodes[k], round_, answer.sensitivity, variances.variance(round_))
    return accountant.report(private.delta, insecure_seed=private.insecure_seed is not None)


def rounds_of_releases(
    reports: Sequence[Report], n_clients: int, rounds: int
) -> dict[int, list[int]]:
    """Return in which rounds each client has released something, at most.

    From the servers, which never crash: a client that took part counts, though it may have been
    silent since a message was lost. So do all rounds after a server's last report.
    """
    out: dict[int, list[int]] = {}
    for report in reports[n_clients:]:
        assert isinstance(report, ServerReport)
        later = range(report.through + 1, rounds + 1)
        out |= {k: [*present, *later] for k, present in report.present.items()}
    return out
