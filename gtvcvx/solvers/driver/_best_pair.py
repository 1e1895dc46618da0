"""The best point and the best flow of a run so far, whatever their arrays are like."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from gtvcvx._arrays import FloatArray
from gtvcvx.duality._dual_points import FeasiblePoint
from gtvcvx.solution import Record

# Edges with this share of their capacity left are taken as fused when the incumbent is polished.
FUSED_SLACK = 1e-4


class Measured(Protocol):
    """A gap of a pair."""

    @property
    def total(self) -> float:
        """All of it."""

    @property
    def rounding(self) -> float:
        """What of it is there for rounding."""


Rows = TypeVar("Rows")  # arrays of nodes or edges: whole, or in lists of parts
Parts = TypeVar("Parts", bound=Measured)  # of a gap


class Against(NamedTuple, Generic[Rows]):
    """A feasible flow, and the dual point that it belongs to where that is known."""

    u: Rows  # (m, d)
    point: FeasiblePoint | None = None
    b: Rows | None = None  # (Q,), multipliers of the losses' generators


class BestPair(ABC, Generic[Rows, Parts]):
    """Best point and best flow so far, of a problem whose arrays are whole or in parts.

    They need not come from the same iteration.

    Attributes
    ----------
    w, u
    value, dual_value, gap : float
    parts
        Of the gap.
    """

    w: Rows
    against: Against[Rows]
    parts: Parts
    value: float
    dual_value: float
    gap: float

    def __init__(self) -> None:
        self.value, self.dual_value, self.gap = np.inf, -np.inf, np.inf

    @abstractmethod
    def _feasible(self, w: Rows) -> Rows:
        """Return the nearest point at which all losses are finite; w itself if it is one."""

    @abstractmethod
    def _value(self, w: Rows) -> float:
        """Return the objective."""

    @abstractmethod
    def _fused(self, w: Rows, flow: Rows) -> Rows:
        """Average w over the clusters that a feasible flow fuses; w itself where it fuses none."""

    @abstractmethod
    def _checked(
        self, w: Rows, u: Rows, as_it_is: bool, enough: float
    ) -> tuple[Rows, float, Parts, Against[Rows]]:
        """Return w or what `_best_of` makes of it, its value, its gap and the repaired u.

        Where this relative gap is enough the repair may be as rough as that allows.
        """

    @abstractmethod
    def _gap_against(self, w: Rows, against: Against[Rows], enough: float = 0.0) -> Parts:
        """Return the gap of w; where it is known what is enough, without what takes long."""

    @abstractmethod
    def _loose_gap(self, w: Rows) -> Parts: ...

    @abstractmethod
    def _nothing(self) -> tuple[Rows, Rows]:
        """Return a point and a flow that are zero."""

    @abstractmethod
    def _copy(self, w: Rows) -> Rows: ...

    @abstractmethod
    def _is_zero(self, u: Rows) -> bool: ...

    @abstractmethod
    def _moved_digits(self) -> float:
        """Return what becomes of the objective if the last digits of w are others."""

    @abstractmethod
    def progress(self, n_iter: int, seconds: float) -> Any:
        """Return what a callback is shown."""

    @abstractmethod
    def solution(self, **fields: Any) -> Any:
        """Return the incumbent with what else is known of its run."""

    def update(
        self,
        w: Rows,
        u: Rows,
        keep_last: bool = False,
        a: FloatArray | None = None,
        enough: float = 0.0,
        exact: bool = False,
        waits: bool = False,
    ) -> None:
        """Take w, or w made constant on fused clusters, if its value is lower than the best.

        The repaired u is taken if its bound is higher. With keep_last, w is taken as it is; one
        that is exact is constant on clusters already.
        Multipliers a (N,) of the rows are kept with u, as far as they can be; where the relative
        gap is small enough then, or by the losses' own bounds, or a better pair is waited for, that
        is all. Repairs take no more care than it asks for.

        Raises
        ------
        Expired
            The deadline has passed, see `gtvcvx._deadline`; nothing has changed, or what the
            multipliers gave was taken.
        """
        w = self._feasible(w)
        known = a is not None and self._corrected(w, u, a, keep_last, enough)
        if known and self.rel_gap <= enough:
            return
        exact = keep_last or exact
        if not (a is None or exact) and self._suffices_without_flow(w, enough):
            return
        if known and waits:
            return
        w, value, parts, against = self._checked(w, u, exact, enough)
        if not np.isfinite(parts.total):
            # Bounds of the losses themselves are finite where conjugates are lost to rounding.
            parts, against = self._loose_gap(w), Against(self._nothing()[1])
        if not np.isfinite(value - parts.total):
            self._begun()  # some methods overflow where others do not
            return
        self._offer(w, value, against, parts, keep_last, enough=enough * max(1.0, abs(value)))

    def _begun(self) -> None:
        """See to it that something is known: zero, where a method has nothing to offer."""
        if self.empty:
            self.begin()
        if not np.isfinite(self.dual_value):
            raise ValueError(
                "losses, lam: the objective and its bound overflow double precision; scale the data"
            )

    def take_proved(self, w: Rows, u: Rows, value: float, gap: Parts) -> None:
        """Take a pair with a valid gap that is known, if one of the two is better.

        Nobody changes its arrays any more.
        """
        self._offer(w, value, Against(u), gap, False, final=True)

    def _corrected(self, w: Rows, u: Rows, a: FloatArray, keep_last: bool, enough: float) -> bool:
        """Offer w and a flow that keeps its multipliers; say whether there is one."""
        return False

    def _suffices_without_flow(self, w: Rows, enough: float) -> bool:
        """Take w and no flow where the bounds of the losses themselves are enough."""
        return False

    def _best_of(self, w: Rows, value: float, flow: Rows, as_it_is: bool) -> tuple[Rows, float]:
        """Return w of a value, or w made constant on the clusters that a feasible flow fuses.

        And its value.
        """
        if not as_it_is:
            fused = self._fused(w, flow)
            if fused is w:  # nothing is
                return w, value
            fused = self._feasible(fused)
            if (fused_value := self._value(fused)) < value:
                return fused, fused_value
        return w, value

    def _offer(
        self,
        w: Rows,
        value: float,
        against: Against[Rows],
        parts: Parts,
        keep_last: bool,
        final: bool = False,
        enough: float = 0.0,
    ) -> None:
        """Take w if it is better, the flow if its bound is; parts is the gap of the two.

        What is final stays as it is, and is not copied. A gap of `enough` need not be told more
        precisely.
        """
        better_w = value < self.value or keep_last
        better_u = value - parts.total > self.dual_value
        own = self._copy(w) if better_w and not final else w
        if better_w and better_u:
            self._take(own, value, against, parts)
        elif better_w:
            self._take_paired(own, value, keep_last, enough)
        elif better_u:
            before = self._gap_against(self.w, against, enough)
            if np.isfinite(before.total):
                self._take(self.w, self.value, against, before)

    def _take_paired(self, w: Rows, value: float, keep_last: bool, enough: float = 0.0) -> None:
        """Take w with the flow that is known; without keep_last it may be left where that is dear.

        Nobody changes its array any more.
        """
        self._take(w, value, *self._paired(w, self.against, enough))

    def _paired(
        self, w: Rows, against: Against[Rows], enough: float = 0.0
    ) -> tuple[Against[Rows], Parts]:
        """Return what w is held against and its gap: the flow zero, where a flow tells nothing.

        Of another point it may have told something: conjugates are lost to rounding beside some.
        """
        parts = self._gap_against(w, against, enough)
        if np.isfinite(parts.total):
            return against, parts
        return Against(self._nothing()[1]), self._loose_gap(w)

    def update_shortly(self, w: Rows, u: Rows) -> None:
        """Take w and a share of u as they are, if that bound costs next to nothing.

        For what may take longer than there is time for.
        """

    def suffices_shortly(self, w: Rows, u: Rows, enough: float) -> bool:
        """Do the same; say whether the relative gap is enough, or soon will be.

        Where iterations take less than a repair that would come before.
        """
        return False

    def update_point(self, w: Rows, keep_last: bool = False) -> None:
        """Take w if its value is lower than the best, and leave the flow as it is.

        For when there is no time to repair another one.
        """
        w = self._feasible(w)
        value = self._value(w)
        if value < self.value or keep_last:
            # Bounds of the whole problem may be still to be prepared, for nothing if u is zero.
            if self._is_zero(self.u):
                self._take(self._copy(w), value, self.against, self._loose_gap(w))
            else:
                self._take_paired(self._copy(w), value, keep_last)

    def begin(self) -> None:
        """Take w = 0, or what is feasible near it, and u = 0: they cost next to nothing."""
        w, u = self._nothing()
        w = self._feasible(w)
        self._take(w, self._value(w), Against(u), self._loose_gap(w))

    @property
    def quick(self) -> bool:
        """Whether checks take a moment, whatever there is to repair."""
        return False

    @property
    def empty(self) -> bool:
        """Whether nothing is known yet."""
        return np.isinf(self.value)

    @property
    def u(self) -> Rows:
        """Best flow (m, d)."""
        return self.against.u

    def _take(self, w: Rows, value: float, against: Against[Rows], parts: Parts) -> None:
        gap, dual_value = parts.total, value - parts.total
        # In one go, so that Ctrl-C leaves the old pair or the new one.
        self.__dict__.update(
            w=w, value=value, against=against, parts=parts, gap=gap, dual_value=dual_value
        )

    @property
    def rel_gap(self) -> float:
        """Gap relative to max(1, |value|); infinite before anything is known."""
        return self.gap / max(1.0, abs(self.value)) if np.isfinite(self.gap) else np.inf

    @property
    def is_rounding(self) -> bool:
        """Whether the gap is no larger than what rounding makes of the objective and its bound."""
        if not np.isfinite(self.gap):
            return False
        noise = max(self.parts.rounding, self._moved_digits())
        return bool(self.gap <= 2.0 * noise)

    def record(self, n_iter: int, seconds: float) -> Record:
        """Return a line of the history."""
        return Record(n_iter, seconds, self.value, self.dual_value)
