"""What the interior-point method costs, in iterations of the primal-dual method: counted.

Everything is in nanoseconds of one core, as measured; only ratios of them matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from gtvcvx.losses.batched._terms import ROW_KINDS
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import missing
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint


@dataclass(frozen=True)
class Prices:
    """What counted things take.

    Those of Clarabel are fitted to 237 random programs of every loss and penalty, 10 to 1,500
    nodes: an iteration takes .8 to 1.2 times the prediction in nine of ten cases.

    Attributes
    ----------
    rounds, exponential_rounds : float
        Iterations of Clarabel: the median without and with exponential cones.
    multiplication, factor, variable : float
        An iteration of Clarabel: for each multiplication of the factorization; for each nonzero
        of the factor, in the solves and their refinement; for each variable and each row.
    entry, smooth_entry : float
        The same iteration for each entry of the data and of the penalty's constraints, with a
        norm as penalty and without; in nine of ten of those programs it takes longer, without a
        norm in three of four.
    start : float
        Assembly of the program, and reading of its solution, whatever its size.
    setup : float
        Ordering and scaling, for each nonzero of the matrix that is factored.
    call : float
        Of a primal-dual iteration, before it does anything.
    edge, node : float
        Of a primal-dual iteration, for each edge and coordinate, and for each entry of a node's
        matrix.
    models : float
        With quadratic models of the losses it takes so many times as long: they are renewed.
    prox, row : float
        With losses that are neither, for each node, and for each entry of its rows.
    """

    rounds: float = 14.0
    exponential_rounds: float = 27.0
    multiplication: float = 0.7
    factor: float = 22.0
    variable: float = 94.0
    entry: float = 100.0
    smooth_entry: float = 75.0
    start: float = 2e6
    setup: float = 150.0
    call: float = 3000.0
    edge: float = 2.0
    node: float = 1.2
    models: float = 1.8
    prox: float = 700.0
    row: float = 4.0


DEFAULTS = Prices()


class Alternative:
    """The interior-point method for a problem, made when somebody asks.

    Parameters
    ----------
    problem : GTVProblem
    rtol : float
        Relative gap that is asked for.
    modelled : bool
        Whether the iterations replace the losses by quadratic models.
    prices : Prices
    """

    def __init__(
        self, problem: GTVProblem, rtol: float, modelled: bool, prices: Prices = DEFAULTS
    ) -> None:
        self._problem, self._rtol, self._prices = problem, rtol, prices
        self._modelled = modelled

    @cached_property
    def possible(self) -> bool:
        """Whether the method fits the problem."""
        return missing(self._problem, InteriorPoint.requires) is None

    @cached_property
    def method(self) -> InteriorPoint:
        """The method, ready to run."""
        return InteriorPoint(self._problem, self._rtol)

    @cached_property
    def cost(self) -> float:
        """How many primal-dual iterations take about as long; infinite if it cannot."""
        if not self.possible:
            return math.inf
        prices, (matrix, factor) = self._prices, self.method.fill
        size = self.method.size
        # Columns of equal length: at least as many multiplications as the squares of these add
        # up to.
        one = prices.multiplication * factor**2 / size + prices.factor * factor
        one += prices.variable * size
        return (self._rounds * one + prices.setup * matrix + prices.start) / self._iteration

    @cached_property
    def least_cost(self) -> float:
        """Lower bound on the cost that takes no ordering: as if little filled in."""
        if not self.possible:
            return math.inf
        graph, d = self._problem.graph, self._problem.dim
        entries = 4.0 * graph.n_edges * d + 0.5 * graph.n_nodes * d**2 + self._row_entries
        prices = self._prices
        price = prices.smooth_entry if self._smooth_penalty else prices.entry
        return (self._rounds * price * entries + prices.start) / self._iteration

    @property
    def _smooth_penalty(self) -> bool:
        return self._problem.penalty.to_data()["kind"] in ("squared", "quadratic")

    @cached_property
    def _kinds(self) -> set[str]:
        return {term["kind"] for term in self._problem.losses.terms()}

    @property
    def kinked(self) -> bool:
        """Whether rows of data have kinks."""
        return not self._kinds.isdisjoint({"absolute", "quantile", "hinge"})

    @cached_property
    def _rounds(self) -> float:
        if not self._kinds.isdisjoint({"logistic", "poisson"}):
            return self._prices.exponential_rounds
        only_equations = self._smooth_penalty and self._problem.losses.is_quadratic
        return 1.0 if only_equations else self._prices.rounds

    @cached_property
    def _row_entries(self) -> float:
        return row_entries(self._problem)

    @cached_property
    def _iteration(self) -> float:
        if self._modelled:
            return self._prices.models * quadratic_iteration(self._problem, self._prices)
        return iteration(self._problem, self._prices)


def row_entries(problem: GTVProblem) -> float:
    """Return the number of entries of the data of all rows."""
    terms = problem.losses.terms()
    rows = sum(len(term["y"]) for term in terms if term["kind"] in ROW_KINDS)
    return float(rows * problem.dim)


def quadratic_iteration(problem: GTVProblem, prices: Prices = DEFAULTS) -> float:
    """Return the price of a primal-dual iteration with an affine proximal map."""
    graph, d = problem.graph, problem.dim
    return prices.call + prices.edge * graph.n_edges * d + prices.node * graph.n_nodes * d**2


def iteration(problem: GTVProblem, prices: Prices = DEFAULTS) -> float:
    """Return the price of a primal-dual iteration with the losses' own proximal maps."""
    affine = quadratic_iteration(problem, prices)
    if problem.losses.is_quadratic:
        return affine
    return affine + prices.prox * problem.graph.n_nodes + prices.row * row_entries(problem)
