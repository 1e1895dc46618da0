"""Repair of flows where losses absorb only so much: projections, anchors, feasibility."""

import cvxpy as cp
import numpy as np
import pytest
from _catalogue_cases import CASES, problem

import gtvcvx as gtv
from gtvcvx.duality._flow import Flow
from gtvcvx.duality._polyhedral import DomainRepair
from gtvcvx.losses.batched.composite import _batch

BOUNDED = sorted(name for name in CASES if problem(name).losses.parts[0][1].domain() is not None)


def repairer(p):
    return DomainRepair(p.graph, p.losses, p.penalty, p.capacities)


def dense_constraint(p, repair):
    """The linear map (u, b) -> T (D^T u + sum_q b_q g_q) as a matrix."""
    n, d = p.graph.n_nodes, p.dim
    conservation = repair._conservation
    T = np.zeros((n * d, n * d))
    for column in range(n * d):
        unit = np.zeros(n * d)
        unit[column] = 1.0
        T[:, column] = conservation._null.apply(unit.reshape(n, d)).ravel()
    g = conservation.generators
    absorb = np.zeros((n * d, len(g.node)))
    for q, (node, vector) in enumerate(zip(g.node, g.vectors, strict=True)):
        absorb[node * d : (node + 1) * d, q] = vector
    return T @ np.hstack([np.kron(p.graph.divergence.toarray(), np.eye(d)), absorb])


def test_which_losses_have_such_domains():
    unbounded = {"logistic-ridge", "squared-simplex", "logistic-simplex-box", "simplex-alone"}
    unbounded |= {"huber-elastic-nonnegative", "point-l1", "poisson-point-ridge"}
    unbounded |= {"pseudohuber-l1-box"}
    # Rows of a lasso of full rank absorb everything, whatever the l1 term does.
    assert set(CASES) - set(BOUNDED) == unbounded | {"lasso"}
    assert repairer(problem("hinge")).needed
    assert not repairer(problem("lasso")).needed


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("penalty", ["l2", "squared"])
def test_projection_is_the_least_change(name, penalty, rng):
    p = problem(name, penalty)
    repair = repairer(p)
    g = repair._generators
    flow = Flow(rng.standard_normal((p.graph.n_edges, p.dim)), rng.standard_normal(len(g.node)))
    conductance = rng.uniform(0.1, 1.0, p.graph.n_edges)
    ground = rng.uniform(0.1, 1.0, len(g.node))
    metric = repair._conservation.metric(conductance, ground)
    projected = repair._conservation.project_both(flow, 1e-15, metric)
    linear = dense_constraint(p, repair)
    root = np.sqrt(np.concatenate([np.repeat(conductance, p.dim), ground]))
    x = np.concatenate([flow.u.ravel(), flow.b])
    change = root * (np.linalg.pinv(linear * root, rcond=1e-9) @ (linear @ x))
    found = np.concatenate([projected.u.ravel(), projected.b])
    np.testing.assert_allclose(found, x - change, atol=1e-8)
    assert np.linalg.norm(repair._conservation.residual_of(projected)) <= 1e-13 * (
        1.0 + abs(x).max()
    )


def feasibility(p, u):
    """Least scale t >= 0 of violations with which u is dual feasible, by CVXPY."""
    batch, at = p.losses.parts[0][1], p.losses.parts[0][0]
    domain = batch.domain()
    s = -(p.graph.divergence @ u)
    b, t = cp.Variable(len(domain.owner)), cp.Variable(nonneg=True)
    constraints = []
    for end, sign in ((domain.low, -1), (domain.high, 1)):
        finite = np.flatnonzero(np.isfinite(end))
        if finite.size:
            constraints.append(
                sign * b[finite] <= sign * end[finite] + cp.multiply(domain.scale[finite], t)
            )
    for i, node in enumerate(at):
        own = np.flatnonzero(domain.owner == i)
        pulled = domain.vectors[own].T @ b[own] if own.size else np.zeros(p.dim)
        T = domain.projector[i]
        constraints.append(T @ s[node] == pulled)
    problem = cp.Problem(cp.Minimize(t), constraints)
    return problem.solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("name", BOUNDED)
def test_repaired_flows_are_feasible(name, rng):
    p = problem(name)
    for scale in (0.01, 1.0, 100.0):
        u = scale * rng.standard_normal((p.graph.n_edges, p.dim))
        for w in (None, rng.standard_normal((6, p.dim))):
            flow = p.bounds.repair(u, w)
            assert (p.penalty.dual_norm(flow) <= p.capacities * (1.0 + 1e-14)).all()
            # Unlabelled nodes conserve flow; the others take what their domains allow.
            balance = p.graph.divergence @ flow
            np.testing.assert_allclose(balance[[2, 4]], 0.0, atol=1e-13)
            assert feasibility(p, flow) <= 1e-7
            assert np.isfinite(p.bounds.gap_of(p.losses.project_domain(0.0 * balance), flow).total)


