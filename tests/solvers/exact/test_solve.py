"""Exact solutions, proved once more by an oracle that reads nothing but the plain data."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from _instances import NORMS, cases, reference
from hypothesis import given
from hypothesis import strategies as st

import gtvcvx as gtv


def rows_of(term, d):
    """Rows (node, x, y, m) of a term, with losses (1/m) (x.w - y)^2."""
    nodes = term["node"].tolist()
    if term["kind"] == "point":
        units = [[Fraction(k == j) for j in range(d)] for k in range(d)]
        for i, a in zip(nodes, term["a"].tolist(), strict=True):
            yield from ((i, unit, Fraction(y), 1) for unit, y in zip(units, a, strict=True))
        return
    counts = Counter(nodes)
    for i, x, y in zip(nodes, term["X"].tolist(), term["y"].tolist(), strict=True):
        yield i, [Fraction(value) for value in x], Fraction(y), counts[i]


def proved_value(problem, exact):
    """Optimum, from P(w) and the dual value of u in fractions; fails unless they are equal.

    The lower bound is that of multipliers r with X^T r = -(D^T u) exactly. They are taken from
    the residuals at w, but the bound holds wherever they come from.
    """
    data = problem.to_data()
    n, d, w = data["n_nodes"], data["dim"], exact.w
    assert np.shape(w) == (n, d)
    assert len(exact.u) == len(data["edges"])
    injection, used = ([[Fraction(0)] * d for _ in range(n)] for _ in range(2))
    upper = lower = Fraction(0)
    edges = zip(data["edges"].tolist(), data["weights"].tolist(), exact.u, strict=True)
    for (i, j), weight, flow in edges:
        capacity = Fraction(data["lam"]) * Fraction(weight)
        for k in range(d):
            assert abs(flow[k]) <= capacity
            injection[i][k] -= flow[k]
            injection[j][k] += flow[k]
            upper += capacity * abs(w[i][k] - w[j][k])
    for term in data["terms"]:
        for i, x, y, m in rows_of(term, d):
            residual = sum((a * b for a, b in zip(x, w[i], strict=True)), -y)
            r = 2 * residual / m
            upper += residual**2 / m
            lower -= r * y + m * r**2 / 4
            used[i] = [s + a * r for s, a in zip(used[i], x, strict=True)]
    assert used == injection
    assert upper == lower == exact.value
    return upper


def solved(problem, **options):
    """Solve, check the proof and what is rounded from it."""
    solution = problem.solve("EXACT", **options)
    assert solution.status == "optimal"
    assert solution.solver == "EXACT"
    assert solution.gap == solution.rel_gap == 0.0
    assert solution.value == solution.dual_value == float(proved_value(problem, solution.exact))
    assert (solution.w == np.array(solution.exact.w, dtype=float)).all()
    u = np.array(solution.exact.u, dtype=float).reshape(solution.u.shape)
    assert (solution.u == u).all()
    assert (solution.slack >= 0).all()
    return solution


def points(graph_edges, a, lam, weights=None):
    """Problem with points a, one a node; None: no data."""
    losses = [gtv.ZeroLoss() if x is None else gtv.PointLoss(x) for x in a]
    graph = gtv.EmpiricalGraph(len(a), graph_edges, weights)
    return gtv.GTVProblem(graph, losses, "l1", lam)


@pytest.mark.parametrize("lam", [0.25, 0.75, 1.0, 1.5, 0.1])
def test_two_nodes(lam):
    """w = lam/2 and 1 - lam/2 until they meet at lam = 1, exactly at the tie as well."""
    exact = solved(points([(0, 1)], [0.0, 1.0], lam)).exact
    low = min(Fraction(lam) / 2, Fraction(1, 2))
    assert exact.w == [[low], [1 - low]]
    assert exact.u == [[-min(Fraction(lam), Fraction(1))]]
    assert exact.value == 2 * low**2 + Fraction(lam) * (1 - 2 * low)


def test_numbers_that_no_float_holds():
    """Three points on a path that fuse: the mean 1/3 and flows 2/3 of the way."""
    exact = solved(points([(0, 1), (1, 2)], [0.0, 0.0, 1.0], 2.0)).exact
    assert exact.w == [[Fraction(1, 3)]] * 3
    assert exact.u == [[Fraction(-2, 3)], [Fraction(-4, 3)]]
    assert exact.value == Fraction(2, 3)


@pytest.mark.parametrize("lam", [0.25, 0.5, 0.625])
@pytest.mark.parametrize("warm", [False, True])
def test_star_at_its_critical_lambda(lam, warm):
    """Hub 0, three leaves 1: they merge at lam = 2/(3 + 1), where every edge is full and fused."""
    problem = points([(0, 1), (0, 2), (0, 3)], [0.0, 1.0, 1.0, 1.0], lam)
    start = problem.with_lam(0.1).solve("CLARABEL") if warm else None
    exact = solved(problem, warm_start=start).exact
    hub = min(Fraction(lam) * 3 / 2, Fraction(3, 4))
    leaf = max(1 - Fraction(lam) / 2, Fraction(3, 4))
    assert exact.w == [[hub]] + [[leaf]] * 3
    assert exact.u == [[-2 * (1 - leaf)]] * 3


def test_a_chain_whose_middle_is_not_determined():
    """Every value between its neighbours solves the unlabelled middle; any of them is proved."""
    exact = solved(points([(0, 1), (1, 2)], [0.0, None, 1.0], 0.5)).exact
    assert exact.w[0] == [Fraction(1, 4)]
    assert exact.w[2] == [Fraction(3, 4)]
    assert exact.w[0] <= exact.w[1] <= exact.w[2]


def test_no_edges_isolated_nodes_and_a_component_without_data():
    alone = solved(points([], [3.0, None], 1.0))
    assert alone.exact.w[0] == [3]
    assert alone.exact.u == []
    no_data = gtv.StackedLoss([], dim=2)
    nothing = solved(gtv.GTVProblem(gtv.EmpiricalGraph(3, [(0, 2)]), no_data, "l1"))
    assert nothing.exact.value == 0
    exact = solved(points([(0, 1), (2, 3), (3, 4)], [0.0, 1.0, None, None, None, 5.0], 3.0)).exact
    assert exact.w[0] == exact.w[1] == [Fraction(1, 2)]
    assert exact.w[5] == [5]
    assert exact.u[1:] == [[0], [0]]


def test_fewer_rows_than_dimensions():
    """One row a node: x_0.w = 1 and x_1.w = 0 can both hold, so the optimum is zero."""
    losses = [gtv.SquaredLoss([[1.0, 2.0, 0.0]], [1.0]), gtv.SquaredLoss([[0.0, 1.0, 1.0]], [0.0])]
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(2, [(0, 1)]), losses, "l1", 0.3)
    assert solved(problem).exact.value == 0


EXACT_CASES = [
    *cases(penalties=["l1"]),
    *cases(families=["d=1"], penalties=[name for name in NORMS if name != "l1"]),
]


@pytest.mark.parametrize("case", EXACT_CASES, ids=str)
def test_every_family_agrees_with_clarabel(case):
    solution = solved(case.problem())
    optimum = reference(case).value
    assert abs(solution.value - optimum) <= 1e-7 * max(1.0, abs(optimum))


SMALL = st.integers(-2, 2).map(float)


@st.composite
def tied_problems(draw):
    """Problems in small integers, full of ties: equal points, equal weights, lambda at breaks."""
    n, d = draw(st.integers(1, 7)), draw(st.integers(1, 3))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    weights = draw(st.lists(st.sampled_from([1.0, 2.0]), min_size=len(edges), max_size=len(edges)))
    vector = st.lists(SMALL, min_size=d, max_size=d)

    def squared(m):
        rows = draw(st.lists(vector, min_size=m, max_size=m))
        return gtv.SquaredLoss(rows, draw(st.lists(SMALL, min_size=m, max_size=m)))

    losses = []
    for _ in range(n):
        kind = draw(st.sampled_from(["zero", "point", "point", 1, 2, 3]))
        if kind == "zero":
            losses.append(gtv.ZeroLoss())
        else:
            losses.append(gtv.PointLoss(draw(vector)) if kind == "point" else squared(kind))
    if not any(loss.dim for loss in losses):
        losses = gtv.StackedLoss([], dim=d)
    penalty = "l1" if d > 1 else draw(st.sampled_from(["l1", "l2", "linf"]))
    lam = draw(st.sampled_from([0.125, 0.25, 0.5, 1.0, 2.0, 1 / 3]))
    return gtv.GTVProblem(gtv.EmpiricalGraph(n, edges, weights), losses, penalty, lam)


@given(tied_problems())
def test_ties(problem):
    solved(problem)


def wrong(problem, how, seed):
    """Solution whose fused edges and signs are wrong."""
    start = problem.solve(max_iter=1)
    rng = np.random.default_rng(seed)
    if how == "all fused":
        return replace(start, w=np.zeros_like(start.w), u=np.zeros_like(start.u))
    w = rng.integers(-3, 4, start.w.shape).astype(float)
    jumps = problem.differences(w)
    return replace(start, w=w, u=np.sign(jumps) * problem.capacities[:, None])


@pytest.mark.parametrize("how", ["all fused", "random"])
@given(problem=tied_problems(), seed=st.integers(0, 100))
def test_a_wrong_structure_is_repaired(how, problem, seed):
    solved(problem, warm_start=wrong(problem, how, seed))


@pytest.mark.parametrize("how", ["all fused", "random"])
def test_a_wrong_structure_with_many_nodes_is_repaired(how):
    rng = np.random.default_rng(3)
    n = 30
    edges = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.2]
    losses = gtv.SquaredLoss.stack(
        rng.standard_normal((n, 3, 2)), rng.standard_normal((n, 3)), rng.random(n) < 0.5
    )
    problem = gtv.GTVProblem(gtv.EmpiricalGraph(n, edges), losses, "l1", 0.1)
    solution = solved(problem, warm_start=wrong(problem, how, 0))
    assert solution.n_iter > 1
    assert solution.exact.value == solved(problem).exact.value


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e290])
def test_extreme_weights(scale):
    problem = points([(0, 1), (1, 2), (0, 2)], [0.0, 1.0, 3.0], 0.3, np.array([1, 2, 0.5]) * scale)
    assert len(solved(problem).exact.w) == 3


def test_two_hundred_nodes():
    rng = np.random.default_rng(0)
    n = 200
    edges = np.array([(i, j) for i in range(n) for j in range(i) if rng.random() < 0.05])
    losses = gtv.SquaredLoss.stack(
        rng.standard_normal((n, 5, 2)), rng.standard_normal((n, 5)), rng.random(n) < 0.6
    )
    graph = gtv.EmpiricalGraph(n, edges, rng.uniform(0.5, 2.0, len(edges)))
    problem = gtv.GTVProblem(graph, losses, "l1", 0.05)
    solution = problem.solve("EXACT")
    assert solution.status == "optimal"
    assert solution.gap == 0.0
    assert solution.n_iter <= 3  # the signs in double precision are nearly all right
    optimum = problem.solve("CLARABEL", rtol=1e-9)
    assert solution.value <= optimum.value + 1e-12
    assert solution.value >= optimum.dual_value - 1e-12
    assert problem.dual_value(solution.u) == pytest.approx(solution.value, rel=1e-9)
