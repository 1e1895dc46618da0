"""Large problems are certified as arrays, and what is proved is the same as by texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _plain_instances import instance, solve

import gtvcvx as gtv
import verify
from verify.certificates import _certify, _entry
from verify.certificates._limits import Clock
from verify.certificates.arrays import _build
from verify.certificates.arrays._document import ArraysDocument


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entry, "LARGE", 1)


@cache
def geometric(n: int) -> tuple[gtv.GTVProblem, gtv.Solution]:
    rng = np.random.default_rng(0)
    graph = gtv.generators.geometric(rng.random((n, 2)), 8)
    means = np.where(np.arange(n)[:, None] < n // 2, 1.0, -1.0) * [1.0, 2.0]
    data = gtv.generators.regression_data(means, 3, 0.3, 0.4, rng)
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), "l2", 0.1)
    return problem, problem.solve(rtol=1e-6)


def written(certificate: verify.Certificate, folder: Path) -> Path:
    certificate.save(folder / "x.gtvc")
    return folder / "x.gtvc"


def test_five_thousand_nodes(tmp_path: Path) -> None:
    problem, solution = geometric(5000)
    certificate = verify.certify(problem, solution.w, solution.u)
    assert certificate.status == "CERTIFIED"
    assert certificate.exact
    assert isinstance(certificate.document, ArraysDocument)
    result = verify.check(written(certificate, tmp_path))
    assert result.status == "CERTIFIED"
    assert (result.to_json()["upper"], result.to_json()["lower"]) == (
        certificate.upper,
        certificate.lower,
    )
    gaps = certificate.node_gaps.sum() + certificate.edge_gaps.sum()
    assert gaps == pytest.approx(certificate.gap, rel=1e-3)
    assert np.abs(certificate.u - solution.u).max() < 1e-8


@pytest.mark.parametrize(("most", "in_arrays"), [(800, False), (100, True)])
def test_data_rows_count_too(most: int, in_arrays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_entry, "LARGE", 10**9)
    monkeypatch.setattr(_entry, "LARGE_DATA", most)
    problem, solution = geometric(20)
    certificate = verify.certify(problem, solution.w, solution.u)
    assert certificate.status == "CERTIFIED"
    assert isinstance(certificate.document, ArraysDocument) == in_arrays


def test_the_same_document_as_json(tmp_path: Path) -> None:
    problem, solution = geometric(300)
    certificate = verify.certify(problem, solution.w, solution.u)
    by_texts = _certify.certify(problem, solution.w, solution.u)
    certificate.save(tmp_path / "x.json")
    result = verify.check(tmp_path / "x.json")
    assert (result.status, by_texts.status) == ("CERTIFIED", "CERTIFIED")
    assert json.loads((tmp_path / "x.json").read_text()) == dict(certificate.document)
    for key in ("data", "sha256", "w"):
        assert certificate.document[key] == by_texts.document[key] or key == "w"
    assert certificate.lower == pytest.approx(by_texts.lower, rel=1e-9)
    assert certificate.summary().splitlines()[0] == by_texts.summary().splitlines()[0]
    again = verify.check(written(by_texts, tmp_path))
    assert again.status == "CERTIFIED"
    assert verify.check(tmp_path / "x.gtvc", problem.to_data()).status == "CERTIFIED"


KINDS = {
    "squared": 0,
    "few_rows": 1,
    "point": 2,
    "ridge": 3,
    "lasso": 4,
    "mixed": 5,
    "logistic": 6,
    "huber": 7,
    "absolute": 8,
    "hinge_ridge": 9,
    "poisson_ridge": 10,
    "box_lasso": 11,
    "simplex": 12,
}


@pytest.mark.parametrize("loss", KINDS)
@pytest.mark.parametrize("phi", ["l1", "l2", "linf", "squared", "quadratic"])
def test_losses_and_penalties(loss: str, phi: str, tmp_path: Path) -> None:
    data = instance(KINDS[loss], loss, phi, ("connected", "components")[KINDS[loss] % 2], n=12)
    w, u = solve(data)
    certificate = verify.certify(data, w, u, time_limit=20.0)
    assert certificate.status == "CERTIFIED", certificate.reason
    assert verify.check(written(certificate, tmp_path)).status == "CERTIFIED"


def test_which_kinds_are_built_as_arrays() -> None:
    """The way back to texts is for what has to be: nothing else takes it."""
    for loss, seed in KINDS.items():
        data = instance(seed, loss, "l2", "connected", n=12)
        w, u = solve(data)
        found = _build.certify_arrays(data, w, u, 1e-6, search=False, clock=Clock(None))
        assert found is not None, loss
        assert found.status == "CERTIFIED", (loss, found.reason)


def test_a_point_that_is_off_is_refuted(tmp_path: Path) -> None:
    problem, solution = geometric(300)
    certificate = verify.certify(problem, solution.w + 0.01, rtol=1e-6)
    assert certificate.status == "REFUTED"
    assert certificate.better is not None
    assert "better by at least" in verify.check(written(certificate, tmp_path)).reason
    assert "better" in certificate.document


def test_infeasible_points_and_points_that_are_moved(tmp_path: Path) -> None:
    data = instance(3, "box", n=12)
    w, u = solve(data)
    far = verify.certify(data, w + 10, u)
    assert "not feasible" in far.reason
    assert "not feasible" in verify.check(written(far, tmp_path)).reason
    term = data["terms"][1]
    near = w.copy()
    near[term["node"]] = np.clip(near[term["node"]], term["lower"], term["upper"]) + 1e-10
    moved = verify.certify(data, near, u)
    assert (moved.status, moved.moved > 0) == ("CERTIFIED", True)


def test_no_search_and_no_time(tmp_path: Path) -> None:
    problem, solution = geometric(300)
    off = verify.certify(problem, solution.w + 0.01, solution.u, search=False)
    assert (off.status, "search=False" in off.reason) == ("UNPROVED", True)
    late = verify.certify(problem, solution.w, time_limit=1e-9)
    assert (late.status, "time limit" in late.reason) == ("UNPROVED", True)
    assert verify.check(written(late, tmp_path)).status == "UNPROVED"


def test_where_grids_are_too_coarse_nothing_is_solved_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A flow that suffices in floats goes to texts at once."""
    problem, solution = geometric(300)

    def none(*arguments: Any) -> None:
        raise _build.NoWitness("does not fit")

    monkeypatch.setattr(_build, "grid_flow", none)
    monkeypatch.setattr(gtv.GTVProblem, "solve", none)
    found = verify.certify(problem, solution.w, solution.u)
    assert found.status == "CERTIFIED"
    assert not isinstance(found.document, ArraysDocument)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(weights=d["weights"] * 0),
        lambda d: d["terms"][0].update(y=d["terms"][0]["y"] * np.nan),
        lambda d: d.update(edges=d["edges"][::-1]),
        lambda d: d.update(lam=-1.0),
        lambda d: d["terms"][0].update(node=d["terms"][0]["node"] + 100),
    ],
)
def test_wrong_data_are_named_as_ever(change: Callable[[Any], None]) -> None:
    data = instance(1, "squared", n=12)
    change(data)
    with pytest.raises(ValueError, match="problem data"):
        verify.certify(data, np.zeros((12, 2)))


