"""The example on Flower itself: by ``flwr run``, and by ``run_simulation``; all on this machine."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

import gtvcvx

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "flower_gtv"
STATES = 11
# A method with a server, whose program runs in the ServerApp.
SIMULATION = """
from flower_gtv.server_app import report
from flower_gtv.task import STATES, load_loss
from flwr.simulation import run_simulation
from gtvcvx import federated as fed
from gtvcvx.federated import flower

algorithm = fed.FedAvg(lam=0.1)
client_app = flower.client_app(load_loss, algorithm)
server_app = flower.server_app(algorithm, len(STATES), 10, done=report)
one = {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}, "init_args": {"num_cpus": 2}}
run_simulation(server_app, client_app, num_supernodes=len(STATES), backend_config=one)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("flwr") is None or find_spec("ray") is None,
        reason="Flower with its simulation is not installed (extra flower)",
    ),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def environment(tmp_path):
    """Environment of Flower's processes: nothing is reported, installed or kept elsewhere."""
    packages = Path(gtvcvx.__file__).resolve().parents[1]
    own = {
        "FLWR_HOME": str(tmp_path / "flower"),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Processes of the simulation share the cores already.
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{packages}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "FLWR_LOCAL_SUPERLINK_HTTP_API_PORT": str(free_port()),
    }
    return os.environ | own


@pytest.fixture
def superlink(environment, tmp_path):
    """A SuperLink that ends with the test; that of ``flwr run`` itself would stay."""
    port = environment["FLWR_LOCAL_SUPERLINK_HTTP_API_PORT"]
    where = ["--host", "127.0.0.1", "--port", port]
    command = ["flower-superlink", "--insecure", "--simulation", *where]
    with (tmp_path / "superlink.log").open("w") as log:
        process = subprocess.Popen(
            command, env=environment, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", process)
            yield
        finally:
            process.terminate()
            process.wait(30)


def wait_for(url, process):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, "the SuperLink has ended"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError("the SuperLink does not answer")


def output_of(command, environment, folder):
    done = subprocess.run(
        command,
        env=environment,
        cwd=folder,
        timeout=400,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "0 absences" in done.stdout, done.stdout
    return done.stdout


def distance(text):
    (found,) = re.findall(r"distance from simulate: (\S+)", text)
    return float(found)


@pytest.mark.usefixtures("superlink")
def test_flwr_run_ends_with_a_certificate(environment, tmp_path):
    # One processor for each client at a time; the default is two, which a small machine may lack.
    federation = f"num-supernodes={STATES} client-resources-num-cpus=1 init-args-num-cpus=2"
    command = ["flwr", "run", str(EXAMPLE), "--stream", "--federation-config", federation]
    text = output_of(command, environment, tmp_path)
    assert "CERTIFIED" in text
    assert distance(text) == 0.0


def test_run_simulation_gives_the_same(environment, tmp_path):
    environment["PYTHONPATH"] = f"{EXAMPLE}{os.pathsep}{environment['PYTHONPATH']}"
    # In a folder of its own: Ray lets modules beside the script hide others.
    script = tmp_path / "simulation.py"
    script.write_text(SIMULATION, encoding="utf-8")
    text = output_of([sys.executable, str(script)], environment, tmp_path)
    assert distance(text) == 0.0
