"""Problems in files that are larger than the memory of each process."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gtvcvx as gtv

# Beyond what a process has once code is loaded.
MOST = 130 << 20
WORKERS = 8


def save(path, n, rows, d=30):
    """Write a chain with many rows a node."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, d))
    y = X @ np.ones(d) + 0.1 * rng.normal(size=rows)
    losses = gtv.SquaredLoss.from_rows(X, y, np.sort(rng.integers(0, n, rows)))
    graph = gtv.EmpiricalGraph(n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    gtv.GTVProblem(graph, losses, "l2", 0.01).save(path)


SCRIPT = """
    import dataclasses, resource, sys
    from pathlib import Path
    import numpy as np
    from gtvcvx import distributed
    from gtvcvx.distributed import _solve
    from gtvcvx.distributed.engines import LocalEngine

    def limit(most):
        status = Path("/proc/self/status").read_text()
        (data,) = [line for line in status.splitlines() if line.startswith("VmData")]
        most += int(data.split()[1]) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def limited(fabric, given):
        most, size, small, order = given
        # Compiled code is loaded, which takes more than these data.
        _solve.work(fabric, dataclasses.replace(order, folder=small, out=small + "/solution"))
        limit(most)
        try:
            np.empty(size, np.uint8)
        except MemoryError:
            return _solve.work(fabric, order)
        raise AssertionError("this process could have all arrays")

    class Limited(LocalEngine):
        def run(self, task, argument, workers, timeout=60.0, replace=0):
            given = most, size, str(folder / "small"), argument
            return super().run(limited, given, workers, timeout, replace)

    if __name__ == "__main__":
        folder, small, large, most = Path(sys.argv[1]), *sys.argv[2:4], int(sys.argv[4])
        distributed.shard(small, folder / "small", 16, partitioner="blocks")
        distributed.solve(folder / "small", workers=1, verbose=False)  # compiled code is on disk
        size = Path(large).stat().st_size
        distributed.shard(large, folder / "large", 16, partitioner="blocks")
        given = {"engine": Limited(), "workers": int(sys.argv[5]), "verbose": False}
        print(distributed.solve(folder / "large", **given).status)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_problem_larger_than_each_process_is_solved(tmp_path):
    save(tmp_path / "small.npz", 40, 4000)
    save(tmp_path / "large.npz", 400, 600_000)
    assert (tmp_path / "large.npz").stat().st_size > 1.05 * MOST
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    given = [tmp_path, tmp_path / "small.npz", tmp_path / "large.npz", MOST, WORKERS]
    command = [sys.executable, script, *map(str, given)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "optimal\n", run.stderr
