"""How workers wait for each other where it is a matter of microseconds."""

from __future__ import annotations

import os
import time

# Seconds in which connections are asked again and again whether something has come, before the
# operating system is asked to wake us: mostly it comes within this, and to be woken takes as long.
SPIN = 1e-3


def _sleep_shortly() -> None:
    time.sleep(0.0)


# Between two questions others get the core. On two cores shared with six processes an exchange of
# two workers takes 46 us with it, and up to 4 ms without; one of three 110 us and 12 ms
# (tests/benchmarks/engines.py, and --greedy).
give_way = getattr(os, "sched_yield", _sleep_shortly)
