"""Bulk exact arithmetic, routing and float repair against plain Fractions and CVXPY."""

from fractions import Fraction

import numpy as np
import pytest
from _plain_instances import KINKED, LOSSES, PENALTIES, instance, solve
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from verify.certificates._exact_flow import exact_flow
from verify.certificates._forest import components, spanning_forest
from verify.certificates._projection import conjugate_gradients
from verify.certificates._repair import Repair, gaps
from verify.instance import _integers as integers
from verify.instance._constraints import Constraints
from verify.instance._instance import load
from verify.instance._penalties import Penalty, project_l1
from verify.kernel.losses import term_of
from verify.kernel.numbers import scaled, table, unit

ARRAYS = hnp.arrays(
    np.float64, st.integers(0, 6), elements=st.floats(allow_nan=False, allow_infinity=False)
)


@given(ARRAYS)
def test_dyadic_is_exact(a: np.ndarray) -> None:
    v, k = integers.dyadic(a)
    assert [Fraction(x) / 2**k for x in v] == [Fraction(x) for x in a.tolist()]
    assert k == 0 or any(x % 2 for x in v)


@given(ARRAYS, st.integers(0, 1200))
def test_grid_is_the_closest_integer(a: np.ndarray, k: int) -> None:
    for x, v in zip(a.tolist(), integers.to_grid(a, k), strict=True):
        assert abs(v - Fraction(x) * 2**k) <= Fraction(1, 2)


@given(
    st.lists(st.one_of(st.integers(), st.fractions()), min_size=1, max_size=4), st.integers(0, 200)
)
def test_text_is_read_back_exactly(values: list[Fraction | int], k: int) -> None:
    texts = integers.texts(np.array(values, dtype=object), k)
    read, scale = scaled(texts)
    assert [v * unit(scale) for v in read] == [Fraction(v) / 2**k for v in values]


@given(hnp.arrays(np.float64, 3, elements=st.floats(-1e300, 1e300)), st.integers(0, 60))
def test_floats_come_back(a: np.ndarray, shift: int) -> None:
    v, k = integers.dyadic(a)
    back = integers.to_floats(v * (1 << shift), k + shift)
    np.testing.assert_allclose(back, a, rtol=1e-15, atol=np.abs(a).max() * 1e-290)


@pytest.mark.parametrize("seed", range(20))
def test_integer_solve_against_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, r = (int(x) for x in rng.integers(1, 6, 2))
    a = rng.integers(-9, 10, (d, r)).astype(object)
    if seed % 3 == 0 and d > 1:
        a[-1] = a[0] * 2  # dependent rows
    b = a @ rng.integers(-5, 6, r).astype(object)
    x = integers.solve(a, b)
    assert x is not None
    for row, goal in zip(a, b, strict=True):
        assert sum(c * v for c, v in zip(row, x, strict=True)) == goal
    if seed % 3 == 0 and d > 1:
        b[-1] += 1
        assert integers.solve(a, b) is None


