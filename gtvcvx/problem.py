"""GTV minimization over an empirical graph: the primal problem, its value and its plain data."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, real_array
from gtvcvx._callbacks import SolveCallback
from gtvcvx._lazy import cp
from gtvcvx._made_once import made_once
from gtvcvx._per_thread import PerThread
from gtvcvx._pieces import rowwise
from gtvcvx.duality._bounds import DualBounds
from gtvcvx.files import _storage
from gtvcvx.graph import EmpiricalGraph, differences
from gtvcvx.losses import Losses, stacked, stacked_from_terms
from gtvcvx.network_flow import NetworkFlowProblem
from gtvcvx.penalties import Penalty, as_penalty, penalty_from_data
from gtvcvx.solution import Solution

SCHEMA = "gtv-problem/1"

_T = TypeVar("_T")


class GTVProblem:
    r"""Generalized total variation minimization ([GTV] (16)).

    .. math:: \min_w P(w) = \sum_i L_i(w_i) + \lambda \sum_e A_e \phi(w_{e+} - w_{e-})

    over one parameter vector w_i in R^d for each of the n nodes of a graph with m edges.

    Parameters
    ----------
    graph : EmpiricalGraph
    losses : sequence of Loss, mapping of node label to Loss, or StackedLoss
        One loss per node; nodes that a mapping does not name get ``ZeroLoss()``.
    penalty : {"l2", "l1", "linf", "squared"} or Penalty
        The penalty phi; "squared" is one half of the squared Euclidean norm.
    lam : float
        The regularization parameter lambda, positive and finite.

    Attributes
    ----------
    capacities : ndarray, shape (m,)
        Edge capacities lambda A_e of the dual network-flow problem.

    Raises
    ------
    TypeError, ValueError
        Naming the argument and the node or edge.

    Notes
    -----
    A problem does not change, and may be solved in several threads at a time, as may others that
    share its losses (`with_lam`). Losses and penalties that are written with CVXPY share its
    variables: those in one thread at a time.
    """

    def __init__(
        self,
        graph: EmpiricalGraph,
        losses: Losses,
        penalty: str | Penalty = "l2",
        lam: float = 0.1,
    ) -> None:
        if not isinstance(graph, EmpiricalGraph):
            raise TypeError(
                f"graph: an EmpiricalGraph is expected, got {type(graph).__name__}; "
                "see EmpiricalGraph.from_networkx, .from_adjacency and .from_csv"
            )
        self.graph = graph
        self.losses = stacked(losses, graph)
        self.dim = self.losses.dim
        self.penalty = as_penalty(penalty, self.dim)
        self.lam = checked_lam(lam)
        self.capacities = self._checked_capacities()
        self._bounds = PerThread(DualBounds, self.graph, self.losses, self.penalty, self.capacities)
        # What solvers have made for problems that differ in lambda alone.
        self._cached: dict[str, Any] = {}

    def _checked_capacities(self) -> FloatArray:
        """Edge capacities lambda A_e of the dual network-flow problem, shape (m,)."""
        with np.errstate(over="ignore", under="ignore"):
            capacities = self.lam * self.graph.weights
        if not (capacities.min(initial=1.0) > 0.0 and capacities.max(initial=1.0) < math.inf):
            k = int(np.flatnonzero(~(np.isfinite(capacities) & (capacities > 0)))[0])
            raise ValueError(
                f"lam: times the weight {self.graph.weights[k]} of edge {self._edge_name(k)} "
                f"it is {capacities[k]} in double precision"
            )
        return capacities

    def _edge_name(self, k: int) -> str:
        head, tail = (self.graph.nodes[i] for i in self.graph.edges[k])
        return f"({head!r}, {tail!r})"

    def value(self, w: ArrayLike) -> float:
        """Primal objective P(w) for w of shape (n, d)."""
        return self._value(self.checked_w(w))

    def _value(self, w: FloatArray) -> float:
        variation = self.capacities * rowwise(
            lambda at: self.penalty.value(differences(self.graph.edges[at], w)),
            self.graph.n_edges,
            self.dim,
        )
        return float(np.sum(self.losses.value(w)) + np.sum(variation))

    def differences(self, w: FloatArray) -> FloatArray:
        """Differences (D w)_e = w_head - w_tail, shape (m, d)."""
        return differences(self.graph.edges, w)

    def dual_value(self, u: ArrayLike, tol: float = 1e-9) -> float:
        r"""Dual objective of a flow u of shape (m, d) ([GTV] (19), (24)).

        .. math:: -\sum_i L_i^*(-(D^T u)_i) - \sum_e \lambda A_e \phi^*(u_e / (\lambda A_e))

        Returns -inf if u violates a capacity or flow conservation by more than tol relative to
        the capacity, or to the flow through the node. What lies within the tolerance is not
        repaired: a bound that is valid whatever u is comes from `lower_bound`.
        """
        flow = self.checked_u(u)
        if not (math.isfinite(tol) and tol >= 0):
            raise ValueError(f"tol: a finite number >= 0 is expected, got {tol}")
        through = abs(self.graph.divergence) @ np.linalg.norm(flow, axis=1)
        injection = -(self.graph.divergence @ flow)
        cost = np.sum(self.losses.conjugate(injection, tol * through))
        capacities = self.capacities
        edge = capacities * self.penalty.conjugate(flow / capacities[:, None], tol)
        return float(-cost - np.sum(edge))

    def lower_bound(self, u: ArrayLike) -> tuple[float, FloatArray]:
        """Lower bound on the optimum from any flow u (m, d), and the feasible flow that gives it.

        u is projected on flow conservation at unlabelled and rank-deficient nodes, then brought
        inside the capacities; see `gtvcvx.duality._bounds.DualBounds`.
        """
        return self.bounds.lower_bound(self.checked_u(u))

    @property
    def bounds(self) -> DualBounds:
        """Dual repair and gaps of this problem; factorizations are kept, by each thread its own."""
        return self._bounds.own

    def forget(self) -> None:
        """Keep nothing of what this thread's solves have found: the next one repeats the first.

        Where losses had their last proximal points, and which factorizations bounds have, decides
        how a solve begins, and what its first check is worth.
        """
        self.losses.forget()
        self._bounds.forget()

    def checked_w(self, w: ArrayLike, name: str = "w") -> FloatArray:
        """Return w as a float64 array after checking its shape (n, d) and that it is finite."""
        return self._checked(w, name, (self.graph.n_nodes, self.dim), "node")

    def checked_u(self, u: ArrayLike, name: str = "u") -> FloatArray:
        """Return u as a float64 array after checking its shape (m, d) and that it is finite."""
        return self._checked(u, name, (self.graph.n_edges, self.dim), "edge")

    def _checked(
        self, values: ArrayLike, name: str, shape: tuple[int, int], place: str
    ) -> FloatArray:
        array = real_array(values, name)
        if array.shape != shape:
            raise ValueError(f"{name}: shape {shape} is expected, got {array.shape}")
        if not np.isfinite(array).all():
            k = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
            label = repr(self.graph.nodes[k]) if place == "node" else self._edge_name(k)
            raise ValueError(f"{name}: {place} {label} has an entry that is not finite")
        return array

    def cvxpy(self) -> cp.Problem:
        """Primal problem in CVXPY, vectorized and DPP.

        Its variable "w" has shape (n, d), its parameter "lam" holds lambda, and the constraint
        ``D w - z == 0`` (the first one, unless there is no edge) has the optimal flow u as its
        dual value, with the sign of `Solution.u`: CVXPY's Lagrangian adds <u, D w - z>, so that
        -(D^T u)_i is a subgradient of L_i.
        """
        n, m = self.graph.n_nodes, self.graph.n_edges
        w = cp.Variable((n, self.dim), name="w")
        lam = cp.Parameter(pos=True, name="lam", value=self.lam)
        loss, constraints = self.losses.expression(w)
        if m == 0:
            # CVXPY forgets what nothing refers to: zero losses alone would leave no variable.
            return cp.Problem(cp.Minimize(loss + lam * cp.sum(0.0 * w)), constraints)
        z = cp.Variable((m, self.dim), name="z")
        variation = self.penalty.weighted_expression(z, self.graph.weights)
        flow = self.graph.incidence @ w - z == 0
        return cp.Problem(cp.Minimize(loss + lam * variation), [flow, *constraints])

    def dual(self) -> NetworkFlowProblem:
        """Return the dual network-flow problem ([GTV] (24), (27), (30))."""
        return NetworkFlowProblem(self.graph, self.losses, self.penalty, self.lam)

    def solve(
        self,
        solver: str = "AUTO",
        *,
        rtol: float | None = None,
        max_iter: int | None = None,
        time_limit: float | None = None,
        warm_start: Solution | None = None,
        callback: SolveCallback | None = None,
        verbose: bool | None = None,
        atol: float | None = None,
        engine: str | None = None,
        workers: int = 2,
        **options: Any,
    ) -> Solution:
        """Solve the problem; whatever the solver, the gap of the answer is a valid one.

        Parameters
        ----------
        solver : str
            "AUTO": the default. "PDHG": Algorithm 1 of [GTV] to the letter. "EXACT": in
            rational arithmetic, with a gap of zero, for small problems with the l1 penalty (or
            any norm at d = 1). Otherwise the name of a conic solver of CVXPY ("CLARABEL",
            "SCS", ...): the reference.
        rtol : float, optional
            Stop at gap <= max(atol, rtol * |value|). Default 1e-6 for "AUTO".
        atol : float, optional
            Default: rtol, so that gaps are relative to max(1, |value|). If the objective is far
            below 1, that says little: scale the data, or give atol; 0 makes the tolerance purely
            relative. Where the objective is zero, or nearly so, no such tolerance can be met; the
            run ends where the gap is a matter of rounding, status ``"optimal_inaccurate"``.
        max_iter : int, optional
            Largest number of iterations.
        time_limit : float, optional
            Seconds after which the incumbent is returned. Functions that are compiled, once, do
            not count.
        warm_start : Solution, optional
            Start from its w and u.
        callback : callable, optional
            Called with a `gtvcvx.Progress` at every check; a true return value stops the run.
        verbose : bool, optional
            Show progress. Default: only on a terminal.
        engine : {"local", "ray"}, optional
            Have several processes do it, see `gtvcvx.distributed.solve`: slower than threads on one
            machine, but the same code, and the same bits, as past one. Callbacks are shown no
            points then.
        workers : int
            Their number.
        **options
            Of the solver: for "AUTO" and "PDHG" ``stop``, one of "gap" (the default with rtol),
            "objective" (its decrease between two checks) and "iterations"; for "PDHG"
            ``local_update`` (see `gtvcvx.LocalUpdate`); anything that CVXPY passes on otherwise.

        Returns
        -------
        Solution
            After a limit, Ctrl-C or a stop by the callback: the incumbent with its gap, status
            ``"user_limit"``.

        Raises
        ------
        cvxpy.SolverError
            The backend failed.

        Warns
        -----
        ConsensusWarning
            `lam` is at least ten times as large as a value for which all nodes of each connected
            component share one model; not where ``atol`` is given.
        SmallObjectiveWarning
            Without atol: the gap is within rtol for no other reason than that the objective is
            small.
        """
        # Imports that run back up: solvers are made of problems, and users want them here.
        # A second class of problems without `solve` only to hide it would be worse.
        if engine is not None:
            from gtvcvx import distributed

            return distributed.solve_in_processes(
                self,
                engine=engine,
                workers=workers,
                solver=solver,
                rtol=rtol,
                atol=atol,
                max_iter=max_iter,
                time_limit=time_limit,
                warm_start=warm_start,
                callback=callback,
                verbose=verbose,
                **options,
            )
        from gtvcvx import solvers

        return solvers.solve(
            self,
            solver,
            rtol=rtol,
            max_iter=max_iter,
            time_limit=time_limit,
            warm_start=warm_start,
            callback=callback,
            verbose=verbose,
            atol=atol,
            **options,
        )

    def with_lam(self, lam: float) -> GTVProblem:
        """Return the same problem with another lambda."""
        problem = GTVProblem(self.graph, self.losses, self.penalty, lam)
        problem._cached = self._cached
        return problem

    def cached(self, name: str, make: Callable[[], _T]) -> _T:
        """Return what was made under this name for this problem, whatever its lambda, or make it.

        For solvers: what depends on graph, losses and penalty alone is made once.
        """
        return made_once(self._cached, name, make)

    def to_data(self) -> dict[str, Any]:
        """Plain dict of arrays, numbers and strings: all that the package ``verify`` needs.

        Keys: ``schema``, ``n_nodes``, ``dim``, ``edges`` (m, 2), ``weights`` (m,), ``lam``,
        ``penalty`` (dict), ``terms`` (list of dicts; the local losses as sums of blocks) and
        ``nodes`` (labels). The arrays are copies. Terms of rows are means over the rows of a node;
        those with ``weight`` (N,) are sums in which each row is taken so many times.
        """
        return {
            "schema": SCHEMA,
            "n_nodes": self.graph.n_nodes,
            "dim": self.dim,
            "edges": self.graph.edges.copy(),
            "weights": self.graph.weights.copy(),
            "lam": self.lam,
            "penalty": self.penalty.to_data(),
            "terms": self.losses.terms(),
            "nodes": list(self.graph.nodes),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem to an npz file of arrays and one JSON text, atomically.

        Raises
        ------
        TypeError
            Something cannot be written down: a loss given as a Python callable, or a node label
            that is neither a string nor an integer.
        """
        check_labels(self.graph.nodes)
        data = self.to_data()
        for term in data["terms"]:
            if term["kind"] == "opaque":
                label = self.graph.nodes[int(term["node"][0])]
                raise TypeError(
                    f"losses: node {label!r} has a {term['name']}, a Python callable, which cannot "
                    "be written down"
                )
        if data["penalty"]["kind"] == "opaque":
            raise TypeError(
                f"penalty: {self.penalty!r} is a Python callable and cannot be written down"
            )
        if self.graph.positions is not None:
            data["positions"] = self.graph.positions  # of the picture, and no part of the problem
        _storage.save(path, data)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> GTVProblem:
        """Read a problem that `save` wrote."""
        data = _storage.load(path, SCHEMA)
        try:
            problem = GTVProblem.from_data(data)
            if "positions" in data:
                problem.graph = problem.graph.with_positions(data["positions"])
            return problem
        except (TypeError, ValueError) as error:
            raise ValueError(f"{os.fspath(path)}: not a complete problem ({error})") from error

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> GTVProblem:
        """Rebuild a problem from its plain data, the inverse of `to_data`.

        Parameters
        ----------
        data : mapping
            As `to_data` gives it; ``nodes`` may be missing (labels 0, ..., n - 1).

        Raises
        ------
        TypeError, ValueError
            Naming the entry that is missing, of another kind, or wrong.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"data: a mapping is expected, got {type(data).__name__}")
        if data.get("schema") != SCHEMA:
            raise ValueError(f"data: schema {SCHEMA!r} is expected, found {data.get('schema')!r}")
        try:
            n, dim = data["n_nodes"], data["dim"]
            graph = EmpiricalGraph(n, data["edges"], data["weights"], data.get("nodes"))
            losses = stacked_from_terms(data["terms"], dim)
            return GTVProblem(graph, losses, penalty_from_data(data["penalty"]), data["lam"])
        except KeyError as error:
            raise ValueError(f"data: there is no entry {error}") from error

    def __repr__(self) -> str:
        return (
            f"GTVProblem(n_nodes={self.graph.n_nodes}, n_edges={self.graph.n_edges}, "
            f"dim={self.dim}, penalty={self.penalty.name!r}, lam={self.lam})"
        )


def check_labels(nodes: Sequence[Any]) -> None:
    """Refuse node labels that cannot be written down."""
    if isinstance(nodes, range):
        return
    for label in nodes:
        if isinstance(label, bool) or not isinstance(label, (str, int)):
            raise TypeError(
                f"graph: node label {label!r} is neither a string nor an integer and cannot "
                "be written down"
            )


def checked_lam(lam: float) -> float:
    """Return lambda if it is a positive finite number; refuse it otherwise."""
    if isinstance(lam, (bool, str, bytes)):
        raise TypeError(f"lam: a number is expected, got {lam!r}")
    try:
        value = float(lam)
    except (TypeError, ValueError) as error:
        raise TypeError(f"lam: a number is expected, got {lam!r}") from error
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"lam: a positive finite number is expected, got {value}")
    return value
