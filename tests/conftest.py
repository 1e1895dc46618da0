"""Settings of the whole suite, and the instances that its files share."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

MULTIPLIER = int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))

# Threads of BLAS wait for each other by spinning, and tests run on every core already: triangular
# systems of two equations took 8 ms on two cores, and the whole suite up to twice as long. Read
# when NumPy is imported, also by pytest-xdist's workers and by the processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Repeatable examples, none kept on disk, and no time limit on a machine that others use as well.
settings.register_profile(
    "gtvcvx",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=25 * MULTIPLIER,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gtvcvx")

# A shell lets what it runs in the background ignore Ctrl-C, which tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are called after their argument: gzip's hold the second at which they were made.

    Tests that run on several cores are collected by each of them, and all have to name them alike.
    """
    return argname if isinstance(val, bytes) else None


def _share(path: str) -> None:
    """Let every test file, in whatever folder, say ``from _instances import ...``.

    Putting folders on the path instead would let tests/verify hide the package verify.
    """
    file = Path(__file__).parent / f"{path}.py"
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)


_share("_instances")
_share("_benchmark_modules")
_share("_documents")
_share("_twins")
_share("solvers/interior_point/blockwise/_driven")
_share("cli/_pages")
_share("docs/papers/_papers")
if importlib.util.find_spec("shapely"):  # extra geo
    _share("_maps")
_share("losses/_catalogue_cases")
_share("losses/_node_problems")
_share("verify/_plain_instances")
_share("verify/_zip_files")
_share("verify/_document_edits")
_share("verify/certificates/pieces/_team_of_one")
_share("verify/flows/_flow_graphs")
_share("federated/_systems")
_share("federated/transport/_faulty")
_share("federated/flower/_fake_flower")
_share("distributed/engines/_engine_tasks")
_share("distributed/_bounds_tasks")
_share("distributed/_distributed_tasks")
_share("distributed/_problems")
_share("experiments/_made_up")
_share("distributed/_sharded")
_share("distributed/_certificate_tasks")
_share("solvers/interior_point/blockwise/_central_path")
