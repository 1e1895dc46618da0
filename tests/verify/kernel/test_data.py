"""Gate of the kernel: what each kind of loss term may contain, and its canonical form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from _plain_instances import instance, solve

import verify
from verify.kernel.data import TERMS, canonical, digest
from verify.kernel.verdict import Verdict

INF = math.inf
Data = dict[str, Any]


def _good(kind: str) -> Data:
    """Return a well-formed term of a kind in two dimensions."""
    term: Data = {"kind": kind, "node": [0, 1]}
    values = {
        "X": [[1.0, 2.0], [0.5, -1.0]], "y": [1.0, 1.0], "a": [[1.0, 2.0], [3.0, 4.0]],
        "delta": [0.5, 1.0], "level": [0.5, 0.25], "mu": [1.0, 2.0], "kappa": [1.0, 2.0],
        "lower": [[-INF, 0.0], [1.0, -2.0]], "upper": [[INF, 0.0], [2.0, INF]],
        "total": [1.0, 2.0],
    }  # fmt: skip
    if kind == "multinomial":  # two classes of one feature
        values["X"] = [[1.0], [0.5]]
    return {**term, **{key: values[key] for key in TERMS[kind]}}


def _data(*terms: Data) -> Data:
    return {
        "schema": "gtv-problem/1", "n_nodes": 3, "dim": 2, "edges": [], "weights": [], "lam": 1.0,
        "penalty": {"kind": "l2"}, "terms": list(terms),
    }  # fmt: skip


@pytest.mark.parametrize("kind", TERMS)
def test_canonical_form_is_a_fixed_point_with_one_hash(kind: str) -> None:
    plain = canonical(_data(_good(kind)))
    assert canonical(plain) == plain
    term = {k: np.array(v) if k != "kind" else v for k, v in _good(kind).items()}
    assert digest(canonical(_data(term))) == digest(plain)


@pytest.mark.parametrize("kind", TERMS)
def test_missing_and_unknown_arrays_are_named(kind: str) -> None:
    for key in TERMS[kind]:
        term = _good(kind)
        del term[key]
        with pytest.raises(Verdict, match=rf"terms\[0\]: missing \['{key}'\]"):
            canonical(_data(term))
    with pytest.raises(Verdict, match=r"terms\[0\]: unknown \['extra'\]"):
        canonical(_data({**_good(kind), "extra": [1.0, 1.0]}))


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("bad", [math.nan, INF, -INF, "nan", "0x1p0", None, True, [1.0]])
def test_bad_numbers_are_named(kind: str, bad: Any) -> None:
    for key, wide in TERMS[kind].items():
        if kind == "box" and bad == (INF if key == "upper" else -INF):
            continue  # no bound
        term = _good(kind)
        target = term[key][1] if wide else term[key]
        target[-1] = bad
        with pytest.raises(Verdict, match=rf"^malformed: terms\[0\](\.{key}|: entry 1)"):
            canonical(_data(term))


@pytest.mark.parametrize(
    ("kind", "key", "value", "words"),
    [
        ("logistic", "y", [1.0, 0.5], "y: entry 1 must be 0 or 1"),
        ("logistic", "y", [-1.0, 1.0], "y: entry 0 must be 0 or 1"),
        ("hinge", "y", [1.0, 0.0], "y: entry 1 must be -1 or 1"),
        ("poisson", "y", [1.0, -1e-300], "y: entry 1 must not be negative"),
        ("huber", "delta", [0.0, 1.0], "delta: entry 0 must be positive"),
        ("huber", "delta", [1.0, -1.0], "delta: entry 1 must be positive"),
        ("pseudohuber", "delta", [1.0, 0.0], "delta: entry 1 must be positive"),
        ("pseudohuber", "delta", [1.0], "delta must be a list of length 2"),
        ("quantile", "level", [0.0, 0.5], "level: entry 0 must be between 0 and 1"),
        ("quantile", "level", [0.5, 1.0], "level: entry 1 must be between 0 and 1"),
        ("ridge", "mu", [1.0, 0.0], "mu: entry 1 must be positive"),
        ("ridge", "mu", [[0.0, 0.0], [1.0, -1.0]], "mu: entry 1 must not be negative"),
        ("ridge", "mu", [[0.0, 0.0], 1.0], "mu must be a list of length 2"),
        ("ridge", "mu", [[0.0], [1.0]], "mu must be a list of length 2"),
        ("ridge", "mu", [1.0, [1.0, 1.0]], "mu: expected a finite double"),
        ("l1", "kappa", [-1.0, 1.0], "kappa: entry 0 must be positive"),
        ("l1", "kappa", [[1.0, 1.0], [-1e-9, 0.0]], "kappa: entry 1 must not be negative"),
        ("simplex", "total", [0.0, 1.0], "total: entry 0 must be positive"),
        ("box", "lower", [[0.0, 1e-300], [1.0, -2.0]], "entry 0 needs lower <= upper"),
        ("box", "lower", [[INF, 0.0], [1.0, -2.0]], "entry 0 needs lower <= upper, got inf, inf"),
        ("box", "upper", [[-INF, 0.0], [2.0, INF]], "entry 0 needs lower <= upper, got -inf"),
        ("box", "lower", [["-Infinity", 0.0], [1.0, -2.0]], "lower: '-Infinity' is not the canon"),
        ("box", "node", [1, 1], "node must be increasing"),
        ("simplex", "node", [1, 0], "node must be increasing"),
        ("huber", "node", [1, 0], "node must be nondecreasing"),
        ("huber", "delta", [1.0], "delta must be a list of length 2"),
        ("quantile", "level", [[0.5, 0.5], [0.5, 0.5]], "level: expected a finite double"),
    ],
)
def test_entries_that_a_kind_does_not_allow(kind: str, key: str, value: Any, words: str) -> None:
    data = _data({**_good(kind), key: value})
    with pytest.raises(Verdict) as refused:
        canonical(data)
    assert words in str(refused.value)
    assert str(refused.value).startswith("malformed: terms[0]")
    with pytest.raises(ValueError, match=r"problem data: malformed: terms\[0\]"):
        verify.certify(data, np.zeros((3, 2)))


def test_infinite_bounds_have_one_text() -> None:
    plain = canonical(_data(_good("box")))["terms"][0]
    assert plain["lower"] == [["-inf", "0x0.0p+0"], [(1.0).hex(), (-2.0).hex()]]
    assert plain["upper"] == [["inf", "0x0.0p+0"], [(2.0).hex(), "inf"]]
    spelled = {**_good("box"), "lower": [["-inf", -0.0], [1, -2]]}
    assert canonical(_data(spelled))["terms"][0] == plain


def test_both_forms_of_coefficients_are_one_loss_with_two_hashes() -> None:
    """(k,) and (k, d) state the same loss; the data differ, so the hash does."""
    data = instance(3, "ridge", "l2", "connected", 6, 2)
    term = data["terms"][1]
    wide = {
        **data,
        "terms": [data["terms"][0], {**term, "mu": np.repeat(term["mu"], 2).reshape(-1, 2)}],
    }
    assert digest(canonical(wide)) != digest(canonical(data))
    w, u = solve(data)
    narrow, other = (verify.certify(x, w, u, rtol=1e-6) for x in (data, wide))
    assert (narrow.status, other.status) == ("CERTIFIED", "CERTIFIED")
    assert (narrow.upper, narrow.lower) == (other.upper, other.lower)


@pytest.mark.parametrize("kind", ["ridge", "l1", "box", "simplex", "huber", "point"])
def test_terms_without_nodes_are_fine(kind: str) -> None:
    empty = {key: [] if key != "kind" else value for key, value in _good(kind).items()}
    data = _data(empty, {"kind": "point", "node": [0], "a": [[1.0, 2.0]]})
    w = np.array([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    assert verify.certify(data, w, np.zeros((0, 2)), rtol=0.0).status == "CERTIFIED"


def test_zero_has_one_form_and_no_sign() -> None:
    term = _good("point")
    one = canonical(_data(term | {"a": [[-0.0] * len(term["a"][0])] * len(term["a"])}))
    other = canonical(_data(term | {"a": [["0x0.0p+0"] * len(term["a"][0])] * len(term["a"])}))
    assert digest(one) == digest(other)
    with pytest.raises(Verdict, match="canonical form"):
        canonical(_data(term | {"a": [["-0x0.0p+0"] * len(term["a"][0])] * len(term["a"])}))
    tiny = [["-0x0.0000000000001p-1022"] * len(term["a"][0])] * len(term["a"])
    assert canonical(_data(term | {"a": tiny}))["terms"][0]["a"] == tiny
