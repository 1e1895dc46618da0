"""What a solver returns: the incumbent, its flow, and a valid gap."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field, fields
from fractions import Fraction
from typing import Any, cast

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.files import _storage
from gtvcvx.graph import connected_components
from verify._display import (
    clipped,
    few,
    fields_text,
    fitted,
    html_block,
    html_curve,
    html_facts,
    html_table,
)

SCHEMA = "gtv-solution/1"
# What a notebook shows of w: rows and columns.
_ROWS, _COLUMNS = 6, 5


@dataclass(frozen=True)
class Record:
    """One line of a solver's history, written at every check of the gap."""

    n_iter: int
    seconds: float
    value: float  # of the incumbent
    dual_value: float  # best lower bound so far

    __repr__ = fields_text

    @property
    def gap(self) -> float:
        """Upper minus lower bound."""
        return self.value - self.dual_value


@dataclass(frozen=True)
class ExactSolution:
    """An optimal pair (w, u) in rational numbers; its duality gap is zero.

    Attributes
    ----------
    w : list of n lists of d Fractions
    u : list of m lists of d Fractions
        Along the oriented edges, with the sign of `Solution.u`.
    value : Fraction
        The optimum P(w), and the dual value of u.
    """

    w: list[list[Fraction]]
    u: list[list[Fraction]]
    value: Fraction

    __repr__ = fields_text

    def to_data(self) -> dict[str, Any]:
        """Nested lists of strings "numerator/denominator", hexadecimal."""
        return {
            "w": [[_text(x) for x in row] for row in self.w],
            "u": [[_text(x) for x in row] for row in self.u],
            "value": _text(self.value),
        }

    @staticmethod
    def from_data(data: dict[str, Any]) -> ExactSolution:
        """Read what `to_data` wrote."""
        return ExactSolution(
            w=[[_ratio(x) for x in row] for row in data["w"]],
            u=[[_ratio(x) for x in row] for row in data["u"]],
            value=_ratio(data["value"]),
        )


def _text(x: Fraction) -> str:
    # Hexadecimal: Python limits the length of decimal integers that it reads and writes.
    return f"{x.numerator:x}/{x.denominator:x}"


def _ratio(text: str) -> Fraction:
    numerator, denominator = text.split("/")
    return Fraction(int(numerator, 16), int(denominator, 16))


