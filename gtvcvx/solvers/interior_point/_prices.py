"""What things take that are counted, and iterations of the primal-dual method among them.

Everything is in nanoseconds of one core, as measured; only ratios of them matter.
"""

from __future__ import annotations

from dataclasses import dataclass

from gtvcvx.losses.batched._terms import MULTINOMIAL, ROW_KINDS
from gtvcvx.losses.batched._thin import pays
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem


@dataclass(frozen=True)
class BlockwisePrices:
    """What counted things take by our own interior-point method.

    Fitted to 150 random programs of its losses and penalties, 20 to 3,000 nodes.

    Attributes
    ----------
    rounds, linear_rounds : float
        Iterations: the median, and that of systems of linear equations.
    call : float
        An iteration, before it does anything.
    multiplication, factor : float
        An iteration: for each multiplication of the factorization, and each entry of the factor.
    row, edge : float
        An iteration: for each row, and each edge and coordinate.
    constrained : float
        With boxes and simplices all iterations take so many times as long: they are more, and
        squares are rows of their own.
    start, node, filled : float
        Assembly and ordering: whatever the size, for each node, and for each block of the factor.
    """

    rounds: float = 12.0
    linear_rounds: float = 1.0
    call: float = 2e5
    multiplication: float = 0.3
    factor: float = 7.0
    row: float = 80.0
    edge: float = 45.0
    constrained: float = 3.0
    start: float = 1e6
    node: float = 5e3
    filled: float = 1.3e3


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
    weighted : float
        With features in different units edges under l2 and linf take so many times as long: each
        projection in coordinates of several weights is an iteration. Of 15 such problems, 500 to
        10,000 nodes, d = 2 to 16, all took .8 to 9 times the price of others.
    prox, row : float
        With losses that are neither, for each node, and for each entry of its rows.
    written : float
        Each proximal point of a loss, or of an edge's penalty, that CVXPY's rules describe.
    power : float
        Each coordinate of an edge, with a p-norm.
    steps, step : float
        Steps of edges that the compiled pass does not know, those of quadratic penalties: whatever
        their number, and each coordinate of an edge. Iterations of eight such problems, 33 to 288
        nodes, took 3 to 14 times as long as without.
    tries : float
        Clarabel takes so many times what one round does where iterations have stalled: there, one
        often is not enough.
    blockwise : BlockwisePrices
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
    weighted: float = 5.0
    prox: float = 700.0
    row: float = 4.0
    written: float = 1e5
    power: float = 300.0
    steps: float = 5e4
    step: float = 6.5
    tries: float = 2.0
    blockwise: BlockwisePrices = BlockwisePrices()

    def by_clarabel(self, matrix: int, factor: int, size: int, rounds: float) -> float:
        """Return what Clarabel takes for a program, by nonzeros of what it factors, and its factor.

        `size` counts variables and rows. Columns of equal length: at least as many multiplications
        as the squares of these add up to.
        """
        one = self.multiplication * factor**2 / size + self.factor * factor + self.variable * size
        return rounds * one + self.setup * matrix + self.start


DEFAULTS = Prices()


def _edge_price(problem: GTVProblem, prices: Prices) -> float:
    """Return what edges take that the compiled pass does not know."""
    if problem.penalty.written(problem.dim) is not None:
        return prices.written * problem.graph.n_edges
    if problem.penalty.to_data()["kind"] == "pnorm":
        return prices.power * problem.graph.n_edges * problem.dim
    if problem.penalty.compiled_form == CompiledForm.OTHER:
        return prices.steps + prices.step * problem.graph.n_edges * problem.dim
    return 0.0


def row_entries(problem: GTVProblem) -> float:
    """Return the number of entries of the data of all rows."""
    terms = problem.losses.plain
    rows = sum(len(term["y"]) for term in terms if term["kind"] in (*ROW_KINDS, MULTINOMIAL))
    return float(rows * problem.dim)


def _node_entries(problem: GTVProblem) -> float:
    """Return the entries of the nodes' matrices, or of what takes their place where rows are few.

    Rows are gone through twice, beside a diagonal.
    """
    n, d = problem.graph.n_nodes, problem.dim
    thin = [batch.n_thin_rows for _, batch in problem.losses.parts]
    if pays(0, n, d):
        known = [rows for rows in thin if rows is not None]
        rows = sum(known) if len(known) == len(thin) else int(row_entries(problem)) // d
        if pays(rows, n, d):
            return float((2 * rows + n) * d)
    return float(n * d**2)


def quadratic_iteration(problem: GTVProblem, prices: Prices = DEFAULTS) -> float:
    """Return the price of a primal-dual iteration with an affine proximal map."""
    graph, d = problem.graph, problem.dim
    edges = prices.edge * graph.n_edges * d + _edge_price(problem, prices)
    return prices.call + edges + prices.node * _node_entries(problem)


def weighting(problem: GTVProblem, prices: Prices = DEFAULTS) -> float:
    """Return what an iteration takes more where features have different units."""
    if problem.penalty.to_data()["kind"] not in ("l2", "linf"):
        return 0.0
    return (prices.weighted - 1.0) * prices.edge * problem.graph.n_edges * problem.dim


def iteration(problem: GTVProblem, prices: Prices = DEFAULTS) -> float:
    """Return the price of a primal-dual iteration with the losses' own proximal maps."""
    affine = quadratic_iteration(problem, prices)
    if problem.losses.is_quadratic:
        return affine
    affine += prices.written * sum(
        len(nodes) for nodes, batch in problem.losses.parts if batch.written() is not None
    )
    return affine + prices.prox * problem.graph.n_nodes + prices.row * row_entries(problem)
