"""Certificates in the reports of the commands."""

from __future__ import annotations

import math
from argparse import Namespace
from dataclasses import replace
from decimal import ROUND_CEILING, Context
from typing import Any

import numpy as np

import verify
from gtvcvx.cli._report import entry, working
from gtvcvx.cli._status import NOT_PROVED, PROVED
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

SHOWN_SHARES = 3


def certify(
    args: Namespace, problem: GTVProblem, solution: Solution, rtol: float
) -> verify.Certificate:
    """Certify a solution through the package ``verify``, which sees plain data only."""
    with working(args, "certifying"):
        return verify.certify(problem.to_data(), solution.w, solution.u, rtol=rtol)


def certify_reached(
    args: Namespace, problem: GTVProblem, solution: Solution, rtol: float
) -> verify.Certificate:
    """Certify to the tolerance asked for or, if the solver stopped before it, what it reached.

    A tolerance that the solution is known to miss would have the certifier solve the problem anew.
    """
    reached = solution.rel_gap
    missed = rtol < reached < math.inf
    certificate = certify(args, problem, solution, 2.0 * reached if missed else rtol)
    if certificate.status != "CERTIFIED" or certificate.rel_gap <= rtol:
        return certificate
    proved = rounded_up(certificate.rel_gap)
    reason = f"relative gap {proved} is proved, but {rtol:g} was asked for"
    return replace(certificate, status="UNPROVED", reason=reason, rtol=rtol)


def exit_status(verdict: str) -> int:
    """0 if the claim is proved, 1 otherwise."""
    return PROVED if verdict == "CERTIFIED" else NOT_PROVED


def certificate_lines(certificate: verify.Certificate) -> list[str]:
    """Return the verdict, the bounds and, if it is not CERTIFIED, where the gap is."""
    lines = [entry("Certificate", f"{certificate.status}: {certificate.reason}")]
    if math.isfinite(certificate.gap):
        kind = "at most" if certificate.exact else "about"
        lines += [
            entry(
                "",
                f"gap {kind} {rounded_up(certificate.gap)}, "
                f"relative {rounded_up(certificate.rel_gap)}",
            ),
            entry("", f"{certificate.lower!r} <= optimum <= {certificate.upper!r}"),
        ]
    if certificate.distance_bound is not None:
        bound = rounded_up(certificate.distance_bound)
        lines.append(entry("", f"distance of the parameters to the optimal ones at most {bound}"))
    if certificate.status != "CERTIFIED":
        for what, shares in _largest_shares(certificate).items():
            shown = ", ".join(f"{name} {share:.3g}" for name, share in shares)
            if shown:
                lines.append(entry("", f"largest shares of the {what} in the gap: {shown}"))
    return lines


def certificate_data(certificate: verify.Certificate) -> dict[str, Any]:
    """Return the same for JSON."""
    return {
        "status": certificate.status,
        "reason": certificate.reason,
        "rtol": certificate.rtol,
        "exact": certificate.exact,
        "upper": certificate.upper,
        "lower": certificate.lower,
        "gap": certificate.gap,
        "rel_gap": certificate.rel_gap,
        "distance_bound": certificate.distance_bound,
        "largest_shares": _largest_shares(certificate),
    }


def _largest_shares(certificate: verify.Certificate) -> dict[str, list[tuple[str, float]]]:
    """Return the nodes and the edges with the largest shares of the gap, by name."""
    nodes, edges = certificate.worst(SHOWN_SHARES)
    found = {
        "nodes": [(str(label), gap) for label, gap in nodes],
        "edges": [(" - ".join(map(str, ends)), gap) for ends, gap in edges],
    }
    return {
        what: [(name, gap) for name, gap in shares if 0 < gap < math.inf]
        for what, shares in found.items()
    }


def rounded_up(value: float) -> str:
    """Return the value to three digits, rounded up: what is said to be at most that, is."""
    up = Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(float(value))
    return f"{float(up):.3g}"


def exact_pair(solution: Solution) -> tuple[Any, Any]:
    """Return (w, u), as rational numbers if the solution has some and its arrays are they, rounded.

    Whoever changes the arrays and keeps the rest asks about the arrays.
    """
    exact = solution.exact
    if exact is None:
        return solution.w, solution.u
    for given, ratios in ((solution.w, exact.w), (solution.u, exact.u)):
        table = np.array(ratios, dtype=object)
        if table.size != given.size or not _rounds_to(table.reshape(given.shape), given):
            return solution.w, solution.u
    return exact.w, exact.u


def _rounds_to(ratios: Any, values: Any) -> bool:
    try:
        return bool((ratios.astype(np.float64) == values).all())
    except (OverflowError, TypeError, ValueError):
        return False
