"""Conic forms of many functions from one run of CVXPY's canonicalization.

Most of the milliseconds that a canonicalization takes are spent before it has looked at the data.
The sum of functions that share no variable falls apart into their forms again: no row of the
conic data, and no product of its quadratic part, joins the variables of two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._lazy import cp, sp
from gtvcvx.conic._form import Cone, ConicForm, cones_of, groups, located

# Offsets of functions, read one by one, add up to that of the sum but for rounding.
ROUNDING = 1e-12


class Part(NamedTuple):
    """One function: ``f(w) = min cost`` subject to constraints, over all variables but w."""

    cost: cp.Expression
    constraints: Sequence[cp.Constraint]
    w: cp.Variable
    variables: Sequence[cp.Variable]  # w among them


def joint_forms(parts: Sequence[Part]) -> list[ConicForm] | None:
    """Return the form of each function; None where that takes one canonicalization for each.

    So it does if two share a variable, over which each minimizes for itself, or if variables of
    the conic data cannot be told apart.

    Raises
    ------
    cvxpy.DCPError
        A function does not follow the rules of disciplined convex programming.
    """
    own = [variable.id for part in parts for variable in part.variables]
    if len(set(own)) < len(own):
        return None
    # Terms of a stack stay apart where a sum would join them.
    total = cp.sum(cp.hstack([part.cost for part in parts]))
    constraints = [constraint for part in parts for constraint in part.constraints]
    problem = cp.Problem(cp.Minimize(total), constraints)
    data, chain, inverse = problem.get_problem_data(cp.CLARABEL)
    offsets = _offsets(problem, chain, len(parts))
    whole = float(inverse[-1]["offset"])
    if offsets is None or abs(offsets.sum() - whole) > ROUNDING * np.abs(offsets).sum():
        return None
    N, A = len(data["c"]), sp.csr_array(data["A"])
    P = sp.csr_array(data["P"]) if "P" in data else sp.csr_array((N, N))
    for matrix in (P, A):
        matrix.eliminate_zeros()
    columns = data["param_prob"].var_id_to_col
    cones = list(cones_of(data["dims"]))
    group = groups(cones)
    owner = _column_owners([_known(part.variables, columns) for part in parts], P, A, group)
    if owner is None:
        return None
    rows = _row_owners(owner, A, group)
    # A cone without variables is nobody's. Zero is in it; otherwise it is not known which function
    # may be infeasible.
    if data["b"][rows < 0].any():
        return None
    sum_of_all = _Sum(P, A, data["c"], data["b"], cones, owner, rows)
    starts = [columns[part.w.id] for part in parts]
    return [
        sum_of_all.of(i, np.arange(start, start + part.w.size), float(offset))
        for i, (part, start, offset) in enumerate(zip(parts, starts, offsets, strict=True))
    ]


def _known(variables: Sequence[cp.Variable], columns: Mapping[int, int]) -> IntArray:
    """Return the columns of a function's own variables, as far as CVXPY kept them."""
    found = [np.arange(v.size) + columns[v.id] for v in variables if v.id in columns]
    return np.concatenate([np.empty(0, np.int64), *found])


def _column_owners(
    known: Sequence[IntArray], P: sp.csr_array, A: sp.csr_array, group: IntArray
) -> IntArray | None:
    """Return whose each column is; None if that of one is not known.

    A column that came up in the canonicalization is the function's with which it shares a cone,
    or a product.
    """
    M, N = A.shape
    count = group.max(initial=-1) + 1
    cones = sp.csr_array((np.ones(M), (group, np.arange(M))), shape=(count, M)) @ abs(A)
    links = sp.block_array([[P, cones.T], [cones, None]])
    count, component = sp.csgraph.connected_components(links, directed=False)
    owner = np.full(count, -1)
    for i, columns in enumerate(known):
        owner[component[columns]] = i
    if any((owner[component[columns]] != i).any() for i, columns in enumerate(known)):
        return None
    found: IntArray = owner[component[:N]]
    return found if (found >= 0).all() else None


def _row_owners(owner: IntArray, A: sp.csr_array, group: IntArray) -> IntArray:
    """Return whose each row is, -1 where that is not known.

    Constants stand in rows without variables, and belong to the other rows of their cone.
    """
    filled = np.diff(A.indptr) > 0
    of_group = np.full(group.max(initial=-1) + 1, -1)
    of_group[group[filled]] = owner[A.indices[A.indptr[:-1][filled]]]
    rows: IntArray = of_group[group]
    return rows


def _offsets(problem: cp.Problem, chain: Any, count: int) -> FloatArray | None:
    """Return the constants of the terms of the objective; None if they cannot be told apart.

    In the canonical form of a term, all that is not constant is linear or quadratic: its value
    at zero is the constant.
    """
    from cvxpy.reductions.dcp2cone.cone_matrix_stuffing import ConeMatrixStuffing

    for reduction in chain.reductions:
        if isinstance(reduction, ConeMatrixStuffing):
            break
        problem, _ = reduction.apply(problem)
    stack = problem.objective.expr
    while len(stack.args) == 1:
        stack = stack.args[0]
    if len(stack.args) != count:
        return None
    terms = [_without_squares(term) for term in stack.args]
    kept = [(variable, variable.value) for variable in problem.variables()]
    try:
        for variable, _ in kept:
            variable.save_value(np.zeros(variable.shape))
        return np.array([float(np.sum(term.value)) for term in terms])
    finally:
        for variable, value in kept:
            variable.save_value(value)


def _without_squares(term: cp.Expression) -> cp.Expression:
    """Return a canonical term without its quadratic forms of variables, which are zero at zero."""
    from cvxpy.atoms.quad_form import SymbolicQuadForm

    if isinstance(term, SymbolicQuadForm):
        return cp.Constant(np.zeros(term.shape))
    return term.copy([_without_squares(arg) for arg in term.args]) if term.args else term


class _Sum(NamedTuple):
    """Conic data of the sum, and whose its columns and rows are."""

    P: sp.csr_array
    A: sp.csr_array
    q: FloatArray
    b: FloatArray
    cones: list[Cone]
    column_owner: IntArray
    row_owner: IntArray

    def of(self, i: int, w: IntArray, offset: float) -> ConicForm:
        """Return the form of function i, whose w are the given columns."""
        others = np.setdiff1d(np.flatnonzero(self.column_owner == i), w)
        order = np.concatenate([w, others])
        rows = np.flatnonzero(self.row_owner == i)
        return ConicForm(
            dim=len(w),
            P=self.P[order, :][:, order].tocsc(),
            q=np.asarray(self.q, dtype=np.float64)[order],
            A=self.A[rows, :][:, order].tocsc(),
            b=np.asarray(self.b, dtype=np.float64)[rows],
            offset=offset,
            cones=tuple(self._cones(i)),
        )

    def _cones(self, i: int) -> Iterator[Cone]:
        """Return the cones of a function, the rows of a kind that needs no more together."""
        for rows, cone in located(self.cones):
            own = int(np.sum(self.row_owner[rows] == i))
            if cone.kind in ("zero", "nonneg"):
                yield cone._replace(rows=own)
            elif own:
                yield cone
