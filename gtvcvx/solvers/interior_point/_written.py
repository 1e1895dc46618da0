"""Losses and penalties that are known by CVXPY's rules alone, as blocks of a conic program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.conic._form import ConicForm
from gtvcvx.conic._function import make_forms
from gtvcvx.losses import StackedLoss
from gtvcvx.losses.node._segments import owners
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.interior_point._losses import LOSS_KINDS
from gtvcvx.solvers.interior_point._program import Linear, Program, Rows


def losses_written(losses: StackedLoss) -> bool:
    """Say whether all losses are known by their plain data, or by CVXPY's rules."""
    return all(
        batch.written() is not None
        or LOSS_KINDS.issuperset(term["kind"] for term in batch.terms(nodes))
        for nodes, batch in losses.parts
    )


def add_written_losses(program: Program, losses: StackedLoss, variables: IntArray) -> None:
    """Add those losses of all nodes, whose coordinates are the given variables (n, d)."""
    for nodes, batch in losses.parts:
        functions = batch.written() or ()
        make_forms(functions)
        forms = []
        for function in functions:
            look()
            forms.append(function.form)
        if forms:
            add_forms(program, forms, variables[nodes])


def add_forms(program: Program, forms: Sequence[ConicForm], at: IntArray) -> None:
    """Add ``sum_k f_k(x[at_k])`` for variables at (K, dim), as few blocks for all functions."""
    columns = [
        np.concatenate([own, program.variables(len(form.q) - form.dim)])
        for form, own in zip(forms, at, strict=True)
    ]
    for form in forms:
        program.constant_cost(form.offset)
    program.linear_cost(np.concatenate(columns), np.concatenate([form.q for form in forms]))
    squares, rows = [], []
    start = 0
    for form, place in zip(forms, columns, strict=True):
        # SciPy's conversion takes longer for small ones.
        squares.append((place[form.P.indices], place[owners(form.P.indptr)]))
        rows.append((start + form.A.indices.astype(np.int64), place[owners(form.A.indptr)]))
        start += len(form.b)
    places = tuple(np.concatenate(part) for part in zip(*squares, strict=True))
    values = np.concatenate([form.P.data for form in forms])
    program.quadratic_cost(sp.coo_array((values, places), shape=(program.size,) * 2))
    row, column = (np.concatenate(part) for part in zip(*rows, strict=True))
    linear = Linear(row, column, np.concatenate([form.A.data for form in forms]), start)
    cones = [cone for form in forms for cone in form.cones]
    program.constrain_in(cones, linear, np.concatenate([form.b for form in forms]))


def add_form(program: Program, form: ConicForm, at: IntArray, costs: FloatArray) -> None:
    """Add ``sum_k costs_k f(x[at_k])`` for variables at (K, dim)."""
    K, N = len(at), len(form.q)
    others = program.variables(K * (N - form.dim)).reshape(K, -1)
    columns = np.concatenate([at, others], axis=1)
    program.constant_cost(float(np.sum(costs)) * form.offset)
    program.linear_cost(columns.ravel(), (costs[:, None] * form.q).ravel())
    P, A, M = form.P.tocoo(), form.A.tocoo(), len(form.b)
    places = columns[:, P.row].ravel(), columns[:, P.col].ravel()
    values = (costs[:, None] * P.data).ravel()
    program.quadratic_cost(sp.coo_array((values, places), shape=(program.size,) * 2))
    row = np.arange(K)[:, None] * M + A.row
    forms = Linear(row.ravel(), columns[:, A.col].ravel(), np.tile(A.data, K), K * M)
    program.constrain_in(form.cones * K, forms, np.tile(form.b, K))


def add_written_penalty(program: Program, problem: GTVProblem, form: ConicForm) -> Rows:
    """Add a penalty of jumps; return the constraints whose multipliers are the flow."""
    d = problem.dim
    heads, tails = (end[:, None] * d + np.arange(d) for end in problem.graph.edges.T)
    z = program.variables(heads.size)
    jumps = Linear.of(heads.ravel()) + -Linear.of(tails.ravel())
    equal = program.constrain("zero", jumps + -Linear.of(z), 0.0)
    add_form(program, form, z.reshape(heads.shape), problem.capacities)
    return equal
