"""What a first solve compiles: ``python tests/benchmarks/compilation.py [LOSS ...]``.

Each run has a process of its own and an empty cache. Told are the CPU seconds of the first solve,
which other work on the machine lengthens less than those of a clock, of a second one, and of the
import; with ``--kernels`` also what each kernel took, its own functions included.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# The checkout is measured, whatever is installed.
sys.path.insert(1, str(ROOT))
_BEGUN = time.process_time()

import numpy as np  # noqa: E402
from numba.core import event  # noqa: E402

import gtvcvx as gtv  # noqa: E402

IMPORTED = time.process_time() - _BEGUN
RTOL = 1e-6
PENALTIES = ("l2", "l1", "linf", "squared")
ROWS = 5


def _labels(z: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.where(z + noise > 0.0, 1.0, 0.0)


def _real(X: np.ndarray, z: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return X, z + 0.3 * noise


#: One node's loss, by its features, the signal and noise.
LOSSES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Any]] = {
    "squared": lambda X, z, e: gtv.SquaredLoss(*_real(X, z, e)),
    "huber": lambda X, z, e: gtv.HuberLoss(*_real(X, z, e), delta=0.5),
    "pseudohuber": lambda X, z, e: gtv.PseudoHuberLoss(*_real(X, z, e), delta=0.5),
    "absolute": lambda X, z, e: gtv.AbsoluteLoss(*_real(X, z, e)),
    "quantile": lambda X, z, e: gtv.QuantileLoss(*_real(X, z, e), 0.3),
    "lasso": lambda X, z, e: gtv.LassoLoss(*_real(X, z, e), 0.1),
    "hinge": lambda X, z, e: gtv.HingeLoss(X, 2.0 * _labels(z, e) - 1.0),
    "logistic": lambda X, z, e: gtv.LogisticLoss(X, _labels(z, e)),
    "poisson": lambda X, z, e: gtv.PoissonLoss(X, np.floor(np.exp(np.clip(z, -3.0, 3.0)))),
}


def problem_of(
    loss: str, penalty: str, d: int, n: int, path: bool = False, seed: int = 3
) -> gtv.GTVProblem:
    """Nearest neighbours, or a path; parameters that differ between two halves of the plane."""
    rng = np.random.default_rng(seed)
    places, X = rng.random((n, 2)), rng.standard_normal((n, ROWS, d))
    W = rng.standard_normal((2, d))[(places[:, 0] > 0.5).astype(int)]
    z, noise = np.einsum("nrd,nd->nr", X, W), rng.standard_normal((n, ROWS))
    losses = [LOSSES[loss](X[i], z[i], noise[i]) for i in range(n)]
    if path:
        graph = gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    else:
        graph = gtv.generators.nearest_neighbours(places, 6)
    return gtv.GTVProblem(graph, losses, penalty, 0.1)


class Kernels(event.Listener):
    """CPU seconds that each kernel takes to compile, all that it calls included."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun: list[float] = []

    def on_start(self, event: Any) -> None:
        self._begun.append(time.process_time())

    def on_end(self, event: Any) -> None:
        seconds = time.process_time() - self._begun.pop()
        if not self._begun:
            name = event.data["dispatcher"].py_func.__name__
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def run(loss: str, penalty: str, d: int, n: int, path: bool = False) -> tuple[list[float], Kernels]:
    """Return the CPU seconds of a first and of a second solve, and what was compiled."""
    kernels, seconds = Kernels(), []
    with event.install_listener("numba:compile", kernels):
        for _ in range(2):
            problem = problem_of(loss, penalty, d, n, path)
            begun = time.process_time()
            problem.solve(rtol=RTOL)
            seconds.append(time.process_time() - begun)
    return seconds, kernels


def measure(loss: str, penalty: str, d: int, n: int, path: bool, kernels: bool) -> str:
    """Run in a new process with an empty cache; return what it tells."""
    options = ["--penalties", penalty, "--d", str(d), "--n", str(n)]
    options += ["--path"] * path + ["--kernels"] * kernels
    command = [sys.executable, __file__, loss, "--run", *options]
    with tempfile.TemporaryDirectory() as empty:
        environment = os.environ | {"NUMBA_CACHE_DIR": empty}
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout


def tell(loss: str, penalty: str, d: int, n: int, path: bool, kernels: bool) -> None:
    """Print one line, and one for each kernel."""
    (first, second), compiled = run(loss, penalty, d, n, path)
    line = f"{loss:12} {penalty:8} d {d:3} n {n:6}: first {first:5.2f} s, second {second:5.2f} s"
    print(f"{line}, compiled {sum(compiled.seconds.values()):5.2f} s, import {IMPORTED:4.2f} s")
    if kernels:
        for name, seconds in sorted(compiled.seconds.items(), key=lambda item: -item[1]):
            print(f"    {name:24} {seconds:5.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("losses", nargs="*", metavar="LOSS", help=", ".join(LOSSES))
    parser.add_argument("--penalties", default=",".join(PENALTIES))
    parser.add_argument("--d", type=int, default=3)
    parser.add_argument("--n", type=int, default=60)
    parser.add_argument("--path", action="store_true", help="a path, where dynamic programs are")
    parser.add_argument("--kernels", action="store_true")
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.run:
        return tell(args.losses[0], args.penalties, args.d, args.n, args.path, args.kernels)
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    for loss in args.losses or LOSSES:
        for penalty in args.penalties.split(","):
            print(
                measure(loss, penalty, args.d, args.n, args.path, args.kernels), end="", flush=True
            )


if __name__ == "__main__":
    main()
