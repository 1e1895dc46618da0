"""The same bits from all engines that are installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _problems import CASES, badly_conditioned

import gtvcvx
from gtvcvx.distributed import shard

ROOT = Path(gtvcvx.__file__).parents[1]
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
SCRIPT = """
import hashlib, sys
from pathlib import Path
from gtvcvx import distributed

def solved(engine, folder):
    run = distributed.solve(folder / "shards", engine=engine, workers=2, rtol=1e-8,
                            out=folder / engine, verbose=False)
    found = run.gather()
    arrays = [found.w, found.u, found.node_gaps, found.edge_gaps]
    digest = hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
    result = run.certificate(folder / f"{engine}.gtvc")
    return [digest, run.gap.hex(), run.info["switched"], result and result.status]

if __name__ == "__main__":
    engine, *folders = sys.argv[1:]
    rank, _ = distributed.engines.mpi_world() if engine == "mpi" else (0, 1)
    found = [solved(engine, Path(folder)) for folder in folders]
    Path(folders[0], f"{engine}-{rank}").write_text(repr(found))
"""


def told(engine, folders):
    """Return what each rank says of the runs on some problems."""
    script = folders[0] / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), engine, *map(str, folders)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [MPIEXEC, "-n", "2", *command] if engine == "mpi" else command,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    ranks = range(2 if engine == "mpi" else 1)
    return [eval((folders[0] / f"{engine}-{rank}").read_text()) for rank in ranks]


@pytest.mark.parametrize("engine", ["mpi", "ray"])
def test_bits_do_not_depend_on_the_engine(engine, tmp_path):
    module = {"mpi": "mpi4py", "ray": "ray"}[engine]
    if importlib.util.find_spec(module) is None or (engine == "mpi" and MPIEXEC is None):
        pytest.skip(f"{module} is not installed")
    folders = [tmp_path / "l2", tmp_path / "badly conditioned"]
    for folder, problem in zip(folders, (CASES["l2"], badly_conditioned()), strict=True):
        shard(problem, folder / "shards", 5, partitioner="order")
    (expected,) = told("local", folders)
    assert [(switched, status) for *_, switched, status in expected] == [
        (False, "CERTIFIED"),
        (True, "CERTIFIED"),
    ]
    first, *others = told(engine, folders)
    assert first == expected
    # All ranks of MPI have the run; what the kernel says of its certificate is for the first one.
    for other in others:
        assert other == [[*facts, None] for *facts, _ in expected]
