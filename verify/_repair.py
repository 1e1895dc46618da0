"""Float repair of a dual point: conserve the flow where no loss absorbs it, inside the capacities.

At an unlabelled or rank-deficient node i the conjugate L_i*(-(D^T u)_i) is finite only where
-(D^T u)_i lies in the range of the loss, so N_i^T (D^T u)_i = 0 with N_i a basis of the null space.
The projection on these equations and the projection on the capacities are alternated with
over-relaxation; the l1 terms take part as edges to a ground node.  What the losses absorb is then
shared out among their blocks by Newton steps, which give the witnesses r.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from verify._data import Floats, Instance
from verify._forest import components
from verify._terms import NULL, L1Term, LogisticTerm, Term, pseudo_inverse

SWEEPS = 12
SHRINK = 1e-12  # capacities are left by this much, so that the exact step rarely has to scale


@dataclass
class FloatFlow:
    """A repaired dual point: u (m, d), r per term, and the gap it leaves at w in floats."""

    u: Floats
    r: list[Floats]
    gap: float


def gaps(inst: Instance, w: Floats, u: Floats, r: list[Floats]) -> tuple[Floats, Floats]:
    """Return the duality gap at (w, u, r) per node, (n,), and per edge, (m,); all >= 0.

    The brackets of the Fenchel-Young inequality, each in a form without cancellation; their sum is
    P(w) - Dual(u, r) for a feasible (u, r).
    """
    node = np.zeros(inst.n)
    for term, multiplier in zip(inst.terms, r, strict=True):
        node += term.gaps(multiplier, w)
    return node, inst.penalty.gaps(u, inst.differences(w), inst.cap)


def negligible(inst: Instance, w: Floats) -> NDArray[np.bool_]:
    """Return (m,) edges whose capacity is nothing next to the gradients and to P(w).

    Their flow is set to zero, which costs at most lam A_e phi(D_e) each, and residuals are not
    routed along them: rounding errors of the gradients would exceed such capacities.
    """
    scale = np.zeros(inst.n)
    for term in inst.terms:
        scale += np.abs(term.pull(term.witness(w))).sum(axis=1)
        if isinstance(term, L1Term):
            scale[term.node] = np.maximum(scale[term.node], term.kappa)
    size = max(float(scale.max(initial=0.0)), 0.0)
    value = inst.value(w)
    cheap = inst.edge_costs(w) * max(1, len(inst.cap)) <= 1e-13 * max(1.0, abs(value))
    return (inst.cap <= 1e-17 * size) & cheap


class Repair:
    """Repairs flows for one problem and one point w; the factorizations are kept."""

    def __init__(self, inst: Instance, w: Floats) -> None:
        self.inst, self.w = inst, w
        self.active = ~negligible(inst, w)
        hessian = np.zeros((inst.n, inst.d, inst.d))
        for term in inst.terms:
            hessian += term.hessian(term.curvature(None))
        if not np.isfinite(hessian).all():
            raise OverflowError("the data are too large for floats")
        self.diagonal = np.einsum("njj->nj", hessian)
        values, vectors = np.linalg.eigh(hessian)
        null = values <= NULL * np.maximum(values[:, -1:], 0)
        self.range = (vectors * ~null[:, None, :]) @ vectors.transpose(0, 2, 1)
        self.logistic = any(isinstance(t, LogisticTerm) for t in inst.terms)
        self.newton_inverse = pseudo_inverse(values, vectors)  # at every point unless logistic
        self.basis = _basis(vectors, null)
        self.transposed = sp.csr_array(self.basis.T)
        self.ground = inst.ground
        self.sigma = self._weights()
        self._assemble()
        _, self.component = components(inst.edges[self.active], inst.n)

    def _weights(self) -> Floats:
        """Return (m,) how freely the projection moves each edge: capacity, within bounds."""
        cap = self.inst.cap[self.active]
        out = np.zeros(len(self.inst.cap))
        if len(cap):
            middle = float(np.median(cap))
            bound = 1e3 if self.inst.penalty.bounded else 1e12
            out[self.active] = np.clip(cap / middle, 1 / bound, bound)
        return out

    def _assemble(self) -> None:
        """Prepare the projection's operator N^T (D^T Sigma D (x) Q + ground) N.

        It is applied factor by factor: the product has d^2 entries an edge where d is large.
        """
        inst = self.inst
        self.laplacian = sp.csr_array(
            inst.incidence.T @ sp.diags_array(self.sigma) @ inst.incidence
        )
        matrix = getattr(inst.penalty, "matrix", None)
        self.metric = np.eye(inst.d) if matrix is None else matrix
        self.grounded = np.zeros((inst.n, 1))
        for ground in self.ground:
            self.grounded[ground.node] += 1.0
        # A column of N lives at one node i, where its diagonal entry is L_ii b^T Q b + ground.
        curvature = (self.basis.multiply(self._times_metric(self.basis))).sum(axis=0)
        length = (self.basis.multiply(self.basis)).sum(axis=0)
        node = self.basis.tocsc().indices[self.basis.tocsc().indptr[:-1]] // inst.d
        diagonal = self.laplacian.diagonal()[node] * curvature + self.grounded[node, 0] * length
        self.inverse = 1 / np.where(diagonal > 0, diagonal, 1.0)

    def _times_metric(self, basis: sp.csr_array) -> sp.csr_array:
        return sp.kron(sp.eye_array(self.inst.n), sp.csr_array(self.metric), format="csr") @ basis

    def _operator(self, x: Floats) -> Floats:
        """Apply the projection's operator."""
        potential = (self.basis @ x).reshape(self.inst.n, self.inst.d)
        image = (self.laplacian @ potential) @ self.metric + self.grounded * potential
        return np.asarray(self.transposed @ image.ravel())

    def project(
        self, u: Floats, q: list[Floats], rtol: float = 1e-8
    ) -> tuple[Floats, list[Floats]]:
        """Return the flow closest to (u, q) that the losses can absorb, to a relative residual."""
        inst = self.inst
        if self.basis.shape[1] == 0:
            return u, q
        total = inst.divergence(u)
        for term, v in zip(self.ground, q, strict=True):
            total += term.pull(v)
        x = conjugate_gradients(self._operator, self.transposed @ total.ravel(), self.inverse, rtol)
        potential = (self.basis @ x).reshape(inst.n, inst.d)
        u = u - self.sigma[:, None] * (inst.differences(potential) @ self.metric)
        return u, [v - potential[t.node] for t, v in zip(self.ground, q, strict=True)]

    def clip(self, u: Floats, q: list[Floats], shrink: float) -> tuple[Floats, list[Floats]]:
        """Return (u, q) moved into the capacities times 1 - shrink."""
        u = self.inst.penalty.clip(u, self.inst.cap * (1 - shrink))
        return u, [t.clip(v) for t, v in zip(self.ground, q, strict=True)]

    def theta(self, u: Floats, q: list[Floats]) -> Floats:
        """Return per component the largest factor <= 1 that respects all its capacities."""
        inst = self.inst
        out = np.ones(self.component.max(initial=0) + 1)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if inst.penalty.bounded and len(u):
                norms = inst.penalty.dual_norm(u)
                ratio = np.where(norms > inst.cap, inst.cap / norms, 1.0)
                np.minimum.at(out, self.component[inst.edges[:, 0]], ratio)
            for term, v in zip(self.ground, q, strict=True):
                size = np.abs(v).max(axis=1, initial=0.0)
                ratio = np.where(size > term.kappa, term.kappa / size, 1.0)
                np.minimum.at(out, self.component[term.node], ratio)
        return out

    def run(self, u: Floats, target: float) -> FloatFlow:
        """Repair u; stops early once the float gap is below the target."""
        u = np.where(self.active[:, None], u, 0.0)
        q = self._ground_start(u)
        u, q = self.clip(u, q, 0.0)
        best: FloatFlow | None = None
        for _ in range(SWEEPS + 1):
            inside, inside_q = self.project(u, q)
            theta = self.theta(inside, inside_q)
            flow = self.evaluate(inside, inside_q, theta)
            stalled = best is not None and theta.min() > 1 - 1e-6 and flow.gap > 0.9 * best.gap
            if best is None or flow.gap < best.gap:
                best = flow
            if best.gap <= target or stalled:
                break
            clipped, clipped_q = self.clip(inside, inside_q, SHRINK)
            u = clipped + 0.9 * (clipped - inside)
            q = [a + 0.9 * (a - b) for a, b in zip(clipped_q, inside_q, strict=True)]
        assert best is not None
        u = best.u
        q = [r for t, r in zip(self.inst.terms, best.r, strict=True) if isinstance(t, L1Term)]
        for _ in range(2):  # the second pass removes the rounding of the first
            u, q = self.project(u, q, 1e-11)
        return self.evaluate(u, q, self.theta(u, q))

    def _ground_start(self, u: Floats) -> list[Floats]:
        """Return l1 multipliers: what stationarity asks for, or kappa sign(w) where that is better.

        The first leaves the gap |w_j| (kappa - |q_j|); the second shifts the difference to the
        other terms of the node, which costs its square over twice their curvature.
        """
        need = -self.inst.divergence(u)
        for term in self.inst.terms:
            if not isinstance(term, L1Term):
                need -= term.pull(term.witness(self.w))
        out = []
        for term in self.ground:
            at, curvature = self.w[term.node], self.diagonal[term.node]
            asked, sign = term.clip(need[term.node]), term.witness(self.w)
            stay = np.abs(at) * (term.kappa[:, None] - np.abs(asked))
            shift = (sign - need[term.node]) ** 2 / (2 * np.maximum(curvature, 1e-300))
            v = np.where((at != 0) & (shift < stay), sign, asked)
            need[term.node] -= v
            out.append(v)
        return out

    def evaluate(self, u: Floats, q: list[Floats], theta: Floats) -> FloatFlow:
        """Scale into the capacities, find the witnesses r and the gap."""
        inst = self.inst
        u = u * theta[self.component[inst.edges[:, 0]]][:, None]
        fixed = {
            id(t): v * theta[self.component[t.node]][:, None]
            for t, v in zip(self.ground, q, strict=True)
        }
        r = self._witnesses(u, fixed)
        node, edge = gaps(inst, self.w, u, r)
        return FloatFlow(u, r, float(node.sum() + edge.sum()))

    def _witnesses(self, u: Floats, fixed: dict[int, Floats]) -> list[Floats]:
        """Return r with sum_k B_k^T r_k = -(D^T u)_i: the gradients at a point close to w.

        Newton on  grad L_i(v) = s_i  from v = w, damped where it does not descend; for quadratic
        losses one step, and r - grad h is the correction of least cost.
        """
        inst = self.inst
        target = -inst.divergence(u)
        for ground in self.ground:
            target -= ground.pull(fixed[id(ground)])
        target = np.einsum("nij,nj->ni", self.range, target)
        smooth = [t for t in inst.terms if not isinstance(t, L1Term)]
        v = self.w.copy()
        size = max(
            (np.abs(t.pull(t.witness(v))).max(initial=0.0) for t in smooth),
            default=0.0,
        ) + np.abs(target).max(initial=0.0)
        rounds = 40 if self.logistic else 1
        for _ in range(rounds):
            step, rest = self._newton(smooth, v, target)
            if not np.abs(rest).max(initial=0.0) > 1e-14 * size:
                break
            if rounds > 1:
                v = v + step
        step, _ = self._newton(smooth, v, target)
        out = []
        for term in inst.terms:
            if isinstance(term, L1Term):
                out.append(fixed[id(term)])
                continue
            c = term.curvature(v)
            move = term.push(step)
            r = term.witness(v) + (c if move.ndim == 1 else c[:, None]) * move
            out.append(term.clip(r))
        return out

    def _newton(self, smooth: list[Term], v: Floats, target: Floats) -> tuple[Floats, Floats]:
        """Return the (limited) Newton step at v and the residual target - grad L(v)."""
        inst = self.inst
        rest = target.copy()
        for term in smooth:
            rest -= term.pull(term.witness(v))
        rest = np.einsum("nij,nj->ni", self.range, rest)
        inverse = self.newton_inverse
        if self.logistic:
            hessian = np.zeros((inst.n, inst.d, inst.d))
            for term in smooth:
                hessian += term.hessian(term.curvature(v))
            inverse = pseudo_inverse(*np.linalg.eigh(hessian))
        step = np.einsum("nij,nj->ni", inverse, rest)
        # A logistic block is close to its quadratic model only for |x.step| of order one.
        limit = np.ones(inst.n)
        for term in smooth:
            if isinstance(term, LogisticTerm):
                np.minimum.at(limit, term.node, 1 / np.maximum(np.abs(term.push(step)), 1.0))
        return step * limit[:, None], rest


