"""The loss that ``fit --loss`` names: its targets, its stacked losses, its errors."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.cli._arguments import LOSSES
from gtvcvx.cli._report import listed
from gtvcvx.files._targets import Counts, ManyLabels, Numbers, TwoLabels
from gtvcvx.losses import (
    AbsoluteLoss,
    HingeLoss,
    HuberLoss,
    LogisticLoss,
    MultinomialLogisticLoss,
    PoissonLoss,
    PseudoHuberLoss,
    QuantileLoss,
    SquaredLoss,
    StackedLoss,
    stacked_from_terms,
)
from gtvcvx.losses.batched._terms import MULTINOMIAL
from gtvcvx.model_selection._errors import ROW_ERRORS

_CLASSES: dict[str, Any] = {
    "squared": SquaredLoss,
    "lasso": SquaredLoss,
    "logistic": LogisticLoss,
    MULTINOMIAL: MultinomialLogisticLoss,
    "poisson": PoissonLoss,
    "huber": HuberLoss,
    "pseudohuber": PseudoHuberLoss,
    "absolute": AbsoluteLoss,
    "quantile": QuantileLoss,
    "hinge": HingeLoss,
}
#: Losses whose errors are squared errors.
SQUARED = ("squared", "lasso", "point")
_OPTIONS = ("delta", "level", "ridge", "kappa")


@dataclass(frozen=True)
class LossChoice:
    """A loss and its parameters.

    Attributes
    ----------
    name : str
        One of `gtvcvx.cli._arguments.LOSSES`.
    rows : dict
        Parameters of each data point: ``delta`` or ``level``.
    ridge, kappa : float
        Strengths of the ridge and the l1 term at nodes with data.
    """

    name: str
    rows: dict[str, float]
    ridge: float
    kappa: float

    @property
    def is_point(self) -> bool:
        """Whether rows are points, one a node, and there is no target."""
        return self.name == "point"

    @property
    def is_multinomial(self) -> bool:
        """Whether targets are labels of several classes, which have parameters each."""
        return self.name == MULTINOMIAL

    @property
    def has_two_labels(self) -> bool:
        """Whether targets are one of two labels."""
        return self.name in ("logistic", "hinge")

    @property
    def ends(self) -> tuple[int, int]:
        """The two values of targets with labels."""
        return (0, 1) if self.name == "logistic" else (-1, 1)

    def targets(self, labels: list[str] | None = None) -> Numbers:
        """Return what the target column may hold; ``labels``: those of an earlier fit."""
        if self.has_two_labels:
            return TwoLabels(*self.ends, labels)
        if self.is_multinomial:
            return ManyLabels(labels)
        return Counts() if self.name == "poisson" else Numbers()

    def names(self, features: list[str], labels: list[str] | None) -> list[str]:
        """Return names of a vector's entries: with several classes each feature for each."""
        if not self.is_multinomial:
            return features
        return [f"{feature} ({label})" for feature in features for label in labels or []]

    def predictors(self, X: FloatArray, own: FloatArray) -> FloatArray:
        """Predictors (N,) of rows X (N, p) at parameters (N, d); scores (N, K) of classes."""
        if self.is_multinomial:
            return np.einsum("np,npk->nk", X, own.reshape(*X.shape, -1))
        return np.einsum("nd,nd->n", X, own)

    def stacked(
        self, X: FloatArray, y: FloatArray, owner: IntArray, n_nodes: int, intercept: bool
    ) -> StackedLoss:
        """Return the losses of all nodes; regularizers leave the last column to the intercept.

        X (N, d) and y (N,) are the rows, owner (N,) the nodes that hold them.
        """
        dim, nodes = X.shape[1], np.unique(owner)
        if self.is_point:
            points = stacked_from_terms([{"kind": "point", "node": owner, "a": X}], dim)
            return points.completed(n_nodes)
        if self.is_multinomial:
            return MultinomialLogisticLoss.from_rows(
                X, y, owner, n_nodes, ridge=self.ridge, intercept=dim - 1 if intercept else None
            )
        losses: StackedLoss = _CLASSES[self.name].from_rows(
            X, y, owner, n_nodes=n_nodes, **self.rows
        )
        for kind, field, strength in (("ridge", "mu", self.ridge), ("l1", "kappa", self.kappa)):
            if strength > 0:
                values = np.full((len(nodes), dim), strength)
                if intercept:
                    values[:, -1] = 0.0
                term = {"kind": kind, "node": nodes, field: values}
                losses = losses + stacked_from_terms([term], dim)
        return losses

    def errors(self, predictor: FloatArray, y: FloatArray) -> FloatArray:
        """Error of each row (N,) for what `predictors` gives."""
        kind = "squared" if self.name in SQUARED else self.name
        return ROW_ERRORS[kind](predictor, {"y": y, **self.rows})

    def quality(self, predictor: FloatArray, y: FloatArray) -> dict[str, float]:
        """Return means over rows with targets y (N,), for what `predictors` gives.

        ``mean_loss`` always; ``mean_squared_error`` where that is the loss; ``accuracy``, the
        share of rows on the right side of zero, or whose class has the largest score, for labels.
        """
        found = {"mean_loss": float(np.mean(self.errors(predictor, y)))}
        if self.name in SQUARED:
            found["mean_squared_error"] = found["mean_loss"]
        if self.has_two_labels:
            found["accuracy"] = float(np.mean((predictor > 0) == (y > 0)))
        if self.is_multinomial:
            found["accuracy"] = float(np.mean(np.argmax(predictor, axis=1) == y))
        return found

    def text(self) -> str:
        """Return the loss and its parameters in words."""
        given = {**self.rows, "ridge": self.ridge, "kappa": self.kappa}
        return listed([self.name, *(f"{name} {x:g}" for name, x in given.items() if x)])

    def data(self) -> dict[str, Any]:
        """Return the same for files and JSON."""
        return {"name": self.name, **self.rows, "ridge": self.ridge, "kappa": self.kappa}

    @staticmethod
    def of_data(data: dict[str, Any] | None) -> LossChoice:
        """Read what `data` wrote; without it, as in files of old, the loss is squared."""
        if data is None:
            return LossChoice("squared", {}, 0.0, 0.0)
        if data.get("name") not in LOSSES:
            raise ValueError(f"loss: {data.get('name')!r} is not one of {', '.join(LOSSES)}")
        rows = {str(key): float(data[key]) for key in ("delta", "level") if key in data}
        return LossChoice(data["name"], rows, data.get("ridge", 0.0), data.get("kappa", 0.0))


def chosen_loss(args: Namespace) -> LossChoice:
    """Return the loss that the arguments name; refuse what it has no use for, or lacks."""
    name, takes = args.loss, LOSSES[args.loss]
    for option in _OPTIONS:
        given = getattr(args, option) is not None
        if given and option not in takes:
            users = listed([loss for loss, options in LOSSES.items() if option in options], 9)
            raise ValueError(f"--{option}: not with the loss {name}, only with {users}")
        if not given and takes.get(option):
            raise ValueError(f"--{option}: the loss {name} needs it")
    if name == "point":
        for option in ("target", "intercept"):
            if getattr(args, option):
                raise ValueError(
                    f"--{option}: not with the loss point; the feature columns are the points"
                )
    elif args.target is None:
        raise ValueError(f"--target: the loss {name} needs a target column")
    rows = {key: getattr(args, key) for key in ("delta", "level") if getattr(args, key)}
    return LossChoice(name, rows, args.ridge or 0.0, args.kappa or 0.0)