@pytest.mark.parametrize("seed", range(5))
def test_forest_spans_with_the_largest_slack(seed: int) -> None:
    import networkx as nx

    data = instance(seed, kind="components", n=30)
    edges = data["edges"]
    rng = np.random.default_rng(seed)
    slack, active = rng.random(len(edges)), rng.random(len(edges)) < 0.9
    count, component = components(edges[active], 30)
    roots = np.zeros(30, dtype=bool)
    roots[np.unique(component, return_index=True)[1]] = True
    forest = spanning_forest(edges, slack, active, roots, component)
    links = [e for e in forest.parent_edge if e >= 0]
    assert len(links) == 30 - count
    assert active[links].all()
    graph = nx.Graph()
    graph.add_weighted_edges_from(
        (i, j, s) for (i, j), s, a in zip(edges.tolist(), slack, active, strict=True) if a
    )
    tree = nx.maximum_spanning_tree(graph)
    assert slack[links].sum() == pytest.approx(tree.size(weight="weight"))
    seen: set[int] = set()
    for i in forest.order:
        assert forest.parent_edge[i] < 0 or forest.parent[i] in seen
        seen.add(i)
    for i, e in enumerate(forest.parent_edge):
        if e >= 0:
            head, tail = (i, forest.parent[i]) if forest.sign[i] > 0 else (forest.parent[i], i)
            assert edges[e].tolist() == [head, tail]


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("loss", [*LOSSES, *KINKED, "everything"])
def test_exact_flow_is_conserved_and_within_capacity(loss: str, phi: str) -> None:
    """Recompute both in Fractions, from the definition."""
    data = instance(4, loss, phi, "connected", 8, 2)
    inst = load(data)
    w, u = solve(data)
    w, _ = Constraints(inst).moved(w)
    repair = Repair(inst, w)
    found = repair.run(u, 0.0)
    flow = exact_flow(inst, found.u, found.r, w, repair.active)
    balance = [[Fraction(0)] * 2 for _ in range(inst.n)]
    for (i, j), row, cap in zip(data["edges"], flow.u, data["weights"], strict=True):
        x = [Fraction(v) / 2**flow.k for v in row]
        limit = Fraction(data["lam"]) * Fraction(cap)
        assert phi != "l1" or max(map(abs, x)) <= limit
        assert phi != "linf" or sum(map(abs, x)) <= limit
        assert phi != "l2" or sum(v * v for v in x) <= limit * limit
        for c in range(2):
            balance[i][c] += x[c]
            balance[j][c] -= x[c]
    for term, r, k in zip(data["terms"], flow.r, flow.k_r, strict=True):
        for p, i in enumerate(term["node"]):
            for c in range(2):
                if "X" in term:
                    balance[i][c] += Fraction(r[p]) / 2**k * Fraction(term["X"][p, c])
                else:
                    balance[i][c] += Fraction(r[p][c]) / 2**k
    assert balance == [[0, 0]] * inst.n


@pytest.mark.parametrize("phi", [*PENALTIES, "pnorm"])
def test_float_edge_gaps_are_the_brackets_of_fenchel_young(phi: str) -> None:
    """Per edge c phi(D) + (c phi)*(u) - <u, D>."""
    data = instance(4, "point", "l2" if phi == "pnorm" else phi)
    if phi == "pnorm":
        data["penalty"] = {"kind": "pnorm", "p": 3.0}
    inst = load(data)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((inst.n, 2))
    u = inst.penalty.clip(rng.standard_normal((len(inst.edges), 2)), 0.9 * inst.cap)
    _, edge = gaps(inst, w, u, [np.zeros(t.shape) for t in inst.terms])
    d = inst.differences(w)
    conjugate = np.zeros(len(u))
    if phi in ("squared", "quadratic"):
        q = data["penalty"].get("Q", np.eye(2))
        conjugate = np.einsum("ej,jk,ek->e", u, np.linalg.inv(q), u) / (2 * inst.cap)
    wanted = inst.cap * inst.penalty.value(d) + conjugate - (u * d).sum(axis=1)
    np.testing.assert_allclose(edge, wanted, atol=1e-12)
    assert (edge >= 0).all()


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("loss", ["everything", "every_kind", "box_lasso"])
def test_float_node_gaps_are_those_of_the_kernel(loss: str, d: int) -> None:
    """h(B w) + h*(r) - <r, B w> with the kernel's value and conjugate, term by term."""
    data = instance(4, loss, "l2", d=d)
    inst = load(data)
    rng = np.random.default_rng(0)
    w, exact = Constraints(inst).moved(rng.standard_normal((inst.n, d)))
    point, k_w = table(integers.texts(exact, 0) if exact is not None else w, *w.shape, "w")
    for term, plain in zip(inst.terms, inst.plain["terms"], strict=True):
        r = integers.to_grid(rng.standard_normal(term.shape), 60)
        r = r if term.domain is None else term.domain.clip(r, 60)
        rules = term_of(plain, d)
        conjugate, image, k = rules.dual(integers.texts(r, 60), "r")
        inner = sum(
            sum(a * b for a, b in zip(v, point[i], strict=True)) for i, v in image.items()
        ) * unit(k + k_w)
        node = term.gaps(integers.to_floats(r, 60), w)
        assert (node >= 0).all()
        wanted = float(rules.value(point, k_w).hi + conjugate - inner)
        assert (node.sum(), plain["kind"]) == (pytest.approx(wanted, rel=1e-9), plain["kind"])
        assert set(np.flatnonzero(node)) <= set(term.node.tolist())


