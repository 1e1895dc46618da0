"""The client of non-parametric FedRelax: its regressor and its program."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array
from gtvcvx.federated.models import RegressorModel
from gtvcvx.federated.programs import ClientProgram, Inbox, Outbox, Report, View
from gtvcvx.federated.wire import Message


class PublicRegressor:
    """A client's regressor and the public points: what `regressor_network` gives to a client.

    Its vector of length d = m' are its predictions on the public points; there is no loss of that
    vector alone, as the error on own rows depends on more of the regressor.

    Parameters
    ----------
    model : RegressorModel
    X_public : array_like, shape (m', p)
    """

    convex = False

    def __init__(self, model: RegressorModel, X_public: ArrayLike) -> None:
        if not isinstance(model, RegressorModel):
            raise TypeError(f"models: RegressorModel is expected, got {type(model).__name__}")
        self.model = model
        self.X_public = finite_array(X_public, "X_public", 2)
        columns = model.X.shape[1]
        if not len(self.X_public) or self.X_public.shape[1] != columns:
            raise ValueError(
                f"X_public: shape (m', {columns}) with m' >= 1 is expected, as clients have "
                f"{columns} features, got {self.X_public.shape}"
            )

    @property
    def dim(self) -> int:
        """Number of public points m'."""
        return len(self.X_public)

    def value(self, w: FloatArray) -> float:
        """Refuse: see the class."""
        raise TypeError("a regressor has no loss of its predictions; use FedRelaxNonparametric")

    def gradient(self, w: FloatArray) -> FloatArray:
        """Refuse: see the class."""
        raise TypeError("a regressor has no gradient; use FedRelaxNonparametric")

    def prox(self, v: FloatArray, tau: float) -> FloatArray:
        """Refuse: see the class."""
        raise TypeError("a regressor has no proximal map; use FedRelaxNonparametric")


class RegressorClient(ClientProgram):
    """A client of `FedRelaxNonparametric`."""

    def start(self, view: View) -> None:
        """Begin with a fit to the own rows."""
        self._X_public: FloatArray = view.model.X_public
        self._model: RegressorModel = view.model.model.fit()
        self._told = view.parameters
        self._weights = view.weights
        self._links: list[int] = view.links.tolist()
        self._heard: dict[int, tuple[int, FloatArray]] = {}

    def step(self, round_: int, inbox: Inbox) -> Outbox:
        """Refit to what neighbours have told last, and send predictions."""
        for message in inbox:
            known = self._heard.get(message.sender)
            if known is None or message.round >= known[0]:
                self._heard[message.sender] = (message.round, message.arrays["h"])
        if self._heard:
            who = [k for k, j in enumerate(self._links) if j in self._heard]
            labels = np.array([self._heard[self._links[k]][1] for k in who])
            lam, printed = self._told["lam"], self._told["as_printed"]
            model = self._model
            self._model = model.refit(self._X_public, labels, self._weights[who], lam, printed)
        sent = Message("predictions", {"h": self._model.predict(self._X_public)})
        return dict.fromkeys(self._links, sent)

    def report(self) -> Report:
        """Return the predictions on the public points, then the error on own rows."""
        predictions = self._model.predict(self._X_public)
        return Report(np.append(predictions, self._model.local_error()))
