"""A few hundred attacks on both checkers; more by the multiplier, or by `attack.py` itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import verify

# 200 take some 5 s; 100 times as many are the 20,000 of the acceptance.
EXAMPLES = 200 * int(os.environ.get("GTVCVX_TEST_MULTIPLIER", "1"))


def test_nothing_false_is_accepted_and_both_checkers_agree(node: str) -> None:
    script = Path(__file__).resolve().parents[1] / "attacks" / "attack.py"
    options = ["--count", str(EXAMPLES), "--seed", "7", "--partitions", "0.4"]
    done = subprocess.run(
        [sys.executable, str(script), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert found["disagreements"] == []
    assert found["false"] == []
    counts = found["counts"]
    # the attacks get past the first refusals: many documents remain true, or are near to it
    assert counts["attacks"] == EXAMPLES
    for about in ("certificate", "certificate arrays", "partition"):
        assert counts[f"{about}: status 0"] >= EXAMPLES // 100
        assert counts[f"{about}: status 4"] >= EXAMPLES // 100
    assert counts["certificate: lower bounds"] >= EXAMPLES // 8


def test_alpha_zero_is_malformed_without_a_boundary(
    javascript: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    """Found by these attacks: one checker certified what the other called malformed."""
    one, zero = "0x1.0000000000000p+0", "0x0.0p+0"
    data = {
        "schema": "gtv-problem/1",
        "n_nodes": 2,
        "dim": 2,
        "edges": [[0, 1]],
        "weights": [one],
        "lam": one,
        "penalty": {"kind": "l2"},
        # no coupling of the second coordinate: the true alpha is zero
        "terms": [{"kind": "squared", "node": [0, 1], "X": [[one, zero]] * 2,
                   "y": ["0x1.0000000000000p+2", "-0x1.0000000000000p+2"]}],
    }  # fmt: skip
    report = verify.well_connected(data, [0, 1])
    cluster = {
        "claim": "not well-connected",
        "cluster": [0, 1],
        "alpha": 0,
        "beta": [0, 0],
        "delta": [1, 1],
        "center": [0, 0],
        "modulus": None,
        "sets": [[0], [1]],
        "left_out": [],
        "directions": {"alpha": [0, 1]},
    }
    document = {**report.document(), "claim": cluster["claim"], "clusters": [cluster]}
    file = tmp_path / "alpha.json"
    for alpha, status in ((0, 5), (1, 0), (None, 0)):
        cluster["alpha"] = alpha
        file.write_text(json.dumps(document), encoding="ascii")
        ours = verify.check(file)
        (theirs,) = javascript([{"document": file.read_bytes()}])
        expected = "REFUTED" if status else "CERTIFIED"
        assert (ours.status, theirs["exitStatus"]) == (expected, status)
        assert ours.reason.startswith("malformed") == (status == 5)
