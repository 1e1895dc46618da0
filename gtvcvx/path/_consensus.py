"""The best parameters that are constant on every connected component."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx._lazy import cp
from gtvcvx.graph import EmpiricalGraph
from gtvcvx.losses import stacked_from_terms
from gtvcvx.losses.batched._terms import ROW_KINDS, merged, multiplied
from gtvcvx.problem import GTVProblem

# Newton steps on the sums of losses; a quadratic one is solved by the first, up to rounding.
NEWTON_STEPS = 20
# Directions in which the sum of the losses is flatter than this share of its largest curvature
# count as free: it has many minimizers, and they all have the same gradients.
FLAT = 1e-12
# Clarabel's tolerances for sums that are not quadratic.
TOLERANCE = 1e-10


class Components:
    """Sums over the connected components of a problem's graph.

    Attributes
    ----------
    of : ndarray, shape (n,)
        Component of each node, 0..k-1.
    sums : sparse array, shape (k, n)
        ``sums @ x`` adds up the rows of x (n, ...) over each component.
    """

    def __init__(self, problem: GTVProblem) -> None:
        self.of = problem.graph.components
        n = problem.graph.n_nodes
        self.count = int(self.of.max()) + 1
        self.sums = sp.csr_array((np.ones(n), (self.of, np.arange(n))), shape=(self.count, n))

    def centred(self, x: FloatArray) -> FloatArray:
        """Subtract from x (n, d) its mean over each component."""
        sizes = np.bincount(self.of, minlength=self.count)
        return x - ((self.sums @ x) / sizes[:, None])[self.of]


def consensus(problem: GTVProblem, components: Components) -> FloatArray:
    """Minimize the sum of the losses over each component by one vector; return it as w (n, d).

    It is constant on each component, up to rounding where nodes have constraints.

    Raises
    ------
    ValueError
        The sum has no minimum over some component: it is unbounded, or constraints of its nodes
        contradict each other.
    """
    losses = problem.losses
    quadratic = losses.is_quadratic
    v = np.zeros((components.count, problem.dim))
    if not quadratic:
        found = _by_rows(problem, components)
        v = _by_cvxpy(problem, components) if found is None else found
    if losses.smooth:
        v = _by_newton(problem, components, v, 1.0 if quadratic else 1e-6)
        return v[components.of]
    # The solver may leave constraints by as much as its tolerance.
    return losses.project_domain(v[components.of])


def _by_rows(problem: GTVProblem, components: Components) -> FloatArray | None:
    """Minimize as one node for each component, which has the rows of all its nodes.

    In any units, and without CVXPY. None where losses are no rows and regularizers, or where there
    may be no minimum.
    """
    terms = problem.losses.terms()
    if any(term["kind"] not in (*ROW_KINDS, "ridge", "l1") for term in terms):
        return None
    joined = [
        multiplied(term, np.ones(problem.graph.n_nodes)) if term["kind"] in ROW_KINDS else term
        for term in terms
    ]
    moved = [{**term, "node": components.of[term["node"]]} for term in joined]
    losses = stacked_from_terms(merged(moved, problem.dim), problem.dim)
    nothing = np.empty((0, 2), dtype=np.int64)
    alone = GTVProblem(EmpiricalGraph(components.count, nothing), losses)
    start = alone.value(np.zeros((components.count, problem.dim)))
    solution = alone.solve(rtol=TOLERANCE, atol=TOLERANCE * min(1.0, start or 1.0), verbose=False)
    return solution.w if solution.status == "optimal" else None


def _by_cvxpy(problem: GTVProblem, components: Components) -> FloatArray:
    v = cp.Variable((components.count, problem.dim))
    loss, constraints = problem.losses.expression(components.sums.T @ v)
    model = cp.Problem(cp.Minimize(loss), constraints)
    model.solve(
        solver=cp.CLARABEL, tol_gap_abs=TOLERANCE, tol_gap_rel=TOLERANCE, tol_feas=TOLERANCE
    )
    if v.value is None:
        raise ValueError(
            "problem: no parameters that are constant on every component minimize the losses "
            f"({model.status}): there is no lambda_max"
        )
    return np.asarray(v.value, dtype=np.float64)


def _by_newton(
    problem: GTVProblem, components: Components, v: FloatArray, step: float
) -> FloatArray:
    """Improve v (k, d) by Newton's method; Hessians are differences of gradients at this step."""
    gradient = _summed_gradient(problem, components, v)
    for _ in range(NEWTON_STEPS):
        hessian = np.empty((components.count, problem.dim, problem.dim))
        for j in range(problem.dim):
            h = step * max(1.0, float(np.abs(v).max()))
            shifted = v.copy()
            shifted[:, j] += h
            hessian[:, :, j] = (_summed_gradient(problem, components, shifted) - gradient) / h
        candidate = v - _solved(0.5 * (hessian + hessian.transpose(0, 2, 1)), gradient)
        new = _summed_gradient(problem, components, candidate)
        better = np.linalg.norm(new, axis=1) < np.linalg.norm(gradient, axis=1)
        if not better.any():
            break
        v = np.where(better[:, None], candidate, v)
        gradient = np.where(better[:, None], new, gradient)
    return v


def _solved(matrices: FloatArray, right: FloatArray) -> FloatArray:
    """Least-norm solutions of matrix_c x_c = right_c, (k, d), in units that balance the diagonal.

    So features may differ in their units by many orders of magnitude.
    """
    diagonal = np.einsum("kii->ki", matrices)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    balanced = unit[:, :, None] * matrices * unit[:, None, :]
    inverse = np.linalg.pinv(balanced, rcond=FLAT, hermitian=True)
    return unit * np.einsum("kij,kj->ki", inverse, unit * right)


def _summed_gradient(problem: GTVProblem, components: Components, v: FloatArray) -> FloatArray:
    return np.asarray(components.sums @ problem.losses.gradient(v[components.of]))
