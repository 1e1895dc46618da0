"""Mehrotra's predictor-corrector method for a GTV problem, with the equations in w alone.

The dual variables are the slopes of rows and the flow on edges, strictly inside their bounds; any w
is feasible. What is missing on the way is balance: gradients, slopes and flow cancel
at each node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx._deadline import look
from gtvcvx.block_cholesky._plan import Plan
from gtvcvx.block_cholesky._residuals import ConjugateResiduals
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point.blockwise._duals import dot
from gtvcvx.solvers.interior_point.blockwise._edge_duals import edge_duals
from gtvcvx.solvers.interior_point.blockwise._newton_system import Move, NewtonSystem
from gtvcvx.solvers.interior_point.blockwise._node_terms import NodeTerms
from gtvcvx.solvers.interior_point.blockwise._powers import Powers
from gtvcvx.solvers.interior_point.blockwise._resting import Resting
from gtvcvx.solvers.interior_point.blockwise._row_duals import RowDuals


@dataclass(frozen=True)
class NewtonSettings:
    """Steps.

    Attributes
    ----------
    inside : float
        Share of the longest step that is taken at most.
    power : float
        mu falls by this power of what the predictor leaves.
    short : float
        After a step shorter than this mu stays: some products are far below it, and refined steps
        do not find back from there. Nor is it corrected for what is of second order along the whole
        predictor: that is many times what a short step meets, and drives products farther apart.
        Exponentials of smooth rows have short steps for most of the way, and need it.
    balanced, negligible : float
        A step is refined until what it leaves missing may be wrong by no more than this share of
        the gap, or this share of what is asked for.
    refinements : int
        Solves with a factor for that, at most. Collinear columns in raw units took up to 40.
    catching_up : int
        Steps with a factor after those, at most, that w takes after residuals and jumps: two are
        the rule.
    lost : float
        Share of a node's capacities that a step may miss of its balance before it is refined.
        Beyond, flows cannot make up for what rounding did, and points go far off for it, however
        little it is beside the gap of all nodes: capacities may differ by eight decades.
    shift : float
        Share of the diagonal that is added to it once steps have to be refined: variables that are
        lost to rounding do not rest then, and what they miss is found. Not before, since what only
        weak edges determine is lost in it.
    rough, rough_if_dear : int
        If so many solves are not enough, the factor has twice the digits from then on; the second
        where such a factorization takes more than a second.
    idle : int
        Solves in a row with twice the digits that leave more than `progress` of what was left
        before them, after which there are no more: what is left is the rounding of slopes and flows
        themselves. Up to `refinements` it only grew, or fell by a quarter in all.
    progress : float
    astray : float
        A first point that constraints have made so many times worse than the one before it is not
        begun with: 1e20 times, where columns are nearly dependent. Up to 700 times it is the better
        one as often as not.
    """

    inside: float = 0.99
    power: float = 3.0
    short: float = 0.05
    balanced: float = 1e-2
    negligible: float = 0.05
    lost: float = 1.0
    refinements: int = 40
    catching_up: int = 3
    shift: float = 3e-14
    rough: int = 5
    rough_if_dear: int = 20
    idle: int = 4
    progress: float = 0.9
    astray: float = 1e6


DEFAULTS = NewtonSettings()


class Newton:
    """A point near the central path, which moves on by an iteration at a time.

    Parameters
    ----------
    problem : GTVProblem
    terms : NodeTerms
        Its losses.
    plan : Plan
        Of its graph.
    settings : NewtonSettings

    Attributes
    ----------
    w : ndarray, shape (n, d)
    gap : float
        Value of w less that of the dual variables, if these were on balance.
    imbalance : float
        What that may be wrong by, since they are not.
    surplus : float
        What values of smooth rows are above their tangents with the slopes at hand.
    length : float
        Of the last step.
    goal : float
        Gap that is asked for.
    """

    def __init__(
        self,
        problem: GTVProblem,
        terms: NodeTerms,
        plan: Plan,
        settings: NewtonSettings = DEFAULTS,
    ) -> None:
        self._problem, self._terms, self._settings = problem, terms, settings
        slopes, smooth = terms.slopes, terms.smooth
        self._within = terms.sums.within
        # Smooth rows come last, and after them those with several classes.
        self._slopes = RowDuals(slopes, smooth.table, terms.classes)
        self._flow = edge_duals(problem)
        classes = self._slopes.classes
        X = np.concatenate([slopes.X, smooth.X, classes.framed()])
        node = np.concatenate([slopes.node, smooth.node, terms.classes.node])
        last = len(slopes.b) + len(smooth.node)
        self._angular, self._smooth = slice(len(slopes.b)), slice(len(slopes.b), last)
        self._of_classes = slice(last, None)
        self._curved = len(node) > len(slopes.b)
        self._targets = np.concatenate([slopes.b, np.zeros(len(node) - len(slopes.b))])
        self._system = NewtonSystem(problem, terms.sums, plan, X, node)
        self._resting = Resting(terms, problem.graph)
        self._degree = self._slopes.degree + self._flow.degree
        self._room = _room(problem, bounded=self._flow.degree > 0)
        self.length, self.goal = 1.0, 0.0
        # Whether a step was refined, and whether some step has missed more than it should have.
        self._refined = self._doubtful = False
        self._begin()

    @property
    def u(self) -> FloatArray:
        """The flow (m, d)."""
        return self._flow.y

    @property
    def row_slopes(self) -> FloatArray:
        """Slopes (N,) of all rows of data, as proposals have them."""
        return self._terms.row_slopes(self._slopes.y)

    @property
    def finite(self) -> bool:
        """Whether nothing has overflowed."""
        return bool(np.isfinite(self.gap) and np.isfinite(self.imbalance))

    @property
    def lost(self) -> float:
        """What gradients of quadratic functions may be wrong by, paired with w."""
        return self._terms.rounding(self.w)

    def value(self) -> float:
        """Return the objective at w."""
        problem, terms = self._problem, self._terms
        penalty = dot(problem.capacities, problem.penalty.value(self._jumps))
        rows = terms.slopes.value(self._residuals[self._angular])
        rows += terms.smooth.value(self._residuals[self._smooth]) + terms.classes.value(self.w)
        return terms.value(self.w) + rows + penalty

    def _begin(self) -> None:
        """Start from least squares, with mu such that slacks are as large as what they are for."""
        terms, slopes, curved = self._terms, self._terms.slopes, self._slopes.curved
        classes = self._slopes.classes
        capacities = self._problem.capacities
        half, scale = 0.5 * (slopes.high - slopes.low), terms.residual_scale()
        first, curvatures = curved.points()
        aims = np.concatenate([np.zeros(len(slopes.b)), first, np.zeros(len(classes))])
        weights = np.where(slopes.constrained, 0.0, 1.0 / (slopes.rate + scale / half))
        weights = np.concatenate([weights, curvatures, classes.weights])
        edge_weights = (capacities / scale)[:, None, None] * np.eye(self._problem.dim)
        self.w = terms.sums.start(terms.q.shape)
        self._look()
        self._factorize(weights, edge_weights)
        down = weights * (aims - self._residuals) - self._slopes.y
        flow = np.einsum("eij,ej->ei", edge_weights, self._jumps)
        right = self._system.gathered(down, -flow) - terms.gradient(self.w)
        self._begin_at(self.w + self._system.move(right).w)
        half = np.concatenate([np.where(np.isinf(half), 0.0, half), curved.halves, classes.halves])
        lengths = self._problem.penalty.value(self._jumps)
        products = dot(half, np.abs(self._residuals - aims)) + dot(capacities, lengths)
        # Without any residual or jump the point is a solution already, but for the others' sake.
        mu = products / (len(half) + len(capacities))
        mu = mu if mu > 0.0 else float(np.mean(np.concatenate([half, capacities]))) * scale
        self._begin_with(mu)
        # Products are to be as large as what is missing may be wrong by: that of constraints, whose
        # multipliers make up for it, and of squares in large units, whose residuals are rounding.
        # With p-norms small products are better found from small ones; smooth penalties have none,
        # and points of rows without an end would go astray where nothing holds them.
        larger = self.imbalance > mu * self._degree > 0.0
        kinked = self._flow.degree > 0 and not isinstance(self._flow, Powers)
        if larger and (slopes.constrained.any() or kinked):
            self._begin_with(self.imbalance / self._degree)

    def _begin_at(self, found: FloatArray) -> None:
        """Take the point nearest to one that was found; where that is hopeless, the one so far.

        Least squares without constraints may lie far outside: nothing of it is left then.
        """
        project = self._problem.losses.project_domain
        inside, before = project(found), self._resting(project(self.w))
        self.w = nearest = self._resting(inside)
        self._look()
        if np.array_equal(inside, found):
            return
        value = self.value()
        self.w = before
        self._look()
        if not self._settings.astray * self.value() < value:
            self.w = nearest
            self._look()

    def _begin_with(self, mu: float) -> None:
        """Start dual variables at the current point."""
        self._slopes.begin(self._residuals, mu)
        self._flow.begin(self._jumps, mu)
        self._balance()

    def _factorize(self, row_weights: FloatArray, edge_weights: FloatArray) -> None:
        """Factorize, with scores of classes less the means that go with the weights."""
        if not self._terms.classes.empty:
            classes, at = self._slopes.classes, self._of_classes
            self._system.replace(at, classes.framed())
            self._residuals[at] = classes.centred(self._residuals[at])
        self._system.factorize(self._terms.P, row_weights, edge_weights)

    def _look(self) -> None:
        """Take residuals and jumps at w."""
        self._residuals = self._system.along_rows(self.w) - self._targets
        self._jumps = self._problem.differences(self.w)

    def _balance(self) -> None:
        """Take what is missing at each node."""
        self._missing = self._terms.gradient(self.w)
        self._missing += self._system.gathered(self._slopes.y, self._flow.y)
        self._missing = self._within(self._missing)
        self.gap = self._slopes.complementarity() + self._flow.complementarity()
        self.imbalance = float(np.sum(np.abs(self._missing * self.w)))
        self.surplus = self._slopes.curved.surplus(self._residuals[self._smooth])
        self.surplus += self._slopes.classes.surplus(self._residuals[self._of_classes])

    def iterate(self) -> None:
        """Do one iteration."""
        slopes, flow = self._slopes, self._flow
        slopes.linearize(self._residuals)
        flow.linearize(self._jumps)
        step, self.length = self._direction()
        self.w = self._resting(self.w + self.length * step)
        slopes.move(self.length)
        flow.move(self.length)
        self._follow()
        expected = (1.0 - self.length) * self.imbalance
        self._balance()
        straight = not (self._doubtful or flow.retracted)
        if straight and self.imbalance > expected + self._enough:
            self._doubt()

    def _doubt(self) -> None:
        """Ask all steps from now on what they miss."""
        self._doubtful = True
        self._system.shift(self._settings.shift)

    def _direction(self) -> tuple[FloatArray, float]:
        """Return the step of w, and how long it may be."""
        self._factorize(self._slopes.weights, self._flow.weights)
        rough = not self._system.twofold
        step = self._predicted_and_corrected()
        if rough and self._system.twofold:
            # What the corrector takes from the predictor was found with the rough factor.
            step = self._predicted_and_corrected()
        return step, min(1.0, self._settings.inside * self._longest())

    def _predicted_and_corrected(self) -> FloatArray:
        """Return the step of w with the factor as it is; it may become a better one on the way."""
        settings = self._settings
        self._step(0.0, corrected=False, last=False)
        left = 1.0 - min(1.0, self._longest())
        short = self.length < settings.short
        aim = self.gap if short else left**settings.power * self.gap
        corrected = self._curved or not short
        return self._step(aim / max(self._degree, 1.0), corrected, last=True)

    def _follow(self) -> None:
        """Take residuals and jumps after a step.

        Where it was refined they move with it: afresh, small ones would be lost to rounding.
        """
        if not (self._refined or self._system.twofold):
            self._look()
            return
        self._residuals = self._residuals + self.length * self._row_step
        self._jumps = self._jumps + self.length * self._jump_step
        rows, times = self._residuals + self._targets, self._settings.catching_up
        self.w = self._resting(self._system.caught_up(self.w, rows, self._jumps, times))

    def _step(self, mu: float, corrected: bool, last: bool) -> FloatArray:
        """Return the step of w towards mu; the dual variables remember theirs.

        The last one is made again where it misses much.
        """
        slopes, flow = self._slopes.offset(mu, corrected), self._flow.offset(mu, corrected)
        move = self._system.move(-self._missing - self._system.gathered(slopes, flow))
        left = self._take(move, last)
        if left is not None and (self._doubtful or self._missed(left)):
            move = self._refine(move, left)
        self._row_step, self._jump_step = move.rows, move.jumps
        return move.w

    def _take(self, move: Move, asked: bool = True) -> FloatArray | None:
        """Let the dual variables follow a step.

        If asked, return what would be missing after the whole step, with the other sign.
        """
        slopes, flow = self._slopes.step(move.rows), self._flow.step(move.jumps)
        if not asked:
            return None
        return -self._missing - self._system.total(move.w, slopes, flow)

    @property
    def _enough(self) -> float:
        """What a step may leave missing, as the gap counts it."""
        return max(self._settings.balanced * self.gap, self._settings.negligible * self.goal)

    @property
    def _scale(self) -> FloatArray:
        """Sizes (d,) of the coordinates of all points."""
        scale = np.max(np.abs(self.w), axis=0)
        return np.asarray(np.where(scale > 0.0, scale, 1.0))

    def _missed(self, left: FloatArray) -> bool:
        """Say whether a step that leaves so much missing (n, d) misses more than enough.

        All nodes together, or one of them more than flows can make up for.
        """
        lost = np.abs(left).max(axis=1) > self._settings.lost * self._room
        return bool(np.any(lost)) or not _weighed(left, self._scale) <= self._enough

    def _refine(self, move: Move, left: FloatArray) -> Move:
        """Return the step again, such that it leaves no more than enough missing if that goes."""
        scale = self._scale
        best, least = move, _weighed(left, scale)
        self._refined = self._missed(left)
        if self._refined:
            self._doubt()
        residuals, settings = ConjugateResiduals(scale), self._settings
        rough = settings.rough_if_dear if self._system.dear else settings.rough
        idle, mark = 0, np.inf  # solves since there was clearly less, and how much
        for tries in range(settings.refinements if self._refined else 0):
            look()
            if tries == rough:
                self._system.sharpen()
            more = self._system.move(left)
            if not residuals.add(self._system.image(more), *more):
                break
            move = Move(*residuals.moved(left, *move))
            found = self._take(move)
            assert found is not None
            left, size = found, _weighed(found, scale)
            if size < settings.progress * mark or not self._system.twofold:
                idle, mark = 0, size
            else:
                idle += 1
            if size < least:
                best, least = move, size
            if self._settled(tries, left, size) or idle >= settings.idle:
                break
        if best is not move:
            self._take(best)
        return best

    def _settled(self, tries: int, left: FloatArray, size: float) -> bool:
        """Say whether a step misses little enough: all nodes together, before a dear factor."""
        if tries >= self._settings.rough and not self._system.twofold:
            return size <= self._enough
        return not self._missed(left)

    def _longest(self) -> float:
        return min(self._slopes.longest(), self._flow.longest())


def _room(problem: GTVProblem, bounded: bool) -> FloatArray:
    """Return what the flow may bring to each node, (n,): no end where it is not bounded.

    Nor at nodes without neighbours, whose rows are all that makes up for anything.
    """
    ends, capacities = problem.graph.edges.ravel(), np.repeat(problem.capacities, 2)
    room = np.bincount(ends, capacities, problem.graph.n_nodes)
    return np.where((room > 0.0) & bounded, room, np.inf)


def _weighed(left: FloatArray, scale: FloatArray) -> float:
    """Return by how much the gap may be wrong if that is left, with points of such a size."""
    return float(np.sum(np.abs(left) * scale))
