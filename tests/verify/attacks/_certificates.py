"""Attacks on certificates: true documents, changed, and what the oracle says of the answers."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import random
import sys
from fractions import Fraction as F
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import _on_data
import _on_witness
from _built import built
from _objective import (
    Exact,
    Irrational,
    feasible,
    minimizer,
    parts,
    rational_data,
    semidefinite,
)
from _proof import Proof
from _texts import Document, read

sys.path.append(str(Path(__file__).resolve().parents[1] / "corpus"))

from _arrays import Arrays
from _plants import CLASSES, KINDS, PENALTIES, Plant

# The sum of the rounding errors of some hundred floats; the oracle's values are those of feasible
# points, so that nothing else makes them too small.
ROUNDING = 1e-13
TOLERANCES = (0.0, 0.0, 1e-9, 1e-6, 1e-6, 1e-3)


class Attack(NamedTuple):
    """A document, what it is about, and the tolerance of the check."""

    name: str
    document: Document
    content: bytes
    rtol: float
    start: Any  # the optimum of the data before they were changed


class Answer(NamedTuple):
    """What a checker says: exit status, reason, and bounds as rational numbers or None."""

    status: int
    reason: str
    upper: F | None
    lower: F | None


@cache
def plant(kind: str, penalty: str, d: int, seed: int) -> Document:
    found = Plant(kind, penalty, d, seed).document()
    assert isinstance(found, dict)
    return found


def attacks(seed: int) -> Attack:
    """Return the attack of a seed: one to three changes of a true document."""
    rng = random.Random(f"certificate {seed}")
    kind, phi = rng.choice(KINDS), rng.choice(PENALTIES)
    d = 2 if kind == CLASSES else rng.choice((1, 2, 2))
    original = plant(kind, phi, d, rng.randrange(3))
    if rng.random() < 0.3 and (found := built(rng)):
        original, kind, phi = found, "built", found["data"]["penalty"]["kind"]
    if len(original["data"]["terms"]) < 3 and rng.random() < 0.3:
        original = joined(original, rng)
    proof, names = Proof(copy.deepcopy(original)), []
    start = copy.deepcopy(proof.w)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3))):
        attack = rng.choice(_on_data.ATTACKS if rng.random() < 0.5 else _on_witness.ATTACKS)
        names.append(attack.__name__)
        with contextlib.suppress(ValueError, IndexError, KeyError):  # a change after dim was a lie
            attack(proof, rng)
    proof.round_data()
    if rng.random() < 0.85:
        with contextlib.suppress(ValueError, IndexError):
            proof.close(rng.choice)
    document = proof.document()
    content = json.dumps(document).encode()
    if rng.random() < 0.3:
        with contextlib.suppress(ValueError, IndexError, KeyError):
            content = Arrays(document).zipped()
            names.append("gtvc")
    name = f"certificate {seed}: {kind} {phi} " + ", ".join(names)
    return Attack(name, document, content, rng.choice(TOLERANCES), start)


def joined(document: Document, rng: random.Random) -> Document:
    """Add a term of another kind that says nothing at the optimum: its multipliers are zero."""
    found = copy.deepcopy(document)
    w = read(found["w"])
    i = rng.randrange(len(w))
    zero, row = "0x0p+0", [float(x) for x in w[i]]
    term: Document = rng.choice((
        {"kind": "box", "node": [i], "lower": [[x - 1 for x in row]], "upper": [row]},
        {"kind": "point", "node": [i], "a": [row]},
        {"kind": "absolute", "node": [i], "X": [[1.0] * len(row)], "y": [sum(row)]},
        {"kind": "squared", "node": [i, i], "X": [[1.0] * len(row)] * 2, "y": [sum(row)] * 2},
    ))  # fmt: skip
    for key in set(term) - {"kind", "node"}:
        term[key] = [_hex(v) for v in term[key]]
    found["data"]["terms"].append(term)
    rows = "X" in term
    found["dual"]["r"].append([zero if rows else [zero] * len(row)] * len(term["node"]))
    return found


def _hex(value: Any) -> Any:
    return [_hex(v) for v in value] if isinstance(value, list) else (value + 0.0).hex()


class Truth:
    """What is true of a document, as far as the oracle sees."""

    def __init__(self, attack: Attack) -> None:
        self.data = rational_data(attack.document["data"])
        self.w = read(attack.document["w"])
        self.attack = attack
        self.keeps_constraints = feasible(self.data, self.w)
        self.value = self._value(self.w)
        self.minimum = min(map(self._value, self._points()), key=lambda v: v[1])
        self.convex = self.data["penalty"]["kind"] != "quadratic" or semidefinite(
            self.data["penalty"]["Q"]
        )

    def _points(self) -> list[Any]:
        start = self.attack.start
        more = self.data["n_nodes"] - len(start), self.data["dim"] - len(start[0])
        start = [[*row, *[F(0)] * more[1]] for row in start]
        start += [[F(0)] * self.data["dim"]] * more[0]
        found = [self.w, start, minimizer(self.data)]
        return [w for w in found if w is not None and feasible(self.data, w)] or [None]

    def _value(self, w: Any) -> tuple[Any, Any]:
        """Enclose P(w): the same rational number twice, or floats with their rounding errors."""
        if w is None:
            return math.inf, math.inf
        try:
            return (sum(parts(self.data, w, Exact), F(0)),) * 2
        except Irrational:
            pass
        summands = parts(self.data, w)
        slack = ROUNDING * sum(map(abs, summands))
        value = math.fsum(summands)
        return value - slack, value + slack

    def lies(self, answer: Answer) -> list[str]:
        """Return what is false in an answer."""
        found = []
        least = self.minimum[1]
        if "defect" in answer.reason or "internal" in answer.reason:
            found.append(answer.reason)
        if answer.lower is not None:
            if answer.lower > least:
                found.append(f"lower bound {float(answer.lower)!r} above {float(least)!r}")
            if not self.convex:
                found.append("a lower bound for a penalty that is not convex")
        if self.keeps_constraints and answer.upper is not None and answer.upper < self.value[0]:
            found.append("upper bound below P(w)")
        if answer.status == 0:
            found += self._false_acceptance(least)
        if "not feasible" in answer.reason and self.keeps_constraints:
            found.append("w is feasible")
        return found

    def _false_acceptance(self, least: Any) -> list[str]:
        found = []
        if not self.keeps_constraints:
            return ["w is not feasible"]
        rtol = F(self.attack.rtol) if isinstance(self.value[0], F) else self.attack.rtol
        if self.value[0] - rtol * max(1, abs(self.value[0])) > least:
            found.append(f"P(w) is {float(self.value[0])!r}, but {float(least)!r} is attained")
        claim = self.attack.document["claim"]
        if claim["lower"] is not None and read(claim["lower"]) > least:
            found.append("the claimed lower bound is false")
        if claim["upper"] is not None and read(claim["upper"]) < self.value[0]:
            found.append("the claimed upper bound is false")
        return found


_LAST: dict[str, Truth] = {}  # of one attack, which both checkers are asked about


def truth(attack: Attack) -> Truth:
    if attack.name not in _LAST:
        _LAST.clear()
        _LAST[attack.name] = Truth(attack)
    return _LAST[attack.name]


def lies(attack: Attack, answer: Answer) -> list[str]:
    """Return what is false in an answer to an attack."""
    if answer.status == 0 or answer.lower is not None or "defect" in answer.reason:
        return truth(attack).lies(answer)
    return []
