"""Every loss and penalty has the same answer as an array document and as a JSON document."""

from __future__ import annotations

import copy
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _plain_instances import KINKED, LOSSES, PENALTIES, instance, solve
from _zip_files import as_archive, edited, members_of, zipped

import verify
from verify.certificates.arrays._convert import from_document
from verify.kernel import numbers
from verify.kernel.data import canonical, digest
from verify.kernel.large import archive, content, edges, terms
from verify.kernel.result import Result

#: Both enclose roots within 2^-64 of themselves, in parts that differ.
ENCLOSED = Fraction(1, 1 << 60)


def assert_same(one: Result, other: Result) -> None:
    assert (one.status, one.warning, one.rtol) == (other.status, other.warning, other.rtol)
    assert one.reason.split("[")[0].split("edge")[0] == other.reason.split("[")[0].split("edge")[0]
    for name in ("upper", "lower", "distance_squared"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        if a is not None:
            assert abs(a - b) <= ENCLOSED * max(1, abs(a)), name


def both(document: dict[str, Any], folder: Path, **options: Any) -> tuple[Result, Result]:
    path = as_archive(document, folder / "x.gtvc")
    return verify.check(document, **options), verify.check(path, **options)


CASES = [
    (loss, PENALTIES[k % len(PENALTIES)], 1 + k % 3) for k, loss in enumerate(LOSSES + KINKED)
] + [("everything", phi, 2) for phi in PENALTIES]


@pytest.mark.parametrize(("loss", "phi", "d"), CASES)
def test_losses_and_penalties(loss: str, phi: str, d: int, tmp_path: Path) -> None:
    data = instance(5, loss, phi, n=8, d=d)
    w, u = solve(data)
    document = dict(verify.certify(data, w, u).document)
    one, other = both(document, tmp_path)
    assert one.status == "CERTIFIED"
    assert_same(one, other)
    assert_same(*both(document, tmp_path, rtol=0.0))
    for key in ("w", "dual"):  # the same, damaged
        bad = copy.deepcopy(document)
        table = bad["w"] if key == "w" else bad["dual"]["r"][0]
        row = table[0] if isinstance(table[0], list) else table
        row[0] = "0x1.8p+40"
        assert_same(*both(bad, tmp_path))


def test_what_has_no_rule(tmp_path: Path) -> None:
    data = {**instance(1, "point"), "penalty": {"kind": "opaque", "name": "é"}}
    one, other = both(dict(verify.certify(data, np.zeros((12, 2))).document), tmp_path)
    assert (one.status, other.status) == ("UNPROVED", "UNPROVED")
    assert one.reason == other.reason


def test_an_opaque_loss(tmp_path: Path) -> None:
    data = instance(1, "point", n=4)
    data["terms"].append({"kind": "opaque", "node": [1], "name": "mine"})
    assert_same(*both(dict(verify.certify(data, np.zeros((4, 2))).document), tmp_path))


def test_infeasible_points_better_points_and_claims(tmp_path: Path) -> None:
    data = instance(3, "box", n=6)
    w, u = solve(data)
    document = json.loads(json.dumps(dict(verify.certify(data, w, u).document)))
    out = {**document, "w": [["0x1p+9", "0x0p+0"]] * 6}
    one, other = both(out, tmp_path)
    assert "not feasible" in one.reason
    assert_same(one, other)
    worse = {**document, "better": document["w"], "w": [["0x0p+0"] * 2] * 6}
    one, other = both({**worse, "claim": {"rtol": 0, "upper": None, "lower": None}}, tmp_path)
    assert "is better by at least" in one.reason
    assert_same(one, other)
    for claim in ({"upper": "-0x1p+9", "lower": None}, {"upper": None, "lower": "0x1p+9"}):
        one, other = both({**document, "claim": {"rtol": 0, **claim}}, tmp_path)
        assert one.reason.startswith("false document")
        assert_same(one, other)
    assert_same(*both({**document, "dual": None}, tmp_path))


@pytest.mark.parametrize("phi", PENALTIES)
@pytest.mark.parametrize("d", [1, 3])
def test_flows_above_the_capacity(phi: str, d: int, tmp_path: Path) -> None:
    """Conserved flows, in ratios and not, a little above the capacity and far above it."""
    data = instance(3, "point", phi, n=6, d=d)
    document = dict(verify.certify(data, *solve(data)).document)
    for factor in (Fraction(1 << 20), Fraction(4), Fraction(10, 3), Fraction(1)):
        dual = {"u": _times(document["dual"]["u"], factor),
                "r": [_times(document["dual"]["r"][0], factor)]}  # fmt: skip
        one, other = both({**document, "dual": dual}, tmp_path)
        assert_same(one, other)
        above = phi not in ("squared", "quadratic") and factor == 1 << 20
        assert ("above its capacity" in one.reason) == above or 1 < factor < 10


def _times(rows: Any, factor: Fraction) -> Any:
    return [[_text(factor * _exact(x)) for x in row] for row in rows]


def _exact(text: str) -> Fraction:
    (v,), k = numbers.scaled([text])
    return Fraction(v) / (1 << k)


def _text(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


@pytest.mark.parametrize(
    ("phi", "full"),
    [("l2", (Fraction(3, 5), Fraction(-4, 5))), ("linf", (Fraction(-1, 3), Fraction(2, 3))),
     ("l1", (Fraction(1, 3), Fraction(-1))), ("l2", (Fraction(7, 25), Fraction(24, 25)))],
)  # fmt: skip
@pytest.mark.parametrize("weight", [1.0, 0.375])
def test_flows_of_ratios_at_the_capacity(
    phi: str, full: tuple[Fraction, Fraction], weight: float, tmp_path: Path
) -> None:
    """What is at it to the last digit is below, and what is above it by any is refused."""
    data = {
        **{"schema": "gtv-problem/1", "n_nodes": 3, "dim": 2, "edges": [[0, 1], [1, 2]]},
        **{"weights": [weight, 1.0], "lam": 2.0, "penalty": {"kind": phi}},
        "terms": [{"kind": "point", "node": [0, 1, 2], "a": [[1.0, 2.0], [0.0, 5.0], [0.5, 0.5]]}],
    }
    for more in (Fraction(0), Fraction(1, 3 * 10**30), Fraction(1), Fraction(-1, 3)):
        row = [2 * Fraction(weight) * (1 + more) * x for x in full]
        u = [[_text(x) for x in row], ["0x1p-3", "0x0p+0"]]
        r = [[_text(-x) for x in row],
             [_text(row[0] - Fraction(1, 8)), _text(row[1])],
             ["0x1p-3", "0x0p+0"]]  # fmt: skip
        document = {
            **{"schema": "gtv-certificate/1", "sha256": digest(canonical(data))},
            **{"data": canonical(data), "claim": {"rtol": 0, "upper": None, "lower": None}},
            **{"w": [["0x0p+0"] * 2] * 3, "dual": {"u": u, "r": [r]}},
        }
        one, other = both(document, tmp_path)
        assert_same(one, other)
        layered = verify.check(_written(_in_layers(members_of(document), row), tmp_path))
        for found in (one, other, layered):
            assert ("edge 0 [0, 1] is above its capacity" in found.reason) == (more > 0)
            assert (found.lower is not None) == (more <= 0)


def _in_layers(members: Any, row: list[Fraction]) -> Any:
    """Write the flow on the first edge as a multiple of 2^-20 and a ratio beside it."""
    rough = [round(x * (1 << 20)) for x in row]
    rest = [_text(x - Fraction(y, 1 << 20)) for x, y in zip(row, rough, strict=True)]
    layers = [
        {"type": "int", "words": 1, "exponent": 20},
        {"type": "ratio", "rows": [0], "values": [rest]},
    ]
    whole = np.array([rough, [1 << 17, 0]], "<i8")

    def change(manifest: dict[str, Any]) -> None:
        manifest["dual"]["u"] = layers

    members = [pair for pair in edited(members, manifest=change) if not pair[0].startswith("u/")]
    names = [name for name, _ in members]
    at = next((i for i, name in enumerate(names) if name.startswith("r/")), len(members))
    return [*members[:at], ("u/0", whole.tobytes()), *members[at:]]


def test_a_flow_outside_the_range_of_a_singular_penalty(tmp_path: Path) -> None:
    data = instance(3, "point", "quadratic", n=6)
    data["penalty"]["Q"] = np.diag([1.0, 0.0])
    document = dict(verify.certify(data, np.zeros((6, 2)), search=False).document)
    for second, status in ((1, "REFUTED"), (0, "UNPROVED")):
        u = [[1, second if e == 0 else 0] for e in range(len(data["edges"]))]
        total = np.zeros((6, 2), dtype=int)
        for (i, j), row in zip(data["edges"].tolist(), u, strict=True):
            total[i] += row
            total[j] -= row
        r = [[int(-total[i][c]) for c in range(2)] for i in range(6)]
        one, other = both({**document, "dual": {"u": u, "r": [r]}}, tmp_path)
        assert_same(one, other)
        assert one.status in (status, "UNPROVED")  # without a witness of the penalty, if it has one


def test_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an array is cut has no influence; rows of one node stay together."""
    data = instance(5, "every_kind", "linf", n=8)
    document = dict(verify.certify(data, *solve(data)).document)
    monkeypatch.setattr(terms, "ROWS_AT_ONCE", 3)
    monkeypatch.setattr(edges, "PIECE", 40)
    monkeypatch.setattr(content, "PIECE", 3)
    monkeypatch.setattr(archive, "PIECE", 7)
    assert_same(*both(document, tmp_path))
    path = tmp_path / "deflated.gtvc"
    path.write_bytes(zipped(members_of(document), deflate=True))
    assert_same(verify.check(document), verify.check(path))


def test_a_rational_solution_has_gap_zero(tmp_path: Path) -> None:
    data = {
        **{"schema": "gtv-problem/1", "n_nodes": 3, "dim": 1, "edges": [[0, 1], [1, 2]]},
        **{"weights": [1.0, 1.0], "lam": 0.5, "penalty": {"kind": "l1"}, "nodes": ["a", "ß", 3]},
        "terms": [{"kind": "point", "node": [0, 1, 2], "a": [[0.0], [1.0], [5.0]]}],
    }
    w = [[Fraction(1, 2)], [Fraction(1, 2)], [Fraction(19, 4)]]
    u = [[Fraction(-1)], [Fraction(-1, 2)]]
    document = dict(verify.certify(data, w, u, rtol=0).document)
    one, other = both(document, tmp_path, rtol=0)
    assert one.upper == other.upper
    assert one.lower == other.lower
    assert_same(one, other)


def test_ratios_among_flows_and_multipliers(tmp_path: Path) -> None:
    data = {
        **{"schema": "gtv-problem/1", "n_nodes": 2, "dim": 1, "edges": [[0, 1]]},
        **{"weights": [1.0], "lam": 4.0, "penalty": {"kind": "l2"}},
        "terms": [{"kind": "squared", "node": [0, 1], "X": [[3.0], [7.0]], "y": [1.0, 2.0]}],
    }
    document = {
        **{"schema": "gtv-certificate/1", "sha256": digest(canonical(data)), "data": data},
        **{"claim": {"rtol": 0, "upper": None, "lower": None}, "w": [["0x1/0x3"], ["0x2/0x7"]]},
        "dual": {"u": [["0x1/0xb"]], "r": [["-0x1/0x21", "0x1/0x4d"]]},
    }
    layers = from_document({**document, "data": canonical(data)}).manifest["dual"]
    assert [x["type"] for x in (*layers["u"], *layers["r"][0])] == ["ratio", "ratio"]
    one, other = both({**document, "data": canonical(data)}, tmp_path)
    assert one.lower is not None
    assert (one.upper, one.lower) == (other.upper, other.lower)


def test_data_given_separately(tmp_path: Path) -> None:
    data = instance(2, "every_kind", "linf", n=6)
    data["nodes"] = ["ä", "b", 7, "d", "e", "f"]
    path = as_archive(dict(verify.certify(data, *solve(data)).document), tmp_path / "x.gtvc")
    assert verify.check(path, data).status == "CERTIFIED"
    data["lam"] *= 2
    assert verify.check(path, data).reason.startswith("false document: the SHA-256")
    assert verify.check(path, {"schema": "x"}).reason.startswith("malformed")


def test_layers_add_up(tmp_path: Path) -> None:
    """Doubles, short and long integers and sparse rows may be mixed as one likes."""
    data = instance(4, "point", "l1", n=6)
    w, u = solve(data)
    members = members_of(dict(verify.certify(data, w, u).document))
    expected = verify.check(_written(members, tmp_path))
    point = np.frombuffer(dict(members)["w/0"], dtype="<f8").reshape(6, 2)
    whole = np.floor(point * 2.0**20).astype("<i8")
    rest = point - whole * 2.0**-20
    long = np.stack([(rest[1:3] * 2.0**70).astype("<i8"), np.zeros((2, 2), "<i8")], axis=2)
    rest[1:3] -= (rest[1:3] * 2.0**70).astype("<i8") * 2.0**-70
    layers = [
        {"type": "int", "words": 1, "exponent": 20},
        {"type": "int", "words": 2, "exponent": 70, "rows": 2},
        {"type": "float64"},
        {"type": "ratio", "rows": [5], "values": [["0x1/0x3", 0]]},
        {"type": "ratio", "rows": [4, 5], "values": [[0, 0], ["-0x1/0x3", 0]]},
    ]
    arrays = [("w/0", whole.tobytes()), ("w/1/rows", np.array([1, 2], "<u4").tobytes()),
              ("w/1", long.tobytes()), ("w/2", rest.tobytes())]  # fmt: skip
    at = [name for name, _ in members].index("w/0")
    members[at : at + 1] = arrays
    members = edited(members, manifest=lambda m: m.update(w=layers))
    found = verify.check(_written(members, tmp_path))
    assert (found.status, found.upper) == ("CERTIFIED", expected.upper)


def _written(members: Any, folder: Path, **options: Any) -> Path:
    path = folder / "y.gtvc"
    path.write_bytes(zipped(members, **options))
    return path


def test_deflated_members_are_the_same_document(tmp_path: Path) -> None:
    data = instance(4, "squared", "l1", n=6)
    document = dict(verify.certify(data, *solve(data)).document)
    assert_same(
        verify.check(document), verify.check(_written(members_of(document), tmp_path, deflate=True))
    )
