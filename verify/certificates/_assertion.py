"""`verify.assert_certified`: a certificate or a failure that says where the gap is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from verify.certificates._certificate import Certificate
from verify.certificates._entry import certify

SHOWN = 5
NOT_BY_U = (
    "w is within rtol, as another flow proves, but the given u does not prove it, even after "
    "repair; see its sign and orientation, or leave it out"
)
# Edges and nodes below this share of the gap are not worth a place in the message.
LEAST_SHARE = 1e-3


def assert_certified(problem: Any, w: Any, u: Any = None, rtol: float = 1e-6) -> Certificate:
    """Certify w, and raise AssertionError unless the status is CERTIFIED.

    Parameters
    ----------
    problem : object or mapping
        Plain data (verify/SCHEMA.md), or an object with `to_data` and perhaps `solve`.
    w : array_like, shape (n, d)
        The point.
    u : array_like, shape (m, d), optional
        Edge flows of a dual solution, which must prove w themselves. Default: flows are looked for.
    rtol : float, default 1e-6
        Tolerance on gap / max(1, |upper|).

    Returns
    -------
    Certificate

    Raises
    ------
    AssertionError
        REFUTED or UNPROVED, with the reason, the bounds, the gap, and the nodes and edges with the
        largest shares of the gap. UNPROVED also where another flow than the given one proves w.
    ValueError, TypeError
        Bad problem data, shapes, NaN or infinity, or a bad tolerance (see `verify.certify`).
    """
    __tracebackhide__ = True
    certificate = certify_both(problem, w, u, rtol)
    if certificate.status != "CERTIFIED":
        raise AssertionError(failure_text(certificate))
    return certificate


def certify_both(problem: Any, w: Any, u: Any, rtol: float) -> Certificate:
    """Certify w, by u itself where it is given: a flow of the wrong sign must not go unnoticed."""
    if u is None:
        return certify(problem, w, None, rtol)
    own = certify(problem, w, u, rtol, search=False)
    if own.status != "UNPROVED":
        return own
    found = certify(problem, w, u, rtol)
    if found.status != "CERTIFIED":
        return found
    return replace(own, reason=NOT_BY_U)


def failure_text(certificate: Certificate) -> str:
    """Return status, reason, bounds, gap, and the worst nodes and edges, a line each."""
    kind = "exact" if certificate.exact else "float estimates, not proved"
    lines = [
        f"{certificate.status}: {certificate.reason}",
        f"  objective at w <= {_number(certificate.upper)}, "
        f"optimum >= {_number(certificate.lower)}  ({kind})",
        f"  gap {certificate.gap:.3e}, relative {certificate.rel_gap:.3e}, "
        f"rtol {certificate.rtol:g}",
    ]
    total = float(certificate.node_gaps.sum() + certificate.edge_gaps.sum())
    if not (math.isfinite(total) and total > 0):
        return "\n".join([*lines, "  no flow was found that splits the gap over nodes and edges"])
    nodes, edges = certificate.worst(SHOWN)
    lines += _shares("worst nodes", [(repr(label), gap) for label, gap in nodes], total)
    lines += _shares("worst edges", [(f"{i!r} - {j!r}", gap) for (i, j), gap in edges], total)
    return "\n".join(lines)


def _shares(title: str, found: list[tuple[str, float]], total: float) -> list[str]:
    shown = [
        f"    {gap / total:6.1%} of the gap, {gap:.2e}: {name}"
        for name, gap in found
        if gap >= LEAST_SHARE * total
    ]
    return [f"  {title}:", *shown] if shown else [f"  {title}: none"]


def _number(value: float) -> str:
    return f"{value:.12g}"
