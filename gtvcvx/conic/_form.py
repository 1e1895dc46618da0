"""Convex functions in conic form, as CVXPY's canonicalization gives them.

A function that follows CVXPY's rules is a partial minimum over auxiliary variables a,

    f(w) = min_a (1/2) x^T P x + q^T x + offset   subject to   b - A x in K,   x = (w, a),

with K a product of standard cones. Everything convex analysis says about f can be read off these
data: its recession function, its domain, the directions along which it is affine, and, by conic
duality, its conjugate

    f*(s) = min_{y, z} (1/2) y^T P y + b^T z - offset
            subject to   q + P y + A^T z = (s, 0),   z in K*,

where every feasible (y, z) gives an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp, sp

# Singular values of the conic data below this share of the largest count as zero.
RANK_TOLERANCE = 1e-9


class Cone(NamedTuple):
    """One factor of K: its kind, the number of its rows, and the exponents of a power cone."""

    kind: str  # "zero" | "nonneg" | "soc" | "psd" | "exp" | "power"
    rows: int
    exponents: tuple[float, ...] = ()


@dataclass(frozen=True)
class ConicForm:
    """Data of a function f: R^dim -> R and +inf; w are the first dim of the N variables x."""

    dim: int
    P: sp.csc_array  # (N, N), symmetric positive semidefinite
    q: FloatArray  # (N,)
    A: sp.csc_array  # (M, N)
    b: FloatArray  # (M,)
    offset: float
    cones: tuple[Cone, ...]  # in the order of the rows of A

    @staticmethod
    def of(problem: cp.Problem, w: cp.Variable) -> ConicForm:
        """Read the form of ``w -> min problem`` over the problem's other variables.

        Raises
        ------
        cvxpy.DCPError
            The problem does not follow the rules of disciplined convex programming.
        """
        data, _, inverse = problem.get_problem_data(cp.CLARABEL)
        return ConicForm.read(data, float(inverse[-1]["offset"]), w)

    @staticmethod
    def read(data: Mapping[str, Any], offset: float, w: cp.Variable) -> ConicForm:
        """Read the form from what CVXPY hands to Clarabel."""
        start = data["param_prob"].var_id_to_col[w.id]
        N = len(data["c"])
        # The variable w goes first.
        order = np.concatenate(
            [np.arange(start, start + w.size), np.arange(start), np.arange(start + w.size, N)]
        )
        P = sp.csc_array(data["P"]) if "P" in data else sp.csc_array((N, N))
        return ConicForm(
            dim=w.size,
            P=P[order, :][:, order].tocsc(),
            q=np.asarray(data["c"], dtype=np.float64)[order],
            A=sp.csc_array(data["A"])[:, order].tocsc(),
            b=np.asarray(data["b"], dtype=np.float64),
            offset=offset,
            cones=tuple(cones_of(data["dims"])),
        )

    def recession(self) -> ConicForm:
        """Return the recession function, lim f(t v) / t, the support function of dom f*."""
        curved = self.P[np.flatnonzero(np.diff(self.P.tocsr().indptr)), :]
        return replace(
            self,
            P=sp.csc_array(self.P.shape),
            A=sp.vstack([curved, self.A], format="csc"),
            b=np.zeros(curved.shape[0] + len(self.b)),
            offset=0.0,
            cones=(Cone("zero", curved.shape[0]), *self.cones),
        )

    def sublevel(self, level: float) -> ConicForm:
        """Return the indicator of ``f(w) <= level``, for f without a quadratic part (P = 0)."""
        if self.P.nnz:
            raise ValueError("the sublevel set of a quadratic is not written as a linear one")
        row = sp.csc_array(self.q[None, :])
        return replace(
            self,
            q=np.zeros_like(self.q),
            A=sp.vstack([self.A, row], format="csc"),
            b=np.append(self.b, level - self.offset),
            offset=0.0,
            cones=(*self.cones, Cone("nonneg", 1)),
        )

    def domain(self) -> ConicForm:
        """Return the indicator of the domain of f."""
        return replace(self, P=sp.csc_array(self.P.shape), q=np.zeros_like(self.q), offset=0.0)

    def restricted(self) -> ConicForm:
        """F with w fixed: the first dim rows say ``w = b[:dim]``, zero here."""
        rows = sp.eye_array(self.dim, len(self.q), format="csc")
        return replace(
            self,
            A=sp.vstack([rows, self.A], format="csc"),
            b=np.concatenate([np.zeros(self.dim), self.b]),
            cones=(Cone("zero", self.dim), *self.cones),
        )

    def affine_directions(self) -> FloatArray:
        """Return an orthonormal basis (dim, r) of the directions along which f is affine.

        The cones hold no line, so that x moves freely along v exactly if A v = 0 and P v = 0.
        They are found in coordinates whose columns are of one size: in units that differ by 1e5
        they would be off by 1e-10, differently so for functions that have the same ones.
        """
        rows = sp.vstack([self.A, self.P]).toarray()
        sizes = np.abs(rows).max(axis=0, initial=0.0)
        units = np.exp2(-np.round(np.log2(np.where(sizes > 0.0, sizes, 1.0))))
        rows = rows * units
        norms = np.linalg.norm(rows, axis=1)
        rows = rows[norms > 0.0] / norms[norms > 0.0, None]
        if not len(rows):
            return np.eye(self.dim)
        _, sigma, basis = np.linalg.svd(rows)
        rank = int(np.sum(sigma > RANK_TOLERANCE * sigma[0]))
        directions = basis[rank:, : self.dim].T
        left, sigma, _ = np.linalg.svd(directions, full_matrices=False)
        return np.linalg.qr(units[: self.dim, None] * left[:, sigma > RANK_TOLERANCE])[0]


def cones_of(dims: Any) -> Iterator[Cone]:
    """Cones of CVXPY's summary, in the order in which CVXPY stacks them."""
    yield Cone("zero", dims.zero)
    yield Cone("nonneg", dims.nonneg)
    yield from (Cone("soc", size) for size in dims.soc)
    yield from (Cone("psd", side * (side + 1) // 2) for side in dims.psd)
    yield from (Cone("exp", 3) for _ in range(dims.exp))
    yield from (Cone("power", 3, (alpha, 1.0 - alpha)) for alpha in dims.p3d)
    yield from (Cone("power", len(alphas) + 1, tuple(alphas)) for alphas in dims.pnd)


def located(cones: Iterable[Cone]) -> Iterator[tuple[slice, Cone]]:
    """Yield each cone with its rows."""
    start = 0
    for cone in cones:
        yield slice(start, start + cone.rows), cone
        start += cone.rows


def groups(cones: Sequence[Cone]) -> IntArray:
    """Return a number for each row: those of one cone, and no others, have the same."""
    sizes: list[int] = []
    for cone in cones:
        sizes += [1] * cone.rows if cone.kind in ("zero", "nonneg") else [cone.rows]
    return np.repeat(np.arange(len(sizes)), np.array(sizes, dtype=np.int64))


def psd_side(rows: int) -> int:
    """Side of the symmetric matrices whose triangle has so many entries."""
    return (math.isqrt(8 * rows + 1) - 1) // 2


def conjugate_model(
    forms: Sequence[ConicForm],
    s: cp.Expression,
    weights: FloatArray,
    lam: cp.Parameter | float = 1.0,
) -> tuple[cp.Expression, list[cp.Constraint]]:
    """CVXPY model of ``sum_i c_i f_i*(s_i / c_i)`` with c_i = lam weights_i, by conic duality.

    Parameters
    ----------
    forms : sequence of k ConicForm, all of one dimension d
    s : cvxpy.Expression, shape (k, d), affine
    weights : ndarray, shape (k,), > 0
    lam : cvxpy.Parameter or float, > 0

    Returns
    -------
    cost : scalar convex cvxpy.Expression, DPP in lam
    constraints : list of cvxpy.Constraint
    """
    P = sp.block_diag([c * form.P for c, form in zip(weights, forms, strict=True)], format="csc")
    A = sp.block_diag([form.A for form in forms], format="csc")
    q = np.concatenate([c * form.q for c, form in zip(weights, forms, strict=True)])
    b = np.concatenate([form.b for form in forms])
    offset = float(sum(c * form.offset for c, form in zip(weights, forms, strict=True)))
    starts = np.cumsum([0] + [len(form.q) for form in forms[:-1]])
    columns = (starts[:, None] + np.arange(forms[0].dim)).ravel()
    embed = sp.csc_array(
        (np.ones(len(columns)), (columns, np.arange(len(columns)))), shape=(len(q), len(columns))
    )
    cost = -lam * cp.Constant(offset)
    demand = embed @ cp.reshape(s, (s.size,), order="C") - lam * cp.Constant(q)
    constraints: list[cp.Constraint] = []
    if len(b):
        z = cp.Variable(len(b))
        cost, demand = cost + b @ z, demand - A.T @ z
        constraints += _dual_cones(z, [cone for form in forms for cone in form.cones])
    curved = np.flatnonzero(np.diff(P.indptr))
    if len(curved):
        y = cp.Variable(len(curved))
        cost = cost + lam * (0.5 * cp.quad_form(y, P[curved, :][:, curved], assume_PSD=True))
        demand = demand - lam * (P[:, curved] @ y)
    return cost, [demand == 0, *constraints]


def _dual_cones(z: cp.Expression, cones: Sequence[Cone]) -> list[cp.Constraint]:
    """Constraints that put z into the dual cones; cones of one kind share their constraint."""
    rows: dict[Cone, list[IntArray]] = {}
    for at, cone in located(cones):
        key = cone if cone.kind != "nonneg" else Cone("nonneg", 1)
        rows.setdefault(key, []).append(np.arange(at.start, at.stop))
    constraints = []
    for cone, places in rows.items():
        if cone.kind == "nonneg":
            constraints.append(z[np.concatenate(places)] >= 0)
        elif cone.kind != "zero":
            constraints += _dual_cone(z, cone, np.array(places))
    return constraints


def _dual_cone(z: cp.Expression, cone: Cone, at: IntArray) -> list[cp.Constraint]:
    """Put ``z[at[k]]`` for each row of at, (count, rows), into the dual of a cone."""
    if cone.kind == "soc":
        if cone.rows == 1:
            return [z[at[:, 0]] >= 0]
        tails = cp.reshape(z[at[:, 1:].ravel()], (len(at), cone.rows - 1), order="C")
        return [cp.SOC(z[at[:, 0]], tails, axis=1)]
    if cone.kind == "exp":
        # K* = {(u, v, t): u < 0, -u exp(v / u) <= e t}, closed.
        return [cp.ExpCone(-z[at[:, 1]], -z[at[:, 0]], math.e * z[at[:, 2]])]
    if cone.kind == "power" and cone.rows == 3:
        alpha = cone.exponents[0]
        sides = z[at[:, 0]] / alpha, z[at[:, 1]] / (1.0 - alpha)
        return [cp.PowCone3D(*sides, z[at[:, 2]], alpha)]
    if cone.kind == "power":
        alphas = np.array(cone.exponents)
        return [
            cp.PowConeND(cp.multiply(1.0 / alphas, z[row[:-1]]), z[row[-1]], alphas) for row in at
        ]
    side = psd_side(cone.rows)
    unpack = _triangle_to_matrix(side)
    return [cp.reshape(unpack @ z[row], (side, side), order="F") >> 0 for row in at]


def _triangle_to_matrix(side: int) -> sp.csc_array:
    """Map from the upper triangle, by columns, off-diagonal entries times sqrt(2), to a matrix."""
    column, row = np.tril_indices(side)
    factor = np.where(row == column, 1.0, math.sqrt(0.5))
    entry = np.arange(len(row))
    places = np.concatenate([row + side * column, column + side * row])
    values = np.concatenate([factor, np.where(row == column, 0.0, factor)])
    return sp.csc_array(
        (values, (places, np.concatenate([entry, entry]))), shape=(side * side, len(row))
    )
