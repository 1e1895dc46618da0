"""What the programs of external.py share: how an answer is written."""

import numpy as np


def write(path: str, w: np.ndarray, seconds: float) -> None:
    """Write w (n, d), the seconds of the solve alone and the peak memory of the process in MB."""
    try:
        with open("/proc/self/status") as status:
            peak = next(line for line in status if line.startswith("VmHWM"))
        memory = float(peak.split()[1]) / 1024
    except OSError:
        memory = float("nan")
    np.savez(path, w=w, seconds=seconds, memory=memory)
