"""Certificates of problems in pieces: what is proved is what is proved of the whole."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _plain_instances import instance
from _team_of_one import Alone, pieces_of
from _zip_files import Members, edited, setting, zipped

import gtvcvx as gtv
import verify
from verify.certificates.arrays import _limbs as limbs
from verify.certificates.arrays._convert import words_of
from verify.certificates.pieces import certify_pieces


@cache
def solved(
    loss: str, phi: str, kind: str, n: int = 12, d: int = 2
) -> tuple[gtv.GTVProblem, gtv.Solution]:
    data = instance(3, loss, phi, kind, n, d)
    problem = gtv.GTVProblem.from_data({**data, "nodes": list(range(n))})
    return problem, problem.solve(rtol=1e-8)


def certified(
    problem: gtv.GTVProblem,
    w: Any,
    u: Any,
    folder: Path,
    shards: int | Any = 3,
    rtol: float = 1e-6,
    **options: Any,
) -> tuple[verify.Result, Path]:
    whole, pieces = pieces_of(problem, w, u, folder / "shards", shards)
    path = folder / "c.gtvc"
    result = certify_pieces(Alone(pieces), whole, pieces, path, rtol, **options)
    assert result is not None
    return result, path


@pytest.mark.parametrize(
    ("loss", "phi", "kind"),
    [
        ("squared", "l2", "connected"),
        ("squared", "squared", "isolated"),
        ("few_rows", "l1", "path"),  # rows of several nodes take what arrives at a root
        ("unlabelled", "linf", "components"),
        ("point", "l2", "complete"),  # every node absorbs
        ("unlabelled", "pnorm1.5", "connected"),
        ("unlabelled", "pnorm1.1", "connected"),
        ("mixed", "l2", "path"),  # few nodes absorb, and others are routed to them
        ("ridge", "l1", "empty"),
        ("quantile", "l2", "connected"),  # multipliers at the ends of their intervals
        ("hinge_ridge", "l2", "connected"),
        ("box_lasso", "linf", "connected"),
        ("simplex", "l2", "connected"),  # w is no table of doubles
        ("every_kind", "l2", "connected"),
    ],
)
def test_as_of_the_whole(loss: str, phi: str, kind: str, tmp_path: Path) -> None:
    problem, solution = solved(loss, phi, kind)
    result, path = certified(problem, solution.w, solution.u, tmp_path)
    whole = verify.certify(problem, solution.w, solution.u)
    assert result.status == whole.status == "CERTIFIED"
    # The same data, and what is claimed is true.
    again = verify.check(path, problem.to_data())
    assert (again.status, again.upper, again.lower) == ("CERTIFIED", result.upper, result.lower)
    assert again.to_json()["upper"] == whole.upper
    assert again.to_json()["lower"] == pytest.approx(whole.lower, abs=1e-7 * max(1, whole.upper))


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_any_number_of_pieces(shards: int, tmp_path: Path) -> None:
    problem, solution = solved("squared", "l2", "components", 30)
    assert certified(problem, solution.w, solution.u, tmp_path, shards)[0].status == "CERTIFIED"


def test_pieces_that_fall_apart(tmp_path: Path) -> None:
    problem, solution = solved("squared", "l1", "path", 40)
    owners = np.random.default_rng(0).permutation(40) % 4
    result, path = certified(problem, solution.w, solution.u, tmp_path, owners)
    assert result.status == "CERTIFIED"
    assert verify.check(path, problem.to_data()).status == "CERTIFIED"


def test_labels_and_weights(tmp_path: Path) -> None:
    graph = gtv.EmpiricalGraph(4, [(0, 1), (1, 2), (2, 3)], [1.0, 2.0, 1.0], ["ä", 7, 'c"', "0"])
    losses = [
        gtv.SquaredLoss([[1.0], [2.0]], [1.0, 2.5], sample_weight=[1.0, 3.0]),
        gtv.PointLoss([2.0]),
        gtv.SquaredLoss([[1.0]], [0.0]),
        gtv.PointLoss([1.0]),
    ]
    problem = gtv.GTVProblem(graph, losses, "l2", 0.1)
    solution = problem.solve(rtol=1e-8)
    result, path = certified(problem, solution.w, solution.u, tmp_path, 2)
    assert result.status == "CERTIFIED"
    assert verify.check(path, problem.to_data()).status == "CERTIFIED"


def test_windows_bound_what_is_held_at_once(tmp_path: Path) -> None:
    problem, solution = solved("squared", "l2", "path", 300, 1)
    whole, pieces = pieces_of(problem, solution.w, solution.u, tmp_path / "shards", 3)
    files, teams = [], []
    for window in (1 << 10, 1 << 24):
        teams.append(Alone(pieces))
        files.append(tmp_path / f"{window}.gtvc")
        certify_pieces(teams[-1], whole, pieces, files[-1], window=window)
    small, large = teams
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size > 30 << 10
    assert small.largest <= 1 << 10
    assert large.largest > 4 << 10
    assert small.gathers > 50


def members_of(path: Path) -> Members:
    with zipfile.ZipFile(path) as file:
        return [(entry.filename, file.read(entry)) for entry in file.infolist()]


def test_one_changed_number_is_found(tmp_path: Path) -> None:
    problem, solution = solved("mixed", "l2", "path")
    _, path = certified(problem, solution.w, solution.u, tmp_path)
    members = members_of(path)
    assert len(members) > 10

    def status(changed: Members) -> str:
        (tmp_path / "x.gtvc").write_bytes(zipped(changed))
        return verify.check(tmp_path / "x.gtvc").status

    assert status(members) == "CERTIFIED"
    for name, raw in members[1:]:
        for at in (0, len(raw) // 2 // 8 * 8):
            # The least significant byte of a number, or in w the one of its size.
            byte = at + 6 if name == "w/0" else at
            other = bytearray(raw)
            other[byte] ^= 1 << 4
            assert status(edited(members, **{name.replace("/", "."): bytes(other)})) != "CERTIFIED"
    more = setting("claim", "lower", value=(solution.value * 2).hex())
    assert status(edited(members, manifest=more)) == "REFUTED"


def test_a_poor_flow_proves_nothing(tmp_path: Path) -> None:
    problem, solution = solved("squared", "l2", "connected")
    result, path = certified(problem, solution.w, 0.0 * solution.u, tmp_path)
    assert result.status == verify.check(path).status == "UNPROVED"
    assert result.lower is not None


def test_a_point_that_breaks_a_box_is_refuted(tmp_path: Path) -> None:
    problem, solution = solved("box_lasso", "linf", "connected")
    result, _ = certified(problem, solution.w + 9.0, solution.u, tmp_path)
    assert (result.status, result.reason[:20]) == ("REFUTED", "w is not feasible: n")


def test_without_a_witness_the_document_is_unproved(tmp_path: Path) -> None:
    problem, solution = solved("squared", "l2", "connected")
    result, path = certified(problem, solution.w, solution.u * 1e250, tmp_path)
    assert result.status == verify.check(path).status == "UNPROVED"


def test_what_has_no_form_is_refused_by_name(tmp_path: Path) -> None:
    problem, solution = solved("squared", "quadratic", "connected")
    with pytest.raises(ValueError, match="shard 0: these losses, this penalty or these data"):
        certified(problem, solution.w, solution.u, tmp_path)
    problem, solution = solved("squared", "l2", "connected")
    with pytest.raises(ValueError, match="rtol must be finite"):
        certified(problem, solution.w, solution.u, tmp_path, rtol=np.nan)
    assert not (tmp_path / "c.gtvc").exists()


def test_sums_of_long_integers() -> None:
    rng = np.random.default_rng(0)
    some = [int(x) for x in rng.integers(-(2**62), 2**62, 40)]
    values = [x * y for x in some for y in (1, -1, 2**63, -(2**65), 0)] + [-1, 2**64 - 1, 1 - 2**64]
    a, b = words_of(values, 3), words_of(values[::-1], 3)
    sums = limbs.plus(a, b)
    assert [limbs.integer(x) for x in sums] == [
        x + y for x, y in zip(values, values[::-1], strict=True)
    ]
    assert [limbs.integer(x) for x in limbs.negated(a)] == [-x for x in values]
