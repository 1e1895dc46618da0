"""Proximal maps of quadratic losses as compiled passes take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.compiled import dims_of
from gtvcvx.compiled._thin import (
    thin_images,
    thin_resolvents,
)
from gtvcvx.losses import AffineProx
from gtvcvx.losses.batched._base import ThinForm
from gtvcvx.losses.batched._thin import sums
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.driver._scalar import scalar_form


class ThinProx(NamedTuple):
    """``prox(v)_i = shrink_i v_i - A_i^T A_i v_i + offset_i``, A_i the rows of node i.

    Attributes
    ----------
    shrink : ndarray, shape (n, d)
    rows : ndarray, shape (N, d)
    indptr : ndarray of int64, shape (n + 1,)
    offset : ndarray, shape (n, d)
    """

    shrink: FloatArray
    rows: FloatArray
    indptr: IntArray
    offset: FloatArray


def thin_form(problem: GTVProblem) -> ThinForm | None:
    """Return quadratic losses as diagonals and rows, made once; None where that does not pay."""
    return problem.cached("thin form", lambda: problem.losses.thin(problem.graph.n_nodes))


def proximal_map(problem: GTVProblem, tau: FloatArray) -> AffineProx | ThinProx | None:
    """Return the proximal map of the losses for step sizes tau (n,), if it is affine.

    Matrices come as diagonals where they are, and as rows where these are few.
    """
    scalar = scalar_form(problem)
    if scalar is not None:
        shrink = 1.0 / (1.0 + tau[:, None] * scalar.curvature)
        return AffineProx(shrink, shrink * (tau[:, None] * scalar.linear))
    thin = thin_form(problem)
    return problem.losses.affine_prox(tau) if thin is None else thin_prox(thin, tau)


def thin_prox(form: ThinForm, tau: FloatArray, scales: FloatArray | None = None) -> ThinProx:
    """Return the proximal map of ``x -> L_i(scales x)`` for step sizes tau (n,)."""
    own, diagonal, rows, targets = form.own, form.diagonal, form.rows.copy(), form.targets.copy()
    if scales is not None:
        own, diagonal = own * scales, diagonal * scales**2
        rows *= scales
    shrink = np.empty_like(diagonal)
    most = int(np.diff(form.indptr).max(initial=0))
    room = np.empty((most, most))
    thin_resolvents(diagonal, tau, form.indptr, rows, targets, shrink, room)
    offset = sums(targets[:, None] * rows, form.indptr)
    if own.any():
        pulled, linear = np.empty_like(own), tau[:, None] * own
        thin_images(dims_of(own.shape[1]), shrink, rows, form.indptr, linear, pulled)
        offset += pulled
    return ThinProx(shrink, rows, form.indptr, offset)


def rest(prox: AffineProx | ThinProx, nodes: IntArray, points: FloatArray) -> None:
    """Let the map of some nodes be constant: it takes them to points."""
    prox.offset[nodes] = points
    if isinstance(prox, AffineProx):
        prox.matrix[nodes] = 0.0
        return
    prox.shrink[nodes] = 0.0
    for i in nodes:
        prox.rows[prox.indptr[i] : prox.indptr[i + 1]] = 0.0
