"""Independent random streams, one for each purpose and participant, from one seed."""

from __future__ import annotations

import numpy as np

from gtvcvx._arrays import is_integer

#: What random numbers are for. The place in this list is part of a stream's key: append only.
PURPOSES = (
    *("availability", "sampling", "delay", "loss"),  # of the runtime
    *("batch", "noise", "initial", "features"),  # of programs
)
OF_PROGRAMS = ("batch", "noise", "initial", "features")


class Streams:
    """Random generators that depend on seed, purpose and participant, and on nothing else.

    Switching on what uses one purpose leaves the numbers of all others unchanged, and neither the
    order in which participants run nor the transport matters.

    Parameters
    ----------
    seed : int
        At least 0.
    """

    def __init__(self, seed: int) -> None:
        if not (is_integer(seed) and seed >= 0):
            raise ValueError(f"seed: an integer >= 0 is expected, got {seed!r}")
        self._seed = int(seed)

    def state(self, purpose: str, participant: int, joined: int = 1) -> tuple[int, ...]:
        """Return the seed of one stream; that of the run can be guessed from it, not computed."""
        key = (PURPOSES.index(purpose), participant, joined)
        sequence = np.random.SeedSequence(self._seed, spawn_key=key)
        return tuple(int(word) for word in sequence.generate_state(4))

    def generator(self, purpose: str, participant: int) -> np.random.Generator:
        """Return the generator of one stream."""
        return np.random.default_rng(list(self.state(purpose, participant)))
