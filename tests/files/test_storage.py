"""Nested data in npz files: exact round trips, and damage that is noticed."""

import contextlib
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from gtvcvx.files import _storage

SCHEMA = "test/1"

arrays = hnp.arrays(
    st.sampled_from([np.float64, np.int64, np.bool_, np.uint8]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
keys = st.sampled_from(["array", "float", "dict", "json"]) | st.text()
values = st.recursive(
    scalars | arrays,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


def same(a, b):
    """Equality to the last bit, of values and types."""
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and (a.dtype, a.shape) == (b.dtype, b.shape)
            and a.tobytes() == b.tobytes()
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and str(a) == str(b))
    return a == b


@given(values)
def test_round_trip(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("storage") / "file"
    data = {"schema": SCHEMA, "value": value}
    _storage.save(path, data)
    assert same(_storage.load(path, SCHEMA), data)


@pytest.mark.parametrize("value", [np.float64(0.1), np.int32(3), np.bool_(True), np.float32(0.5)])
def test_numpy_scalars_become_python_numbers(tmp_path, value):
    _storage.save(tmp_path / "a", {"schema": SCHEMA, "value": value})
    found = _storage.load(tmp_path / "a", SCHEMA)["value"]
    assert found == value
    assert type(found) in (float, int, bool)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ((1, 2), r"data\['value'\]"),
        ({"a": [1, {2, 3}]}, r"data\['value'\]\['a'\]\[1\]"),
        (np.array(["text"]), r"data\['value'\]"),
        (np.array([object()]), r"data\['value'\]"),
        (print, r"data\['value'\]"),
        (1j, r"data\['value'\]"),
        ({1: 2}, r"data\['value'\]"),
    ],
)
def test_what_cannot_be_written_down_leaves_nothing(tmp_path, value, place):
    with pytest.raises(TypeError, match=rf"^{place}: .* written down"):
        _storage.save(tmp_path / "a.npz", {"schema": SCHEMA, "value": value})
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_survives_a_failure(tmp_path):
    path = tmp_path / "a.npz"
    _storage.save(path, {"schema": SCHEMA, "value": 1})
    with pytest.raises(TypeError):
        _storage.save(path, {"schema": SCHEMA, "value": object()})
    assert _storage.load(path, SCHEMA)["value"] == 1


def test_another_schema_or_none(tmp_path):
    path = tmp_path / "a.npz"
    for data in ({"schema": "other/2"}, {"value": 1}):
        _storage.save(path, data)
        with pytest.raises(ValueError, match=r"a\.npz: schema 'test/1' is expected, found"):
            _storage.load(path, SCHEMA)


def test_other_files(tmp_path):
    path = tmp_path / "a.npz"
    with pytest.raises(FileNotFoundError):
        _storage.load(path, SCHEMA)
    with pytest.raises(ValueError, match="not a test/1 file"):
        _storage.load(tmp_path, SCHEMA)
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="not an npz archive"):
        _storage.load(path, SCHEMA)


def test_pickles_are_not_read(tmp_path):
    path = tmp_path / "a.npz"
    with path.open("wb") as file:
        np.savez(file, json=np.array([{"schema": SCHEMA}], dtype=object))
    with pytest.raises(ValueError, match="not a test/1 file, or damaged"):
        _storage.load(path, SCHEMA)


DATA = {"schema": SCHEMA, "x": np.arange(6.0).reshape(2, 3), "text": "abc", "k": [1, 2.5]}


@pytest.mark.parametrize(
    ("write", "flip"), [(np.savez, 1), (np.savez, 64), (np.savez_compressed, 255)]
)
def test_a_damaged_byte_is_noticed_or_harmless(tmp_path, write, flip):
    path = tmp_path / "a.npz"
    _storage.save(path, DATA)
    with np.load(path) as members:
        write(path, **dict(members))
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        with contextlib.suppress(ValueError):
            assert same(_storage.load(path, SCHEMA), DATA)


@given(st.floats(0.0, 1.0, exclude_max=True))
def test_a_truncated_file_is_noticed(tmp_path_factory, share):
    path = tmp_path_factory.mktemp("storage") / "a.npz"
    _storage.save(path, DATA)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="not a test/1 file, or damaged"):
        _storage.load(path, SCHEMA)
