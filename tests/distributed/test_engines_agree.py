"""The same bits from all engines that are installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from _problems import CASES

import gtvcvx
from gtvcvx.distributed import shard, solve

ROOT = Path(gtvcvx.__file__).parents[1]
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
SCRIPT = """
import sys
from gtvcvx import distributed

if __name__ == "__main__":
    engine, shards, out = sys.argv[1:]
    run = distributed.solve(shards, engine=engine, workers=2, rtol=1e-8, out=out, verbose=False)
    if run is not None:
        found = run.gather()
        print(found.w.tobytes().hex(), found.u.tobytes().hex(), run.gap.hex())
"""


@pytest.mark.parametrize("engine", ["mpi", "ray"])
def test_bits_do_not_depend_on_the_engine(engine, tmp_path):
    module = {"mpi": "mpi4py", "ray": "ray"}[engine]
    if importlib.util.find_spec(module) is None or (engine == "mpi" and MPIEXEC is None):
        pytest.skip(f"{module} is not installed")
    shard(CASES["l2"], tmp_path / "shards", 5, partitioner="order")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), engine, str(tmp_path / "shards"), str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    told = subprocess.run(
        [MPIEXEC, "-n", "2", *command] if engine == "mpi" else command,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    expected = solve(tmp_path / "shards", workers=2, rtol=1e-8, out=tmp_path / "local")
    found = expected.gather()
    text = [found.w.tobytes().hex(), found.u.tobytes().hex(), expected.gap.hex()]
    assert told.stdout.split()[-3:] == text
