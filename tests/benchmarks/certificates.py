"""What a proof costs: building it from a solution, its file, and checking that by plain Python.

Each is done in a process of its own, whose peak memory is its own. Times are of the processor: of
both cores together, where NumPy uses them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
from families import FAMILIES, Case

import verify
from verify import zipapp

ROOT = Path(__file__).resolve().parents[2]
RTOL = 1e-6
#: Instances of which one run says enough.
LONG = 300_000
_SOLVE = """
import certificates
certificates.solve(*sys.argv[1:])
"""
_BUILD = """
import certificates
print(json.dumps(certificates.build(*sys.argv[1:])))
"""
# Nothing but the checker, isolated: python -I -S, and the one file of it.
_CHECK = """
sys.path.insert(0, sys.argv[1])
import time
from verify.kernel.documents import check
start = time.process_time()
status = check(sys.argv[2]).status
print(json.dumps([status, time.process_time() - start, peak()]))
"""
_HEAD = """
import json, sys
def peak():
    line = next(x for x in open("/proc/self/status") if x.startswith("VmHWM"))
    return float(line.split()[1]) / 1024
"""


def measure(case: Case, repeats: int = 3) -> dict[str, float | int | str]:
    """Build and check the certificate of a solution to a gap of 1e-6."""
    with tempfile.TemporaryDirectory() as name:
        folder, text = Path(name), json.dumps(asdict(case))
        zipapp.build(folder / "check.pyz")
        runs = 1 if case.size > LONG else repeats
        solution, proof = folder / "solution.npz", folder / "proof.gtvc"
        _run(_SOLVE, text, str(solution))
        found = json.loads(_run(_BUILD, text, str(solution), str(proof), str(runs)))
        checks = [
            json.loads(_run(_CHECK, str(folder / "check.pyz"), str(proof), isolated=True))
            for _ in range(runs)
        ]
        size = proof.stat().st_size / 1e6
    return {
        "instance": str(case),
        "edges": found["edges"],
        "build (s)": statistics.median(found["seconds"]),
        "build, memory (MB)": found["memory"],
        "file (MB)": size,
        "check (s)": statistics.median(seconds for _, seconds, _ in checks),
        "check, memory (MB)": max(memory for _, _, memory in checks),
        "answer": ", ".join({status for status, _, _ in checks}),
        "relative gap": found["rel_gap"],
    }


def _run(code: str, *arguments: str, isolated: bool = False) -> str:
    flags = ["-I", "-S"] if isolated else []
    paths = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    return subprocess.run(
        [sys.executable, *flags, "-c", _HEAD + code, *arguments],
        env=os.environ if isolated else os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def solve(text: str, solution: str) -> None:
    """Write the solution of a case."""
    found = Case(**json.loads(text)).problem().solve(rtol=RTOL, verbose=False)
    np.savez(solution, w=found.w, u=found.u)


def build(text: str, solution: str, proof: str, runs: str) -> dict[str, object]:
    """Certify the solution of a case some times, and write the certificate."""
    case = Case(**json.loads(text))
    # What is compiled on the first call is on disk after this, and loaded.
    small = Case(case.family, 2_000, case.variant, case.penalty, case.lam)
    warm = (case if case.size < small.size else small).problem()
    first = warm.solve(rtol=RTOL, verbose=False)
    verify.certify(warm, first.w, first.u, RTOL)
    problem, arrays, seconds = case.problem(), np.load(solution), []
    for _ in range(int(runs)):
        start = time.process_time()
        certificate = verify.certify(problem, arrays["w"], arrays["u"], RTOL)
        certificate.save(proof)
        seconds.append(time.process_time() - start)
    with open("/proc/self/status") as file:
        peak = next(line for line in file if line.startswith("VmHWM"))
    return {
        "edges": problem.graph.n_edges,
        "seconds": seconds,
        "memory": float(peak.split()[1]) / 1024,
        "rel_gap": certificate.rel_gap,
    }


def default_cases(sizes: list[int] | None, quick: bool) -> list[Case]:
    """Some of every family, and F4 in all sizes."""
    if quick or sizes:
        sizes = sizes or [FAMILIES["F4"].quick_size]
        return [Case("F4", size, "", "l2", 0.3) for size in sizes]
    return [
        Case("F1", 200, "", "l2", 0.01),
        Case("F2", 200, "", "l2", 0.01),
        Case("F4", 8_000, "", "l2", 0.3),
        Case("F4", 8_000, "", "l1", 0.3),
        Case("F4", 8_000, "", "squared", 0.3),
        Case("F4", 100_000, "", "l2", 0.3),
        Case("F4", 1_000_000, "", "l2", 0.3),
        Case("F5", 90_000, "colour", "l2", 0.2),
        Case("F6", 10_000, "", "l2", 0.1),
        Case("F7", 100_000, "sbm 10%", "l1", 0.1),
    ]