@pytest.mark.parametrize("q", [1.0, 2.0, np.inf, 1.5])
def test_clip_moves_into_the_ball_and_leaves_the_inside(q: float) -> None:
    rng = np.random.default_rng(1)
    p = 1.0 if np.isinf(q) else (np.inf if q == 1 else q / (q - 1))
    penalty = Penalty(p)
    u, cap = 2 * rng.standard_normal((200, 3)), rng.uniform(0.5, 3, 200)
    clipped = penalty.clip(u, cap)
    assert (np.linalg.norm(clipped, q, axis=1) <= cap * (1 + 1e-12)).all()
    inside = np.linalg.norm(u, q, axis=1) <= cap
    assert inside.any()
    np.testing.assert_array_equal(clipped[inside], u[inside])


def test_l1_projection_satisfies_its_variational_inequality() -> None:
    """<u - p, v - p> <= 0 for all v in the ball; the vertices suffice."""
    rng = np.random.default_rng(2)
    u, radius = 3 * rng.standard_normal((100, 4)), rng.uniform(0.2, 2, 100)
    p = project_l1(u, radius)
    for vertex in [*np.eye(4), *-np.eye(4)]:
        inner = ((u - p) * (radius[:, None] * vertex - p)).sum(axis=1)
        assert (inner <= 1e-12).all()


def test_conjugate_gradients_on_a_singular_consistent_system() -> None:
    import scipy.sparse as sp

    rng = np.random.default_rng(3)
    root = rng.standard_normal((20, 12))
    matrix = sp.csr_array(root @ root.T)
    rhs = matrix @ rng.standard_normal(20) * 1e-280
    x = conjugate_gradients(matrix.__matmul__, rhs, np.ones(20), 1e-12)
    np.testing.assert_allclose(matrix @ x, rhs, atol=1e-10 * np.abs(rhs).max())


@pytest.mark.parametrize("phi", PENALTIES)
def test_projection_conserves_flow_and_l1_multipliers(phi: str) -> None:
    """At a node with only an l1 term, D^T u + q must vanish after the projection."""
    data = instance(6, "lasso", phi, "connected", 10, 2)
    term = data["terms"][0]
    bare = data["terms"][1]["node"][:2]
    kept = ~np.isin(term["node"], bare)
    for key in ("node", "X", "y"):
        term[key] = term[key][kept]
    inst = load(data)
    rng = np.random.default_rng(0)
    repair = Repair(inst, rng.standard_normal((10, 2)))
    u, q = rng.standard_normal((len(inst.edges), 2)), [np.zeros(len(term["node"]))]
    q.append(rng.standard_normal((5, 2)))
    inside, inside_q = repair.projection.project(u, q, 1e-13)
    balance = inst.divergence(inside) + inst.terms[1].pull(inside_q[1])
    assert np.abs(balance[bare]).max() < 1e-10
    again, again_q = repair.projection.project(inside, inside_q, 1e-13)
    np.testing.assert_allclose(again, inside, atol=1e-9)
    np.testing.assert_allclose(again_q[1], inside_q[1], atol=1e-9)
    assert not np.allclose(inside_q[1], q[1])


@pytest.mark.parametrize("phi", ["l1", "l2", "linf", "squared"])
def test_repair_makes_a_rough_flow_nearly_as_good_as_the_solution(phi: str) -> None:
    data = instance(5, "unlabelled", phi, n=30)
    inst = load(data)
    w, u = solve(data)
    rough = u + 1e-3 * np.random.default_rng(0).standard_normal(u.shape)
    repair = Repair(inst, w)
    assert repair.run(u, 0.0).gap < 1e-8
    assert repair.run(rough, 0.0).gap < 0.05
    unlabelled = np.setdiff1d(np.arange(inst.n), data["terms"][0]["node"])
    divergence = inst.divergence(repair.run(rough, 0.0).u)
    assert np.abs(divergence[unlabelled]).max() < 1e-12
