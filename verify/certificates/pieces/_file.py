"""The file: members written window by window, judged by the kernel, and then what it says."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from verify._json_file import writing
from verify.certificates.arrays._archive import Array
from verify.certificates.arrays._stream import ArchiveWriter, Hashed
from verify.certificates.pieces._data import LABELS
from verify.certificates.pieces._piece import Team
from verify.certificates.pieces._tables import Member
from verify.instance import _integers as integers
from verify.kernel import work
from verify.kernel.large.check import check_archive
from verify.kernel.large.content import digest
from verify.kernel.large.layout import MANIFEST, SCHEMA
from verify.kernel.numbers import round_down, round_up
from verify.kernel.result import Result

# What the proved bounds and the hash take in a manifest, which is written before they are known: as
# ratios, bounds that are beyond doubles or equal may take more, and are left out then.
_ROOM = 1024


class Contents(NamedTuple):
    """All that goes into a file but what is known at its end.

    Attributes
    ----------
    head : dict
        Of the problem data.
    data : list of Member
    tables : dict
        `w` and `dual` of the manifest; complete at the first process.
    witnesses : list of Member
    """

    head: dict[str, Any]
    data: list[Member]
    tables: dict[str, Any]
    witnesses: list[Member]


def written(
    team: Team, contents: Contents, path: str | os.PathLike[str], rtol: float, window: int
) -> Result | None:
    """Write the file, whole or not at all, and let the kernel judge it.

    All processes give their rows; the first one writes, and returns the verdict.
    """
    streams = [
        (member.name, _pieces(team, member, window))
        for member in (*contents.data, *contents.witnesses)
    ]
    with ExitStack() as stack:
        first = _is_first(team)
        file = stack.enter_context(writing(path)) if first else None
        if file is None:
            for _, pieces in streams:
                for _ in pieces:
                    pass
            return None
        return _File(file, contents, rtol).run(streams)


def _is_first(team: Team) -> bool:
    return team.gather([]) is not None


def _pieces(team: Team, member: Member, window: int) -> Iterator[Array | None]:
    """Yield the rows of a member in order, some at a time; None at processes but the first."""
    width = max(_row_bytes(values) for values in member.values)
    rows = max(1, window // int(team.most([width] * len(member.values))))
    for start in range(0, member.total, rows):
        sent = []
        for numbers, values in zip(member.numbers, member.values, strict=True):
            some = slice(*np.searchsorted(numbers, [start, start + rows]))
            sent += [numbers[some], values[some]]
        found = team.gather(sent)
        if found is None:
            yield None
        else:
            order = np.argsort(np.concatenate(found[::2]))
            yield np.concatenate(found[1::2])[order]


def _row_bytes(values: Array) -> int:
    """Return what a row takes with its number."""
    return int(8 + values.itemsize * np.prod(values.shape[1:], dtype=np.int64))


class _File:
    """A file at the first process."""

    def __init__(self, file: BinaryIO, contents: Contents, rtol: float) -> None:
        self._file, self._contents, self._rtol = file, contents, rtol
        self._archive = ArchiveWriter(file)

    def run(self, streams: list[tuple[str, Iterator[Array | None]]]) -> Result:
        """Write all members, judge them, and write what was proved."""
        claim = {"rtol": self._rtol.hex(), "upper": None, "lower": None}
        size = len(self._manifest("0" * 64, claim)) + _ROOM
        with self._archive.member(MANIFEST) as write:
            write(b" " * size)
        digests = [self._member(name, pieces) for name, pieces in streams]
        sha256 = digest(self._contents.head, digests[: len(self._contents.data)])
        self._state(sha256, claim, size)
        result = self._judged()
        self._state(sha256, claim | bounds(result), size)
        return result

    def _member(self, name: str, pieces: Iterator[Array | None]) -> str:
        """Write a member; returns its hash."""
        with self._archive.member(name) as write:
            hashed = Hashed(write)
            (_write_labels if name == LABELS else _write_rows)(hashed, pieces)
            return hashed.sha256

    def _manifest(self, sha256: str, claim: dict[str, Any], padding: str = "") -> bytes:
        manifest = {
            "schema": SCHEMA,
            "sha256": sha256,
            "claim": claim,
            "data": self._contents.head,
            **self._contents.tables,
            "producer": {"name": "verify.certify", "padding": padding},
        }
        return json.dumps(manifest, separators=(",", ":"), allow_nan=False).encode()

    def _state(self, sha256: str, claim: dict[str, Any], size: int) -> None:
        """Write a manifest of the size that there is room for."""
        left = size - len(self._manifest(sha256, claim))
        if left < 0:  # bounds that are long ratios: none are claimed, and the proof is the same
            claim = claim | {"upper": None, "lower": None}
            left = size - len(self._manifest(sha256, claim))
        self._archive.rewrite(0, self._manifest(sha256, claim, " " * left))
        self._archive.close()

    def _judged(self) -> Result:
        with open(self._file.name, "rb") as file, work.counted(_budget(file)):
            return check_archive(file, None, Fraction(self._rtol), json.loads)


def _budget(file: BinaryIO) -> int:
    return work.default_budget(file.seek(0, os.SEEK_END))


def bounds(result: Result) -> dict[str, str]:
    """Return the proved bounds as a document states them, rounded outwards."""
    out = {}
    for name, value, outwards in (
        ("upper", result.upper, round_up),
        ("lower", result.lower, round_down),
    ):
        if value is not None:
            rounded = outwards(value)
            # a ratio where a double would hide that the gap is 0, or overflow
            is_ratio = result.gap == 0 or not np.isfinite(rounded)
            out[name] = integers.text(value, 0) if is_ratio else rounded.hex()
    return out


Write = Callable[[bytes | memoryview], None]


def _write_rows(write: Write, pieces: Iterator[Array | None]) -> None:
    for values in pieces:
        if values is not None and values.size:
            write(memoryview(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data))


def _write_labels(write: Write, pieces: Iterator[Array | None]) -> None:
    before = b"["
    for texts in pieces:
        if texts is not None:
            write(before + b",".join(texts.tolist()))
            before = b","
    write(b"]")