@pytest.mark.parametrize("name", BOUNDED)
def test_the_zero_flow_is_always_feasible(name):
    p = problem(name)
    u = np.zeros((p.graph.n_edges, p.dim))
    bound, flow = p.lower_bound(u)
    assert np.isfinite(bound)
    assert p.bounds.gap(p.losses.project_domain(np.zeros((6, p.dim))), flow)[0].total < np.inf


@pytest.mark.parametrize("name", ["absolute", "quantile", "huber", "hinge-l1", "lasso-few-rows"])
def test_zero_is_the_anchor_where_it_is_inside(name):
    anchor, margins = repairer(problem(name))._anchor
    if name == "hinge-l1":
        # All multipliers of a hinge are at an end at zero.
        assert anchor.b.any()
    else:
        assert not anchor.u.any()
        assert not anchor.b.any()
    assert (margins > 0.0).all()


def test_an_anchor_has_a_margin():
    p = problem("logistic")
    repair = repairer(p)
    anchor, margins = repair._anchor
    g = repair._generators
    assert (margins > 1e-3).all()
    assert (anchor.b >= g.low + 0.999 * margins.min() * g.scale).all()
    assert (anchor.b <= g.high - 0.999 * margins.min() * g.scale).all()
    assert np.linalg.norm(repair._conservation.residual_of(anchor)) <= 1e-13


def test_components_are_repaired_one_by_one(rng):
    """Separable labels leave their component nothing but the zero flow; the other one has some."""
    X = rng.standard_normal((6, 4, 2))
    labels = (X @ [1.0, -1.0] > 0).astype(float)
    labels[3:] = [0.0, 1.0, 0.0, 1.0]
    graph = gtv.EmpiricalGraph(6, [(0, 1), (1, 2), (3, 4), (4, 5)])
    p = gtv.GTVProblem(graph, gtv.LogisticLoss.stack(X, labels), "l2", 0.05)
    flow = p.bounds.repair(0.1 * np.ones((4, 2)))
    np.testing.assert_array_equal(flow[:2], 0.0)
    assert np.abs(flow[2:]).max() > 1e-3
    solution = p.solve(rtol=1e-3, max_iter=3000)
    assert solution.dual_value <= solution.value


def test_a_flow_that_is_feasible_is_kept():
    p = problem("quantile-few-rows")
    flow = p.solve(rtol=1e-8).u
    np.testing.assert_allclose(p.bounds.repair(flow), flow, atol=1e-9)


@pytest.mark.parametrize("m", [2, 4, 9])
@pytest.mark.parametrize(("share", "rank"), [(1e-8, 1), (1e-12, 0)])
def test_projectors_tell_small_directions_from_rounding(m, share, rank):
    """By factors of triangles where that is clear, by singular values elsewhere."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((5, m, 4))
    X[:, 1:] = X[:, :1] * rng.standard_normal((5, m - 1, 1))
    X[2:, 1] += share * rng.standard_normal((3, 4))
    batch = gtv.HuberLoss.stack(X, np.zeros((5, m)), delta=0.5).parts[0][1]
    projector = batch.null_projector()
    np.testing.assert_array_equal(np.rint(np.einsum("kjj->k", projector)), [3] * 2 + [3 - rank] * 3)
    np.testing.assert_allclose(projector @ projector, projector, atol=1e-12)
    np.testing.assert_allclose(X @ projector, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", ["logistic", "poisson", "pseudohuber"])
def test_flows_that_smooth_losses_do_not_absorb_need_no_compiled_ascent(kind, monkeypatch):
    """Where Newton's method tells them from the domain its own multipliers are where to start."""
    rng = np.random.default_rng(4)
    X, n = rng.standard_normal((12, 4, 3)), 12
    targets = {
        "logistic": rng.integers(0, 2, (n, 4)).astype(float),
        "poisson": rng.poisson(2.0, (n, 4)).astype(float),
        "pseudohuber": rng.standard_normal((n, 4)),
    }
    kinds = {
        "logistic": gtv.LogisticLoss.stack,
        "poisson": gtv.PoissonLoss.stack,
        "pseudohuber": lambda X, y: gtv.PseudoHuberLoss.stack(X, y, delta=0.5),
    }
    losses = kinds[kind](X, targets[kind])
    p = gtv.GTVProblem(gtv.EmpiricalGraph(n, [(i, i + 1) for i in range(n - 1)]), losses, "l2", 9.0)
    monkeypatch.setattr(_batch, "best_multipliers", lambda *_: pytest.fail("ascended"))
    u = 6.0 * rng.standard_normal((n - 1, 3))
    w = 0.1 * rng.standard_normal((n, 3))
    flow = repairer(p).repair(u, w, None)
    assert flow.u.any()
    assert (np.linalg.norm(flow.u, axis=1) <= 9.0).all()
    assert np.isfinite(p.losses.conjugate(-(p.graph.divergence @ flow.u), np.full(n, 1e-9))).all()
