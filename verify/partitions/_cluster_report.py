"""What is proved about one cluster of a partition: Definition 1 and Theorem 2."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isinf
from typing import Any, overload

import numpy as np

from verify._arrays import BoolArray, FloatArray, IntArray
from verify._display import clipped, fitted, html_report


class NodeSets(Sequence[list[Hashable]]):
    """Sets of nodes, made when asked for.

    The sets C - {i} of a large cluster would take quadratic memory as lists; only i is stored.
    """

    def __init__(
        self,
        nodes: list[Hashable],
        sets: list[BoolArray],
        left_out: IntArray,
    ) -> None:
        self._nodes, self._sets, self._left_out = nodes, sets, left_out

    def __len__(self) -> int:
        return len(self._sets) + len(self._left_out)

    @overload
    def __getitem__(self, index: int) -> list[Hashable]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[Hashable]]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        if i < len(self._sets):
            return [self._nodes[p] for p in np.flatnonzero(self._sets[i])]
        out = int(self._left_out[i - len(self._sets)])
        return self._nodes[:out] + self._nodes[out + 1 :]

    def __iter__(self) -> Iterator[list[Hashable]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} sets of nodes>"


@dataclass(frozen=True)
class ClusterReport:
    """Definition 1 and Theorem 2 for one cluster C.

    Attributes
    ----------
    label : hashable
        The cluster's label in the partition.
    nodes : list of hashable
        Its nodes.
    holds : bool
        Whether C is proved to be well-connected.
    decided : bool
        False where neither verdict is proved: near a tie with irrational constants and, for l1 and
        linf in more than 8 dimensions, between the bounds of the constants (docs/theorem2.md).
    reason : str
        Why the verdict is what it is, in one sentence.
    applies : bool
        Whether the theorem applies (else ``reason`` says why not). A cluster of one node holds
        vacuously even if it does not apply; its error bound is then infinite.
    i0 : hashable or None
        A node to which all demands can be routed; None if there is none.
    margin : float
        max over i0 of min over A of cut(A) / d(A): the factor by which all demands could grow. C is
        well-connected if it is above 1 and, where the constants are exact, only then.
    tightest_set : list of hashable
        The set A that attains the margin (empty for a single node).
    violating_sets : NodeSets
        If C is not well-connected, sets A with cut(A) <= d(A) that have no node in common, so that
        every candidate i0 lies outside one of them.
    lam_min : float
        C is well-connected for every lambda above it; inf if there is none (or, for weights that
        differ by 1e15 and more, if none could be proved).
    error_bound : float
        |dC| lambda / alpha, a bound on ||w_hat_i - w_bar_c|| in the penalty's norm for every i in
        C, provided ALL clusters of the partition are well-connected.
    error_bound_printed : float
        Twice that, (36) as printed in the paper.
    alpha : float
        Strong convexity of the cluster's sum of losses, rounded down.
    beta, delta : ndarray
        (len(nodes),) smoothness of the local losses, and dual norms of their gradients at the
        cluster's minimizer, rounded up.
    boundary : float
        |dC|, the weight of the edges that leave C.
    """

    label: Hashable
    nodes: list[Hashable]
    holds: bool
    decided: bool
    reason: str
    applies: bool
    i0: Hashable | None
    margin: float
    tightest_set: list[Hashable]
    violating_sets: NodeSets
    lam_min: float
    error_bound: float
    error_bound_printed: float
    alpha: float
    beta: FloatArray
    delta: FloatArray
    boundary: float
    _make_witness: Callable[[], dict[str, Any]] | None

    @cached_property
    def _witness(self) -> dict[str, Any] | None:
        """Made when it is asked for: its roots take as long as the verdict."""
        return None if self._make_witness is None else self._make_witness()

    def witness(self) -> dict[str, Any]:
        """Witness that ``verify.kernel.partitions.check_cluster`` checks.

        Raises
        ------
        ValueError
            If nothing was proved about this cluster.
        """
        if self._witness is None:
            raise ValueError(f"cluster {self.label!r}: there is no proof to check ({self.reason})")
        return self._witness

    def to_dict(self, witnesses: bool = True) -> dict[str, Any]:
        """Return plain values for JSON; infinite numbers become the string "inf"."""
        plain: dict[str, Any] = {
            "label": self.label,
            "nodes": self.nodes,
            "holds": self.holds,
            "decided": self.decided,
            "reason": self.reason,
            "applies": self.applies,
            "i0": self.i0,
            "margin": plain_number(self.margin),
            "tightest_set": self.tightest_set,
            "lam_min": plain_number(self.lam_min),
            "error_bound": plain_number(self.error_bound),
            "error_bound_printed": plain_number(self.error_bound_printed),
            "alpha": self.alpha,
            "beta": [plain_number(x) for x in self.beta.tolist()],
            "delta": [plain_number(x) for x in self.delta.tolist()],
            "boundary": self.boundary,
        }
        if witnesses:
            plain["witness"] = self._witness
        return plain

    def __str__(self) -> str:
        return self.text(" if every cluster is well-connected")

    def text(self, condition: str = "") -> str:
        """Return the report; the error bound is said to hold on a condition."""
        verdict = "well-connected" if self.holds else "NOT well-connected"
        if not self.applies and not self.holds:
            verdict = "the theorem does not apply"
        elif not self.decided:
            verdict = "not proved"
        count = f"{len(self.nodes)} node{'' if len(self.nodes) == 1 else 's'}"
        lines = [f"cluster {self.label!r}, {count}: {verdict}"]
        if self.reason:
            lines.append(f"  {self.reason}")
        if self.applies:
            lines.append(
                f"  margin {self.margin:.6g} (needs > 1), boundary {self.boundary:.6g},"
                f" alpha {self.alpha:.6g}"
            )
            lines.append(f"  {self._good_lambdas()}")
            if self.i0 is not None:
                bound = f"||w_hat_i - w_bar|| <= {self.error_bound:.6g}{condition}"
                lines.append(f"  i0 = {self.i0!r}, {bound}")
            if self.tightest_set:
                lines.append(f"  tightest set: {_some(self.tightest_set)}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return fitted([str(self)])

    def _repr_html_(self) -> str:
        """Show the report."""
        return html_report(repr(self))

    def row(self, found: str) -> list[str]:
        """Return the cells of its line in a table, with what a solution does there."""
        verdict = "yes" if self.holds else "no" if self.decided else "not proved"
        numbers = [f"{self.margin:.4g}", f"{self.lam_min:.4g}"]
        return [clipped(str(self.label), 20), str(len(self.nodes)), found, *numbers, verdict]

    def _good_lambdas(self) -> str:
        if self.lam_min == 0.0:
            return "good for every lambda"
        if isinf(self.lam_min):
            return "good for no lambda that is known"
        return f"good for every lambda > {self.lam_min:.6g}"


def plain_number(value: float) -> float | str:
    """Return the number, or the string "inf", which JSON has."""
    return "inf" if isinf(value) else value


def _some(nodes: list[Hashable], limit: int = 12) -> str:
    shown = ", ".join(repr(node) for node in nodes[:limit])
    return shown if len(nodes) <= limit else f"{shown}, ... ({len(nodes)} nodes)"
