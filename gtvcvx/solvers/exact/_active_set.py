"""Active-set method for the fused edges and the signs of the jumps, in exact arithmetic.

Each round

1. minimizes P over the face that the signs describe (`gtvcvx.solvers.exact._faces`);
2. if the minimizer lies beyond the face, goes towards it as far as the face reaches, and fuses
   the edges whose jumps vanish there;
3. otherwise looks for flows inside the fused clusters, coordinate by coordinate
   (`gtvcvx.solvers.exact._cluster_flows`). If they exist the optimality conditions hold with
   equality, which `gtvcvx.solvers.exact._proof` checks once more. If not, a cut shows where a
   cluster splits.

A cut is a direction of descent: with both sides connected, the minimizer over the new face moves
them apart, and where several clusters split at once it moves at least one of them apart. So P
decreases from one minimizer over a face to the next, and the method ends. Ties do not disturb it:
only whether flows exist matters, not whether they or w are unique.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from gtvcvx._arrays import FloatArray, SignArray
from gtvcvx.solution import ExactSolution
from gtvcvx.solvers.driver import Limits, Proposal
from gtvcvx.solvers.exact._cluster_flows import ClusterFlows
from gtvcvx.solvers.exact._data import ExactData
from gtvcvx.solvers.exact._faces import Face, Memory, Point
from gtvcvx.solvers.exact._proof import prove

# Points on the way are rounded to this many bits after the point, or more where jumps are tiny.
ROUNDING_BITS = 128


class Search:
    """The active-set method: a point, the face that it lies on, and how to go on.

    Parameters
    ----------
    data : ExactData
    point : Point
    signs : ndarray of int8, shape (m, d)
        Signs of the point's jumps.
    u : ndarray, shape (m, d)
        Guess of the flow.

    Attributes
    ----------
    n_iter : int
        Rounds so far.
    proof : ExactSolution or None
        The solution, once it is proved.
    """

    stride = 1

    def __init__(self, data: ExactData, point: Point, signs: SignArray, u: FloatArray) -> None:
        self._data, self._memory, self._u = data, Memory(), u
        self._flows = ClusterFlows(data, u)
        self.point, self._signs = point, signs
        self.n_iter = 0
        self.proof: ExactSolution | None = None
        self._n_unknowns = 0

    @property
    def finished(self) -> bool:
        """Whether the solution is proved."""
        return self.proof is not None

    def begin(self, limits: Limits, rel_gap: float) -> None:
        """Get ready for a run: nothing depends on its limits."""

    def run(self, n_iter: int) -> None:
        """Do n_iter rounds, or as many as it takes."""
        for _ in range(n_iter):
            if not self.finished:
                self.proof = self.advance()

    def due(self) -> bool:
        """Say no: a point in double precision proves nothing before the end."""
        return False

    def proposal(self, final: bool = False) -> Proposal | None:
        """Return the point so far, rounded; nothing if the solution is proved, which needs none."""
        return None if self.finished else Proposal(self.point.floats, self._u, np.inf)

    def learn(self, rel_gap: float) -> None:
        """Take no notice: gaps are a matter of double precision."""

    def info(self) -> dict[str, Any]:
        """Return the number of unknowns of the last linear system."""
        return {"unknowns": self._n_unknowns}

    def advance(self) -> ExactSolution | None:
        """Do one round; return the solution if it is proved."""
        self.n_iter += 1
        face = Face(self._data, self._signs)
        self._n_unknowns = face.n_unknowns
        target = face.minimizer(self.point, self._memory)
        jumps = target.signs(self._data.edges)
        if (jumps * face.signs < 0).any():
            self._go_towards(target, jumps, face)
            return None
        # Jumps that vanish there fuse: the point minimizes P over the smaller face as well.
        self.point, self._signs = target, jumps
        flow, splits = self._flows.find(target, Face(self._data, jumps))
        for split in splits:
            self._signs[split.edge, split.coordinate] = split.sign
        if splits:
            return None
        proof = prove(self._data, target, flow)
        if proof is None:
            raise RuntimeError("EXACT: a defect, the optimality conditions do not hold as computed")
        return proof

    def _go_towards(self, target: Point, jumps: SignArray, face: Face) -> None:
        """Go to the first point on the way to the target at which jumps vanish; fuse them."""
        edges, signs = self._data.edges, face.signs.copy()
        blocked = np.argwhere(jumps * signs < 0)
        reaches = []
        for e, k in blocked:
            here = abs(self.point.difference(edges[e], k))
            reaches.append(here / (here + abs(target.difference(edges[e], k))))
        step = min(reaches)
        hit = blocked[[reach == step for reach in reaches]]
        signs[hit[:, 0], hit[:, 1]] = 0
        if step > 0:
            moving = (self.point.signs(edges) != 0) | (jumps != 0)
            expected = np.where(moving, signs, 0)
            self.point = _between(self.point, target, step, face, expected)
        self._signs = signs


def _between(start: Point, target: Point, step: Fraction, face: Face, expected: SignArray) -> Point:
    """Return the point at a share of the way from start to target, rounded.

    The rounding keeps equal what is equal, and the expected signs of the jumps; without it the
    numbers would grow from round to round.
    """
    data, shape = face.data, start.numerators.shape
    first = np.unique(face.labels.ravel(), return_index=True)[1]
    a, b = step.numerator, step.denominator
    p, q = start.numerators.ravel()[first], start.denominators.ravel()[first]
    r, s = target.numerators.ravel()[first], target.denominators.ravel()[first]
    numerators, denominators = p * s * (b - a) + r * q * a, q * s * b
    # Values that differ do so by at least one over the product of their denominators.
    enough = 2 * max(denominators).bit_length() + 2
    bits = ROUNDING_BITS
    while True:
        rounded = ((numerators << bits) // denominators)[face.labels]
        point = Point(rounded, np.full(shape, 1 << bits, dtype=object))
        if (point.signs(data.edges) == expected).all():
            return point
        if bits > enough:
            raise RuntimeError("EXACT: a defect, a step did not end where it was computed to")
        bits *= 2
