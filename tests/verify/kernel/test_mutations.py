"""Seeded mutations of valid certificates: every kind is refused, and none makes a traceback."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from _plain_instances import document

import verify
from verify.kernel.data import canonical, digest
from verify.kernel.numbers import scaled, unit

Doc = dict[str, Any]
Mutation = Callable[[Doc, random.Random], None]


def _value(text: str) -> Fraction:
    (v,), k = scaled([text])
    return v * unit(k)


def _text(x: Fraction) -> str:
    return f"{x.numerator:#x}/{x.denominator:#x}"


def _add(text: str, x: Fraction | int) -> str:
    return _text(_value(text) + x)


def _ulp(text: str, direction: int = 1) -> str:
    x = float.fromhex(text)
    return (x + direction * max(abs(x), 1e-300) * 2.0**-52).hex()


def _term(doc: Doc, kind: str) -> tuple[int, Doc]:
    return next((t, x) for t, x in enumerate(doc["data"]["terms"]) if x["kind"] == kind)


def _rehash(doc: Doc) -> None:
    doc["sha256"] = digest(canonical(doc["data"]))


def _first_flow(doc: Doc) -> list[str]:
    """Return the flow with the largest entry."""
    return max(doc["dual"]["u"], key=lambda row: max(abs(_value(x)) for x in row))


MUTATIONS: dict[str, Mutation] = {}


def mutation(function: Callable[[Doc, random.Random], None]) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def _assign(name: str, *path: Any, value: Any) -> None:
    """Register the mutation that sets the entry at a path to a value."""

    def apply(doc: Doc, rng: random.Random) -> None:
        target: Any = doc
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    MUTATIONS[name] = apply


for _bad in ("nan", "inf", "-inf", float("nan"), float("inf"), None, True, "0.5", [], "0x1p99999"):
    _assign(f"w_is_{_bad!r}", "w", 0, 0, value=_bad)
    _assign(f"flow_is_{_bad!r}", "dual", "u", 0, 0, value=_bad)
    _assign(f"multiplier_is_{_bad!r}", "dual", "r", 0, 0, value=_bad)
    _assign(f"lam_is_{_bad!r}", "data", "lam", value=_bad)
for _path in (("schema",), ("data", "schema"), ("sha256",), ("data", "penalty", "kind")):
    _assign("unknown_" + "_".join(_path), *_path, value="gtv-other/7")
_assign("terms_kind_is_a_list", "data", "terms", 0, "kind", value=["squared"])
_assign("penalty_kind_is_a_dict", "data", "penalty", value={"kind": {}})
_assign("claim_is_a_number", "claim", value=3)
_assign("rtol_is_negative", "claim", "rtol", value="-0x1p-20")
_assign("rtol_is_text", "claim", "rtol", value="small")
_assign("upper_is_text", "claim", "upper", value="low")
_assign("n_nodes_is_bool", "data", "n_nodes", value=True)
_assign("n_nodes_is_huge", "data", "n_nodes", value=2**50)
_assign("n_nodes_is_zero", "data", "n_nodes", value=0)
_assign("dim_is_three", "data", "dim", value=3)
_assign("dual_is_a_list", "dual", value=[])
_assign("unknown_key", "extra", value=1)
_assign("unknown_data_key", "data", "extra", value=1)
_assign("data_is_a_list", "data", value=[])


@mutation
def negative_weight(doc: Doc, rng: random.Random) -> None:
    doc["data"]["weights"][0] = "-" + doc["data"]["weights"][0]
    doc["sha256"] = digest(doc["data"])


@mutation
def zero_weight(doc: Doc, rng: random.Random) -> None:
    doc["data"]["weights"][0] = "0x0.0p+0"
    doc["sha256"] = digest(doc["data"])


@mutation
def zero_lam(doc: Doc, rng: random.Random) -> None:
    doc["data"]["lam"] = "0x0.0p+0"
    doc["sha256"] = digest(doc["data"])


@mutation
def negative_lam(doc: Doc, rng: random.Random) -> None:
    doc["data"]["lam"] = "-" + doc["data"]["lam"]
    doc["sha256"] = digest(doc["data"])


@mutation
def self_loop(doc: Doc, rng: random.Random) -> None:
    doc["data"]["edges"][0][1] = doc["data"]["edges"][0][0]
    doc["sha256"] = digest(doc["data"])


@mutation
def duplicate_edge(doc: Doc, rng: random.Random) -> None:
    doc["data"]["edges"][1] = doc["data"]["edges"][0]
    doc["sha256"] = digest(doc["data"])


@mutation
def edge_out_of_range(doc: Doc, rng: random.Random) -> None:
    doc["data"]["edges"][-1][1] = doc["data"]["n_nodes"]
    doc["sha256"] = digest(doc["data"])


@mutation
def reversed_edge(doc: Doc, rng: random.Random) -> None:
    doc["data"]["edges"][0].reverse()
    doc["sha256"] = digest(doc["data"])


@mutation
def edges_out_of_order(doc: Doc, rng: random.Random) -> None:
    for rows in (doc["data"]["edges"], doc["data"]["weights"], doc["dual"]["u"]):
        rows[0], rows[1] = rows[1], rows[0]
    doc["sha256"] = digest(doc["data"])


@mutation
def weights_permuted(doc: Doc, rng: random.Random) -> None:
    doc["data"]["weights"].reverse()


@mutation
def weights_permuted_and_rehashed(doc: Doc, rng: random.Random) -> None:
    doc["data"]["weights"].reverse()
    _rehash(doc)


@mutation
def lam_changed(doc: Doc, rng: random.Random) -> None:
    doc["data"]["lam"] = _ulp(doc["data"]["lam"])


@mutation
def lam_doubled_and_rehashed(doc: Doc, rng: random.Random) -> None:
    doc["data"]["lam"] = (2 * float.fromhex(doc["data"]["lam"])).hex()
    _rehash(doc)


@mutation
def lam_halved_and_rehashed(doc: Doc, rng: random.Random) -> None:
    doc["data"]["lam"] = (0.5 * float.fromhex(doc["data"]["lam"])).hex()
    _rehash(doc)


@mutation
def data_row_changed(doc: Doc, rng: random.Random) -> None:
    x = _term(doc, "squared")[1]["X"]
    x[0][0] = _ulp(x[0][0])


@mutation
def data_row_changed_and_rehashed(doc: Doc, rng: random.Random) -> None:
    x = _term(doc, "squared")[1]["X"]
    x[0][0] = _ulp(x[0][0])
    _rehash(doc)


@mutation
def target_changed_and_rehashed(doc: Doc, rng: random.Random) -> None:
    y = _term(doc, "squared")[1]["y"]
    y[0] = (float.fromhex(y[0]) + 0.25).hex()
    _rehash(doc)


@mutation
def label_changed_and_rehashed(doc: Doc, rng: random.Random) -> None:
    y = _term(doc, "logistic")[1]["y"]
    y[0] = (1 - float.fromhex(y[0])).hex()
    _rehash(doc)


@mutation
def label_is_a_half(doc: Doc, rng: random.Random) -> None:
    _term(doc, "logistic")[1]["y"][0] = (0.5).hex()
    doc["sha256"] = digest(doc["data"])


@mutation
def node_order_broken(doc: Doc, rng: random.Random) -> None:
    _term(doc, "squared")[1]["node"].reverse()
    doc["sha256"] = digest(doc["data"])


@mutation
def point_twice_at_a_node(doc: Doc, rng: random.Random) -> None:
    node = _term(doc, "point")[1]["node"]
    node[1] = node[0]
    doc["sha256"] = digest(doc["data"])


@mutation
def mu_is_zero(doc: Doc, rng: random.Random) -> None:
    _term(doc, "ridge")[1]["mu"][0] = "0x0.0p+0"
    doc["sha256"] = digest(doc["data"])


@mutation
def kappa_shrunk_and_rehashed(doc: Doc, rng: random.Random) -> None:
    kappa = _term(doc, "l1")[1]["kappa"]
    kappa[:] = [(float.fromhex(x) / 64).hex() for x in kappa]
    _rehash(doc)


@mutation
def row_dropped(doc: Doc, rng: random.Random) -> None:
    term = _term(doc, "squared")[1]
    for key in ("node", "X", "y"):
        term[key].pop()
    _rehash(doc)


@mutation
def row_dropped_with_its_multiplier(doc: Doc, rng: random.Random) -> None:
    t, term = _term(doc, "squared")
    for column in (term["node"], term["X"], term["y"], doc["dual"]["r"][t]):
        column.pop()
    _rehash(doc)


@mutation
def term_dropped(doc: Doc, rng: random.Random) -> None:
    t, _ = _term(doc, "point")
    del doc["data"]["terms"][t], doc["dual"]["r"][t]
    _rehash(doc)


@mutation
def terms_swapped(doc: Doc, rng: random.Random) -> None:
    doc["data"]["terms"].reverse()
    _rehash(doc)


@mutation
def edge_dropped(doc: Doc, rng: random.Random) -> None:
    for rows in (doc["data"]["edges"], doc["data"]["weights"], doc["dual"]["u"]):
        rows.pop(0)


@mutation
def edge_dropped_and_rehashed(doc: Doc, rng: random.Random) -> None:
    edge_dropped(doc, rng)
    _rehash(doc)


@mutation
def node_dropped_from_w(doc: Doc, rng: random.Random) -> None:
    doc["w"].pop()


@mutation
def last_node_dropped(doc: Doc, rng: random.Random) -> None:
    doc["w"].pop()
    doc["data"]["n_nodes"] -= 1
    doc["sha256"] = digest(doc["data"])


@mutation
def coordinate_dropped(doc: Doc, rng: random.Random) -> None:
    doc["w"][0].pop()


@mutation
def flow_row_dropped(doc: Doc, rng: random.Random) -> None:
    doc["dual"]["u"].pop()


@mutation
def flow_entry_dropped(doc: Doc, rng: random.Random) -> None:
    doc["dual"]["u"][0].pop()


@mutation
def multiplier_dropped(doc: Doc, rng: random.Random) -> None:
    doc["dual"]["r"][0].pop()


@mutation
def multipliers_of_a_term_dropped(doc: Doc, rng: random.Random) -> None:
    doc["dual"]["r"].pop()


@mutation
def flow_sign_flipped(doc: Doc, rng: random.Random) -> None:
    row = _first_flow(doc)
    row[:] = [_text(-_value(x)) for x in row]


@mutation
def all_signs_flipped(doc: Doc, rng: random.Random) -> None:
    doc["dual"]["u"] = [[_text(-_value(x)) for x in row] for row in doc["dual"]["u"]]


@mutation
def flow_moved_by_2_to_the_minus_900(doc: Doc, rng: random.Random) -> None:
    row = rng.choice(doc["dual"]["u"])
    row[0] = _add(row[0], Fraction(1, 2**900))


@mutation
def multiplier_moved_by_2_to_the_minus_900(doc: Doc, rng: random.Random) -> None:
    r = doc["dual"]["r"][_term(doc, "squared")[0]]
    r[-1] = _add(r[-1], Fraction(1, 2**900))


@mutation
def multipliers_scaled(doc: Doc, rng: random.Random) -> None:
    r = doc["dual"]["r"][_term(doc, "squared")[0]]
    r[:] = [_text(_value(x) * Fraction(999, 1000)) for x in r]


@mutation
def flows_swapped(doc: Doc, rng: random.Random) -> None:
    u = doc["dual"]["u"]
    u[0], u[1] = u[1], u[0]


@mutation
def dual_scaled_to_nothing(doc: Doc, rng: random.Random) -> None:
    doc["dual"]["u"] = [["0x0p+0"] * len(row) for row in doc["dual"]["u"]]
    doc["dual"]["r"] = [
        [["0x0p+0"] * len(v) if isinstance(v, list) else "0x0p+0" for v in r]
        for r in doc["dual"]["r"]
    ]


@mutation
def dual_missing(doc: Doc, rng: random.Random) -> None:
    doc["dual"] = None


@mutation
def witness_of_another_problem(doc: Doc, rng: random.Random) -> None:
    other = document(8, "everything", "l2")
    doc["dual"] = other["dual"]


@mutation
def document_of_another_problem(doc: Doc, rng: random.Random) -> None:
    other = document(8, "everything", "l2")
    doc["data"], doc["sha256"] = other["data"], other["sha256"]


@mutation
def worse_point(doc: Doc, rng: random.Random) -> None:
    doc["w"][0][0] = (_value(doc["w"][0][0]) + 1).__float__().hex()


@mutation
def points_permuted(doc: Doc, rng: random.Random) -> None:
    doc["w"].reverse()


@mutation
def point_negated(doc: Doc, rng: random.Random) -> None:
    doc["w"] = [[(-float.fromhex(x)).hex() for x in row] for row in doc["w"]]


@mutation
def upper_too_low(doc: Doc, rng: random.Random) -> None:
    doc["claim"]["upper"] = _ulp(doc["claim"]["upper"], -1)


@mutation
def lower_too_high(doc: Doc, rng: random.Random) -> None:
    doc["claim"]["lower"] = _ulp(doc["claim"]["lower"])


@mutation
def rtol_zero(doc: Doc, rng: random.Random) -> None:
    doc["claim"]["rtol"] = "0x0.0p+0"


@mutation
def hash_of_other_data(doc: Doc, rng: random.Random) -> None:
    doc["sha256"] = digest(canonical({**doc["data"], "lam": 1.0}))


@mutation
def sixty_bit_float_in_the_data(doc: Doc, rng: random.Random) -> None:
    doc["data"]["lam"] = "0x1.3333333333333333p-2"


@mutation
def penalty_replaced(doc: Doc, rng: random.Random) -> None:
    doc["data"]["penalty"] = {"kind": "l1"}
    _rehash(doc)


@mutation
def penalty_replaced_by_linf(doc: Doc, rng: random.Random) -> None:
    doc["data"]["penalty"] = {"kind": "linf"}
    _rehash(doc)


@mutation
def opaque_loss(doc: Doc, rng: random.Random) -> None:
    doc["data"]["terms"].append({"kind": "opaque", "node": [0], "name": "huber"})
    _rehash(doc)


@mutation
def labels_repeat(doc: Doc, rng: random.Random) -> None:
    doc["data"]["nodes"] = ["a"] * doc["data"]["n_nodes"]
    doc["sha256"] = digest(doc["data"])


@pytest.fixture(params=[7, 9])
def valid(request: pytest.FixtureRequest) -> Doc:
    return document(request.param, "everything", "l2")


def test_the_originals_are_certified(valid: Doc) -> None:
    assert verify.check(valid).status == "CERTIFIED"


def test_there_are_at_least_fifty_kinds() -> None:
    assert len(MUTATIONS) >= 50


TRUE_BUT_NOT_ENOUGH = {"rtol_zero", "opaque_loss"}  # answered UNPROVED; all others are false
ASKED = {"rtol_zero": 0.0}  # what the document asks for decides nothing


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_refused(valid: Doc, name: str) -> None:
    MUTATIONS[name](valid, random.Random(name))
    result = verify.check(valid, rtol=ASKED.get(name, 1e-6))
    expected = "UNPROVED" if name in TRUE_BUT_NOT_ENOUGH else "REFUTED"
    assert (result.status, name) == (expected, name), result.reason


@pytest.mark.parametrize("phi", ["l1", "l2", "linf"])
def test_flow_above_capacity_by_one_part_in_2_to_the_900(phi: str) -> None:
    """A circulation keeps conservation; only the capacity can refuse it."""
    cap, excess = Fraction(1, 2), Fraction(1, 2**900)
    doc = {
        "schema": "gtv-certificate/1",
        "data": {
            "schema": "gtv-problem/1", "n_nodes": 3, "dim": 1, "edges": [[0, 1], [0, 2], [1, 2]],
            "weights": [1.0, 1.0, 1.0], "lam": 0.5, "penalty": {"kind": phi}, "terms": [],
        },
        "claim": {"rtol": 0.0, "upper": 0.0, "lower": 0.0},
        "w": [[0.0], [0.0], [0.0]],
        "dual": {"u": [[_text(cap)], [_text(-cap)], [_text(cap)]], "r": []},
    }  # fmt: skip
    _rehash(doc)
    assert verify.check(doc).status == "CERTIFIED"
    doc["dual"]["u"] = [[_text(s * (cap + excess))] for s in (1, -1, 1)]  # type: ignore[index]
    result = verify.check(doc)
    assert result.status == "REFUTED"
    assert "above its capacity" in result.reason


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.7, 0.99])
def test_truncated_file_is_refused(valid: Doc, cut: float, tmp_path: Any) -> None:
    text = json.dumps(valid)
    path = tmp_path / "certificate.json"
    path.write_text(text[: int(cut * len(text))])
    assert verify.check(path).status == "REFUTED"


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "\ud800", "{}", "3", "null", "NaN", '{"w": 1e999}']
)
def test_files_that_are_no_certificates(text: str, tmp_path: Any) -> None:
    path = tmp_path / "certificate.json"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert verify.check(path).status == "REFUTED"
