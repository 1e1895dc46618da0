"""What a client is told comes back as it was, and nothing else comes in."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import gtvcvx as gtv
from gtvcvx.federated.algorithms import _fedadmm_clients as programs
from gtvcvx.federated.flower._plain import described, packed, unpacked


def test_numbers_and_arrays_come_back_to_the_last_bit():
    rng = np.random.default_rng(0)
    floats = [0.1, -0.0, 1e-320, np.inf, np.pi, 2.0**1023]
    value = {
        "none": None,
        "numbers": (1, True, *floats, np.float64(1 / 3), np.int64(7)),
        "text": "λ",
        "nested": [[1.5], {"1": {2: "two"}}],
        "w": rng.standard_normal((3, 0)),
        "X": rng.standard_normal((2, 3)),
        "ids": np.arange(4),
        "mask": np.array([True, False]),
    }
    back = unpacked(packed(value))
    assert back.keys() == value.keys()
    assert back["numbers"] == value["numbers"]
    assert str(back["numbers"][3]) == "-0.0"
    assert back["nested"] == value["nested"]
    assert type(back["numbers"]) is tuple
    for name in ("w", "X", "ids", "mask"):
        assert back[name].dtype == value[name].dtype
        np.testing.assert_array_equal(back[name], value[name], strict=True)
        back[name][...] = 0  # programs may write to what they are told
    assert np.isnan(unpacked(packed(np.nan)))


def test_penalties_and_the_dataclasses_of_the_program_come_back():
    steps = programs.Steps("adaptive", 1 / 3, 1.0, None, 5.0)
    assert unpacked(packed(steps), programs) == steps
    Q = np.array([[2.0, 0.3], [0.3, 1.0]])
    back = unpacked(packed(gtv.Quadratic(Q)))
    assert np.array_equal(back.to_data()["Q"], gtv.Quadratic(Q).to_data()["Q"])
    assert unpacked(packed(gtv.PNorm(3))).p == 3


@pytest.mark.parametrize(
    "value", [lambda w: w, object(), {1, 2}, np.array(["a"]), np.zeros(2, np.complex128), b"x"]
)
def test_what_cannot_be_said_plainly_is_refused(value):
    with pytest.raises(TypeError, match="cannot be sent"):
        packed({"noise": value})


@pytest.mark.parametrize(
    ("plain", "text"),
    [
        ({"object": ["Popen", {"mapping": []}]}, "no dataclass"),
        ({"object": ["np", {"mapping": []}]}, "no dataclass"),
        ({"object": ["EdgeClient", {"mapping": []}]}, "no dataclass"),
        ({"call": []}, "no kind of value"),
        ({"array": ["|O", [1], ""]}, "no type of array"),
        ({"array": ["<f8", [5], ""]}, "cannot reshape"),
    ],
)
def test_nothing_but_values_comes_in(plain, text):
    raw = json.dumps(plain).encode()
    with pytest.raises(ValueError, match=text):
        unpacked(raw, programs)
    if "object" in plain:
        with pytest.raises(ValueError, match=text):
            unpacked(raw, SimpleNamespace())


def test_addresses_do_not_make_algorithms_differ():
    one, other = (SimpleNamespace(tau=[lambda n: n][0]) for _ in range(2))
    assert repr(one) != repr(other)
    assert described(one) == described(other) != described(SimpleNamespace(tau=1))
