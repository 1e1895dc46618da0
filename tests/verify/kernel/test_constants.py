"""The exact checker of Definition 1, its constants: alpha, beta, delta against the data."""

from __future__ import annotations

import copy
import functools
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from verify.kernel.partitions import check_cluster
from verify.partitions.well_connected._check import well_connected

NORMS = ("l1", "l2", "linf")


def problem(norm: str, lam: float, d: int = 2, n: int = 6, seed: int = 3) -> dict[str, Any]:
    """Two rings of three nodes joined by a weak edge; squared, point and ridge losses."""
    rng = np.random.default_rng(seed)
    node = np.repeat(np.arange(n), 3)
    ring = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)]
    return {
        "schema": "gtv-problem/1",
        "n_nodes": n,
        "dim": d,
        "edges": [list(edge) for edge in ring],
        "weights": [2.0, 1.5, 1.0, 0.01, 1.0, 1.0, 1.25],
        "lam": lam,
        "penalty": {"kind": norm},
        "terms": [
            {
                "kind": "squared",
                "node": node[node != 1].tolist(),
                "X": rng.standard_normal((3 * n - 3, d)).tolist(),
                "y": rng.standard_normal(3 * n - 3).tolist(),
            },
            {"kind": "point", "node": [1, 4], "a": rng.standard_normal((2, d)).tolist()},
            {"kind": "ridge", "node": list(range(n)), "mu": rng.uniform(0.5, 1.5, n).tolist()},
        ],
    }


LABELS = [0, 0, 0, 1, 1, 1]


def number(text: str) -> Fraction:
    return Fraction(*(int(part, 16) for part in text.split("/")))


def ratio(value: Fraction) -> str:
    return f"{value.numerator:#x}/{value.denominator:#x}"


def scale(w: dict[str, Any], name: str, factor: float, k: int | None = None) -> None:
    """Multiply a constant of a witness."""
    if k is None:
        w[name] = ratio(number(w[name]) * Fraction(factor))
    else:
        w[name][k] = ratio(number(w[name][k]) * Fraction(factor))


