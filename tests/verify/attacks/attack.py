"""Attacks on both checkers, judged by an oracle that shares no code with either.

`python tests/verify/attacks/attack.py --count 20000 --seed 1` makes so many false, or only strange,
documents and asks both checkers; it prints counts, and whatever is wrong. `--partitions` is the
share of documents about partitions.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction as F
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT)]

import _certificates  # noqa: E402
import _partition_attacks  # noqa: E402
from _certificates import Answer, Attack  # noqa: E402

import verify  # noqa: E402

BATCH = 500
STATUS = {"CERTIFIED": 0, "UNPROVED": 3, "REFUTED": 4}


def of_python(attacks: list[Attack]) -> Iterator[Answer]:
    """Ask the kernel, by files as a reader would."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "document"
        for attack in attacks:
            file.write_bytes(attack.content)
            found = verify.check(file, rtol=attack.rtol)
            status = 5 if found.reason.startswith("malformed") else STATUS[found.status]
            yield Answer(status, found.reason, found.upper, found.lower)


def of_javascript(attacks: list[Attack]) -> Iterator[Answer]:
    """Ask checker.js: one process of Node."""
    lines = [json.dumps({"document": base64.b64encode(a.content).decode(), "rtol": a.rtol})
             for a in attacks]  # fmt: skip
    script = str(ROOT / "tests" / "verify" / "web" / "answers.js")
    done = subprocess.run(
        ["node", script], input="\n".join(lines), capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        found = json.loads(line)
        bounds = (rational(found.get(key)) for key in ("upper", "lower"))
        yield Answer(found["exitStatus"], found["reason"], *bounds)


def rational(found: list[Any] | None) -> F | None:
    return found and int(found[0], 16) * F(2) ** found[1] / int(found[2], 16)


def near(a: F | None, b: F | None) -> bool:
    """Whether bounds are the same but for what is enclosed."""
    if a is None or b is None:
        return a is b
    return abs(a - b) <= F(1, 2**60) * max(1, abs(a))


def agree(a: Answer, b: Answer) -> bool:
    return a.status == b.status and near(a.upper, b.upper) and near(a.lower, b.lower)


def run(count: int, seed: int, partitions: float) -> dict[str, Any]:
    """Return counts, and the attacks that found something."""
    counts: Counter[str] = Counter()
    false: list[Any] = []
    differ: list[Any] = []
    rng = random.Random(seed)
    for start in range(0, count, BATCH):
        batch = []
        for k in range(start, min(start + BATCH, count)):
            part = _partition_attacks if rng.random() < partitions else _certificates
            batch.append((part, part.attacks(seed * 10**7 + k)))
        attacks = [attack for _, attack in batch]
        answers = zip(batch, of_python(attacks), of_javascript(attacks), strict=True)
        for (part, attack), ours, theirs in answers:
            about = attack.name.split()[0] + (" arrays" if attack.name.endswith("gtvc") else "")
            counts["attacks"] += 1
            counts[f"{about}: attacks"] += 1
            counts[f"{about}: status {ours.status}"] += 1
            counts[f"{about}: lower bounds"] += ours.lower is not None
            if "budget" in ours.reason + theirs.reason:
                counts["over the budget"] += 1
            elif not agree(ours, theirs):
                differ.append((attack.name, ours, theirs))
            lies = {lie for answer in (ours, theirs) for lie in part.lies(attack, answer)}
            if lies:
                false.append((attack.name, ours, theirs, sorted(lies)))
        print(f"{start + len(batch)}: {len(differ)} {len(false)}", file=sys.stderr, flush=True)
    return {"counts": dict(sorted(counts.items())), "disagreements": differ, "false": false}


def main() -> int:
    """Run as the arguments say; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--partitions", type=float, default=0.4)
    options = parser.parse_args()
    found = run(options.count, options.seed, options.partitions)
    print(json.dumps(found, indent=1, default=str))
    return bool(found["disagreements"] or found["false"])


if __name__ == "__main__":
    sys.exit(main())
