"""`verify.conformance`: sound solvers pass the battery, broken ones are caught."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import gtvcvx as gtv
import verify


def auto(data, rtol=1e-7):
    return gtv.GTVProblem.from_data(data).solve(rtol=rtol)


def family(row):
    return row.instance.removesuffix(f"-{row.penalty}-{row.losses}")


def failed(report):
    return {family(row) for row in report.failures}


# Sound solvers pass.


def test_default_solver_passes():
    report = verify.conformance(auto)
    assert report.passed, str(report)
    assert report.counts == {"CERTIFIED": 64, "REFUTED": 0, "UNPROVED": 0, "ERROR": 0}
    assert 0 < report.worst <= 1.0000001e-7 + 1e-12


def test_reference_solver_passes():
    report = verify.conformance(
        lambda data: gtv.GTVProblem.from_data(data).solve(solver="CLARABEL", rtol=1e-8)
    )
    assert report.passed, str(report)


def test_parameters_alone_are_enough():
    report = verify.conformance(lambda data: auto(data).w, penalties=["l2"])
    assert report.passed, str(report)
    assert len(report.rows) == 16


def test_pairs_and_lists_are_accepted():
    def solver(data):
        solution = auto(data)
        return solution.w.tolist(), solution.u

    report = verify.conformance(solver, penalties=["l1"], losses=["point"])
    assert report.passed, str(report)


def test_no_flow_with_an_object_is_fine():
    def solver(data):
        return SimpleNamespace(w=auto(data).w, u=None)

    report = verify.conformance(solver, penalties=["squared"], losses=["mixed"])
    assert report.passed, str(report)


# Broken solvers are caught.


def test_zeros_are_refuted_everywhere():
    kinds = {"penalties": ["l1", "squared"]}
    report = verify.conformance(lambda data: np.zeros((data["n_nodes"], data["dim"])), **kinds)
    assert not report.passed
    assert report.counts["REFUTED"] == len(report.rows) == 32
    assert "better by at least" in report.rows[0].reason


def test_a_flipped_sign_of_w_is_refuted():
    report = verify.conformance(lambda data: -auto(data).w, penalties=["l2"])
    assert report.counts["REFUTED"] == len(report.rows) == 16


@pytest.mark.parametrize("size", [1e30, 1e200])
def test_divergence_is_refuted(size):
    def solver(data):
        return np.full((data["n_nodes"], data["dim"]), size)

    report = verify.conformance(solver, penalties=["l2"], losses=["squared"])
    assert report.counts["REFUTED"] == len(report.rows) == 16


@pytest.mark.parametrize("penalty", ["l2", "squared"])
def test_a_flipped_sign_of_u_is_not_proved(penalty):
    def solver(data):
        solution = auto(data)
        return solution.w, -solution.u

    report = verify.conformance(solver, penalties=[penalty])
    assert report.counts["UNPROVED"] == len(report.rows) == 16
    assert all("u returned" in row.reason for row in report.rows)
    assert max(row.rel_gap for row in report.rows) <= 1e-6  # w itself is good


def test_edges_in_another_order_are_not_proved():
    def solver(data):
        solution = auto(data)
        return solution.w, solution.u[::-1]

    report = verify.conformance(solver, penalties=["l1"])
    assert report.counts["UNPROVED"] == len(report.rows)


def test_stopping_early_is_caught():
    def solver(data):
        return gtv.GTVProblem.from_data(data).solve("PDHG", max_iter=30).w

    report = verify.conformance(solver, penalties=["l2"])
    assert not report.passed
    assert len(report.failures) >= 12
    assert report.counts["ERROR"] == 0
    assert all(row.rel_gap > 1e-6 for row in report.failures)


def test_one_rtol_passes_where_a_smaller_one_fails():
    def solver(data):
        return auto(data, rtol=1e-3)

    kinds = {"penalties": ["linf"], "losses": ["squared"]}
    assert verify.conformance(solver, rtol=2e-3, **kinds).passed
    report = verify.conformance(solver, rtol=1e-9, **kinds)
    assert len(report.failures) >= 12


def pseudo_inverse_stop(data, rtol=5e-7, max_iter=5000):
    """Algorithm 1 of [GTV], stopped on (34) with a pseudo-inverse in the conjugate."""
    n, d, edges = data["n_nodes"], data["dim"], data["edges"]
    head, tail = edges.T
    cap = data["lam"] * data["weights"][:, None]
    hessian, linear, constant = np.zeros((n, d, d)), np.zeros((n, d)), np.zeros(n)
    for term in data["terms"]:
        for i in np.unique(term["node"]):
            x, y = term["X"][term["node"] == i], term["y"][term["node"] == i]
            hessian[i], linear[i] = 2 / len(y) * x.T @ x, 2 / len(y) * x.T @ y
            constant[i] = y @ y / len(y)
    tau = 1 / np.maximum(np.bincount(edges.ravel(), minlength=n), 1)[:, None]
    solve = np.linalg.inv(np.eye(d) + tau[:, :, None] * hessian)
    inverse = np.linalg.pinv(hessian, rcond=1e-10, hermitian=True)
    w, u = np.zeros((n, d)), np.zeros((len(edges), d))
    for iteration in range(max_iter):
        divergence = np.zeros((n, d))
        np.add.at(divergence, head, u)
        np.subtract.at(divergence, tail, u)
        if iteration % 10 == 0:
            primal = 0.5 * np.einsum("ij,ijk,ik", w, hessian, w) - (linear * w).sum()
            primal += constant.sum() + (cap[:, 0] * np.linalg.norm(w[head] - w[tail], axis=1)).sum()
            t = linear - divergence
            dual = constant.sum() - 0.5 * np.einsum("ij,ijk,ik", t, inverse, t)
            if primal - dual <= rtol * max(1.0, abs(primal)):
                break
        new = np.einsum("ijk,ik->ij", solve, w - tau * divergence + tau * linear)
        step = u + 0.5 * ((2 * new - w)[head] - (2 * new - w)[tail])
        u = step / np.maximum(1, np.linalg.norm(step, axis=1, keepdims=True) / cap)
        w = new
    return w


def test_a_pseudo_inverse_gap_is_caught_where_it_is_wrong():
    report = verify.conformance(pseudo_inverse_stop, penalties=["l2"], losses=["squared"])
    # Where every node has an invertible Hessian the same gap is a true one.
    right = {"connected", "disconnected", "star", "grid", "planted"}
    assert not right & failed(report), str(report)
    assert {"unlabelled", "sbm", "few-rows", "chain", "d=1", "d=6"} <= failed(report), str(report)
    assert max(row.rel_gap for row in report.failures) > 1e-3


def half_lambda(data):
    data["lam"] /= 2


def unit_weights(data):
    data["weights"][:] = 1


def sums_instead_of_means(data):
    for term in data["terms"]:
        if term["kind"] == "squared":
            size = np.sqrt(np.bincount(term["node"]))[term["node"]]
            term["X"] *= size[:, None]
            term["y"] *= size


def square_without_its_half(data):
    data["weights"] *= 2


def another_norm(data):
    data["penalty"] = {"kind": "l2"}


def last_edge_lost(data):
    data["edges"], data["weights"] = data["edges"][:-1], data["weights"][:-1]


def first_term_only(data):
    data["terms"] = data["terms"][:1]


@pytest.mark.parametrize(
    ("change", "kinds", "may_pass"),
    [
        # Whatever lambda is, a huge one gives the consensus and a tiny one the local minimizers.
        (half_lambda, {"penalties": ["l2"]}, {"large-lambda", "small-lambda"}),
        (unit_weights, {"penalties": ["linf"]}, {"ties", "large-lambda"}),
        (sums_instead_of_means, {"penalties": ["l1"], "losses": ["squared"]}, set()),
        (square_without_its_half, {"penalties": ["squared"]}, {"large-lambda", "small-lambda"}),
        (another_norm, {"penalties": ["l1"]}, {"d=1", "large-lambda"}),
        (another_norm, {"penalties": ["linf"]}, {"d=1", "large-lambda"}),
        # The last edge joins nodes without data, or may weigh next to nothing.
        (last_edge_lost, {"penalties": ["squared"]}, {"unlabelled", "large-lambda", "weights"}),
        (first_term_only, {"penalties": ["l2"], "losses": ["mixed"]}, set()),
    ],
)
def test_solving_another_model_is_caught(change, kinds, may_pass):
    def solver(data):
        change(data)
        return auto(data).w

    report = verify.conformance(solver, **kinds)
    passed = {family(row) for row in report.rows} - failed(report)
    assert passed <= may_pass, str(report)
    assert report.counts["ERROR"] == 0


def test_the_data_that_judge_are_not_those_that_the_solver_had():
    """A solver that rewrites its input solves the easy problem and is refuted on the real one."""

    def solver(data):
        data["lam"] = 1e-300
        data["terms"] = []
        return np.zeros((data["n_nodes"], data["dim"]))

    report = verify.conformance(solver, penalties=["l2"], losses=["point"])
    assert report.counts["REFUTED"] == len(report.rows)


def with_nan(data):
    w = np.array(auto(data).w)
    w[-1, 0] = np.nan
    return w


def flow_of_nan(data):
    solution = auto(data)
    return solution.w, solution.u * np.nan


def raising(data):
    raise RuntimeError("out of\nluck")


def leaving(data):
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (with_nan, "w has NaN or infinity at node"),
        (flow_of_nan, "u has NaN or infinity at edge 0"),
        (lambda data: auto(data).w.T, "w must have shape"),
        (lambda data: auto(data).w[:-1], "w must have shape"),
        (lambda data: (auto(data).w, auto(data).u[1:]), "u must have shape"),
        (lambda data: (auto(data).w, auto(data).u, 1), "tuple of length 3"),
        (lambda data: auto(data).w + 0j, "w is complex"),
        (lambda data: None, "w must be real numbers, got an entry of NoneType"),
        (lambda data: "done", "w must be real numbers, got text"),
        (raising, "RuntimeError: out of luck"),
        (leaving, "SystemExit: 3"),
    ],
)
def test_what_cannot_be_judged_is_an_error_of_its_row(solver, words):
    report = verify.conformance(solver, penalties=["squared"], losses=["point"])
    assert report.counts["ERROR"] == len(report.rows) == 15
    assert not report.passed
    assert all(words in row.reason for row in report.rows), report.rows[0].reason
    assert report.to_dict()["rows"][0]["rel_gap"] is None


def test_one_bad_instance_fails_the_report():
    def solver(data):
        if data["dim"] == 6:
            raise NotImplementedError("d = 6")
        return auto(data)

    report = verify.conformance(solver, penalties=["l2"], losses=["point"])
    assert [family(row) for row in report.failures] == ["d=6"]
    assert not report.passed
