"""What an algorithm states: its programs, its messages, and the problem that it solves."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray, is_integer, is_number
from gtvcvx.federated._network import Network
from gtvcvx.federated.programs import ClientProgram, Program, Report
from gtvcvx.federated.wire import Schema
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.penalties import Penalty
from gtvcvx.problem import GTVProblem
from verify._display import COLUMNS, clipped, short


class Algorithm(ABC):
    """A federated algorithm: programs for clients and servers, and what they compute.

    Objects are public knowledge: nothing in them comes from a client's data.

    Attributes
    ----------
    schema : Schema
        All messages, and so all that leaves a client.
    guarantee : str
        What is certified, in a few words, for tables.
    leaves : str
        What leaves a client, and how many bytes a round, headers of 20 bytes included.
    """

    schema: ClassVar[Schema]
    guarantee: ClassVar[str] = ""
    leaves: ClassVar[str] = ""
    #: Whether a message that is lost or late spoils the fixed point; "" where it does not.
    fragile: str = ""
    #: What absent clients spoil; "" where the algorithm knows what to do about them.
    needs_all: str = ""

    @property
    def name(self) -> str:
        """How tables and messages call the algorithm."""
        return type(self).__name__

    @abstractmethod
    def client(self) -> ClientProgram:
        """Return a new client program; it is sent to the process of the client."""

    def server(self) -> Program:
        """Return a new server program."""
        raise NotImplementedError(f"{self.name} has no server")

    def network(self, net: Network) -> Network:
        """Return the links that the algorithm uses: those given, or a star of the clients."""
        return net

    def phases(self, net: Network) -> Sequence[IntArray]:
        """Return who takes a step in each phase of a round, by number."""
        return [net.clients]

    def parameters(self, net: Network, i: int) -> Mapping[str, Any]:
        """Return what participant i is told beforehand: public constants, no data."""
        return {}

    def sizes(self, net: Network) -> Mapping[str, int]:
        """Return the sizes that the schema names."""
        return {"d": net.dim}

    def report_size(self, net: Network) -> int:
        """Return the length of the vector w that a client reports."""
        return net.dim

    @abstractmethod
    def problem(self, net: Network) -> GTVProblem | None:
        """Return the convex problem that the algorithm solves; None where there is none."""

    def reason(self, net: Network) -> str:
        """Say why the result is not certified: no convex problem, or a biased fixed point."""
        return ""

    def target(self, net: Network) -> GTVProblem | None:
        """Return the problem that the result is compared with: its own, or the nearest one."""
        return self.problem(net)

    def warnings(self, net: Network) -> Sequence[str]:
        """Return what to warn of before the first round, such as steps above a bound."""
        return []

    def steps_of(self, net: Network) -> str:
        """Say how long the steps are, for messages about runs that diverge."""
        return ""

    def point(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the nodes' vectors of `target` from the participants' states."""
        return stacked_models(reports)

    def models(self, net: Network, reports: Sequence[Report]) -> FloatArray:
        """Return the model of each client (n, d)."""
        return np.array([report.w for report in reports[: net.n_clients]])

    def flow(
        self, net: Network, problem: GTVProblem, w: FloatArray, reports: Sequence[Report]
    ) -> FloatArray:
        """Return a flow (m, d) for the lower bound; it is repaired before it is used.

        Default: of the squared penalty, u_e = lambda A_e (w_head - w_tail); zero otherwise.
        """
        if problem.penalty.name == "squared":
            return problem.capacities[:, None] * problem.differences(w)
        return np.zeros((problem.graph.n_edges, problem.dim))

    def value(self, net: Network, reports: Sequence[Report]) -> float:
        """Return what the history shows where there is no problem: the sum of local losses."""
        models = self.models(net, reports)
        return float(sum(m.value(w) for m, w in zip(net.models, models, strict=True)))

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        given = ", ".join(
            f"{name}={short(getattr(self, name))}"
            for name, parameter in parameters.items()
            if hasattr(self, name) and not _same(getattr(self, name), parameter.default)
        )
        return clipped(f"{self.name}({given})", COLUMNS - len("Run of "))


def stacked_models(reports: Sequence[Report]) -> FloatArray:
    """Return the vectors of participants that have one each (n, d)."""
    return np.array([report.w for report in reports])


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default, which is None, a number or a word."""
    return value is default or (isinstance(value, (int, float, str)) and bool(value == default))


def link_flows(net: Network, reports: Sequence[Report]) -> FloatArray:
    """Return flows (m, d) along the edges of the links, from the multipliers of both ends.

    The one that has heard of more rounds is taken. Multipliers point away from their participant,
    and a flow from head to tail.
    """
    none = np.zeros((0, net.dim))
    told = [none if report.flows is None else report.flows for report in reports]
    start, *_ = net.adjacency
    rows = np.zeros((start[-1], net.dim))
    there = np.repeat([len(own) > 0 for own in told], np.diff(start))
    rows[there] = np.concatenate(told)
    through = np.array([report.through for report in reports])
    heads, tails = net.graph.edges.T
    from_head, from_tail = net.places
    later = (through[heads] >= through[tails])[:, None]
    return np.where(later, rows[from_head], -rows[from_tail])


def gtv_problem(
    net: Network, penalty: str | Penalty, lam: float, graph: EmpiricalGraph | None = None
) -> GTVProblem | None:
    """Return the problem of a network's losses on its links, or None where one is not convex."""
    if not net.convex:
        return None
    return GTVProblem(net.graph if graph is None else graph, net.stacked(), penalty, lam)


def positive(value: Any, name: str) -> float:
    """Return a parameter as a number > 0; refuse anything else by name."""
    if not (is_number(value) and np.isfinite(value) and value > 0):
        raise ValueError(f"{name}: a positive finite number is expected, got {value!r}")
    return float(value)


def positive_integer(value: Any, name: str) -> int:
    """Return a parameter as an integer >= 1; refuse anything else by name."""
    if not (is_integer(value) and value >= 1):
        raise ValueError(f"{name}: a positive integer is expected, got {value!r}")
    return int(value)


def flag(value: Any, name: str) -> bool:
    """Return a parameter as a truth value; refuse anything else by name, "no" among it."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: True or False is expected, got {value!r}")
    return bool(value)


def one_of(value: str, allowed: Sequence[str], name: str) -> str:
    """Return an option; refuse by name what is not one of those allowed."""
    if value not in allowed:
        raise ValueError(f"{name}: one of {tuple(allowed)} is expected, got {value!r}")
    return value


def start(initial: FloatArray | None, net: Network) -> FloatArray:
    """Return the first vector (d,); refuse another length by name."""
    if initial is None:
        return np.zeros(net.dim)
    if len(initial) != net.dim:
        raise ValueError(f"initial: shape ({net.dim},) is expected, got {initial.shape}")
    return initial


def own_problem(net: Network, algorithm: str) -> GTVProblem:
    """Return the problem that a network is from; refuse a network without one."""
    if net.source is None or (net.n_servers and net.peers is None):
        raise ValueError(
            f"lam: {algorithm} takes it from the problem of a network without servers, and this "
            "one is not from a problem; see Network.from_problem"
        )
    return net.source
