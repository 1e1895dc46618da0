"""`verify.certify`: what it asks for, what it answers, and what it writes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from _plain_instances import LOSSES, instance, solve

import verify


class _Problem:
    """A problem object as verify knows it: plain data and a solver that counts its calls."""

    def __init__(self, data: dict[str, Any], shift: float = 0.0) -> None:
        self.data, self.shift, self.calls = data, shift, 0

    def to_data(self) -> dict[str, Any]:
        return self.data

    def solve(self, rtol: float) -> SimpleNamespace:
        self.calls += 1
        w, u = solve(self.data)
        return SimpleNamespace(w=w + self.shift, u=u + self.shift)


@pytest.fixture(scope="module")
def solved() -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    data = instance(11, "mixed", "l2", "connected", 15, 2)
    return data, *solve(data)


def test_w_alone_is_certified_from_plain_data(solved: Any) -> None:
    data, w, _ = solved
    assert verify.certify(data, w, rtol=1e-7).status == "CERTIFIED"


def test_problem_object_is_asked_for_its_flow_only_if_needed(solved: Any) -> None:
    data, w, u = solved
    problem = _Problem(data)
    assert verify.certify(problem, w, u, rtol=1e-7).status == "CERTIFIED"
    assert problem.calls == 0
    assert verify.certify(problem, w, rtol=1e-7).status == "CERTIFIED"
    assert problem.calls == 1


@pytest.mark.parametrize("bad", ["zero", "noise", "flipped"])
def test_useless_flow_is_replaced_before_answering(solved: Any, bad: str) -> None:
    data, w, u = solved
    flow = {"zero": 0 * u, "noise": np.random.default_rng(0).normal(size=u.shape), "flipped": -u}
    assert verify.certify(data, w, flow[bad], rtol=1e-7).status == "CERTIFIED"
    problem = _Problem(data, shift=0.5)  # a solver that is wrong as well
    assert verify.certify(problem, w, flow[bad], rtol=1e-7).status == "CERTIFIED"


@pytest.mark.parametrize("loss", LOSSES)
def test_wrong_points_are_refuted_with_a_witness(loss: str) -> None:
    data = instance(12, loss, "l2", "connected", 8, 2)
    w, u = solve(data)
    wrong = w + 0.05 * np.random.default_rng(0).standard_normal(w.shape)
    certificate = verify.certify(data, wrong, u, rtol=1e-6)
    assert certificate.status == "REFUTED"
    assert certificate.reason.startswith("w is not within rtol")
    assert certificate.better is not None
    assert certificate.gap > 0
    assert verify.check(certificate.document).status == "REFUTED"
    better = verify.certify(data, certificate.better, rtol=1e-6)
    assert better.upper < certificate.upper


def test_the_answer_turns_with_the_true_suboptimality(solved: Any) -> None:
    """Along a line away from the solution: CERTIFIED, then REFUTED, never the wrong one."""
    data, w, u = solved
    direction = np.random.default_rng(1).standard_normal(w.shape)
    best = verify.certify(data, w, u, rtol=1e-7)
    answers = []
    for t in 10.0 ** np.arange(-7, 0, 0.5):
        certificate = verify.certify(data, w + t * direction, u, rtol=1e-4)
        excess = certificate.upper - best.upper
        wanted = "CERTIFIED" if excess <= 1e-4 * max(1, certificate.upper) else "REFUTED"
        assert certificate.status == wanted
        answers.append(wanted)
    assert {"CERTIFIED", "REFUTED"} == set(answers)


def test_bounds_hold_at_random_points(solved: Any) -> None:
    """No reported gap is below the true suboptimality."""
    data, w, u = solved
    best = verify.certify(data, w, u, rtol=1e-7)
    rng = np.random.default_rng(2)
    for _ in range(20):
        size = 10.0 ** rng.uniform(-6, 1)
        point = w + size * rng.standard_normal(w.shape)
        flow = u + size * rng.standard_normal(u.shape)
        certificate = verify.certify(data, point, flow, rtol=1e-1)
        assert certificate.lower <= best.upper
        assert certificate.gap >= certificate.upper - best.upper - 1e-15 * certificate.upper
        assert (certificate.node_gaps >= 0).all()
        assert (certificate.edge_gaps >= 0).all()


def test_saved_file_is_checked_and_replaced_atomically(solved: Any, tmp_path: Path) -> None:
    data, w, u = solved
    certificate = verify.certify(data, w, u, rtol=1e-7)
    path = tmp_path / "certificate.json"
    path.write_text("old")
    with path.open() as reader:  # whoever reads the old file meanwhile goes on reading it
        certificate.save(path)
        assert reader.read() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["certificate.json"]
    result = verify.check(path)
    assert result.status == "CERTIFIED"
    assert result.to_json()["upper"] == certificate.upper
    assert result.to_json()["lower"] == certificate.lower
    assert result.to_json()["gap"] == certificate.gap
    assert json.loads(path.read_text())["claim"]["upper"] == certificate.upper.hex()


def test_failed_save_leaves_the_old_file(solved: Any, tmp_path: Path) -> None:
    data, w, u = solved
    certificate = verify.certify(data, w, u)
    certificate.document["producer"] = {"name": object()}
    path = tmp_path / "certificate.json"
    path.write_text("old")
    with pytest.raises(TypeError):
        certificate.save(path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_worst_nodes_and_edges_are_named_by_their_labels() -> None:
    data = instance(13, "point", "l2", "path", 6, 1)
    data["nodes"] = ["a", "b", "c", "d", "e", "f"]
    w, u = solve(data)
    w[2] += 0.5
    certificate = verify.certify(data, w, u, rtol=1e-6)
    nodes, edges = certificate.worst(2)
    assert nodes[0][0] == "c"
    assert {edge for edge, _ in edges} <= set(pairwise("abcdef"))
    assert edges[0][1] == certificate.edge_gaps.max() >= edges[1][1]
    text = certificate.summary()
    assert text.startswith("REFUTED")
    assert "c: 2.5" in text
    assert repr(certificate).splitlines()[0] == text.splitlines()[0]


def test_distance_bound_contains_the_solution() -> None:
    """Ridge and point terms at every node: ||w - w_hat|| <= sqrt(2 gap / mu)."""
    data = instance(14, "point", "l1", "connected", 10, 2)
    w, u = solve(data)
    other = w + 0.01 * np.random.default_rng(0).standard_normal(w.shape)
    certificate = verify.certify(data, other, u, rtol=1e-6)
    assert certificate.distance_bound is not None
    distance = float(np.linalg.norm(other - w))
    assert distance <= certificate.distance_bound <= 50 * distance
    assert certificate.distance_bound == pytest.approx(np.sqrt(2 * certificate.gap / 2))
    unlabelled = instance(14, "ridge", "l1")  # point and ridge terms, not at every node
    assert verify.certify(unlabelled, *solve(unlabelled)).distance_bound is None


def test_opaque_losses_are_unproved_with_the_reason() -> None:
    data = instance(15, "point", "l2")
    data["terms"].append({"kind": "opaque", "node": np.array([3]), "name": "my huber"})
    w = np.zeros((12, 2))
    certificate = verify.certify(data, w)
    assert certificate.status == "UNPROVED"
    assert "no exact rule for the loss 'my huber'" in certificate.reason
    assert not certificate.exact
    assert (certificate.lower, certificate.upper) == (-np.inf, np.inf)
    problem = SimpleNamespace(
        to_data=lambda: data, value=lambda w: 3.0, lower_bound=lambda u: (2.0, u)
    )
    flow = np.zeros((len(data["edges"]), 2))
    certificate = verify.certify(problem, w, flow)
    assert (certificate.status, certificate.lower, certificate.upper) == ("UNPROVED", 2.0, 3.0)


def test_opaque_penalties_are_unproved_with_the_reason() -> None:
    data = {**instance(15, "point", "l2"), "penalty": {"kind": "opaque", "name": "my norm"}}
    w, flow = np.zeros((12, 2)), np.zeros((len(data["edges"]), 2))
    certificate = verify.certify(data, w, flow)
    assert certificate.status == "UNPROVED"
    assert "no exact rule for the penalty 'my norm'" in certificate.reason
    assert verify.check(certificate.document).status == "UNPROVED"
    problem = SimpleNamespace(
        to_data=lambda: data, value=lambda w: 3.0, lower_bound=lambda u: (2.0, u)
    )
    certificate = verify.certify(problem, w, flow)
    assert (certificate.status, certificate.lower, certificate.upper) == ("UNPROVED", 2.0, 3.0)
    with pytest.raises(ValueError, match="no subdifferential for the penalty 'my norm'"):
        verify.optimality(data, w, flow)
    with pytest.raises(ValueError, match=r"penalty: missing \['name'\]"):
        verify.certify({**data, "penalty": {"kind": "opaque"}}, w)


def test_a_form_that_is_not_quite_semidefinite_has_a_float_bound_marked_as_not_proved() -> None:
    data = instance(16, "unlabelled", "l2")
    near = 1 + 2.0**-52
    data["penalty"] = {"kind": "quadratic", "Q": np.array([[1, near], [near, 1]])}
    w, u = solve({**data, "penalty": {"kind": "quadratic", "Q": np.ones((2, 2))}})
    certificate = verify.certify(data, w, u, rtol=1e-6)
    assert certificate.status == "UNPROVED"
    assert "float" in certificate.reason
    assert "not proved" in repr(certificate)
    assert not certificate.exact


@pytest.mark.parametrize("p", [1.5, 3.0, 1.1, np.inf])
@pytest.mark.parametrize("loss", ["unlabelled", "absolute"])
def test_p_norms(p: float, loss: str) -> None:
    """With and without a flow; nodes without data, kinks: residuals are routed in the balls."""
    data = instance(16, loss, "l2", "connected", 10, 3)
    data["penalty"] = {"kind": "pnorm", "p": p}
    w, u = solve(data)
    for flow in (u, None):
        certificate = verify.certify(data, w, flow, rtol=1e-6)
        assert (certificate.status, certificate.exact) == ("CERTIFIED", True), certificate.reason
        assert verify.check(certificate.document).status == "CERTIFIED"


def test_quadratic_penalty_that_is_only_nearly_semidefinite_is_unproved() -> None:
    data = instance(17, "squared", "squared", d=3)
    root = np.random.default_rng(0).standard_normal((3, 2))
    q = root @ root.T
    q[0, 0] -= 1e-15
    data["penalty"] = {"kind": "quadratic", "Q": (q + q.T) / 2}
    w, u = solve(data)
    certificate = verify.certify(data, w, u)
    assert certificate.status == "UNPROVED"
    assert "not positive semidefinite" in certificate.reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros((3, 2))}, r"w must have shape \(12, 2\), got \(3, 2\)"),
        ({"w": np.full((12, 2), np.nan)}, "w has NaN or infinity at node 0"),
        ({"w": "text"}, "w must be real numbers, got text"),
        ({"w": np.full((12, 2), "0.5")}, "w must be real numbers, got text"),
        ({"w": np.full((12, 2), "0.5", dtype=object)}, "w must be real numbers, got an entry of"),
        ({"w": np.zeros((12, 2)) + 1e-9j}, "w must be real numbers, got complex128"),
        ({"w": np.ma.masked_equal(np.eye(12, 2), 1.0)}, "w is masked"),
        ({"w": [[0.0]] + [[0.0, 0.0]] * 11}, "w must be an array of numbers"),
        ({"u": np.zeros((1, 2), dtype=complex)}, "u must be real numbers, got complex128"),
        ({"u": np.zeros((1, 2))}, "u must have shape"),
        ({"u": "inf"}, "u has NaN or infinity at edge 0"),
        ({"rtol": -1.0}, "rtol must be finite"),
        ({"rtol": np.nan}, "rtol must be finite"),
        ({"lam": 0.0}, "lam 0: must be positive"),
        ({"weights": "nan"}, "weights: expected a finite double, got 'nan'"),
        ({"edges": "loop"}, "needs head < tail"),
        ({"penalty": {"kind": "huber"}}, "unknown kind 'huber'"),
        ({"penalty": {"kind": "quadratic", "Q": [[1, 0], [0, -1]]}}, "positive semidefinite"),
        ({"penalty": {"kind": "quadratic", "Q": [[1, 2], [0, 1]]}}, "symmetric"),
        ({"terms": [{"kind": "point", "node": [1, 0], "a": [[0, 0], [0, 0]]}]}, "increasing"),
    ],
)
def test_bad_input_is_named(change: dict[str, Any], message: str) -> None:
    data = instance(18, "point", "l2")
    m = len(data["edges"])
    arguments: dict[str, Any] = {"w": np.zeros((12, 2)), "u": None, "rtol": 1e-6}
    for key, value in change.items():
        if key in arguments:
            infinite = isinstance(value, str) and value == "inf"
            arguments[key] = np.full((m, 2), np.inf) if infinite else value
        elif isinstance(value, str):
            data["weights"][0] = np.nan if key == "weights" else data["weights"][0]
            data["edges"][0, 1] = 0 if key == "edges" else data["edges"][0, 1]
        else:
            data[key] = value
    with pytest.raises((TypeError, ValueError), match=message):
        verify.certify(data, **arguments)


def test_what_is_no_problem_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="to_data"):
        verify.certify(3, np.zeros((1, 1)))
