"""Newton's method for ``min_W L_i(W) - <s_i, W>`` at many nodes, and multipliers that give s_i.

At any point a step gives multipliers as well: what curvatures make of the change of the scores is
added to the slopes, and together they add up to s exactly, as the step solves just that. Where no
chance that belongs to them is negative they bound the conjugate from above, however far the
step is from the end: divergences of the second order are all that is lost.

Scores do not change if all classes' parameters are moved by one vector, so that parameters are
``T V B^T`` with V (r, K - 1) and the orthonormal columns of B (K, K - 1) orthogonal to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gtvcvx._arrays import BoolArray, FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx.losses.batched.multinomial import _softmax as softmax
from gtvcvx.losses.batched.multinomial._frames import Frame
from gtvcvx.losses.node._problem import EPS


@dataclass(frozen=True)
class NewtonSettings:
    """When steps are short enough, and when they have led far enough.

    Attributes
    ----------
    steps : int
        Most steps. In the tails chances change by about the factor e in a step, and those that
        doubles can tell from zero beside one are e^-36.
    reach, stretch : float
        A step changes no score by more than `reach` and so many times what it is: in the tails
        curvatures say next to nothing.
    searches : int
        Most halvings of a step.
    enough : float
        A step is short enough when the function rises above its tangent by at most this share of
        what the tangent falls; a quadratic does by one half.
    rounding : float
        What is added to a Hessian, as a share of its trace, lest it be singular.
    close : float
        Multipliers are nearly the best ones when the scores change relative to each other by no
        more than this: their gap is the least one but for this share.
    exact : float
        They are the best ones, up to rounding, when scores change by no more than this.
    leak : float
        Multipliers give s up to rounding when they miss so small a share of what adds up to it.
    """

    steps: int = 60
    reach: float = 10.0
    stretch: float = 2.0
    searches: int = 30
    enough: float = 0.75
    rounding: float = 4.0 * EPS
    close: float = 0.05
    exact: float = 1e-6
    leak: float = 64.0 * EPS


NEWTON = NewtonSettings()


class Target(NamedTuple):
    """What is minimized at the nodes of a frame: rows, ridge and a linear term."""

    frame: Frame
    own: BoolArray  # (k, m, K)
    c: FloatArray  # (k, m)
    linear: FloatArray  # (k, r, K - 1)

    def at(self, chosen: BoolArray | IntArray) -> Target:
        """Return some of the nodes."""
        return Target(
            self.frame.at(chosen),
            self.own[chosen],
            self.c[chosen],
            self.linear[chosen],
        )


class Ends(NamedTuple):
    """Where k nodes have ended."""

    V: FloatArray  # (k, r, K - 1)
    p: FloatArray  # (k, m, K), chances whose multipliers were found last
    found: BoolArray  # (k,), whether they give s up to rounding
    off: BoolArray  # (k,), whether s is proved to be off the domain


def contrasts(K: int) -> FloatArray:
    """Orthonormal columns (K, K - 1), orthogonal to 1."""
    lower = np.tril(np.ones((K, K)), -1)[:, : K - 1]
    raw = np.eye(K)[:, : K - 1] * np.arange(K - 1, 0, -1) - lower
    out: FloatArray = raw / np.linalg.norm(raw, axis=0)
    return out


def minimize(
    target: Target, V: FloatArray, accuracy: float, settings: NewtonSettings = NEWTON
) -> Ends:
    """Minimize from points V (k, r, K - 1) until steps change scores by the accuracy or less."""
    k = len(V)
    none = np.zeros(k, dtype=bool)
    ends = Ends(V.copy(), target.own.astype(float), none, none.copy())
    number = np.arange(k)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(settings.steps):
            look()
            step = _Step.of(target, ends.V[number], settings)
            p, given = step.multipliers(target, settings)
            better = given | ~ends.found[number]
            ends.p[number[better]] = p[better]
            ends.found[number[given]] = True
            off = step.outside(target)
            ends.off[number[off]] = True
            arrived = given & (step.size <= accuracy)
            going = ~(arrived | off | step.rounding(settings)) & np.isfinite(step.slope)
            length = step.lengths(settings)
            moved = ends.V[number] + length[:, None, None] * step.D
            # The last step is as good as any before.
            ends.V[number] = np.where(np.isfinite(moved), moved, ends.V[number])
            if not going.any():
                break
            number, target = number[going], target.at(going)
    return ends


class _Step(NamedTuple):
    """Newton's steps of k nodes."""

    D: FloatArray  # (k, r, K - 1)
    scores: FloatArray  # (k, m, K)
    change: FloatArray  # (k, m, K), of the scores, centred by the chances
    q: FloatArray  # (k, m, K)
    slope: FloatArray  # (k,), what the tangent falls along D
    bend: FloatArray  # (k,), what the ridge has of twice the rise along D
    c: FloatArray  # (k, m)
    left: FloatArray  # (k, r, K - 1), what multipliers must give: linear term less ridge at the end
    total: FloatArray  # (k,), size of the slopes that add up

    @staticmethod
    def of(target: Target, V: FloatArray, settings: NewtonSettings) -> _Step:
        """Solve for Newton's steps at V (k, r, K - 1)."""
        frame, own, c, linear = target
        B = contrasts(own.shape[2])
        size = V[0].size
        scores = (frame.X @ V) @ B.T
        q = softmax.probabilities(scores)
        slopes = c[:, :, None] * softmax.slopes(q, own)
        ridge = frame.ridge @ V
        rest = linear - frame.X.transpose(0, 2, 1) @ (slopes @ B) - ridge
        H = _hessians(frame, c, q, B)
        trace = np.einsum("kjj->k", H)
        H += (settings.rounding * trace + np.finfo(np.float64).tiny)[:, None, None] * np.eye(size)
        D = _solved(H, rest)
        for _ in range(2):  # for what was added
            bent = _bent(frame, c, q, D, B)[0]
            D = D + _solved(H, rest - bent)
        bent, change = _bent(frame, c, q, D, B)
        total = np.abs(linear).sum(axis=(1, 2)) + c.sum(axis=1)
        bend = np.sum(D * (frame.ridge @ D), axis=(1, 2))
        left = linear - ridge - frame.ridge @ D
        return _Step(D, scores, change, q, np.sum(rest * D, axis=(1, 2)), bend, c, left, total)

    @property
    def size(self) -> FloatArray:
        """Largest change of a score relative to the others (k,)."""
        out: FloatArray = np.abs(self.change).max(axis=(1, 2))
        return out

    def multipliers(self, target: Target, settings: NewtonSettings) -> tuple[FloatArray, BoolArray]:
        """Return the chances (k, m, K) that the step gives, and where they give s, (k,)."""
        p = softmax.completed(self.q * (1.0 + self.change), target.own)
        a = self.c[:, :, None] * softmax.slopes(p, target.own)
        X, B = target.frame.X, contrasts(p.shape[2])
        missing = np.abs(self.left - X.transpose(0, 2, 1) @ (a @ B)).max(axis=(1, 2))
        size = (np.abs(X) * self.c[:, :, None]).sum(axis=1).max(axis=1)
        size = size + np.abs(self.left).max(axis=(1, 2))
        return p, missing <= settings.leak * size

    def rounding(self, settings: NewtonSettings) -> BoolArray:
        """Say where the function falls by no more than rounding, (k,)."""
        return self.slope <= EPS**2 * self.total

    def outside(self, target: Target) -> BoolArray:
        """Say whose D tells s from the domain: <s, D> is above what all slopes can reach, (k,)."""
        ahead = np.sum(np.where(target.own, self.change, 0.0), axis=2)
        reach = np.sum(self.c * (self.change.max(axis=2) - ahead), axis=1)
        along = target.linear * self.D
        size = np.abs(along).sum(axis=(1, 2)) + reach
        flat = self.bend <= 0.0
        beyond: BoolArray = flat & (along.sum(axis=(1, 2)) - reach > OUTSIDE * size)
        return beyond & np.isfinite(size)

    def lengths(self, settings: NewtonSettings) -> FloatArray:
        """Return lengths (k,) at which the function has fallen enough."""
        far = settings.reach + settings.stretch * np.abs(self.scores)
        length = 1.0 / np.maximum((np.abs(self.change) / far).max(axis=(1, 2)), 1.0)
        for _ in range(settings.searches):
            rise = softmax.rises(self.q, length[:, None, None] * self.change)
            above = np.sum(self.c * rise, axis=1) + 0.5 * length**2 * self.bend
            steep = above > settings.enough * length * self.slope
            if not steep.any():
                break
            length = np.where(steep, 0.5 * length, length)
        return length


