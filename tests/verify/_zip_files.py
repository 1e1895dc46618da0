"""Large documents by hand: an independent writer of plain zip files, and of files that are not."""

from __future__ import annotations

import io
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from verify.certificates.arrays._archive import Document, write_to
from verify.certificates.arrays._convert import from_document
from verify.partitions import _large_document

Members = list[tuple[str, bytes]]


def members_of(document: dict[str, Any]) -> Members:
    """Return a JSON certificate as the members of a large document, manifest first."""
    return _members(from_document(document))


def members_of_partition(document: dict[str, Any]) -> Members:
    """Return a JSON document about a partition as the members of a large one."""
    return _members(_large_document.from_document(document))


def _members(arrays: Document) -> Members:
    out = [("manifest.json", json.dumps(arrays.manifest).encode())]
    return out + [(name, values.tobytes()) for name, values in [*arrays.data, *arrays.witnesses]]


def edited(members: Members, **changes: Any) -> Members:
    """Return members with other contents: bytes, a function of them, or None to leave one out.

    `manifest` is a function that changes the manifest in place; in names "." stands for "/".
    """
    out = []
    for name, raw in members:
        change = changes.get(name.replace("/", "."), raw)
        if name == "manifest.json" and "manifest" in changes:
            manifest = json.loads(raw)
            changes["manifest"](manifest)
            change = json.dumps(manifest).encode()
        if callable(change):
            change = change(raw)
        if change is not None:
            out.append((name, change))
    return out


def zipped(
    members: Members, *, deflate: bool = False, local: dict[str, Any] | None = None, **end: Any
) -> bytes:
    """Return a zip file.

    `local` has other fields for all local headers and central ones alike: flags, method, extra,
    crc, size, stored, offset; under `central` those of central headers alone. `end` has bytes
    `between` members, `before` the directory, `after` it, `behind` the end, and a `comment`.
    """
    other, out, directory = local or {}, io.BytesIO(), b""
    for name, raw in members:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        body = packer.compress(raw) + packer.flush() if deflate else raw
        body += other.get("unused", b"")
        fields = {
            "flags": 0,
            "method": 8 if deflate else 0,
            "crc": zlib.crc32(raw),
            "stored": len(body),
            "size": len(raw),
            "extra": b"",
            "offset": out.tell(),
        } | {k: v for k, v in other.items() if k not in ("unused", "central", "only_local")}
        central = fields | other.get("central", {})
        fields |= other.get("only_local", {})
        encoded = name.encode()
        out.write(struct.pack("<4s5H3L2H", b"PK\3\4", 20, fields["flags"], fields["method"], 0, 33,
                              fields["crc"], fields["stored"], fields["size"], len(encoded),
                              len(fields["extra"])))  # fmt: skip
        out.write(encoded + fields["extra"] + body + end.get("between", b""))
        directory += struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, central["flags"],
                                 central["method"], 0, 33, central["crc"], central["stored"],
                                 central["size"], len(encoded), len(central["extra"]), 0, 0, 0, 0,
                                 central["offset"])  # fmt: skip
        directory += encoded + central["extra"]
    out.write(end.get("before", b""))
    start, comment = out.tell(), end.get("comment", b"")
    count = len(members) + end.get("more", 0)
    out.write(directory + end.get("after", b""))
    out.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count, count, len(directory), start,
                          len(comment)))  # fmt: skip
    out.write(comment + end.get("behind", b""))
    return out.getvalue()


def as_archive(document: dict[str, Any], path: Path) -> Path:
    """Write a JSON certificate as a large one, by the package's own writer."""
    with open(path, "wb") as file:
        write_to(file, from_document(document))
    return path


def setting(*keys: Any, value: Any) -> Callable[[Any], None]:
    """Return what sets one entry of a manifest."""

    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change
