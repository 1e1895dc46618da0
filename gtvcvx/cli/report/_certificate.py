"""The certificate of a report: one that is given and checked, or one that is built."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

import verify
from gtvcvx.cli._arguments import DEFAULT_RTOL
from gtvcvx.cli._proof import certificate_data, exact_pair
from gtvcvx.cli.report import _embedded
from gtvcvx.cli.report._content import Content
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

_SHORTEST_NUMBER = 8  # characters of a flow, "0x0p0" with quotes and a comma


def built(problem: GTVProblem, solution: Solution, rtol: float | None) -> Content:
    """Build a certificate from the solution's own flow, without solving anything anew."""
    certificate = verify.certify(
        problem.to_data(), *exact_pair(solution), rtol or DEFAULT_RTOL, search=False
    )
    shares = _finite(certificate.node_gaps, certificate.edge_gaps)
    text = _text(certificate, problem)
    proof = certificate_data(certificate)
    return Content(problem, solution, proof, *shares, "the certificate", text)


def given(path: str, problem: GTVProblem, solution: Solution, rtol: float | None) -> Content:
    """Let the kernel judge a certificate file that is about this problem and this point."""
    proof = _checked(path, problem, solution, rtol)
    shares = _finite(solution.node_gaps, solution.edge_gaps)
    return Content(problem, solution, proof, *shares, "the solver", _embeddable(path))


def _text(certificate: verify.Certificate, problem: GTVProblem) -> str | None:
    """Return the document as text, unless it is in arrays or its flows alone are too many."""
    if problem.graph.n_edges * problem.dim * _SHORTEST_NUMBER > _embedded.MOST_CHARACTERS:
        return None
    if not isinstance(certificate.document, dict):
        return None
    return json.dumps(certificate.document, separators=(",", ":"), allow_nan=False)


def _embeddable(path: str) -> str | None:
    """Return the text of a certificate file as it is, if it has the data in it."""
    with open(path, "rb") as file:
        try:
            text = file.read().decode("utf-8")
            return text if json.loads(text).get("data") is not None else None
        except (ValueError, AttributeError, RecursionError):
            return None


def _finite(node: Any, edge: Any) -> tuple[Any, Any]:
    finite = np.isfinite(node).all() and np.isfinite(edge).all()
    return (node, edge) if finite else (None, None)


def _checked(
    path: str, problem: GTVProblem, solution: Solution, rtol: float | None
) -> Mapping[str, Any]:
    proof = verify.check(path, problem.to_data(), rtol or DEFAULT_RTOL).to_json()
    proved = proof["gap"] is not None
    if proof["status"] == "CERTIFIED" and not proved:
        raise ValueError(f"--certificate: {path} is not about a solution but about a partition")
    if proved and not np.array_equal(_point(path), solution.w):
        raise ValueError(f"--certificate: {path} is about another point than SOLUTION")
    return {**proof, "exact": proved}


def _point(path: str) -> Any:
    """Return the point of a certificate that the kernel has read, rounded to floats."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["w"]
    except UnicodeDecodeError:
        raise ValueError(f"--certificate: {path}: a report takes certificates as JSON") from None
    try:
        return np.array([[_rounded(x) for x in row] for row in rows])
    except OverflowError:  # no point of floats
        return None


def _rounded(number: str | float) -> float:
    """Return the float nearest to a number of a certificate, verify/SCHEMA.md section 2."""
    if not isinstance(number, str):
        return float(number)
    numerator, slash, denominator = number.partition("/")
    if not slash:
        return float.fromhex(number)
    return float(Fraction(int(numerator, 16), int(denominator, 16)))