# Off the domain is what a direction tells from it by this share of what adds up to that; nearer to
# it, it may be rounding.
OUTSIDE = 1e-9


def _solved(H: FloatArray, x: FloatArray) -> FloatArray:
    """Return the solutions (k, r, K - 1) of linear systems."""
    flat = x.reshape(len(x), -1, 1)
    return np.asarray(np.linalg.solve(H, flat), dtype=np.float64).reshape(x.shape)


def _hessians(frame: Frame, c: FloatArray, q: FloatArray, B: FloatArray) -> FloatArray:
    """Hessians (k, r (K - 1), r (K - 1))."""
    k, _, r = frame.X.shape
    free = B.shape[1]
    centred = B - (q @ B)[:, :, None, :]
    root = np.sqrt(c[:, :, None] * q)[:, :, :, None] * centred
    wide = frame.X[:, :, None, :, None] * root[:, :, :, None, :]
    wide = wide.reshape(k, -1, r * free)
    H = wide.transpose(0, 2, 1) @ wide
    H.reshape(k, r, free, r, free)[:] += frame.ridge[:, :, None, :, None] * np.eye(free)[:, None, :]
    return np.asarray(H)


def _bent(
    frame: Frame, c: FloatArray, q: FloatArray, D: FloatArray, B: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Hessians times D (k, r, K - 1), and the change of the scores, centred (k, m, K)."""
    change = (frame.X @ D) @ B.T
    change = change - np.sum(q * change, axis=2, keepdims=True)
    pulled = frame.X.transpose(0, 2, 1) @ ((c[:, :, None] * q * change) @ B)
    return pulled + frame.ridge @ D, change
