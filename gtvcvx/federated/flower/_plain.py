"""What a client is told beforehand, as text: numbers, arrays and penalties, never pickles.

Floating-point numbers come back to the last bit. What comes over the network cannot make a client
run code: of classes, penalties and dataclasses of the client's own program module are known.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gtvcvx.penalties import Penalty, penalty_from_data

# Types of arrays that may be sent.
_DTYPES = ("<f8", "<i8", "|b1")


def described(algorithm: Any) -> str:
    """Return how an algorithm is written, the same in all processes."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(algorithm))


def packed(value: Any) -> bytes:
    """Return a value as bytes.

    Raises
    ------
    TypeError
        It is made of something else than numbers, text, arrays, penalties and dataclasses.
    """
    return json.dumps(_plain(value)).encode()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, np.ndarray):
        return {"array": _array_as_text(value)}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [_plain(entry) for entry in value]}
    if isinstance(value, Mapping):
        return {"mapping": [[_plain(key), _plain(entry)] for key, entry in value.items()]}
    if isinstance(value, Penalty):
        return {"penalty": _plain(value.to_data())}
    if is_dataclass(value) and not isinstance(value, type):
        entries = {field.name: getattr(value, field.name) for field in fields(value)}
        return {"object": [type(value).__name__, _plain(entries)]}
    raise TypeError(f"{value!r} cannot be sent to a client: numbers, text and arrays can")


def _array_as_text(array: NDArray[Any]) -> list[Any]:
    if array.dtype.str not in _DTYPES:
        raise TypeError(f"an array of {array.dtype} cannot be sent to a client")
    return [array.dtype.str, list(array.shape), base64.b64encode(array.tobytes()).decode()]


def unpacked(raw: bytes, module: ModuleType | None = None) -> Any:
    """Return the value of `packed`.

    Parameters
    ----------
    raw : bytes
    module : module, optional
        Where dataclasses are looked up.

    Raises
    ------
    ValueError
        The bytes are not of the format, or name another class.
    """
    return _value(json.loads(raw), module)


def _value(plain: Any, module: ModuleType | None) -> Any:
    if not isinstance(plain, dict):
        return plain
    ((kind, body),) = plain.items()
    inside = partial(_value, module=module)
    if kind == "array":
        return _array_of_text(*body)
    if kind in ("tuple", "list"):
        entries = [inside(entry) for entry in body]
        return tuple(entries) if kind == "tuple" else entries
    if kind == "mapping":
        return {inside(key): inside(entry) for key, entry in body}
    if kind == "penalty":
        return penalty_from_data(inside(body))
    if kind == "object":
        return _dataclass(body[0], module)(**inside(body[1]))
    raise ValueError(f"{kind!r} is no kind of value")


def _array_of_text(dtype: str, shape: list[int], text: str) -> NDArray[Any]:
    if dtype not in _DTYPES:
        raise ValueError(f"{dtype!r} is no type of array that can be sent")
    return np.frombuffer(base64.b64decode(text), dtype).reshape(shape).copy()


def _dataclass(name: str, module: ModuleType | None) -> Any:
    found = getattr(module, name, None)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise ValueError(f"{name!r} is no dataclass of the client's program")
    return found
