"""Proof of a pair by the multipliers of its whole conic program.

Where CVXPY's rules describe a loss or a penalty, a check of the flow takes a cone program for each
node or edge, and knows neither multipliers nor how to correct them. Those of the whole program
prove the same at once, by weak duality (`gtvcvx.conic._weak_duality`).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray
from gtvcvx._norms import EPS
from gtvcvx.conic._balance import balanced
from gtvcvx.conic._scaled import ConeProgram
from gtvcvx.conic._weak_duality import ULPS, products_of_rows, weak_duality
from gtvcvx.duality._terms import Gap
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver._method import Proved


def written(problem: GTVProblem) -> bool:
    """Say whether CVXPY's rules describe the penalty, or some losses."""
    if problem.penalty.written(problem.dim) is not None:
        return True
    return any(batch.written() is not None for _, batch in problem.losses.parts)


def rounding_of(constants: list[float]) -> float:
    """Return what rounding alone makes of a proof, where the program's cost has constants."""
    return ULPS * EPS * float(np.sum(np.abs(constants)))


def proved(
    problem: GTVProblem,
    program: ConeProgram,
    constants: list[float],
    w: FloatArray,
    x: FloatArray,
    z: FloatArray,
    rtol: float = 0.0,
) -> Proved | None:
    """Return the value of w (n, d), and its gap by the multipliers z (M,) of a program.

    Where these do not prove the relative gap that is asked for, ones that miss less are tried.

    Parameters
    ----------
    problem : GTVProblem
    program : ConeProgram
        Of the problem, or of one that is nowhere larger; w are its first variables.
    constants : list of float
        Of the program's cost.
    w : ndarray, shape (n, d)
        Inside all constraints.
    x : ndarray, shape (N,)
        The program's solution, nearly.
    z : ndarray, shape (M,)
    rtol : float

    Returns
    -------
    None where the multipliers prove nothing.

    Raises
    ------
    ValueError
        A loss by itself is unbounded below, or infinite everywhere.
    """
    _ask_for_least_values(problem)
    value = problem.value(w)
    found = _told(problem, program, constants, w, value, x, z)
    if found is None or not found.total <= rtol * max(1.0, abs(value)):
        moved = balanced(program, x, z)
        other = None if moved is None else _told(problem, program, constants, w, value, x, moved)
        if found is None or (other is not None and other.total < found.total):
            found = other
    return None if found is None else Proved(value, found)


def _told(
    problem: GTVProblem,
    program: ConeProgram,
    constants: list[float],
    w: FloatArray,
    value: float,
    x: FloatArray,
    z: FloatArray,
) -> Gap | None:
    """Return the gap of w of a value that multipliers tell; None where they prove nothing."""
    n, d = w.shape
    reach = np.abs(x)
    reach[: n * d] = np.tile(np.maximum(np.abs(w), reach[: n * d].reshape(n, d)).max(axis=0), n)
    bound = weak_duality(program, x, z, reach)
    if bound is None:
        return None
    total = value - bound.value - float(np.sum(constants))
    sizes = abs(value) + abs(bound.value) + _work(program, x, z)
    rounding = bound.doubt + ULPS * EPS * sizes + rounding_of(constants)
    if not np.isfinite(total + rounding):
        return None
    return Gap(*_shared(problem, program, x, z, max(total, 0.0)), rounding)


def _ask_for_least_values(problem: GTVProblem) -> None:
    """Refuse losses that other solvers refuse: the flow zero proves nothing of them."""
    for _, batch in problem.losses.parts:
        if not all(function.nonnegative for function in batch.written() or ()):
            batch.minimizer()


def _work(program: ConeProgram, x: FloatArray, z: FloatArray) -> float:
    """Return the size of the products that values are rounded by: multipliers times residuals."""
    return float(np.abs(z) @ (abs(program.A) @ np.abs(x)))


def _shared(
    problem: GTVProblem, program: ConeProgram, x: FloatArray, z: FloatArray, total: float
) -> tuple[FloatArray, FloatArray]:
    """Return shares (n,) and (m,) of a gap, all at the nodes.

    Where their rows' slacks and multipliers are not zero; edges' own rows count at their ends.
    """
    n, d = problem.graph.n_nodes, problem.dim
    own = np.arange(n * d)
    columns = sp.csr_array((np.ones(n * d), (own, own // d)), shape=(len(x), n))
    share = products_of_rows(program, x, z, columns)
    whole = float(share.sum())
    node = total * share / whole if whole > 0.0 else np.full(n, total / max(n, 1))
    return node, np.zeros(problem.graph.n_edges)