def conjugate_gradients(
    operator: Callable[[Floats], Floats],
    rhs: Floats,
    inverse: Floats,
    rtol: float,
    limit: int = 3000,
) -> Floats:
    """Solve a consistent positive semidefinite system; `inverse` is the Jacobi preconditioner.

    Stops at ||residual|| <= rtol ||rhs|| in the preconditioned norm.  Sums are NumPy's own: BLAS
    dot products of this length spend their time waiting for threads on a busy machine.
    """
    scale = float(np.abs(rhs).max(initial=0.0))  # squares of tiny flows must not underflow
    if scale == 0:
        return np.zeros(len(rhs))
    x, residual = np.zeros(len(rhs)), rhs / scale
    z = inverse * residual
    direction, rho = z.copy(), float((residual * z).sum())
    stop = rho * rtol * rtol
    for _ in range(limit):
        if not rho > stop:
            break
        image = operator(direction)
        curvature = float((direction * image).sum())
        if not curvature > 1e-15 * float((direction * direction / inverse).sum()):
            break  # only a direction of the null space is left
        step = rho / curvature
        x += step * direction
        residual -= step * image
        z = inverse * residual
        rho, previous = float((residual * z).sum()), rho
        direction = z + (rho / previous) * direction
    return x * scale


def _basis(vectors: Floats, null: NDArray[np.bool_]) -> sp.csr_array:
    """Return the null directions of all nodes as columns, (n d, q) sparse."""
    n, d, _ = vectors.shape
    node, column = np.nonzero(null)
    rows = (node[:, None] * d + np.arange(d)).ravel()
    columns = np.repeat(np.arange(len(node)), d)
    return sp.csr_array(
        (vectors[node, :, column].ravel(), (rows, columns)), shape=(n * d, len(node))
    )
