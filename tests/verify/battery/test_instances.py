"""The battery of `verify.conformance`: its features, its planted solutions, its seeds."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import gtvcvx as gtv
import verify
from verify.battery._instances import FAMILIES, LOSSES, PENALTIES, battery


@pytest.fixture(scope="module")
def cases():
    return [make() for make in battery(0)]


def test_every_family_meets_every_penalty_and_every_penalty_every_loss(cases):
    seen = {(case.name.rsplit("-", 2)[0], case.data["penalty"]["kind"]) for case in cases}
    assert seen == {(name, penalty) for name in FAMILIES for penalty in PENALTIES}
    met = {(case.data["penalty"]["kind"], case.losses) for case in cases}
    assert met == {(penalty, loss) for penalty in PENALTIES for loss in LOSSES}
    assert len({case.name for case in cases}) == len(cases) == 64


def test_instances_have_the_features_that_they_are_named_for(cases):
    """Counted on the data themselves."""
    features = set()
    for case in cases:
        data = case.data
        n, d, edges = data["n_nodes"], data["dim"], data["edges"]
        label = np.arange(n)
        for _ in range(n):  # components by propagation of the least number
            np.minimum.at(label, edges[:, 0], label[edges[:, 1]])
            np.minimum.at(label, edges[:, 1], label[edges[:, 0]])
        degree = np.bincount(edges.ravel(), minlength=n)
        rows = np.zeros(n, dtype=int)
        labelled = np.zeros(n, dtype=bool)
        for term in data["terms"]:
            labelled[term["node"]] = True
            if term["kind"] == "squared":
                rows += np.bincount(term["node"], minlength=n)
        sizes = {root: np.flatnonzero(label == root) for root in np.unique(label)}
        features |= {
            *(["connected"] if len(sizes) == 1 else ["disconnected"]),
            *(["isolated, data"] if (labelled & (degree == 0)).any() else []),
            *(["isolated, no data"] if (~labelled & (degree == 0)).any() else []),
            *(["unlabelled node"] if (~labelled & (degree > 0)).any() else []),
            *(
                ["unlabelled component"]
                if any(len(part) > 1 and not labelled[part].any() for part in sizes.values())
                else []
            ),
            *(["few rows"] if ((rows > 0) & (rows < d)).any() else []),
            *(["d = 1"] if d == 1 else []),
            *(["d = 6"] if d == 6 else []),
            *(["wide weights"] if np.ptp(np.log10(data["weights"])) > 4 else []),
            *(["large lambda"] if data["lam"] >= 1e4 else []),
            *(["small lambda"] if data["lam"] <= 1e-4 else []),
            *(["labels"] if "nodes" in data else []),
        }
    assert features == {
        *("connected", "disconnected", "isolated, data", "isolated, no data", "unlabelled node"),
        *("unlabelled component", "few rows", "d = 1", "d = 6", "wide weights"),
        *("large lambda", "small lambda", "labels"),
    }


def test_ties_are_exact(cases):
    for case in cases:
        if case.name.startswith("ties-"):
            values = [term[key] for term in case.data["terms"] for key in ("X", "y", "a")
                      if key in term]  # fmt: skip
            assert all((array == np.round(array)).all() for array in values)
            assert (case.data["weights"] == 1).all()


def test_planted_pairs_are_optimal(cases):
    planted = [case for case in cases if case.solution is not None]
    assert len(planted) == len(PENALTIES)
    for case in planted:
        w, u = case.solution
        assert verify.optimality(case.data, w, u).holds(1e-12)
        assert verify.certify(case.data, w, u, rtol=1e-12).status == "CERTIFIED"
        wrong = verify.certify(case.data, w + 1e-2, u, rtol=1e-12)
        assert wrong.status == "REFUTED"


def test_seeds_repeat_and_names_decide():
    first, again, other = (battery(seed)[0]().data for seed in (5, 5, 6))
    np.testing.assert_equal(first, again)
    assert first["terms"][0]["X"].tolist() != other["terms"][0]["X"].tolist()
    few = battery(5, ("linf",), ("point",))
    name = few[2]().name
    same = next(make() for make in battery(5) if make().name == name)
    np.testing.assert_equal(few[2]().data, same.data)


# GTVProblem.from_data, which wraps solvers for the battery.


def test_from_data_is_the_inverse_of_to_data(cases):
    for case in cases:
        given = copy.deepcopy(case.data)
        data = gtv.GTVProblem.from_data(given).to_data()
        data["terms"].sort(key=lambda term: term["kind"])
        given["terms"].sort(key=lambda term: term["kind"])
        given.setdefault("nodes", list(range(given["n_nodes"])))
        np.testing.assert_equal(data, given)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda data: data.pop("lam"), ValueError, "data: there is no entry 'lam'"),
        (lambda data: data.pop("schema"), ValueError, "schema 'gtv-problem/1' is expected"),
        (lambda data: data.update(schema="gtv-problem/2"), ValueError, "found 'gtv-problem/2'"),
        (lambda data: data.update(weights=-data["weights"]), ValueError, "weight"),
    ],
)
def test_from_data_names_what_is_wrong(cases, change, error, words):
    data = copy.deepcopy(cases[0].data)
    change(data)
    with pytest.raises(error, match=words):
        gtv.GTVProblem.from_data(data)


def test_from_data_wants_a_mapping():
    with pytest.raises(TypeError, match="data: a mapping is expected, got list"):
        gtv.GTVProblem.from_data([1])