def test_rational_points_go_by_texts() -> None:
    data = instance(1, "point", "l1", n=4)
    certificate = verify.certify(data, [[0, 0]] * 4, search=False)
    assert not isinstance(certificate.document, ArraysDocument)


def test_files_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, solution = geometric(300)
    certificate = verify.certify(problem, solution.w, solution.u)
    path = written(certificate, tmp_path)
    before = path.read_bytes()

    def pressed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("verify.certificates.arrays._archive._bytes", pressed)
    with pytest.raises(KeyboardInterrupt):
        certificate.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_many_components_have_ratios_of_their_own(tmp_path: Path) -> None:
    """Their denominators have nothing in common, and need not have."""
    rng = np.random.default_rng(0)
    graph = gtv.EmpiricalGraph(240, np.arange(240).reshape(-1, 2))
    data = gtv.generators.regression_data(rng.standard_normal((240, 2)), 4, 0.3, 1.0, rng)
    problem = gtv.GTVProblem(graph, gtv.SquaredLoss.stack(*data), "l1", 0.1)
    solution = problem.solve(rtol=1e-7)
    certificate = verify.certify(problem, solution.w, solution.u)
    assert isinstance(certificate.document, ArraysDocument)
    result = verify.check(written(certificate, tmp_path))
    assert result.status == "CERTIFIED"
    by_texts = verify.check(dict(certificate.document), budget=10**10)
    assert result.upper == by_texts.upper
    assert 0 < by_texts.lower - result.lower < 1e-60  # enclosed, on the right side


@pytest.mark.parametrize("edges", [[[0, 1], [2, 3]], []])
def test_components_that_nothing_absorbs(edges: list[Any], tmp_path: Path) -> None:
    """Of separable logistic data the only multipliers that are conserved are zero."""
    rng = np.random.default_rng(1)
    node = np.repeat(np.arange(4), 3)
    data = {
        **{"schema": "gtv-problem/1", "n_nodes": 4, "dim": 2, "lam": 0.1},
        **{"edges": np.array(edges, dtype=np.int64).reshape(-1, 2), "penalty": {"kind": "l2"}},
        "weights": np.ones(len(edges)),
        "terms": [
            {"kind": "logistic", "node": node, "X": rng.random((12, 2)) + 0.5, "y": np.ones(12)}
        ],
    }
    w = np.full((4, 2), 40.0)
    found = _build.certify_arrays(data, w, None, 1e-6, search=True, clock=Clock(20.0))
    assert found is not None
    assert found.status == "CERTIFIED"
    assert verify.check(written(found, tmp_path)).status == "CERTIFIED"
