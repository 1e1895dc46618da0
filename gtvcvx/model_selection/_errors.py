"""Errors of single data points: what the losses with rows average over a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import logsumexp, pseudo_huber

from gtvcvx._arrays import FloatArray
from gtvcvx.losses.batched._terms import MULTINOMIAL

Term = Mapping[str, Any]


def _squared(z: FloatArray, term: Term) -> FloatArray:
    return np.asarray((z - term["y"]) ** 2)


def _logistic(z: FloatArray, term: Term) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, z) - term["y"] * z)


def _huber(z: FloatArray, term: Term) -> FloatArray:
    size, delta = np.abs(z - term["y"]), term["delta"]
    return np.where(size <= delta, size**2, 2.0 * delta * size - delta**2)


def _pseudo_huber(z: FloatArray, term: Term) -> FloatArray:
    return np.asarray(pseudo_huber(term["delta"], z - term["y"]))


def _poisson(z: FloatArray, term: Term) -> FloatArray:
    return np.asarray(np.exp(z) - term["y"] * z)


def _absolute(z: FloatArray, term: Term) -> FloatArray:
    return np.abs(z - term["y"])


def _quantile(z: FloatArray, term: Term) -> FloatArray:
    rest, level = term["y"] - z, term["level"]
    return np.maximum(level * rest, (level - 1.0) * rest)


def _hinge(z: FloatArray, term: Term) -> FloatArray:
    return np.maximum(0.0, 1.0 - term["y"] * z)


def _multinomial(z: FloatArray, term: Term) -> FloatArray:
    own = np.take_along_axis(z, term["y"].astype(np.int64)[:, None], axis=1)[:, 0]
    return np.asarray(logsumexp(z, axis=1) - own)


#: Error of each row for the linear predictor z = <x, w_i>, by the kind of the term.
ROW_ERRORS: dict[str, Callable[[FloatArray, Term], FloatArray]] = {
    "squared": _squared,
    "logistic": _logistic,
    "huber": _huber,
    "pseudohuber": _pseudo_huber,
    "poisson": _poisson,
    "absolute": _absolute,
    "quantile": _quantile,
    "hinge": _hinge,
    MULTINOMIAL: _multinomial,
}
#: Kinds whose targets are classes.
CLASSES = frozenset({"logistic", "hinge", MULTINOMIAL})
#: Terms that hold no data: they stay when data are held out.
REGULARIZERS = frozenset({"ridge", "l1", "box", "simplex"})


def targets_and_predictions(term: Term, w: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what was observed and what w (n, d) says about it.

    They are y (N,) and the linear predictors <x, w_i> (N,) of a term with rows, and the points
    a (k, d) and the parameters w_i (k, d) of a point term. With several classes there are scores
    (N, K).
    """
    own = w[term["node"]]
    if term["kind"] == "point":
        return term["a"], own
    if term["kind"] == MULTINOMIAL:
        W = own.reshape(*term["X"].shape, -1)
        return term["y"], np.einsum("np,npk->nk", term["X"], W)
    return term["y"], np.einsum("nd,nd->n", term["X"], own)


def own_errors(term: Term, w: FloatArray) -> FloatArray:
    """Error of each row or point of a term in its own loss."""
    target, prediction = targets_and_predictions(term, w)
    if term["kind"] == "point":
        return np.sum((prediction - target) ** 2, axis=1)
    return ROW_ERRORS[term["kind"]](prediction, term)
