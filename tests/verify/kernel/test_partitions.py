"""The exact checker of Definition 1, its graph part: what it must refuse."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from verify.kernel.partitions import check_cluster
from verify.partitions.well_connected._check import well_connected


def problem(lam: float) -> dict[str, Any]:
    return {
        "schema": "gtv-problem/1",
        "n_nodes": 6,
        "dim": 1,
        "edges": [[0, 1], [0, 2], [0, 3], [1, 2], [3, 4], [4, 5]],
        "weights": [2.0, 1.5, 1.0, 0.25, 0.125, 1.0],
        "lam": lam,
        "penalty": {"kind": "l2"},
        "terms": [
            {
                "kind": "point",
                "node": [0, 1, 2, 3, 4, 5],
                "a": [[0.0], [1.0], [-1.0], [0.5], [7.0], [7.5]],
            }
        ],
    }


def witness(lam: float) -> tuple[dict[str, Any], dict[str, Any]]:
    data = problem(lam)
    return data, well_connected(data, [0, 0, 0, 0, 1, 1]).clusters[0].witness()


def test_both_claims_are_proved() -> None:
    for lam, claim in ((8.0, "well-connected"), (0.5, "not well-connected")):
        data, document = witness(lam)
        assert document["claim"] == claim
        assert check_cluster(data, document) == ("CERTIFIED", f"the cluster is {claim}")


def opposite(w: dict[str, Any], **proof: Any) -> None:
    """Turn a witness into one of the opposite claim."""
    claims = ["well-connected", "not well-connected"]
    w["claim"] = claims[1 - claims.index(w["claim"])]
    for key in ("sink", "flow", "scale", "sets", "left_out"):
        w.pop(key, None)
    w.update(proof)


FLOW_MUTATIONS = {
    "unknown key": lambda data, w: w.update(schema="gtv-connectivity/1"),
    "claim": lambda data, w: w.update(claim="maybe"),
    "opposite claim": lambda data, w: opposite(w, sets=[], left_out=[]),
    "flow above capacity": lambda data, w: w["flow"].__setitem__(0, -(2 * w["scale"] + 1)),
    "no flow": lambda data, w: w.update(flow=[0] * len(w["flow"])),
    "flow sign": lambda data, w: w.update(flow=[-f for f in w["flow"]]),
    "flow of floats": lambda data, w: w.update(flow=[float(f) for f in w["flow"]]),
    "flow too short": lambda data, w: w["flow"].pop(),
    "scale": lambda data, w: w.update(scale=w["scale"] // 4),
    "scale zero": lambda data, w: w.update(scale=0),
    "scale negative": lambda data, w: w.update(scale=-w["scale"]),
    "scale bool": lambda data, w: w.update(scale=True),
    "sink": lambda data, w: w.update(sink=1),
    "sink outside": lambda data, w: w.update(sink=4),
    "no sink": lambda data, w: w.pop("sink"),
    "node dropped": lambda data, w: w["cluster"].pop(),
    "node twice": lambda data, w: w["cluster"].__setitem__(1, 0),
    "node outside": lambda data, w: w["cluster"].__setitem__(1, 17),
    "empty": lambda data, w: w.update(cluster=[], beta=[], delta=[]),
    "larger delta": lambda data, w: w["delta"].__setitem__(1, 100.0),
    "NaN delta": lambda data, w: w["delta"].__setitem__(1, float("nan")),
    "negative delta": lambda data, w: w["delta"].__setitem__(1, -1.0),
    "infinite beta": lambda data, w: w["beta"].__setitem__(1, float("inf")),
    "beta too short": lambda data, w: w["beta"].pop(),
    "alpha zero": lambda data, w: w.update(alpha=0.0),
    "alpha small": lambda data, w: w.update(alpha=1e-3),
    "lambda": lambda data, w: data.update(lam=0.5),
    "lambda zero": lambda data, w: data.update(lam=0.0),
    "weight": lambda data, w: data["weights"].__setitem__(0, 2.0**-10),
    "weight negative": lambda data, w: data["weights"].__setitem__(0, -2.0),
    "boundary": lambda data, w: data["weights"].__setitem__(4, 4.0),
    "edge": lambda data, w: (data["edges"].pop(0), data["weights"].pop(0)),
    "not a document": lambda data, w: w.clear(),
}


@pytest.mark.parametrize("name", FLOW_MUTATIONS)
def test_mutated_flow_is_refused(name: str) -> None:
    data, document = copy.deepcopy(witness(8.0))
    FLOW_MUTATIONS[name](data, document)
    assert check_cluster(data, document).status == "REFUTED"


SET_MUTATIONS = {
    "no sets": lambda data, w: w.update(sets=[], left_out=[]),
    "one set fewer": lambda data, w: w.update(sets=w["sets"][:1], left_out=[]),
    "empty set": lambda data, w: w["sets"].append([]),
    "whole cluster": lambda data, w: w["sets"].append([0, 1, 2, 3]),
    "set outside": lambda data, w: w["sets"].append([4]),
    "node twice": lambda data, w: w["sets"].append([1, 1]),
    "no violation": lambda data, w: w["sets"].append([0]),
    "opposite claim": lambda data, w: opposite(w, sink=0, flow=[0] * 4, scale=1),
    "lambda": lambda data, w: data.update(lam=100.0),
    "weight": lambda data, w: data.update(weights=[100 * x for x in data["weights"]]),
    "left out of nothing": lambda data, w: w.update(left_out=[5]),
    "sets missing": lambda data, w: w.pop("sets"),
}


@pytest.mark.parametrize("name", SET_MUTATIONS)
def test_mutated_sets_are_refused(name: str) -> None:
    data, document = copy.deepcopy(witness(0.5))
    SET_MUTATIONS[name](data, document)
    assert check_cluster(data, document).status == "REFUTED"


def test_left_out_nodes_stand_for_their_complements() -> None:
    """On a complete graph with equal demands only C - {i} violates, for each i."""
    i, j = np.triu_indices(4, 1)
    data = problem(2.0) | {
        "n_nodes": 5,
        "edges": np.stack([i, j], axis=1).tolist(),
        "weights": [1.0] * 6,
        "terms": [{"kind": "point", "node": [0, 1, 2, 3], "a": [[1.0], [-1.0], [1.0], [-1.0]]}],
    }
    document = {
        "claim": "not well-connected",
        "cluster": [0, 1, 2, 3],
        "alpha": None,
        "beta": [0.0] * 4,
        "delta": [2.0] * 4,
        "center": [0.0],
        "modulus": None,
        "sets": [],
        "left_out": [0, 1, 2, 3],
    }
    assert check_cluster(data, document).status == "CERTIFIED"  # 3 <= 3: a tie violates
    slightly_less = document | {"delta": [2.0 - 2.0**-50] * 4}
    assert check_cluster(data, slightly_less).status == "REFUTED"
    slightly_more = document | {"delta": [2.0 + 2.0**-50] * 4}
    assert check_cluster(data, slightly_more).status == "REFUTED"  # not what the data say
    assert check_cluster(data, document | {"left_out": [0, 1, 2]}).status == "REFUTED"


def test_single_node_needs_no_flow_and_has_no_sets() -> None:
    data = problem(1.0)
    nothing = {"alpha": None, "beta": [0.0], "delta": [0.0], "center": None, "modulus": None}
    base = {"cluster": [5], **nothing}
    positive = base | {"claim": "well-connected", "sink": 5, "flow": [], "scale": 1}
    assert check_cluster(data, positive).status == "CERTIFIED"
    negative = base | {"claim": "not well-connected", "sets": [], "left_out": [5]}
    assert check_cluster(data, negative).status == "REFUTED"
