"""What an interior-point method costs, in iterations of the primal-dual method: counted.

Of what is counted each has its price (`gtvcvx.solvers.interior_point._prices`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

from gtvcvx.block_cholesky._plan import Plan
from gtvcvx.compiled import unrolled
from gtvcvx.losses.batched._terms import MULTINOMIAL
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver import Method, missing
from gtvcvx.solvers.interior_point._careful import Careful
from gtvcvx.solvers.interior_point._interior_point import InteriorPoint
from gtvcvx.solvers.interior_point._losses import KINKED
from gtvcvx.solvers.interior_point._prices import (
    DEFAULTS,
    Prices,
    iteration,
    quadratic_iteration,
    row_entries,
    weighting,
)
from gtvcvx.solvers.interior_point._reach import within_reach
from gtvcvx.solvers.interior_point._stalling import DEFAULTS as STALLING
from gtvcvx.solvers.interior_point._units import units_differ
from gtvcvx.solvers.interior_point.blockwise._blockwise import Blockwise, planned
from gtvcvx.solvers.interior_point.blockwise._node_terms import CONSTRAINTS, SMOOTH

# Rounds of Clarabel before the method that is careful: where it calls the first one solved, the
# second one, in other units, often proves what that has not, in a fraction of the time.
ROUNDS_BEFORE_CARE = 2
# Nanoseconds that nobody waits for; with losses that are not quadratic and loops for all d, which
# compile for 5 to 25 s, what takes no longer comes first. It compiles for 3 s.
SHORT = 1e8


class Alternative:
    """The interior-point methods for a problem, made when somebody asks.

    Our own comes first where it fits; with quadratic losses only in raw units, where iterations
    take many times as many, with p-norms, and where the penalty is quadratic, too. Clarabel
    follows, where that has got stuck. Of other quadratic losses the cheaper of the two comes first.

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
        """Whether one of the methods may fit the problem."""
        return self._blockwise or self._conic

    @cached_property
    def _conic(self) -> bool:
        return missing(self._problem, InteriorPoint.requires) is None

    @cached_property
    def _fits(self) -> bool:
        """Whether our own method knows what the problem consists of."""
        return missing(self._problem, Blockwise.requires) is None

    @cached_property
    def _blockwise(self) -> bool:
        """Whether it comes first, and says what the alternative costs."""
        problem = self._problem
        if not self._fits:
            return False
        # With p-norms iterations take long, too, and Clarabel has a cone for each coordinate.
        powers = problem.penalty.to_data()["kind"] == "pnorm"
        return not problem.losses.is_quadratic or self._raw or powers or self._linear

    @cached_property
    def _linear(self) -> bool:
        """Whether a step of Newton's method solves the problem: a system of linear equations."""
        quadratic = self._problem.losses.is_quadratic and self._kinds.isdisjoint(CONSTRAINTS)
        return self._smooth_penalty and quadratic

    @cached_property
    def _plan(self) -> Plan | None:
        return planned(self._within_reach) if self._blockwise else None

    @cached_property
    def _within_reach(self) -> GTVProblem:
        return within_reach(self._problem)

    @cached_property
    def _method(self) -> InteriorPoint:
        method = InteriorPoint(self._within_reach, self._rtol, self._problem)
        written = missing(self._problem, Careful.requires) is None
        method.gives_way = written and Careful.fits(method)
        return method

    def methods(self) -> Iterator[Method]:
        """Yield the methods that fit: the next one is for where those before have failed.

        Their checks may take as long as they do.
        """
        own, last = None, False
        if self._plan is not None:
            own = self._own(self._plan)
        elif self._fits and not self._blockwise and (plan := planned(self._within_reach)):
            own = self._own(plan, apart=True)
            last = own.most_check > self._prices.tries * self._conic_cost
        if own is not None and not last:
            yield own
        if self._conic:
            yield from self._conic_methods()
        if own is not None and last:
            yield own

    def _conic_methods(self) -> Iterator[Method]:
        """Yield Clarabel, and in between what knows its programs, too, where these are written."""
        first, problem = self._method, self._within_reach
        first.most_check = self._conic_price
        if not first.gives_way:
            yield first
            return
        first.most_rounds = ROUNDS_BEFORE_CARE
        yield first
        yield Careful(problem, self._rtol, self._problem, first.solved)
        others = InteriorPoint(problem, self._rtol, self._problem, first.n_rounds)
        others.most_check = self._conic_price
        yield others

    @property
    def _conic_cost(self) -> float:
        return self._conic_price if self._conic else math.inf

    def _own(self, plan: Plan, apart: bool = False) -> Blockwise:
        method = Blockwise(self._within_reach, plan, apart=apart)
        method.most_check = self._blockwise_price(plan)
        return method

    @cached_property
    def cost(self) -> float:
        """How many primal-dual iterations take about as long; infinite if none fits."""
        if self._plan is not None:
            return self._blockwise_price(self._plan) / self.iteration
        return self._conic_cost / self.iteration

    @property
    def is_short(self) -> bool:
        """Whether our own method takes so little that iterations are not worth compiling."""
        if not self._blockwise or self._problem.losses.is_quadratic or unrolled(self._problem.dim):
            return False
        if self._least_blockwise > SHORT or self._plan is None:
            return False
        return self._blockwise_price(self._plan) <= SHORT

    @property
    def _conic_price(self) -> float:
        # The program has the same pattern for every lambda, but for constraints that only some
        # values bring within reach: a price need not know, and ordering takes long.
        (matrix, factor), size = self._problem.cached(
            "conic program", lambda: (self._method.fill, self._method.size)
        )
        return self._prices.by_clarabel(matrix, factor, size, self._rounds)

    def _blockwise_price(self, plan: Plan) -> float:
        prices, d = self._prices.blockwise, self._problem.dim
        one = prices.multiplication * plan.multiplications(d) + prices.factor * plan.entries(d)
        return self._many * one + prices.filled * len(plan.nodes) + self._least_blockwise

    @property
    def _many(self) -> float:
        """Iterations of our own method, longer ones counted as more."""
        prices = self._prices.blockwise
        if self._linear:
            return prices.linear_rounds
        return prices.rounds * (1.0 if self._kinds.isdisjoint(CONSTRAINTS) else prices.constrained)

    @property
    def _least_blockwise(self) -> float:
        """What it takes whatever the order of elimination."""
        prices, graph, d = self._prices.blockwise, self._problem.graph, self._problem.dim
        terms = self._problem.losses.plain
        each = {"l1": d, **dict.fromkeys(CONSTRAINTS, d)}
        rows = sum(len(term["node"]) * each.get(term["kind"], 1) for term in terms)
        one = prices.call + prices.row * rows + prices.edge * graph.n_edges * d
        return self._many * one + prices.node * graph.n_nodes + prices.start

    @cached_property
    def least_cost(self) -> float:
        """Lower bound on the cost that takes no ordering: as if little filled in."""
        if self._blockwise:
            # To ask takes as long as a single step does: on dense graphs more than iterations do.
            asking = self._least_ordering if self._linear else 0.0
            return (self._least_blockwise + asking) / self.iteration
        return self._least_conic / self.iteration if self._conic else math.inf

    @cached_property
    def bound(self) -> float:
        """Lower bound on the cost that takes an ordering of the graph, but of no cone program.

        Of a large one that alone takes as long as a thousand iterations.
        """
        if self._blockwise and self._plan is None:
            return self._least_conic / self.iteration if self._conic else math.inf
        return self.least_cost

    @property
    def _least_ordering(self) -> float:
        """What the ordering takes that would tell what is filled in."""
        graph = self._problem.graph
        return self._prices.blockwise.filled * (graph.n_nodes + graph.n_edges)

    @property
    def _least_conic(self) -> float:
        graph, d = self._problem.graph, self._problem.dim
        entries = 4.0 * graph.n_edges * d + 0.5 * graph.n_nodes * d**2 + self._row_entries
        prices = self._prices
        price = prices.smooth_entry if self._smooth_penalty else prices.entry
        return self._rounds * price * entries + prices.start

    @property
    def _smooth_penalty(self) -> bool:
        return self._problem.penalty.to_data()["kind"] in ("squared", "quadratic")

    @cached_property
    def _kinds(self) -> set[str]:
        return {term["kind"] for term in self._problem.losses.plain}

    @property
    def fewest(self) -> float:
        """Iterations that most problems take: what costs no more comes first.

        They are many more where features have different units, and take longer. What is not
        iterations counts as such.
        """
        own = self._fewest * (STALLING.fewest_raw if self._raw else 1)
        return own + self._beside / self.iteration

    @property
    def _beside(self) -> float:
        """What checks and models take whatever the size, in nanoseconds."""
        if self._modelled:
            return STALLING.models
        constrained = not self._kinds.isdisjoint(CONSTRAINTS)
        return STALLING.multipliers if self._quadratic and constrained else 0.0

    @property
    def _quadratic(self) -> bool:
        """Whether losses are quadratic functions, within constraints or without."""
        return self._kinds <= {"squared", "point", "ridge", *CONSTRAINTS}

    @cached_property
    def _raw(self) -> bool:
        """Whether features have different units."""
        return units_differ(self._problem.losses.plain, self._problem.dim)

    @property
    def _fewest(self) -> int:
        if self._linear:
            return STALLING.fewest_linear
        if not self._kinds.isdisjoint(KINKED):
            return STALLING.fewest_kinked
        if not self._blockwise or self._quadratic or MULTINOMIAL in self._kinds:
            return STALLING.fewest
        if not self._kinds.isdisjoint(SMOOTH):
            return STALLING.fewest_smooth
        return STALLING.fewest_shrunk if "l1" in self._kinds else STALLING.fewest_modelled

    @cached_property
    def _rounds(self) -> float:
        if not self._kinds.isdisjoint({"logistic", "poisson", MULTINOMIAL}):
            return self._prices.exponential_rounds
        return 1.0 if self._linear else self._prices.rounds

    @cached_property
    def _row_entries(self) -> float:
        return row_entries(self._problem)

    @property
    def seconds(self) -> float:
        """What a primal-dual iteration takes, in seconds."""
        return 1e-9 * self.iteration

    @cached_property
    def iteration(self) -> float:
        """What a primal-dual iteration takes, in nanoseconds."""
        if self._modelled:
            own = self._prices.models * quadratic_iteration(self._problem, self._prices)
        else:
            own = iteration(self._problem, self._prices)
        return own + (weighting(self._problem, self._prices) if self._raw else 0.0)
