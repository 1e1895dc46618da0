"""Coordinates in which a primal-dual iteration has one weight for each of them.

One primal weight cannot serve coordinates whose curvatures differ by orders of magnitude, as those
of columns in different units do: an intercept beside a year, incomes beside rates. So every
coordinate k gets its own weight g_k, with tau_ik = g_k / deg_i and sigma_k = 1 / (2 g_k). The same
is an iteration with weight one in ``x_k = z_k / sqrt(g_k)``, where z are the parameters, or what a
rotation makes of them: where the penalty is invariant under rotations, z are the coordinates along
the eigenvectors of the mean Hessian, so that correlated columns come apart.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.losses import AffineProx, QuadraticForm
from gtvcvx.losses.batched._base import ThinForm
from gtvcvx.penalties import CompiledForm
from gtvcvx.problem import GTVProblem
from gtvcvx.solvers.primal_dual._proximal_maps import ThinProx, thin_prox
from gtvcvx.solvers.primal_dual._whole import Whole

_ROTATED = (CompiledForm.L2, CompiledForm.SQUARED)

#: A primal weight, as it goes to files: a number, or one for each coordinate.
Weight = float | list[float]


# Share by which entries of an inverse may exceed the largest that they can have.
LOST = 1e-6
# Minimizers miss their equations by no more than this share of the terms: all that is rounding.
ROUNDED = 1e-13


@dataclass(frozen=True)
class CoordinateSettings:
    """When coordinates have weights of their own, and which ones to start with.

    Attributes
    ----------
    spread : float
        They do if the largest curvature along a column, a diagonal entry of the mean Hessian, is
        more than so many times the smallest one that is not zero: columns whose sizes differ by
        more than its root are in different units. Nothing is gained where they are not.
    start : float
        The first weight is this share of (size of the labels) / (root of the curvature, times a
        typical capacity): of what parameters move, over what flows do.
    single : float
        The same of the one weight, where one serves all: at 8,000 nodes of F4 a half to twice as
        much take as many iterations, a tenth up to a fifth more.
    kept : float
        That weight is more than 1 only as far as it times a typical curvature is at most this:
        of 5 random problems with larger ones 4 took 10 to 75% more iterations, one less.
    widest : int
        In higher dimension that weight is 1: finding common parameters takes d^3 operations, 5 ms
        at d = 100.
    flat : float
        Curvatures below this share of the largest count as that: what is left is rounding.
    """

    spread: float = 1e4
    start: float = 0.3
    single: float = 0.5
    kept: float = 1e4
    widest: int = 100
    flat: float = 1e-14


DEFAULTS = CoordinateSettings()


@dataclass(frozen=True)
class _Basis:
    """What depends on graph, losses and penalty alone: it is made once for all lambda."""

    rotation: FloatArray  # (d, d), columns are the coordinates' directions
    curvature: FloatArray  # (d,), of the mean loss along them
    size: float  # of the labels
    losses: QuadraticForm | ThinForm  # of the part, in these coordinates
    least: FloatArray  # (n, d), their minimizers there; (0, d) beside a thin form


class Coordinates:
    """Rotated and scaled coordinates, ``w = R (s x)`` and ``u = R (y / s)``, s = sqrt(weights).

    Attributes
    ----------
    weights : ndarray, shape (d,)
    """

    def __init__(self, basis: _Basis, capacity: float, settings: CoordinateSettings) -> None:
        self._basis = basis
        self._start = settings.start * basis.size / (np.sqrt(basis.curvature) * capacity)
        self.weights = self._start

    @classmethod
    def of(cls, problem: GTVProblem, settings: CoordinateSettings = DEFAULTS) -> Coordinates | None:
        """Return coordinates with weights of their own, or None where one weight serves all."""
        return cls.of_parts(Whole.of(problem), settings)[0]

    @classmethod
    def of_parts(
        cls, whole: Whole, settings: CoordinateSettings = DEFAULTS
    ) -> list[Coordinates | None]:
        """Return the same for each part that is at hand; None for one is None for all."""
        first = whole.parts[0]
        compiled = first.penalty.compiled_form != CompiledForm.OTHER
        if first.dim == 1 or not compiled or not whole.n_edges:
            return [None] * len(whole.parts)
        if not whole.everywhere(lambda part: part.losses.is_quadratic):
            return [None] * len(whole.parts)
        bases = first.cached("coordinates", lambda: _bases(whole, settings))
        if bases is None:
            return [None] * len(whole.parts)
        return [cls(basis, whole.capacity, settings) for basis in bases]

    @property
    def scales(self) -> FloatArray:
        """Roots s of the weights."""
        return np.sqrt(self.weights)

    def checked(self, weight: object) -> FloatArray:
        """Return given weights, or those to start with if they are not fit for these coordinates.

        They may come from a file, and from another problem: with one weight for all coordinates,
        or of another kind.
        """
        given = np.asarray(weight, dtype=np.float64)
        fits = given.shape == self._start.shape
        return given if fits and np.all(np.isfinite(given) & (given > 0.0)) else self._start

    def x_of(self, w: FloatArray) -> FloatArray:
        """Coordinates x of parameters w, both (n, d)."""
        return np.asarray((w @ self._basis.rotation) / self.scales)

    def y_of(self, u: FloatArray) -> FloatArray:
        """Coordinates y of flows u, both (m, d)."""
        return np.asarray((u @ self._basis.rotation) * self.scales)

    def w_of(self, x: FloatArray) -> FloatArray:
        """Undo `x_of`."""
        return np.asarray((x * self.scales) @ self._basis.rotation.T)

    def u_of(self, y: FloatArray) -> FloatArray:
        """Undo `y_of`."""
        return np.asarray((y / self.scales) @ self._basis.rotation.T)

    def affine_prox(self, tau: FloatArray) -> AffineProx | ThinProx:
        """Proximal operator in x: inverses of ``I + tau_i S Q_i S``, and offsets."""
        s, losses = self.scales, self._basis.losses
        if isinstance(losses, ThinForm):
            return thin_prox(losses, tau, s)
        matrix = _resolvents(tau[:, None, None] * (s[:, None] * losses.hessian * s))
        steps = tau[:, None] * s * losses.linear
        # Maps move minimizers nowhere, where these are known. Of the image of tau S b_i, tau times
        # the rounding of that would be left in directions without data.
        least = self._basis.least / s
        known = np.isfinite(least).all(axis=1, keepdims=True)
        least = np.where(known, least, 0.0)
        image = np.einsum("kij,kj->ki", matrix, np.where(known, least, steps))
        return AffineProx(matrix, np.where(known, least - image, image))


def _resolvents(P: FloatArray) -> FloatArray:
    """Return ``(I + P_i)^-1`` for matrices P (n, d, d) that are positive semidefinite."""
    # Where P has less than full rank, and is so large that I is lost beside it, the inverse is not
    # found, has entries beyond 1, or is not symmetric: with such maps iterations run away.
    with suppress(np.linalg.LinAlgError):
        found = np.linalg.inv(np.eye(P.shape[1]) + P)
        symmetric = (np.abs(found - found.transpose(0, 2, 1)) <= LOST).all()
        if symmetric and (np.abs(found) <= 1.0 + LOST).all():
            return np.asarray(found, dtype=np.float64)
    values, vectors = np.linalg.eigh(P)
    inverse = vectors / (1.0 + np.maximum(values, 0.0))[:, None, :]
    return np.asarray(inverse @ vectors.transpose(0, 2, 1), dtype=np.float64)


def one_weight(weight: object) -> float:
    """Return a single weight for a given one, or for one of each coordinate: the mean of logs."""
    given = np.asarray(weight, dtype=np.float64)
    return float(given) if given.ndim == 0 else float(np.exp(np.mean(np.log(given))))


def first_weight(whole: Whole, settings: CoordinateSettings = DEFAULTS) -> float:
    """Return the one weight to start with: what parameters move, over what flows do.

    That is in the units of both: a share of the spread of the labels, as far as no common
    parameters explain it, over what an edge carries: a typical capacity, or a typical slope of a
    loss where that is less. 1 where the losses do not tell.
    """
    d = whole.parts[0].dim
    if not whole.n_edges or d > settings.widest:
        return 1.0
    total = whole.total(lambda part: part.losses.total_hessian())
    if total is None or not (np.all(np.isfinite(total)) and np.trace(total) > 0.0):
        return 1.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        slope = whole.sum(lambda part: part.losses.gradient(_constant(part)).sum(axis=0))
        if not np.all(np.isfinite(slope)):
            return 1.0
        common: FloatArray = np.asarray(-np.linalg.lstsq(total, slope)[0], dtype=np.float64)
        value = whole.sum(lambda part: np.sum(part.losses.value(_constant(part, common))))
        spread = np.sqrt(value / np.trace(total))
        curvature = np.trace(total) / (whole.sum(_labelled) * d)
        weight = settings.single * spread / min(whole.capacity, spread * curvature)
        weight = min(weight, max(1.0, settings.kept / curvature))
    return float(weight) if np.isfinite(weight) and weight > 0.0 else 1.0


def _constant(part: GTVProblem, w: FloatArray | None = None) -> FloatArray:
    """Return w (d,), or zero, at all nodes of a part, (k, d)."""
    point = np.zeros((part.graph.n_nodes, part.dim))
    return point if w is None else point + w


def _labelled(part: GTVProblem) -> int:
    return len(part.losses.nodes_with_loss)


def _bases(whole: Whole, settings: CoordinateSettings) -> list[_Basis] | None:
    """Return a basis for each part if columns are in different units, else None."""
    total = whole.total(lambda part: part.losses.total_hessian())
    if total is None or not np.all(np.isfinite(total)):
        return None
    along = np.diag(total)[np.diag(total) > 0.0]
    if not len(along) or along.max() <= settings.spread * along.min():
        return None
    labelled = whole.sum(_labelled)
    rotation = np.eye(len(total))
    if whole.parts[0].penalty.compiled_form in _ROTATED:
        rotation = np.ascontiguousarray(np.linalg.eigh(total)[1])
    forms = [_form(part, rotation) for part in whole.parts]
    if float(whole.add([0.0 if form is not None else 1.0 for form in forms])):
        return None
    curvature = whole.add([_along(form) for form in forms if form is not None]) / labelled
    curvature = np.maximum(curvature, settings.flat * curvature.max())
    value = whole.sum(lambda part: np.sum(part.losses.value(_constant(part))))
    size = float(np.sqrt(value / labelled))
    return [
        _Basis(rotation, curvature, size if size > 0.0 else 1.0, form, _least(part, form, rotation))
        for part, form in zip(whole.parts, forms, strict=True)
        if form is not None
    ]


def _least(part: GTVProblem, form: QuadraticForm | ThinForm, rotation: FloatArray) -> FloatArray:
    """Return minimizers of the losses of a part in rotated coordinates, beside matrices.

    No numbers where they are not known to the last digits: those of models are not.
    """
    if isinstance(form, ThinForm):
        return np.zeros((0, part.dim))
    least = np.asarray(part.losses.minimizer(part.graph.n_nodes) @ rotation)
    image = np.einsum("kij,kj->ki", form.hessian, least)
    size = np.einsum("kij,kj->ki", np.abs(form.hessian), np.abs(least)).max(axis=1)
    missed = np.abs(image - form.linear).max(axis=1)
    least[missed > ROUNDED * size] = np.nan
    return least


def _form(part: GTVProblem, rotation: FloatArray) -> QuadraticForm | ThinForm | None:
    """Return the losses of a part in rotated coordinates."""
    n, rotated = part.graph.n_nodes, part.losses.in_basis(rotation)
    return None if rotated is None else rotated.thin(n) or rotated.quadratic(n)


def _along(form: QuadraticForm | ThinForm) -> FloatArray:
    """Sum over the nodes of the diagonals (d,) of their Hessians."""
    if isinstance(form, ThinForm):
        return np.asarray(form.diagonal.sum(axis=0) + np.sum(form.rows**2, axis=0))
    return np.einsum("nkk->k", form.hessian)
