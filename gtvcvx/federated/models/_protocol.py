"""What a client's program asks of the model that it trains."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray


@runtime_checkable
class LocalModel(Protocol):
    """Training error of one client as a function of its parameter vector, of length d.

    Every `gtvcvx.Loss` is one. All methods are functions of their arguments alone: nothing is
    remembered between calls, so that a recorded round can be replayed.
    """

    @property
    def dim(self) -> int | None:
        """Length d of parameter vectors, or None where any fits, as for `gtvcvx.ZeroLoss`."""

    @property
    def convex(self) -> bool:
        """Whether ``L`` is convex; if not, `prox` is approximate and nothing is certified."""

    def value(self, w: ArrayLike) -> float:
        """Training error L(w)."""

    def gradient(self, w: ArrayLike) -> FloatArray:
        """Gradient (or a subgradient) of L at w, shape (d,)."""

    def prox(self, v: ArrayLike, tau: float) -> FloatArray:
        """Minimize ``L(z) + ||z - v||^2 / (2 tau)`` over z, shape (d,).

        Exact for convex models; others do a fixed number of gradient steps from v.
        """