class _OnDemand:
    """An array of a data class, or a function that returns it, called when it is asked for."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name]
        if callable(value):
            value = instance.__dict__[self._name] = value()
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self._name] = np.empty(0) if value is self else value


@dataclass
class Solution:
    """A point w, a dual feasible flow u, and how far w can be from optimal at most.

    Attributes
    ----------
    w : ndarray, shape (n, d)
        Parameter vectors.
    u : ndarray, shape (m, d)
        Dual feasible flow along the oriented edges; ``-(D^T u)_i`` is the injection of node i.
    value : float
        P(w).
    dual_value : float
        Lower bound on the optimum, value - gap.
    gap, rel_gap : float
        Duality gap, and gap / max(1, abs(value)). The true suboptimality of w is never larger.
    status : str
        In CVXPY's words: "optimal" (rel_gap within rtol, or the backend says so),
        "optimal_inaccurate", "user_limit".
    n_iter : int
        Iterations of the method.
    seconds : float
        Wall-clock time, checks of the gap and compilation included.
    solver : str
        Name of the method.
    nodes : sequence
        Node labels in the order of the rows of w.
    node_gaps, edge_gaps : ndarray, shapes (n,) and (m,)
        Shares of the nodes and edges in the gap, each >= 0.
    history : list of Record
        One record per check.
    info : dict
        Particulars of the method, such as the last primal weight.
    edges : ndarray of int64, shape (m, 2)
        Oriented edges (head, tail) of the graph, along which u flows.
    slack : ndarray, shape (m,)
        What each edge's capacity leaves over, lambda A_e less the dual norm of u_e; zero unless
        the penalty is a norm.
    exact : ExactSolution or None
        The rational solution that solver="EXACT" proved; w, u and the values are it, rounded.
    """

    w: FloatArray
    u: FloatArray
    value: float
    dual_value: float
    gap: float
    status: str
    n_iter: int
    seconds: float
    solver: str
    nodes: Sequence[Any]
    node_gaps: FloatArray
    edge_gaps: FloatArray
    history: list[Record] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)
    edges: IntArray = field(default_factory=lambda: np.empty((0, 2), np.int64), repr=False)
    slack: FloatArray = field(default=cast(FloatArray, _OnDemand()), repr=False)
    exact: ExactSolution | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled, with what was still to be computed."""
        return {**self.__dict__, "u": self.u, "slack": self.slack}

    @property
    def rel_gap(self) -> float:
        """Gap relative to max(1, |value|)."""
        return self.gap / max(1.0, abs(self.value))

    def clusters(self, tol: float = 1e-3) -> IntArray:
        """Clusters of nodes that share one parameter vector, labels (n,) from 0.

        An edge whose flow stays below its capacity fuses its ends in every solution
        (complementary slackness): no solution jumps there by more than gap / slack. Where the
        flow is at capacity the dual does not decide, and the jump of w does.

        Parameters
        ----------
        tol : float
            Jumps up to tol >= 0 times the spread of w count as none.
        """
        if not tol >= 0:
            raise ValueError(f"tol: a number >= 0 is expected, got {tol!r}")
        n = len(self.w)
        ends = self.edges
        # In consensus the spread is rounding; the floor keeps nodes that agree together.
        spread = max(float(np.ptp(self.w, axis=0).max()), 1e-3 * float(np.abs(self.w).max()))
        threshold = tol * spread if spread > 0 else np.inf
        jumps = np.linalg.norm(self.w[ends[:, 0]] - self.w[ends[:, 1]], axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            decided = self.gap / self.slack <= threshold
        fused = (jumps <= threshold) | (decided & (self.slack > 0))
        kept = ends[fused]
        return connected_components(n, kept)

    def _facts(self) -> list[tuple[str, str]]:
        """Names and values of what is seen first."""
        n, d = self.w.shape
        found = [("nodes", f"{n}, dimension {d}")]
        if len(self.edges):  # without them nodes would all be apart
            with np.errstate(all="ignore"):
                found.append(("clusters", str(int(self.clusters().max(initial=-1)) + 1)))
        return [
            *found,
            ("value", f"{self.value:.12g}, at least {self.dual_value:.12g}"),
            ("gap", f"{self.gap:.3g}, relative {self.rel_gap:.3g}"),
            ("work", f"{self.n_iter} iterations, {self.seconds:.3g} s"),
        ]

    def __repr__(self) -> str:
        return fitted(
            [
                f"Solution by {self.solver}: {self.status}",
                *(f"  {name:<9} {text}" for name, text in self._facts()),
            ]
        )

    def _repr_html_(self) -> str:
        """Show status and gap, the first and last parameter vectors, and how the gap fell."""
        shown = min(self.w.shape[1], _COLUMNS)
        header = ["node", *(f"w[{k}]" for k in range(shown))]
        if shown < self.w.shape[1]:
            header.append("...")
        rows = [
            None
            if i is None
            else [
                clipped(str(self.nodes[i])),
                *(f"{x:.6g}" for x in self.w[i, :shown]),
                *(["..."] if shown < self.w.shape[1] else []),
            ]
            for i in few(len(self.w), _ROWS)
        ]
        falling = [record for record in self.history if record.gap > 0.0]
        return html_block(
            f"Solution by {self.solver}: {self.status}",
            html_facts(self._facts()),
            html_table(header, rows),
            html_curve(
                "Logarithm of the gap over the iterations",
                [float(record.n_iter) for record in falling],
                [math.log10(record.gap) for record in falling],
            ),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the solution to an npz file of arrays and one JSON text, atomically."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["history"] = [list(astuple(record)) for record in self.history]
        data["nodes"] = list(self.nodes)
        data["exact"] = None if self.exact is None else self.exact.to_data()
        _storage.save(path, {"schema": SCHEMA, **data})

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Solution:
        """Read a solution that `save` wrote."""
        data = _storage.load(path, SCHEMA)
        try:
            data["history"] = [Record(*record) for record in data["history"]]
            exact = data.get("exact")  # files of earlier versions have none
            data["exact"] = None if exact is None else ExactSolution.from_data(exact)
            return Solution(**{item.name: data[item.name] for item in fields(Solution)})
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise ValueError(f"{os.fspath(path)}: not a complete solution ({error})") from error


# What a field without a default does not get in the class: flows may take long to write down.
_flow = _OnDemand()
_flow.__set_name__(Solution, "u")
type.__setattr__(Solution, "u", _flow)
