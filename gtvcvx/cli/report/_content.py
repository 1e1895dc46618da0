"""What a report is about: a problem, its solution, and what is proved of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gtvcvx._arrays import FloatArray
from gtvcvx._diagnostics import coefficient_names
from gtvcvx.cli._clusters import Clusters, find_clusters
from gtvcvx.problem import GTVProblem
from gtvcvx.solution import Solution

#: Coefficients in tables and in pictures.
SHOWN_COLUMNS, PICTURED = 8, 2


@dataclass(frozen=True)
class Content:
    """What a report is about.

    Attributes
    ----------
    problem, solution
        And what is proved about it:
    proof
        Figures of the certificate, as JSON has them.
    node_gaps, edge_gaps
        (n,) and (m,), shares in the gap; None if it is infinite.
    shares_of
        Whose shares these are.
    certificate
        Text of the certificate with its data; None if it is no such text.
    """

    problem: GTVProblem
    solution: Solution
    proof: Mapping[str, Any]
    node_gaps: FloatArray | None
    edge_gaps: FloatArray | None
    shares_of: str
    certificate: str | None

    @cached_property
    def names(self) -> list[str]:
        """Names of the coefficients."""
        found = coefficient_names(self.solution)
        return found or [f"w{k}" for k in range(self.problem.dim)]

    @cached_property
    def labels(self) -> list[str]:
        """Node labels as text."""
        return [str(label) for label in self.problem.graph.nodes]

    @cached_property
    def clusters(self) -> Clusters:
        """Nodes that share a parameter vector."""
        return find_clusters(self.solution)
