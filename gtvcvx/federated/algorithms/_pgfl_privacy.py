"""Private PGFL: what clients may release, and by which bounds.

References
----------
[PGFL] "Personalized Graph Federated Learning with Differential Privacy": II-B, Algorithm 2, (46),
(51).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from gtvcvx._arrays import FloatArray, is_integer, is_number
from gtvcvx.federated.algorithms._pgfl_clients import Answer, PGFLClient
from gtvcvx.federated.privacy import (
    GaussianNoise,
    GeometricVariance,
    PrivateLoss,
    linearized_sensitivity,
    linearized_step,
    private_loss,
)
from gtvcvx.federated.programs import LocalLoss, View, stacked_locals
from gtvcvx.federated.wire import Message
from gtvcvx.losses import StackedLoss, stacked_from_terms
from gtvcvx.losses.batched._terms import ROW_KINDS, WEIGHT
from verify._display import COLUMNS, clipped


@dataclass(frozen=True)
class PrivateReleases:
    r"""How clients of PGFL release their vectors: ``w'_k = w_k + N(0, delta_k^2(n) I)``.

    Give ``row_bound`` (and, for the squared loss, ``target_bound`` and ``radius``) for the exact
    step (4) on clipped rows, see `gtvcvx.federated.privacy.private_loss`; or ``clip`` for one step
    along clipped gradients, for any differentiable loss. Nothing of this may be chosen by a look at
    the rows.

    Parameters
    ----------
    variance : float
        delta^2(1) > 0 of the first round's noise. (The paper fixes delta^2(0), of which there is no
        release.)
    zeta : float
        delta^2(n) = zeta^(n-1) delta^2(1), in (0, 1]. Below 1 the leak of a release grows from
        round to round, and the last ones own the budget.
    row_bound, target_bound, radius : float, optional
        Of `gtvcvx.federated.privacy.private_loss`.
    clip : float, optional
        C of `gtvcvx.federated.privacy.linearized_step`. Models that are no losses must have
        ``n_rows`` and ``sample_gradients(w)``, as `gtvcvx.federated.models.TwoLayerNetwork` does.
    delta : float
        Of the (eps, delta) that `Run.privacy_report` states.
    insecure_seed : int, optional
        Fixes the noise, for tests. There is no privacy and no report then. Default: fresh noise
        from the operating system, whatever the seed of the run.
    insecure_dual : bool
        Multipliers follow (5) with w_k as it is, and are shown to the server, as (5) and (8) are
        printed: the server then knows w_k exactly. For a demonstration of that leak; no report.
    """

    variance: float
    zeta: float = 1.0
    row_bound: float | None = None
    target_bound: float | None = None
    radius: float | None = None
    clip: float | None = None
    delta: float = 1e-5
    insecure_seed: int | None = None
    insecure_dual: bool = False

    def __repr__(self) -> str:
        """Show what differs from the defaults, what voids the guarantee first: texts are cut."""
        names = sorted((f.name for f in fields(self)), key=lambda n: not n.startswith("insecure"))
        default = {f.name: f.default for f in fields(self)}
        given = [f"{n}={getattr(self, n)!r}" for n in names if getattr(self, n) != default[n]]
        return clipped(f"PrivateReleases({', '.join(given)})", COLUMNS)

    def __post_init__(self) -> None:
        GeometricVariance(self.variance, self.zeta)
        if (self.row_bound is None) == (self.clip is None):
            raise ValueError(
                "row_bound, clip: one of the two is expected, for exact steps on clipped rows or "
                "for steps along clipped gradients"
            )
        if self.clip is not None and (self.target_bound, self.radius) != (None, None):
            raise ValueError("target_bound, radius: they belong to row_bound, not to clip")
        for name in ("row_bound", "target_bound", "radius", "clip"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and 0 < value < np.inf):
                raise ValueError(f"{name}: a finite number > 0 is expected, got {value!r}")
        if not (is_number(self.delta) and 0 < self.delta < 1):
            raise ValueError(f"delta: a number in (0, 1) is expected, got {self.delta!r}")
        if self.insecure_seed is not None and not (
            is_integer(self.insecure_seed) and self.insecure_seed >= 0
        ):
            raise ValueError(
                f"insecure_seed: an integer >= 0 is expected, got {self.insecure_seed!r}"
            )

    def answer(self, model: Any, rho: float, ridge: float, label: str) -> PrivateAnswer:
        """Return the step of a client; refuse a loss without bounds by the client's name."""
        try:
            if self.clip is None:
                return _ClippedRows(self.clipped(model, ridge), rho)
            return _ClippedGradients(model, rho, ridge, self.clip)
        except ValueError as error:
            raise ValueError(f"privacy: {label}: {error}") from error

    def clipped(self, model: Any, ridge: float) -> PrivateLoss:
        """Return a client's loss with clipped rows, and ``ridge ||w||^2``."""
        given = model
        if isinstance(model, LocalLoss):
            given = stacked_locals([model], model.dim)
            if ridge:
                term = {"kind": "ridge", "node": np.zeros(1, np.int64), "mu": np.array([2 * ridge])}
                given = given + stacked_from_terms([term], model.dim)
        return private_loss(
            given, self.row_bound or 0.0, target_bound=self.target_bound, radius=self.radius
        )

    def noise(self, client: int, joined: int) -> GaussianNoise:
        """Return the noise of a client, from the operating system unless it is insecure."""
        seed = None
        if self.insecure_seed is not None:
            key = np.random.SeedSequence([self.insecure_seed, client, joined])
            seed = int(key.generate_state(1)[0])
        return GaussianNoise(GeometricVariance(self.variance, self.zeta), seed)


