"""Which messages may leave a participant: kinds, and the arrays of each, fixed beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verify._display import fields_text, fitted

#: Types of entries on the wire: eight bytes each, little-endian.
DTYPES = ("<f8", "<i8")


class SchemaError(ValueError):
    """A message that its algorithm's schema does not allow."""


@dataclass(frozen=True)
class Field:
    """One array of a message.

    Attributes
    ----------
    name : str
    shape : tuple of str and int
        Sizes by name, such as "d", or by number; () for one number.
    dtype : {"<f8", "<i8"}
    """

    name: str
    shape: tuple[str | int, ...] = ("d",)
    dtype: str = "<f8"

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise SchemaError(f"{self.name}: dtype {self.dtype!r} is not one of {DTYPES}")


#: The arrays of one kind of message, in the order in which they are sent.
Kind = tuple[Field, ...]


@dataclass(frozen=True)
class Message:
    """What a program puts in its outbox: a kind of its algorithm's schema, and the arrays.

    Attributes
    ----------
    kind : str
    arrays : mapping of str to ndarray
        Of the names, shapes and types that the schema says.
    """

    kind: str
    arrays: Mapping[str, Any]

    def __repr__(self) -> str:
        return fields_text(self)


class Schema(Mapping[str, Kind]):
    """All messages of an algorithm: which arrays each kind of message has.

    Parameters
    ----------
    kinds : mapping of str to sequence of Field
    """

    def __init__(self, kinds: Mapping[str, tuple[Field, ...]]) -> None:
        self._kinds = {name: tuple(fields) for name, fields in kinds.items()}

    def __getitem__(self, kind: str) -> Kind:
        return self._kinds[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __repr__(self) -> str:
        kinds = (
            f"{kind}({', '.join(f'{f.name} {_shape(f.shape)}' for f in fields)})"
            for kind, fields in self.items()
        )
        return fitted([f"Schema({', '.join(kinds)})"])

    def sized(self, sizes: Mapping[str, int]) -> WireFormat:
        """Return the format on the wire for sizes such as ``{"d": 5}``."""
        return WireFormat(self, sizes)


def _shape(shape: tuple[str | int, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


@dataclass(frozen=True)
class _Part:
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @cached_property
    def entries(self) -> int:
        return prod(self.shape)


class WireFormat:
    """A schema whose sizes are known: how many bytes each kind takes, and what fits.

    Parameters
    ----------
    schema : Schema
    sizes : mapping of str to int
    """

    def __init__(self, schema: Schema, sizes: Mapping[str, int]) -> None:
        self.kinds = tuple(schema)
        self.number = {kind: k for k, kind in enumerate(self.kinds)}
        self._parts = {
            kind: tuple(_Part(f.name, _sized(f, sizes, kind), np.dtype(f.dtype)) for f in fields)
            for kind, fields in schema.items()
        }
        self.payload_bytes = {
            kind: sum(8 * part.entries for part in parts) for kind, parts in self._parts.items()
        }

    def payload(self, message: Message) -> bytes:
        """Return the arrays of a message as bytes.

        Raises
        ------
        SchemaError
            Naming the kind and the array.
        """
        if not (isinstance(message.kind, str) and isinstance(message.arrays, Mapping)):
            raise SchemaError(f"a kind and arrays by name are expected, got {message!r}")
        parts = self._parts.get(message.kind)
        if parts is None:
            raise SchemaError(f"{message.kind!r} is not a kind of message; {self._known()}")
        if len(message.arrays) != len(parts):
            self._refuse_names(message, parts)
        return b"".join([self._bytes(message, part) for part in parts])

    def _bytes(self, message: Message, part: _Part) -> bytes:
        try:
            array = message.arrays[part.name]
        except KeyError:
            self._refuse_names(message, self._parts[message.kind])
        if type(array) is not np.ndarray:
            array = np.asarray(array)
        if array.shape != part.shape:
            raise SchemaError(
                f"{message.kind!r}: {part.name}: shape {part.shape} is expected, got {array.shape}"
            )
        if array.dtype != part.dtype:
            raise SchemaError(
                f"{message.kind!r}: {part.name}: dtype {part.dtype.str} is expected, "
                f"got {array.dtype.str}"
            )
        return bytes(array.tobytes())

    def arrays(self, kind: str, payload: memoryview | bytes) -> dict[str, NDArray[Any]]:
        """Return the arrays of a payload, views that cannot be written to.

        Raises
        ------
        SchemaError
            The length is wrong.
        """
        if len(payload) != self.payload_bytes[kind]:
            raise SchemaError(
                f"{kind!r}: {self.payload_bytes[kind]} bytes are expected, got {len(payload)}"
            )
        parts = self._parts[kind]
        out, start = {}, 0
        for part in parts:
            flat = (
                np.frombuffer(payload, part.dtype, part.entries, start)
                if part.entries
                else (np.empty(0, part.dtype))
            )
            out[part.name] = flat if len(part.shape) == 1 else flat.reshape(part.shape)
            start += 8 * part.entries
        return out

    def _refuse_names(self, message: Message, parts: tuple[_Part, ...]) -> None:
        expected, given = [part.name for part in parts], sorted(message.arrays)
        raise SchemaError(f"{message.kind!r}: the arrays {expected} are expected, got {given}")

    def _known(self) -> str:
        return f"the algorithm has {', '.join(map(repr, self.kinds)) or 'none'}"


def _sized(field: Field, sizes: Mapping[str, int], kind: str) -> tuple[int, ...]:
    shape = []
    for size in field.shape:
        if isinstance(size, str) and size not in sizes:
            raise SchemaError(f"{kind!r}: {field.name}: the size {size!r} is not known")
        shape.append(int(sizes[size] if isinstance(size, str) else size))
    return tuple(shape)
