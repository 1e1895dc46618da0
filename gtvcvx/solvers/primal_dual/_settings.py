"""Settings of the primal-dual iteration, with the reasons for their values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrimalDualSettings:
    """Settings of the iteration.

    Attributes
    ----------
    relaxation : float
        Over-relaxation, below 2 for convergence; the nearer to 2, the fewer iterations.
    sample : int
        The average is taken over every so many iterations, and restarts are decided as often:
        often enough for the average, seldom enough to cost nothing.
    shortest_epoch : int
        No epoch, from restart to restart, is shorter: the first steps say little.
    sufficient, necessary, longest : float
        Restart when the residual is down to `sufficient` times that of the last restart, or down
        to `necessary` times it and rising, or when the epoch is longer than `longest` times the
        whole run; the rules of PDLP, with its third constant and larger first two.
    largest_change : float
        Of the primal weight, at a restart: where all flows are at capacity, or w has stopped, an
        epoch says little about it.
    tilted, steady : float
        Point or flow drifts where a step moves it so many times as far as the other one, and is at
        least this share of the step one sample before: then the weight is far off, and an epoch
        ends without waiting for its rules. With 30,000 nodes 1,700 of 2,600 iterations went by so.
    ahead : float
        Point and flow are ahead in turn where in one epoch each moves so many times as far as the
        other one: then neither drifts.
    origin_size, origin_kept : int
        With more flow variables than that, 64 megabytes, some edges and nodes tell how far all
        have moved in an epoch, and no copy is kept of the others: as many as have about so many
        variables, 32 megabytes.
    averaged_size : int
        With more flow variables than that, 256 megabytes, there are no averages, and restarts are
        at the current point: with many points that takes as many iterations within a few percent.
    """

    relaxation: float = 1.9
    sample: int = 10
    shortest_epoch: int = 40
    sufficient: float = 0.4
    necessary: float = 0.8
    longest: float = 0.36
    largest_change: float = 10.0
    tilted: float = 4.0
    steady: float = 0.98
    ahead: float = 2.0
    origin_size: int = 2**23
    origin_kept: int = 2**22
    averaged_size: int = 2**25

    def strides(self, nodes: int, edges: int) -> tuple[int, int]:
        """Return that each so many-th node and edge tells, of so many variables of either."""
        if edges <= self.origin_size:
            return 1, 1
        return 1 + nodes // self.origin_kept, 1 + edges // self.origin_kept


DEFAULTS = PrimalDualSettings()
