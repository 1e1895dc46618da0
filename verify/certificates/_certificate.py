"""What is proved about a point: the result of `verify.certify`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verify._arrays import FloatArray
from verify._display import clipped, fitted, html_block, html_facts, html_table
from verify._json_file import write_json
from verify.certificates.arrays._archive import write
from verify.certificates.arrays._document import ArraysDocument, arrays_of


@dataclass(frozen=True)
class Certificate:
    """What is proved about a point w.

    Attributes
    ----------
    status : str
        "CERTIFIED" (within rtol), "REFUTED" (proved not to be) or "UNPROVED".
    reason : str
        One sentence.
    upper, lower : float
        Outward-rounded bounds: lower <= min P and P(w) <= upper.
    gap, rel_gap : float
        The exact upper - lower, rounded up and signed, and gap / max(1, |upper|). It is 0.0 exactly
        where both bounds are one rational number, even if that is not a double and `upper` and
        `lower` are its two neighbours.
    exact : bool
        Whether the bounds are proved by the kernel; False means float estimates.
    node_gaps, edge_gaps : ndarray, shapes (n,) and (m,)
        Each >= 0; they add up to the gap up to float rounding.
    distance_bound : float or None
        Bound on ||w - w_hat||_F where every node's loss is strongly convex by a point or ridge
        term, else None.
    w, u, r : ndarray, ndarray, tuple of ndarray
        The point (n, d), the flow (m, d) and the multipliers per loss term, in floats (the document
        has the rational numbers).
    better : ndarray or None
        A point (n, d) whose exact objective refutes w, or None.
    rtol : float
        The tolerance of the claim.
    moved : float
        Largest change of an entry of w that put it exactly onto the constraints of its nodes.
    document : mapping
        The certificate as a JSON file has it. Of a large problem it is made when it is looked into,
        which may take longer than the proof.
    """

    status: str
    reason: str
    upper: float
    lower: float
    gap: float
    rel_gap: float
    exact: bool
    node_gaps: FloatArray
    edge_gaps: FloatArray
    distance_bound: float | None
    w: FloatArray
    u: FloatArray
    r: tuple[FloatArray, ...]
    better: FloatArray | None
    rtol: float
    document: Mapping[str, Any] = field(repr=False)
    moved: float = 0.0

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document, whole or not at all.

        A path that ends in ``.gtvc`` gets raw arrays in a zip file, for large problems; any other
        one gets JSON. `verify.check` reads both, and what they prove is the same.

        A new file gets the permissions that the umask leaves, an existing one keeps its own, and a
        link is followed.

        Raises
        ------
        ValueError
            The path is there but is not a regular file.
        """
        if os.fspath(path).lower().endswith(".gtvc"):
            write(arrays_of(self.document), path)
        else:
            write_json(self.document, path)

    def worst(self, count: int = 5) -> tuple[list[tuple[Any, float]], list[tuple[Any, float]]]:
        """Return the nodes and the edges with the largest gaps, as (label, gap), worst first."""
        labels, ends = _names(self.document)
        nodes = [(labels[i], float(self.node_gaps[i])) for i in np.argsort(-self.node_gaps)[:count]]
        edges = []
        for e in np.argsort(-self.edge_gaps)[:count]:
            i, j = ends[e]
            edges.append(((labels[i], labels[j]), float(self.edge_gaps[e])))
        return nodes, edges

    def summary(self, count: int = 5) -> str:
        """Return status, bounds and the nodes and edges with the largest gaps as text."""
        kind = "exact" if self.exact else "float estimate, not proved"
        lines = [
            f"{self.status}: {self.reason}",
            f"  upper {self.upper:.12g}   lower {self.lower:.12g}   ({kind})",
            f"  gap {self.gap:.3e}   relative {self.rel_gap:.3e}   rtol {self.rtol:.3e}",
        ]
        if self.moved > 0:
            lines.append(f"  w was moved by at most {self.moved:.3e} onto the constraints")
        if self.distance_bound is not None:
            lines.append(f"  distance to the solution at most {self.distance_bound:.3e}")
        for name, worst in zip(("nodes", "edges"), self.worst(count), strict=True):
            shown = ", ".join(
                f"{clipped(str(label))}: {gap:.2e}" for label, gap in worst if gap > 0
            )
            lines.append(f"  worst {name}: {shown or 'none'}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return fitted([self.summary(3)])

    def _repr_html_(self) -> str:
        """Show verdict and bounds, and where the gap is."""
        kind = "exact" if self.exact else "float estimate, not proved"
        facts = [
            ("reason", self.reason),
            ("value", f"{self.lower:.12g} <= optimum, value <= {self.upper:.12g} ({kind})"),
            ("gap", f"{self.gap:.3e}, relative {self.rel_gap:.3e}, asked for {self.rtol:.3e}"),
        ]
        if self.distance_bound is not None:
            facts.append(("distance", f"to the solution at most {self.distance_bound:.3e}"))
        rows = [
            [name, clipped(str(label)), f"{gap:.2e}"]
            for name, worst in zip(("node", "edge"), self.worst(3), strict=True)
            for label, gap in worst
            if gap > 0
        ]
        table = html_table(("largest shares", "", "of the gap"), rows) if rows else ""
        return html_block(f"Certificate: {self.status}", html_facts(facts), table)


def _names(document: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the labels of the nodes and the ends of the edges."""
    if isinstance(document, ArraysDocument):
        return document.labels, document.edges.tolist()
    data = document["data"]
    return data.get("nodes", range(data["n_nodes"])), data["edges"]