class PrivateAnswer(Protocol):
    """A step whose result one row can move by no more than ``sensitivity``."""

    sensitivity: float

    def __call__(self, phi: FloatArray, received: FloatArray) -> FloatArray:
        """Return w_k."""


class _ClippedRows:
    """The step (4) on clipped rows."""

    def __init__(self, loss: PrivateLoss, rho: float) -> None:
        self._loss, self._rho = loss, rho
        self.sensitivity = loss.sensitivity(rho)

    def __call__(self, phi: FloatArray, received: FloatArray) -> FloatArray:
        return self._loss.step(phi, received, self._rho)


class _ClippedGradients:
    """A step along the mean of clipped gradients, one for each row."""

    def __init__(self, model: Any, rho: float, ridge: float, clip: float) -> None:
        self._rho, self._ridge, self._clip = rho, ridge, clip
        self._model, self._rows, self._rest = model, None, None
        if isinstance(model, LocalLoss):
            self._rows, self._rest = _split(model)
        elif not hasattr(model, "sample_gradients"):
            raise ValueError(f"{model!r} does not tell the gradient of each row (sample_gradients)")
        else:
            # Ridge terms of models that are no losses are (ridge / 2) ||w||^2.
            self._ridge += float(getattr(model, "ridge", 0.0)) / 2.0
        self.n_rows = int(model.n_rows)
        self.sensitivity = linearized_sensitivity(self.n_rows, rho, clip)

    def __call__(self, phi: FloatArray, received: FloatArray) -> FloatArray:
        slope = 2.0 * self._ridge * received
        if self._rows is None:
            gradients = self._model.sample_gradients(received)
        else:
            gradients = self._rows.gradient(np.tile(received, (self.n_rows, 1)))
            if self._rest is not None:
                slope = slope + self._rest.gradient(received)
        return linearized_step(gradients, phi, received, self._rho, self._clip, slope)


def _split(model: LocalLoss) -> tuple[StackedLoss, LocalLoss | None]:
    """Return the rows of a loss, one a node, and what is beside them."""
    rows = [term for term in model.terms if term["kind"] in ROW_KINDS]
    rest = [term for term in model.terms if term["kind"] not in ROW_KINDS]
    smooth = model.given is None and model.smooth and all(t["kind"] == "ridge" for t in rest)
    if len(rows) != 1 or not smooth or WEIGHT in rows[0]:
        raise ValueError(
            f"{model!r}: a differentiable loss of rows of one kind is expected, without weights, "
            "with ridge terms beside it at most"
        )
    each = [{**rows[0], "node": np.arange(len(rows[0]["y"]))}]
    return stacked_from_terms(each, model.dim), LocalLoss(rest, model.dim) if rest else None


class PrivateClient(PGFLClient):
    """A client of `PGFL` that releases noisy vectors, and counts what was released alone."""

    def _answers(self, view: View) -> Answer:
        told = view.parameters
        private: PrivateReleases = told["privacy"]
        self._noise = private.noise(view.id, view.joined)
        self._shows = private.insecure_dual
        return private.answer(view.model, told["rho"], told["ridge"], f"client {view.id}")

    def _release(self, round_: int) -> Message:
        released = self._noise.released(self._w, round_)
        if self._shows:
            self._counted = self._w
            return Message("shown", {"w": released, "phi": self._phi})
        # Never w_k itself: phi_k is known to the server, and would give it away.
        self._counted = released
        return Message("release", {"w": released})
