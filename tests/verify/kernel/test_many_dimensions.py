"""Constants of l1 and linf beyond 8 dimensions, where maxima over sign vectors are only bounded.

Each instance has a cluster of two nodes, joined by an edge of weight A, and a third node outside,
joined to the first with weight 1. All losses are (1/m) ||X w||^2, so delta = 0 and the cluster is
well-connected if and only if A > beta / alpha, which enumeration gives.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import verify
from verify.kernel.data import canonical, digest
from verify.kernel.partitions import check_cluster
from verify.partitions.well_connected._check import well_connected

NO = "not well-connected"
CASES = [
    (norm, rows) for norm in ("l1", "linf") for rows in ("blocks 9", "blocks 12", "blocks 30")
] + [(norm, rows) for norm in ("l1", "linf") for rows in ("random 9", "random 12")]


def data_rows(norm: str, name: str) -> np.ndarray:
    """Rows X whose Gram matrix (linf), or its inverse (l1), has signs that no s can follow.

    In blocks of three these are 4 I - 1 1^T up to a factor: every two coordinates disagree.
    """
    kind, d = name.split()
    if kind == "random":
        rng = np.random.default_rng(int(d))
        return np.vstack([rng.integers(-2, 3, (int(d), int(d))), np.eye(int(d), dtype=int)])
    pairs = [[1, -1, 0], [1, 0, -1], [0, 1, -1]] if norm == "linf" else [[1, 1, 1]]
    block = np.array([*pairs, *np.eye(3, dtype=int).tolist()])
    return np.kron(np.eye(int(d) // 3, dtype=int), block)


def largest_sign_form(m: np.ndarray) -> float:
    """Enumerate the sign vectors, of each block of three alone where the matrix has blocks."""
    d = len(m)
    step = 3 if not (np.kron(np.eye(d // 3), np.ones((3, 3))) == 0)[np.abs(m) > 1e-9].any() else d
    total = 0.0
    for first in range(0, d, step):
        own = m[first : first + step, first : first + step]
        s = np.array([(1, *rest) for rest in itertools.product([1, -1], repeat=step - 1)])
        total += float(((s @ own) * s).sum(axis=1).max())
    return total


class Instance:
    """A case with its true constants, and those by sums of absolute entries."""

    def __init__(self, norm: str, name: str) -> None:
        self.norm, self.x = norm, data_rows(norm, name)
        self.d = self.x.shape[1]
        self.h = 2 / len(self.x) * self.x.T @ self.x
        inverse = np.linalg.inv(2 * self.h)
        if norm == "linf":
            self.beta, self.crude_beta = largest_sign_form(self.h), float(np.abs(self.h).sum())
            self.alpha = self.crude_alpha = 1 / float(inverse.diagonal().max())
        else:
            self.beta = self.crude_beta = float(self.h.diagonal().max())
            self.alpha = 1 / largest_sign_form(inverse)
            least = float(np.linalg.eigvalsh(2 * self.h)[0]) / self.d
            self.crude_alpha = max(1 / float(np.abs(inverse).sum()), least)
        self.demand, self.crude_demand = (
            self.beta / self.alpha,
            self.crude_beta / self.crude_alpha,
        )

    def data(self, weight: float) -> dict[str, Any]:
        node = np.repeat([0, 1, 2], len(self.x)).tolist()
        rows = np.vstack([self.x] * 3).astype(float).tolist()
        return {
            "schema": "gtv-problem/1",
            "n_nodes": 3,
            "dim": self.d,
            "edges": [[0, 1], [0, 2]],
            "weights": [weight, 1.0],
            "lam": 1.0,
            "penalty": {"kind": self.norm},
            "terms": [{"kind": "squared", "node": node, "X": rows, "y": [0.0] * len(rows)}],
        }

    def crude_witness(self, directions: dict[str, Any] | None = None) -> dict[str, Any]:
        """Witness of "not well-connected": the sets {0} and {1}."""
        witness = {
            "claim": NO,
            "cluster": [0, 1],
            "alpha": self.crude_alpha * (1 + 1e-9),
            "beta": [self.crude_beta * (1 - 1e-9)] * 2,
            "delta": [0, 0],
            "center": None,
            "modulus": None,
            "sets": [[0], [1]],
            "left_out": [],
        }
        return witness | ({"directions": directions} if directions else {})


def status(data: dict[str, Any], witness: dict[str, Any]) -> str:
    """Check a document, and the one witness in it."""
    document = {
        "schema": "gtv-connectivity/1",
        "sha256": digest(canonical(data)),
        "data": data,
        "claim": NO,
        "clusters": [witness],
    }
    answer = verify.check(document).status
    assert answer == check_cluster(data, witness).status
    return answer


@pytest.mark.parametrize(("norm", "name"), CASES)
def test_false_documents_with_the_upper_bounds_are_not_certified(norm: str, name: str) -> None:
    """The cluster is well-connected; sums of absolute entries said that it is not."""
    case = Instance(norm, name)
    assert case.demand < 0.95 * case.crude_demand
    data = case.data(float(np.sqrt(case.demand * case.crude_demand)))
    assert status(data, case.crude_witness()) == "UNPROVED"
    rng = np.random.default_rng(1)
    vectors = [np.eye(case.d)[0], np.ones(case.d), *rng.choice([-1.0, 1.0], (2, case.d))]
    vectors += list(np.linalg.solve(case.h, np.array(vectors).T).T)
    for v in vectors:
        along = {"alpha": v.tolist()} if norm == "l1" else {"beta": [v.tolist()] * 2}
        assert check_cluster(data, case.crude_witness(along)).status == "REFUTED"


@pytest.mark.parametrize(("norm", "name"), CASES)
def test_the_producer_proves_what_is_true_and_nothing_else(norm: str, name: str) -> None:
    case = Instance(norm, name)
    below, between, above = (
        0.99 * case.demand,
        float(np.sqrt(case.demand * case.crude_demand)),
        1.01 * case.crude_demand,
    )
    cluster = well_connected(case.data(below), [0, 0, 1]).clusters[0]
    assert cluster.decided
    assert not cluster.holds
    assert "directions" in cluster.witness()
    assert status(case.data(below), cluster.witness()) == "CERTIFIED"
    cluster = well_connected(case.data(between), [0, 0, 1]).clusters[0]
    assert not cluster.decided
    assert not cluster.holds
    assert "between the bounds of the constants" in cluster.reason
    with pytest.raises(ValueError, match="no proof"):
        cluster.witness()
    cluster = well_connected(case.data(above), [0, 0, 1]).clusters[0]
    assert cluster.holds
    assert check_cluster(case.data(above), cluster.witness()).status == "CERTIFIED"


@pytest.mark.parametrize(("norm", "name"), CASES)
def test_a_direction_is_needed_and_must_attain_the_claimed_value(norm: str, name: str) -> None:
    case = Instance(norm, name)
    data = case.data(0.99 * case.demand)
    witness = well_connected(data, [0, 0, 1]).clusters[0].witness()
    bare = {key: value for key, value in witness.items() if key != "directions"}
    assert status(data, bare) == "UNPROVED"
    field = "alpha" if norm == "l1" else "beta"
    stated = witness["directions"][field]
    other: Any
    for other in ([0.0] * case.d, stated[0][:-1] if norm == "linf" else stated[:-1], [1.0], "s"):
        changed = {"directions": {field: other if norm == "l1" else [other, other]}}
        assert check_cluster(data, witness | changed).status == "REFUTED"
    for wrong in ([], {"gamma": stated}, {field: 3}, {"beta": [None]}):
        assert check_cluster(data, witness | {"directions": wrong}).status == "REFUTED"
    nothing = {field: None if norm == "l1" else [None] * 2}
    assert status(data, witness | {"directions": nothing}) == "UNPROVED"
    for factor in (Fraction(1) + Fraction(1, 1 << 30), Fraction(2)):
        if norm == "l1":
            moved = {"alpha": ratio(number(witness["alpha"]) / factor)}
        else:
            moved = {"beta": [ratio(number(b) * factor) for b in witness["beta"]]}
        assert check_cluster(data, witness | moved).status == "REFUTED"


def test_a_positive_claim_takes_no_directions() -> None:
    case = Instance("linf", "blocks 9")
    data = case.data(1.01 * case.crude_demand)
    witness = well_connected(data, [0, 0, 1]).clusters[0].witness()
    along = {"directions": {"beta": [[1.0] * 9] * 2}}
    assert check_cluster(data, witness | along).status == "REFUTED"


def number(text: str) -> Fraction:
    return Fraction(*(int(part, 16) for part in text.split("/")))


def ratio(value: Fraction) -> str:
    return f"{value.numerator:#x}/{value.denominator:#x}"
