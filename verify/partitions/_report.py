"""Reports of :func:`verify.well_connected`: values, text and JSON."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from verify._display import aligned, few, fitted, html_block, html_table, html_text
from verify._json_file import write_json
from verify.certificates.arrays._archive import write
from verify.kernel.data import canonical, digest
from verify.kernel.partitions import NO, SCHEMA, YES
from verify.kernel.verdict import Verdict
from verify.partitions._cluster_report import ClusterReport, plain_number
from verify.partitions._large_document import from_document
from verify.partitions._solved import SolvedPartition

_HEADER = ("cluster", "nodes", "solution", "margin", "good for lambda >", "well-connected")
#: What has to be said wherever Definition 1 fails.
SUFFICIENT = "Definition 1 is sufficient, not necessary: its failing says nothing about recovery"


@dataclass(frozen=True)
class WellConnectedReport:
    """Theorem 2 for a partition.

    Attributes
    ----------
    holds : bool
        Whether every cluster is proved to be well-connected. Then every solution of the GTV problem
        is constant on each cluster.
    clusters : dict of hashable to ClusterReport
        Report of each cluster by its label (0..k-1 for a list of node lists).
    reason : str
        Why it does not hold; empty if it does.
    lam : float
        The problem's lambda.
    norm : str
        The penalty's norm, in which all constants are taken; "" if the penalty is no known norm.
    solution : SolvedPartition or None
        The clusters beside those of the solution that was given; None without one.
    """

    holds: bool
    clusters: dict[Hashable, ClusterReport]
    reason: str
    lam: float
    norm: str
    _data: Mapping[str, Any] = field(repr=False)
    solution: SolvedPartition | None = None

    @property
    def recovered(self) -> bool | None:
        """Whether solutions have one model on each cluster; None where that is not known.

        True where Definition 1 holds, whatever the solution; else what the solution given shows
        (``solution.recovered``, with ``solution.proved``).
        """
        if self.holds:
            return True
        return None if self.solution is None else self.solution.recovered

    def document(self, embed: bool = True) -> dict[str, Any]:
        """Witnesses of all clusters, as ``verify.check`` takes them (format: docs/theorem2.md).

        Parameters
        ----------
        embed : bool, default True
            Whether the document contains the problem data; without them they are to be passed to
            ``verify.check``.

        Raises
        ------
        ValueError
            If nothing is proved: no cluster is well-connected or not, or the data are malformed.
        """
        witnesses = [c.witness() for c in self.clusters.values() if c._witness is not None]
        if not self.holds and all(witness["claim"] == YES for witness in witnesses):
            raise ValueError(f"there is no proof to write down: {self.reason}")
        try:
            data = canonical(self._data)
        except Verdict as refusal:
            raise ValueError(f"problem data: {refusal}") from None
        document = {
            "schema": SCHEMA,
            "sha256": digest(data),
            "claim": YES if self.holds else NO,
            "clusters": witnesses,
        }
        return document | ({"data": data} if embed else {})

    def save(self, path: str | os.PathLike[str], embed: bool = True) -> None:
        """Write :meth:`document`, whole or not at all.

        A path that ends in ``.gtvc`` gets raw arrays in a zip file, for large problems, which have
        the problem data in any case; any other one gets JSON. ``verify.check`` reads both.

        Raises
        ------
        ValueError
            As :meth:`document`.
        OSError
            If the file cannot be written.
        """
        if os.fspath(path).lower().endswith(".gtvc"):
            write(from_document(self.document(False), self._data), path)
        else:
            write_json(self.document(embed), path)

    @property
    def lam_min(self) -> float:
        """All clusters are well-connected for every lambda above it."""
        return max(cluster.lam_min for cluster in self.clusters.values())

    def to_dict(self, witnesses: bool = True) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain: dict[str, Any] = {
            "schema": "gtv-well-connected/1",
            "recovered": self.recovered,
            "holds": self.holds,
            "reason": self.reason,
            "lam": self.lam,
            "norm": self.norm,
            "lam_min": plain_number(self.lam_min),
            "clusters": [cluster.to_dict(witnesses) for cluster in self.clusters.values()],
        }
        if self.solution is not None:
            plain["solution"] = self.solution.to_dict()
        return plain

    def __str__(self) -> str:
        condition = "" if self.holds else " if every cluster is well-connected"
        clusters = [cluster.text(condition) for cluster in self.clusters.values()]
        return "\n".join([*self._recovery(), *self._theorem(self.reason), *clusters])

    def __repr__(self) -> str:
        """Show the verdicts and a line for each of the first clusters; ``str`` is the report."""
        return fitted(["WellConnectedReport", *self._head(), *aligned(_HEADER, self._rows())])

    def _repr_html_(self) -> str:
        """Show the verdicts and a line for each of the first clusters."""
        title, *rest = self._head()
        said = "".join(f"<p>{html_text(line.strip())}</p>" for line in rest)
        return html_block(title, said, html_table(_HEADER, self._rows()))

    def _head(self) -> list[str]:
        """Return the verdicts, each in a line, without the reason why the first cluster fails."""
        return [*self._recovery(), *self._theorem(self.reason.partition(";")[0])]

    def _recovery(self) -> list[str]:
        """Say what solutions do at this lambda, which readers want to know first."""
        lines = [] if self.solution is None else str(self.solution).split("\n")
        if self.holds:
            every = f"every solution at lambda = {self.lam:.6g} has one model on each cluster"
            return [f"the partition IS recovered: {every} (Theorem 2)", *lines]
        how = "pass solution=problem.solve(), or see verify.recovers"
        return lines or [
            f"not solved: whether the partition is recovered at lambda = {self.lam:.6g} is open",
            f"  {how}",
        ]

    def _theorem(self, reason: str) -> list[str]:
        head = "every cluster is well-connected (Definition 1)" if self.holds else reason
        line = f"Theorem 2 ({self.norm or 'no'} norm, lambda = {self.lam:.6g}): {head}"
        return [line] if self.holds else [line, f"  {SUFFICIENT}"]

    def _rows(self) -> list[list[str] | None]:
        clusters = list(self.clusters.values())
        return [None if k is None else self._row(clusters[k]) for k in few(len(clusters))]

    def _row(self, cluster: ClusterReport) -> list[str]:
        solved = self.solution is not None and self.solution.recovered is not None
        found = self.solution.clusters[cluster.label].found if self.solution and solved else "-"
        return cluster.row(found)
