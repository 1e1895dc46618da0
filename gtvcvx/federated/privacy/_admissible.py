"""Losses with a known sensitivity: rows clipped by the client, gradients bounded for certain."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, IntArray, finite_array, is_number
from gtvcvx.federated.privacy._node_step import Spectrum, node_step, spectrum_of
from gtvcvx.federated.privacy._rows import clipped_rows
from gtvcvx.losses import StackedLoss, stacked_from_terms
from gtvcvx.losses.batched._base import BatchedLoss
from gtvcvx.losses.batched._terms import ROW_KINDS, WEIGHT, Term

_ADMITTED = (
    "logistic, hinge, absolute, quantile, Huber and pseudo-Huber losses with clipped rows, and the "
    "squared loss with clipped rows and targets and a bound on ||w||; with ridge and l1 terms, "
    "boxes and simplices beside them"
)
# Answers must be as near to the exact ones as this share of the sensitivity: twice as much adds to
# it, and as much again to eps, in the fourth digit.
_SHARE = 1e-4
# Slopes of the loss of a row, at most this at any residual, from what is public of the row.
_SLOPES: Mapping[str, Callable[[Term], float]] = {
    "logistic": lambda term: 1.0,
    "hinge": lambda term: 1.0,
    "absolute": lambda term: 1.0,
    "quantile": lambda term: max(float(term["level"][0]), 1.0 - float(term["level"][0])),
    "huber": lambda term: 2.0 * float(term["delta"][0]),
    "pseudohuber": lambda term: float(term["delta"][0]),
}


@dataclass(frozen=True)
class PrivateLoss:
    """A client's loss with clipped rows, and how far one row can move the client's answer.

    `private_loss` makes it.

    Parameters
    ----------
    losses : StackedLoss
        The clipped loss, that of node 0 alone.
    n_samples : int
        D, the public number of rows.
    gradient_bound : float
        C, a bound on the (sub)gradient norm of the loss of any row that a client could hold,
        wherever the loss is minimized.
    radius : float or None
        r of the constraint ``||w|| <= r``, if there is one.
    """

    losses: StackedLoss
    n_samples: int
    gradient_bound: float
    radius: float | None

    @property
    def dim(self) -> int:
        """Dimension d of w."""
        return int(self.losses.dim)

    @property
    def batch(self) -> BatchedLoss:
        """The clipped loss as a batch of one node."""
        return self.losses.parts[0][1]

    @cached_property
    def _spectrum(self) -> Spectrum | None:
        return spectrum_of(self.batch)

    def sensitivity(self, rho: float) -> float:
        r"""Return ``2 C / (rho D)``: how far one replaced row moves `step` at most.

        With F, F' the strongly convex objectives of `step` for two neighbouring sets of rows, and
        w, w' their minimizers, ``rho ||w - w'||^2 <= F(w') - F(w) + F'(w) - F'(w')``, which is
        ``(1/D) (l(w') - l(w) + l'(w) - l'(w')) <= (2 C / D) ||w - w'||``: convex losses that are
        C-Lipschitz will do, differentiable or not, and terms without rows cancel. A ridge term adds
        to the strong convexity; that gain is not used.

        Parameters
        ----------
        rho : float
            Weight > 0 of the quadratic term of `step`.
        """
        _bound("rho", rho)
        value = 2.0 * (self.gradient_bound / self.n_samples) / float(rho)
        if not 0.0 <= value < math.inf:
            raise ValueError(f"rho: the sensitivity for rho = {rho} is {value}")
        return value

    def step(self, phi: ArrayLike, received: ArrayLike, rho: float) -> FloatArray:
        r"""Node step ([PGFL] (4)) on the clipped rows, under ``||w|| <= r`` if there is a radius.

        .. math:: \arg\min_w f(w) - \langle \phi, w - v \rangle + \tfrac\rho2 \lVert w - v \rVert^2

        Parameters
        ----------
        phi : array_like, shape (d,)
            Multiplier of the client.
        received : array_like, shape (d,)
            v, the vector that came from the server.
        rho : float
            > 0.

        Returns
        -------
        ndarray, shape (d,)
            Not private as it is: noise comes on top. Within 1e-4 of the sensitivity of the exact
            answer, which is checked.

        Raises
        ------
        ValueError
            Arguments out of range, or so large that rounding matters beside the sensitivity.
        ArithmeticError
            Rows in such units that doubles do not solve the problem. Nothing must be released.
        """
        _bound("rho", rho)
        vectors = [finite_array(x, name, 1) for x, name in ((phi, "phi"), (received, "received"))]
        for vector, name in zip(vectors, ("phi", "received"), strict=True):
            if vector.shape != (self.dim,):
                raise ValueError(f"{name}: shape ({self.dim},) is expected, got {vector.shape}")
        centre = vectors[1] + vectors[0] / float(rho)
        limit = _SHARE * self.sensitivity(rho)
        if float(np.spacing(np.max(np.abs(centre)))) > limit:
            raise ValueError(
                f"received, phi: v + phi / rho has entries up to {np.max(np.abs(centre)):.3g}, "
                "near which rounding is not small beside the sensitivity"
            )
        answer = node_step(self.batch, centre, float(rho), self.radius, self._spectrum)
        if not answer.error <= limit:
            raise ArithmeticError(
                f"the client's problem was solved to {answer.error:.3g} only, not small beside its "
                f"sensitivity {limit / _SHARE:.3g}: bounds, rho and units of rows are far apart"
            )
        return answer.w


def private_loss(
    loss: Any,
    row_bound: float,
    *,
    target_bound: float | None = None,
    radius: float | None = None,
    node: Hashable = None,
) -> PrivateLoss:
    r"""Clip the rows of a loss so that one row can move the client's answer by a known amount.

    Rows become ``x min(1, B / ||x||)``, targets of the squared loss are cut to [-Y, Y]; neither
    bound may be chosen by a look at the rows. The bounds C on gradients:

    ==================  ==========================  ==================================
    loss                needs                       C
    ==================  ==========================  ==================================
    logistic, hinge     B                           B
    absolute            B                           B
    quantile, level q   B                           B max(q, 1 - q)
    Huber               B                           2 delta B  (``z^2`` near zero)
    pseudo-Huber        B                           delta B
    squared             B, Y and r                  2 B (B r + Y)
    ==================  ==========================  ==================================

    The paper speaks of bounded gradients, which Huber-type losses have; losses with kinks are
    admitted with them, as the proof needs no more than convexity and a Lipschitz constant
    (`PrivateLoss.sensitivity`). Terms that hold no rows (ridge, l1, box, simplex) may be added,
    and are not clipped; their parameters must not come from the rows. Parameters of rows (delta,
    level) must be one number, as anything else would be part of the rows and without a bound.

    Parameters
    ----------
    loss : Loss or StackedLoss
        Of one node; a mean over its rows, and terms without rows.
    row_bound : float
        B > 0, the largest norm of a row, its constant column included.
    target_bound : float, optional
        Y > 0, the largest target; for the squared loss.
    radius : float, optional
        r > 0: ``||w|| <= r`` is a constraint of `PrivateLoss.step`. The squared loss needs it.
    node : hashable, optional
        Name of the client, for errors.

    Returns
    -------
    PrivateLoss

    Raises
    ------
    ValueError
        The loss has no gradient bound, by the client's node and the loss; or bounds that are
        missing, out of range or so large that C is infinite.

    References
    ----------
    [PGFL] section II-B and Lemma 1.
    """
    place = f"node {node!r}: {loss!r}"
    _bound("row_bound", row_bound)
    for name, value in (("target_bound", target_bound), ("radius", radius)):
        if value is not None:
            _bound(name, value)
    rows, others = _parts(loss, place)
    for name in ("X", "y"):  # once more: arrays of a loss may have been changed
        if not np.isfinite(rows[name]).all():
            raise ValueError(f"{place}: {name} has entries that are not finite")
    kind = rows["kind"]
    clipped = {**rows, "X": clipped_rows(rows["X"], float(row_bound))}
    if kind == "squared":
        if target_bound is None or radius is None:
            raise ValueError(
                f"{place} has bounded gradients only with a target_bound and a radius; {_said()}"
            )
        clipped["y"] = np.clip(rows["y"], -target_bound, target_bound)
        bound = 2.0 * row_bound * (row_bound * radius + target_bound)
    else:
        _uniform(rows, place)
        bound = row_bound * _SLOPES[kind](rows)
    if not 0.0 < bound < math.inf:
        raise ValueError(f"{place} has the gradient bound {bound} for these bounds, which is none")
    losses = stacked_from_terms([clipped, *others], rows["X"].shape[1])
    _check_constraints(losses, radius, place)
    return PrivateLoss(losses, len(rows["y"]), bound, None if radius is None else float(radius))


def _parts(loss: Any, place: str) -> tuple[Term, list[Term]]:
    """Return the one term with rows of a loss of one node, and its terms without rows."""
    terms = _terms(loss, place)
    rows = [term for term in terms if term["kind"] in ROW_KINDS]
    others = [term for term in terms if term["kind"] not in ROW_KINDS]
    wrong = [term["kind"] for term in rows if term["kind"] not in (*_SLOPES, "squared")]
    wrong += [t["kind"] for t in others if t["kind"] not in ("ridge", "l1", "box", "simplex")]
    if wrong:
        raise ValueError(f"{place} has no bounded gradients ({wrong[0]}); {_said()}")
    if not rows:
        raise ValueError(f"{place} has no rows, so that nothing is to be protected; {_said()}")
    if len(rows) > 1:
        raise ValueError(f"{place} is a sum of two losses of rows, one is expected; {_said()}")
    if WEIGHT in rows[0]:
        raise ValueError(f"{place} is weighted, the mean over its rows is expected; {_said()}")
    return rows[0], others


def _terms(loss: Any, place: str) -> list[Term]:
    if isinstance(loss, StackedLoss):
        terms = loss.terms()
    elif getattr(loss, "dim", None) is None or not hasattr(type(loss), "batch"):
        raise ValueError(f"{place} has no rows; {_said()}")
    else:
        terms = type(loss).batch([loss], loss.dim).terms(np.zeros(1, dtype=np.int64))
    nodes: IntArray = np.unique(np.concatenate([[0], *(term["node"] for term in terms)]))
    if len(nodes) > 1:
        raise ValueError(f"{place}: the loss of one node is expected, got {len(nodes)} nodes")
    return terms


def _uniform(rows: Term, place: str) -> None:
    for name in ROW_KINDS[rows["kind"]]:
        if np.any(rows[name] != rows[name][0]):
            raise ValueError(
                f"{place}: {name} must be one number for all rows; {name} of each row would be "
                "part of the rows, and have no bound"
            )


def _check_constraints(losses: StackedLoss, radius: float | None, place: str) -> None:
    if radius is None:
        return
    nearest = losses.project_domain(np.zeros((1, losses.dim)))
    if not float(np.linalg.norm(nearest)) < radius:
        raise ValueError(f"radius: {place} has no w with ||w|| < {radius} in its box or simplex")


def _bound(name: str, value: Any) -> None:
    if not is_number(value) or not 0.0 < value < math.inf:
        raise ValueError(f"{name}: a finite number > 0 is expected, got {value!r}")


def _said() -> str:
    return f"admitted are {_ADMITTED}"
