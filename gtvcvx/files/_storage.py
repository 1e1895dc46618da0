"""Nested dicts and lists with arrays in them, as npz files with one JSON text; never pickle."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from gtvcvx.files._atomic import atomic_write

#: Name of the member that holds the JSON text; the arrays are named in it.
STRUCTURE = "json"
# What reading a damaged archive raises; RuntimeError: encrypted, or a later version of the format.
_DAMAGE = (OSError, KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)
_MARKS = ({"array"}, {"float"}, {"dict"})


def save(path: str | os.PathLike[str], data: dict[str, Any]) -> None:
    """Write data, which names its "schema", atomically.

    Raises
    ------
    TypeError
        Naming the entry that is neither an array, a number, a string, None, a list nor a dict
        with string keys.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    structure = json.dumps(_flatten(data, "data", arrays), allow_nan=False)
    members: dict[str, Any] = {STRUCTURE: np.array(structure), **arrays}
    with atomic_write(path, "wb") as file:
        np.savez(file, **members)


def load(path: str | os.PathLike[str], schema: str) -> dict[str, Any]:
    """Read what `save` wrote, of the schema expected.

    Raises
    ------
    ValueError
        Naming the file: it is not of this kind, of another schema, or damaged.
    """
    try:
        # Opened here: np.load leaves a file that is no archive open.
        with open(path, "rb") as file:
            members = np.load(file, allow_pickle=False)
            if not isinstance(members, np.lib.npyio.NpzFile):
                raise ValueError("not an npz archive")
            arrays = {name: members[name] for name in members.files}
        data = unflattened(json.loads(str(arrays.pop(STRUCTURE))), arrays)
    except FileNotFoundError:
        raise
    except _DAMAGE as error:
        raise ValueError(f"{os.fspath(path)}: not a {schema} file, or damaged ({error})") from error
    found = data.get("schema") if isinstance(data, dict) else None
    if found != schema:
        raise ValueError(f"{os.fspath(path)}: schema {schema!r} is expected, found {found!r}")
    return data


def _flatten(value: Any, name: str, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        key = f"a{len(arrays)}"
        arrays[key] = value
        return {"array": key}
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise TypeError(f"{name}: keys must be strings to be written down")
        flat = {key: _flatten(item, f"{name}[{key!r}]", arrays) for key, item in value.items()}
        # A dict that looks like one of the marks is marked itself.
        return {"dict": flat} if set(flat) in _MARKS else flat
    if isinstance(value, list):
        return [_flatten(item, f"{name}[{k}]", arrays) for k, item in enumerate(value)]
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return _flatten(value.item(), name, arrays)
    raise TypeError(f"{name}: {value!r} of type {type(value).__name__} cannot be written down")


def unflattened(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Return nested data with the arrays, or what stands for them, in their places."""
    if isinstance(value, dict):
        if set(value) == {"array"}:
            return arrays[value["array"]]
        if set(value) == {"float"}:
            return float(value["float"])
        if set(value) == {"dict"}:
            value = value["dict"]
        return {key: unflattened(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [unflattened(item, arrays) for item in value]
    return value
