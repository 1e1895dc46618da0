"""A partition beside a solution of the problem: is it recovered, and how is that known."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any

from verify._display import few, fitted, html_report, short
from verify.certificates._certificate import Certificate

#: The words for a cluster: one of the solution's; one model, but shared; several models.
EQUAL, MERGED, SPLIT = "equal", "merged", "split"


@dataclass(frozen=True)
class SolvedCluster:
    """One cluster of the partition in a solution.

    Attributes
    ----------
    label : hashable
        The cluster's label in the partition.
    found : {"equal", "merged", "split"}
        Whether the cluster is one of the solution's; or has one model, which another cluster shares
        across the edges between them; or has several models.
    parts : int
        Number of the solution's clusters that its nodes are in.
    spread : float
        How far the models of two of its nodes are apart in the solution, at most.
    bound : float
        How far they can be apart in ANY solution, at most: proved by the certified gap and the room
        that the flow leaves on edges which join all the nodes; inf where nothing is proved.
    """

    label: Hashable
    found: str
    parts: int
    spread: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether every solution is proved to have one model there, up to ``bound``."""
        return isfinite(self.bound)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an infinite number becomes the string "inf"."""
        return {
            "label": self.label,
            "found": self.found,
            "parts": self.parts,
            "spread": self.spread,
            "bound": self.bound if self.proved else "inf",
        }


@dataclass(frozen=True)
class SolvedPartition:
    """Clusters of a partition beside those of a solution.

    Distances of models are Euclidean.

    Attributes
    ----------
    lam : float
        The problem's lambda.
    clusters : dict of hashable to SolvedCluster
        By the labels of the partition.
    merged : list of list of hashable
        Clusters of the partition that have nodes in the same cluster of the solution.
    tolerance : float
        Distance up to which two models count as equal, 1e-3 times their spread as in
        ``Solution.clusters``. It decides wherever no ``bound`` does.
    certificate : Certificate
        What is proved about the solution.
    """

    lam: float
    clusters: dict[Hashable, SolvedCluster]
    merged: list[list[Hashable]]
    tolerance: float
    certificate: Certificate

    @property
    def recovered(self) -> bool | None:
        """Whether each cluster has one model, be it shared; None if the point is no solution.

        ``proved`` says whether that is proved for every solution, or seen in this one to the
        ``tolerance``.
        """
        if self.proved:
            return True
        if not self.solved:
            return None
        return all(cluster.found != SPLIT for cluster in self.clusters.values())

    @property
    def proved(self) -> bool:
        """Whether every solution is proved to have one model on each cluster."""
        return all(cluster.proved for cluster in self.clusters.values())

    @property
    def solved(self) -> bool:
        """Whether the point is certified or, where there are no exact bounds, not refuted."""
        certificate = self.certificate
        open_ = certificate.status == "UNPROVED" and not certificate.exact
        return open_ or certificate.status == "CERTIFIED"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, the certificate's document left out."""
        return {
            "recovered": self.recovered,
            "proved": self.proved,
            "status": self.certificate.status,
            "rel_gap": _plain(self.certificate.rel_gap),
            "tolerance": _plain(self.tolerance),
            "clusters": [cluster.to_dict() for cluster in self.clusters.values()],
            "merged": self.merged,
        }

    def __str__(self) -> str:
        lines = [f"{self._point()}: {self._verdict()}", *self._reasons()]
        return fitted(lines if self.recovered is None else [*lines, *self._merges()])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Show the comparison."""
        return html_report(str(self))

    def _point(self) -> str:
        certificate = self.certificate
        at = f"at lambda = {self.lam:.6g}"
        gap = f"relative gap {certificate.rel_gap:.2g}"
        if certificate.status == "CERTIFIED":
            return f"solved {at} (certified, {gap})"
        return f"{'solved' if self.solved else 'NOT solved'} {at} ({certificate.status}, {gap})"

    def _verdict(self) -> str:
        recovered = self.recovered
        if recovered is None:
            return "nothing is said about recovery"
        if not recovered:
            return "the partition IS NOT recovered"
        if self.merged:
            return "recovered, but clusters are MERGED"
        if self.proved:
            return "the partition IS recovered"
        return "recovered TO A TOLERANCE only"

    def _reasons(self) -> Iterator[str]:
        """How the verdict is known."""
        clusters = list(self.clusters.values())
        if self.proved:
            most = max(cluster.bound for cluster in clusters)
            yield f"  every solution has one model on each cluster{_up_to(most)} (proved)"
            return
        if not self.solved:
            yield f"  {self.certificate.reason}"
            return
        split = [cluster for cluster in clusters if cluster.found == SPLIT]
        for k in few(len(split), 6):
            yield "  ..." if k is None else f"  {_torn(split[k])}"
        known = sum(cluster.proved for cluster in clusters)
        yield f"  one model in every solution is proved for {known} of {len(clusters)} clusters"
        yield f"  elsewhere models of this one up to {self.tolerance:.2g} apart count as one"

    def _merges(self) -> Iterator[str]:
        """Which clusters have one model together."""
        for k in few(len(self.merged), 6):
            if k is None:
                yield "  ..."
                continue
            group = self.merged[k]
            whole = all(self.clusters[label].found == MERGED for label in group)
            names = ["..." if i is None else short(group[i]) for i in few(len(group), 8)]
            yield f"  {'merged' if whole else 'merged in part'}: clusters {', '.join(names)}"


def _torn(cluster: SolvedCluster) -> str:
    apart = f"models up to {cluster.spread:.3g} apart"
    parts = f", in {cluster.parts} parts" if cluster.parts > 1 else ""
    return f"cluster {short(cluster.label)} is split: {apart}{parts}"


def _up_to(bound: float) -> str:
    return f", up to {bound:.2g}" if bound > 0.0 else ", exactly"


def _plain(value: float) -> float | str:
    return value if isfinite(value) else str(value)