@functools.cache
def witnesses(norm: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """A problem and its witness for each claim; to be copied before they are changed."""
    out = []
    for lam, claim in ((40.0, "well-connected"), (0.3, "not well-connected")):
        data = problem(norm, lam)
        witness = well_connected(data, LABELS).clusters[0].witness()
        assert witness["claim"] == claim
        out.append((data, witness))
    return out


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("d", [1, 2, 3, 9])
def test_constants_of_true_witnesses_are_accepted(norm: str, d: int) -> None:
    verdicts = set()
    for seed, lam in itertools.product(range(3), (0.3, 5.0, 500.0)):
        data = problem(norm, lam, d, seed=seed)
        for cluster in well_connected(data, LABELS).clusters.values():
            verdicts.add(cluster.holds)
            assert check_cluster(data, cluster.witness()).status == "CERTIFIED"
    assert verdicts == {True, False}


TINY = 1 + 2.0**-30  # far more than rounding
UPPER = {
    "alpha": lambda data, w: scale(w, "alpha", TINY),
    "alpha null": lambda data, w: w.update(alpha=None),
    "alpha zero": lambda data, w: w.update(alpha=0),
    "alpha negative": lambda data, w: w.update(alpha=-1.0),
    "alpha NaN": lambda data, w: w.update(alpha=float("nan")),
    "beta": lambda data, w: scale(w, "beta", 1 / TINY, 1),
    "beta zero": lambda data, w: w["beta"].__setitem__(2, 0),
    "beta infinite": lambda data, w: w["beta"].__setitem__(2, float("inf")),
    "beta swapped": lambda data, w: w["beta"].reverse(),
    "delta": lambda data, w: scale(w, "delta", 1 / TINY, 0),
    "delta zero": lambda data, w: w["delta"].__setitem__(2, 0),
    "delta swapped": lambda data, w: w["delta"].reverse(),
    "center moved": lambda data, w: scale(w, "center", TINY, 1),
    "center null": lambda data, w: w.update(center=None),
    "center too short": lambda data, w: w["center"].pop(),
    "center NaN": lambda data, w: w["center"].__setitem__(0, float("nan")),
    "center missing": lambda data, w: w.pop("center"),
    "data point": lambda data, w: data["terms"][0]["X"][0].__setitem__(0, 3.0),
    "target": lambda data, w: data["terms"][0]["y"].__setitem__(4, 3.0),
    "point": lambda data, w: data["terms"][1]["a"][0].__setitem__(1, 0.25),
    "ridge": lambda data, w: data["terms"][2]["mu"].__setitem__(0, 0.125),
    "term dropped": lambda data, w: data["terms"].pop(),
    "rows moved": lambda data, w: data["terms"][0]["node"].__setitem__(3, 0),
    "lambda": lambda data, w: data.update(lam=0.3),
}
LOWER = {
    "alpha": lambda data, w: scale(w, "alpha", 1 / TINY),
    "alpha zero": lambda data, w: w.update(alpha=0),
    "beta": lambda data, w: scale(w, "beta", TINY, 1),
    "delta": lambda data, w: scale(w, "delta", TINY, 0),
    "delta swapped": lambda data, w: w["delta"].reverse(),
    "center moved": lambda data, w: scale(w, "center", 1.5, 1),
    "center null": lambda data, w: w.update(center=None),
    "modulus": lambda data, w: scale(w, "modulus", 8.0),  # for l1 and linf not the sharpest
    "modulus zero": lambda data, w: w.update(modulus=0),
    "modulus null": lambda data, w: w.update(modulus=None),
    "target": lambda data, w: data["terms"][0]["y"].__setitem__(4, -0.25),
    "term dropped": lambda data, w: data["terms"].pop(),
}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", UPPER)
def test_mutated_constants_of_a_positive_claim_are_refused(norm: str, name: str) -> None:
    data, witness = copy.deepcopy(witnesses(norm)[0])
    UPPER[name](data, witness)
    assert check_cluster(data, witness).status == "REFUTED"


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", LOWER)
def test_mutated_constants_of_a_negative_claim_are_refused(norm: str, name: str) -> None:
    data, witness = copy.deepcopy(witnesses(norm)[1])
    LOWER[name](data, witness)
    assert check_cluster(data, witness).status == "REFUTED"


@pytest.mark.parametrize("norm", NORMS)
def test_weaker_constants_are_as_true(norm: str) -> None:
    """Bounds that are moved to the safe side are still bounds, while there is room."""
    data, witness = copy.deepcopy(witnesses(norm)[0])
    data["lam"] *= 1.01  # the flow of a witness has no room of its own
    scale(witness, "alpha", 1 / TINY)
    for k in range(3):
        scale(witness, "beta", TINY, k)
        scale(witness, "delta", TINY, k)
    assert check_cluster(data, witness).status == "CERTIFIED"


def test_the_norm_is_part_of_the_claim() -> None:
    """The constants of one norm do not prove anything in another."""
    data, witness = witnesses("l2")[0]
    assert check_cluster(data, witness).status == "CERTIFIED"
    for kind in ({"kind": "linf"}, {"kind": "pnorm", "p": "inf"}):
        assert check_cluster(data | {"penalty": kind}, witness).status == "REFUTED"
    assert check_cluster(data | {"penalty": {"kind": "pnorm", "p": 2.0}}, witness).status == (
        "CERTIFIED"
    )
    for kind in ({"kind": "squared"}, {"kind": "pnorm", "p": 3.0}):
        assert check_cluster(data | {"penalty": kind}, witness).status == "UNPROVED"


@pytest.mark.parametrize("kind", ["logistic", "l1", "opaque"])
def test_losses_without_a_rule_are_unproved(kind: str) -> None:
    data, witness = copy.deepcopy(witnesses("l2")[0])
    extra: dict[str, Any] = {
        "logistic": {"X": [[1.0, 0.0]], "y": [1.0]},
        "l1": {"kappa": [0.5]},
        "opaque": {"name": "mine"},
    }[kind]
    data["terms"].append({"kind": kind, "node": [1], **extra})
    answer = check_cluster(data, witness)
    assert answer.status == "UNPROVED"
    assert f"{kind} loss of node 1" in answer.reason
    witness["flow"][0] = 1 << 80  # what is false without the constants is refused all the same
    assert check_cluster(data, witness).status == "REFUTED"


def test_disconnected_clusters_need_no_constants() -> None:
    """No demand is negative: a cut of weight zero violates whatever the losses are."""
    data = problem("l2", 1.0)
    data["terms"].append({"kind": "logistic", "node": [0], "X": [[1.0, 0.0]], "y": [1.0]})
    witness = well_connected(data, [0, 1, 1, 1, 0, 1]).clusters[0].witness()
    assert check_cluster(data, witness).status == "CERTIFIED"


def entry(rows: list[list[str]]) -> None:
    """Put a digit before the first number of a root, or of an inverse."""
    rows[0][0] = rows[0][0].replace("0x", "0x1", 1)


SHAPES = {
    "roots null": lambda r: None,
    "unknown key": lambda r: {**r, "sum": []},
    "total too wide": lambda r: {**r, "total": [[1, 2, 3]]},
    "total no rows": lambda r: {**r, "total": [1, 2]},
    "total infinite": lambda r: {**r, "total": [[1.0, float("inf")]]},
    "local too short": lambda r: {**r, "local": [None] * 2},
    "local too long": lambda r: {**r, "local": [None] * 4},
    "local too wide": lambda r: {**r, "local": [[[1]], None, None]},
    "inverse too short": lambda r: {**r, "inverse": [[1, 0]]},
    "inverse too long": lambda r: {**r, "inverse": [[1, 0]] * 3},
    "inverse too wide": lambda r: {**r, "inverse": [[1, 0, 0]] * 2},
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("claim", [0, 1])
def test_roots_of_another_shape_are_malformed(claim: int, name: str) -> None:
    data, witness = copy.deepcopy(witnesses("linf")[claim])
    witness["roots"] = SHAPES[name](witness.get("roots", {}))
    answer = check_cluster(data, witness)
    assert answer.status == "REFUTED"
    assert answer.reason.startswith("malformed")


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("claim", "key"), [(0, "roots"), (1, "directions")])
def test_what_a_claim_needs_and_is_missing_is_named(claim: int, key: str, norm: str) -> None:
    data, witness = copy.deepcopy(witnesses(norm)[claim])
    del witness[key]
    answer = check_cluster(data, witness)
    assert answer.status == "UNPROVED"
    assert f"`{key}`" in answer.reason


@pytest.mark.parametrize("norm", NORMS)
def test_roots_that_are_false_prove_nothing(norm: str) -> None:
    data, witness = copy.deepcopy(witnesses(norm)[0])
    witness["roots"]["total"].append([1000, 0])
    assert check_cluster(data, witness).status == "REFUTED"
    data, witness = copy.deepcopy(witnesses(norm)[0])
    rows = witness["roots"]["inverse" if norm != "l2" else "local"]
    entry(rows if norm != "l2" else next(root for root in rows if root))
    assert check_cluster(data, witness).status == "REFUTED"
