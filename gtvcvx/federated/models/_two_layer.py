"""Classifier of two dense layers, in NumPy alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gtvcvx._arrays import FloatArray, is_integer
from gtvcvx.federated.models._checks import count, nonnegative, positive, table, vector
from gtvcvx.federated.models._descent import (
    STEPS,
    ProximalObjective,
    backtracked_steps,
    fixed_steps,
)
from gtvcvx.federated.models._labels import Classes


class TwoLayerNetwork:
    r"""Two dense layers, ReLU between them, softmax and cross-entropy [GTV (40)].

    .. math:: L(w) = -\frac{1}{m} \sum_{r=1}^{m} \log \mathrm{softmax}(W_2^T \mathrm{ReLU}(W_1^T
        x_r))_{y_r} + \frac{\mu}{2} \|w\|^2

    ``w`` is W_1 (p, h) and W_2 (h, K), row by row, one after the other: d = p h + h K. With biases
    both have one row more, the last, which meets an input of one. L is not convex.

    Parameters
    ----------
    X : array_like of shape (m, p)
        Features, m >= 1.
    y : sequence of length m
        Labels, integers or strings, each one of the classes.
    classes : sequence
        All K >= 2 labels, in the SAME order at every client: what a parameter means depends on it,
        and a client may well have rows of some classes only.
    hidden : int
        Width h >= 1 of the hidden layer, which the source does not give.
    bias : bool
        Whether layers have biases; (40) has none.
    ridge : float
        mu >= 0, on all entries of w, biases included.
    steps : int
        Gradient steps of `prox`; 40, as in the notebook of the authors of [GTV].
    step : float, optional
        Length of each of these steps. None: found by halving from tau until F falls by half of
        what its slope promises, which needs no knowledge of the units of X and never increases F.

    Raises
    ------
    TypeError, ValueError
        Naming the argument, and the row of an unknown label.

    Notes
    -----
    Values are exact to rounding for logits of any size. Where numbers leave the range of doubles,
    `value` is +inf and `gradient` raises.
    """

    convex = False

    def __init__(
        self,
        X: ArrayLike,
        y: Iterable[Hashable],
        classes: Iterable[Hashable],
        hidden: int,
        *,
        bias: bool = False,
        ridge: float = 0.0,
        steps: int = STEPS,
        step: float | None = None,
    ) -> None:
        features = table(X, "X")
        self._columns = features.shape[1]
        self._bias = bool(bias)
        self._inputs = self._with_ones(features)
        self._classes = Classes(classes)
        self._y = self._classes.positions(y, len(features))
        self.hidden = count(hidden, "hidden")
        self.ridge = nonnegative(ridge, "ridge")
        self.steps = count(steps, "steps")
        self.step = None if step is None else positive(step, "step")
        self._first = (self._inputs.shape[1], self.hidden)
        self._second = (self.hidden + self._bias, len(self._classes))

    @property
    def dim(self) -> int:
        """Number d of parameters."""
        return int(np.prod(self._first) + np.prod(self._second))

    @property
    def classes(self) -> tuple[Any, ...]:
        """The labels, in their order."""
        return self._classes.labels

    def layers(self, w: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """W_1 (p, h) and W_2 (h, K) as copies; with biases, each has one row more."""
        first, second = self._split(vector(w, "w", self.dim))
        return first.copy(), second.copy()

    def flat(self, first: ArrayLike, second: ArrayLike) -> FloatArray:
        """Parameter vector (d,) of two matrices: the inverse of `layers`.

        Parameters
        ----------
        first, second : array_like
            W_1 and W_2, of the shapes that `layers` returns.
        """
        parts = []
        for name, matrix, shape in (
            ("first", table(first, "first"), self._first),
            ("second", table(second, "second"), self._second),
        ):
            if matrix.shape != shape:
                raise ValueError(f"{name}: shape {shape} is expected, got {matrix.shape}")
            parts.append(matrix.ravel())
        return np.concatenate(parts)

    def initial(self, seed: int) -> FloatArray:
        """Start (d,), from p, h, K and the seed alone: clients with one seed start at one point.

        Normal weights of variance two over the number of inputs, which keeps the size of signals
        through ReLU layers (He, Zhang, Ren, Sun, "Delving Deep into Rectifiers"); biases are zero.

        Parameters
        ----------
        seed : int
        """
        if not is_integer(seed) or seed < 0:
            raise ValueError(f"seed: an integer >= 0 is expected, got {seed!r}")
        rng = np.random.default_rng(seed)
        first, second = np.zeros(self._first), np.zeros(self._second)
        for matrix, inputs in ((first, self._columns), (second, self.hidden)):
            matrix[:inputs] = rng.standard_normal((inputs, matrix.shape[1])) * np.sqrt(2 / inputs)
        return self.flat(first, second)

    def value(self, w: ArrayLike) -> float:
        """Training error L(w); +inf where numbers overflow."""
        return self._value(vector(w, "w", self.dim))

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Gradient of L at w, shape (d,); the slope of ReLU at zero is zero.

        Raises
        ------
        ValueError
            Numbers overflow at w.
        """
        return self._gradient(vector(w, "w", self.dim))

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return len(self._inputs)

    def sample_gradients(self, w: ArrayLike) -> FloatArray:
        """Gradients (m, d) at w of the error of each row, the ridge term left out.

        Raises
        ------
        ValueError
            Numbers overflow at w.
        """
        active, slope, below = self._slopes(vector(w, "w", self.dim))
        with np.errstate(over="ignore", invalid="ignore"):
            parts = (
                self._inputs[:, :, None] * below[:, None, :],
                active[:, :, None] * slope[:, None, :],
            )
            rows = np.concatenate([part.reshape(len(slope), -1) for part in parts], axis=1)
            rows = rows * len(slope)
        if not np.isfinite(rows).all():
            raise ValueError("w: the gradient of the network overflows")
        return rows

    def prox(self, v: ArrayLike, tau: float) -> FloatArray:
        """Gradient steps on ``F(z) = L(z) + ||z - v||^2 / (2 tau)`` from z = v, shape (d,).

        Parameters
        ----------
        v : array_like of shape (d,)
        tau : float
            > 0.

        Raises
        ------
        ValueError
            Numbers overflow at v, or the step of the constructor is too long.
        """
        start, tau = vector(v, "v", self.dim), positive(tau, "tau")
        objective = ProximalObjective(self._value, self._gradient, start, tau)
        if self.step is None:
            return backtracked_steps(objective, self.steps)
        return fixed_steps(objective, self.steps, self.step)

    def predict_proba(self, w: ArrayLike, X: ArrayLike) -> FloatArray:
        """Softmax of the logits of rows X (m, p), shape (m, K).

        Parameters
        ----------
        w : array_like of shape (d,)
        X : array_like of shape (m, p)
        """
        logits = self._logits_of(w, X)
        shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    def predict(self, w: ArrayLike, X: ArrayLike) -> NDArray[Any]:
        """Label of largest logit of rows X (m, p), shape (m,); of equal ones, the first class.

        Parameters
        ----------
        w : array_like of shape (d,)
        X : array_like of shape (m, p)
        """
        return self._classes.at(self._logits_of(w, X).argmax(axis=1))

    def _logits_of(self, w: ArrayLike, X: ArrayLike) -> FloatArray:
        inputs = self._with_ones(table(X, "X", self._columns))
        logits = self._forward(vector(w, "w", self.dim), inputs)[1]
        if not np.isfinite(logits).all():
            raise ValueError("w: logits of X overflow")
        return logits

    def _with_ones(self, rows: FloatArray) -> FloatArray:
        return np.column_stack([rows, np.ones(len(rows))]) if self._bias else rows

    def _split(self, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        end = int(np.prod(self._first))
        return w[:end].reshape(self._first), w[end:].reshape(self._second)

    def _forward(self, w: FloatArray, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return inputs of the second layer (m, h) and logits (m, K)."""
        first, second = self._split(w)
        with np.errstate(over="ignore", invalid="ignore"):
            active = self._with_ones(np.maximum(inputs @ first, 0.0))
            return active, active @ second

    def _margins(self, logits: FloatArray) -> FloatArray:
        """Return how far each logit is above that of the right class, which is -inf itself."""
        rows = np.arange(len(logits))
        margins: FloatArray = logits - logits[rows, self._y][:, None]
        margins[rows, self._y] = -np.inf
        return margins

    def _value(self, w: FloatArray) -> float:
        logits = self._forward(w, self._inputs)[1]
        with np.errstate(over="ignore", invalid="ignore"):
            others = np.logaddexp.reduce(self._margins(logits), axis=1)
            # log(1 + exp) of the wrong classes: small errors keep their digits.
            value = float(np.logaddexp(0.0, others).mean() + self.ridge / 2 * (w @ w))
        return value if np.isfinite(value) else np.inf

    def _gradient(self, w: FloatArray) -> FloatArray:
        active, slope, below = self._slopes(w)
        with np.errstate(over="ignore", invalid="ignore"):
            parts = (self._inputs.T @ below, active.T @ slope)
            gradient = np.concatenate([part.ravel() for part in parts]) + self.ridge * w
        if not np.isfinite(gradient).all():
            raise ValueError("w: the gradient of the network overflows")
        return gradient

    def _slopes(self, w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return inputs of the second layer, and slopes of the mean error by the two outputs."""
        active, logits = self._forward(w, self._inputs)
        if not np.isfinite(logits).all():
            raise ValueError("w: the gradient of the network overflows")
        second = self._split(w)[1][: self.hidden]
        with np.errstate(over="ignore", invalid="ignore"):
            slope = self._slope_of_logits(logits)
            return active, slope, (slope @ second.T) * (active[:, : self.hidden] > 0)

    def _slope_of_logits(self, logits: FloatArray) -> FloatArray:
        """Return the gradient of the mean error by logits (m, K): softmax minus the right class."""
        margins = self._margins(logits)
        total = np.logaddexp(0.0, np.logaddexp.reduce(margins, axis=1))
        slope = np.exp(margins - total[:, None])
        # Minus the other chances, not a chance minus one, which would cancel.
        slope[np.arange(len(slope)), self._y] = -slope.sum(axis=1)
        return slope / len(slope)
