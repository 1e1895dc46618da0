"""The document of a large certificate: arrays, and the JSON document for those who ask for it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from verify._arrays import IntArray
from verify.certificates.arrays._archive import Document, write_to
from verify.certificates.arrays._convert import from_document
from verify.instance import _integers as integers
from verify.kernel import work
from verify.kernel.checker import SCHEMA
from verify.kernel.data import ROWS, digest, term_arrays
from verify.kernel.large.archive import Archive
from verify.kernel.large.check import check_archive
from verify.kernel.large.content import Content
from verify.kernel.large.layout import TableHead, manifest_of
from verify.kernel.large.tables import Table
from verify.kernel.result import Result


def judged(document: Document, rtol: float) -> Result:
    """Let the kernel judge a document that is not written yet."""
    file = io.BytesIO()
    write_to(file, document)
    with work.counted(work.default_budget(file.tell())):
        return check_archive(file, None, Fraction(rtol), json.loads)


class ArraysDocument(Mapping[str, Any]):
    """A certificate as a mapping, the one that a JSON file of it has; made when it is looked into.

    Attributes
    ----------
    arrays : Document
        What it is made of.
    """

    def __init__(self, arrays: Document) -> None:
        self.arrays = arrays

    def __getitem__(self, key: str) -> Any:
        return self._plain[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    def __len__(self) -> int:
        return len(self._plain)

    @property
    def labels(self) -> Any:
        """Labels of the nodes."""
        data = dict(self.arrays.data)
        if "nodes.json" in data:
            return json.loads(data["nodes.json"].tobytes())
        return range(self.arrays.manifest["data"]["n_nodes"])

    @property
    def edges(self) -> IntArray:
        """Ends of the edges, (m, 2)."""
        data = dict(self.arrays.data)
        return np.stack([data["head"], data["tail"]], axis=1).astype(np.int64)

    @cached_property
    def _plain(self) -> dict[str, Any]:
        manifest, data = self.arrays.manifest, self._data()
        out: dict[str, Any] = {"schema": SCHEMA, "sha256": digest(data), "data": data}
        out["claim"] = manifest["claim"]
        tables = self._tables()
        out["w"] = tables["w"]
        dual = None
        if manifest.get("dual") is not None:
            r = [tables[f"r/{t}"] for t in range(len(data["terms"]))]
            terms = zip(data["terms"], r, strict=True)
            flat = [[x for (x,) in v] if term["kind"] in ROWS else v for term, v in terms]
            dual = {"u": tables["u"], "r": flat}
        out["dual"] = dual
        for key in ("better", "producer"):
            if manifest.get(key) is not None:
                out[key] = tables["better"] if key == "better" else manifest[key]
        return out

    def _data(self) -> dict[str, Any]:
        """Return canonical data."""
        head, arrays = self.arrays.manifest["data"], dict(self.arrays.data)
        out = {k: v for k, v in head.items() if k not in ("n_edges", "terms", "nodes")}
        out["edges"] = self.edges.tolist()
        out["weights"] = _texts(arrays["weights"])
        out["terms"] = []
        for t, term in enumerate(head["terms"]):
            plain = {"kind": term["kind"], "node": arrays[f"terms/{t}/node"].tolist()}
            for key, wide in term_arrays(term["kind"], "weighted" in term).items():
                values = arrays[f"terms/{t}/{key}"].reshape(term["rows"], -1)
                deep = term["wide"] if wide is None else wide
                plain[key] = _texts(values) if deep else _texts(values.ravel())
            out["terms"].append(plain)
        if "nodes" in head:
            out["nodes"] = self.labels
        return out

    def _tables(self) -> dict[str, Any]:
        """Return all tables as texts, by their names in the file."""
        file = io.BytesIO()
        write_to(file, self.arrays)
        content = Content(Archive(file))
        heads = list(manifest_of(self.arrays.manifest).tables())
        for head in heads:
            content.read_table(head)
        return {head.name: _rows(content, head) for head in heads}


def arrays_of(document: Mapping[str, Any]) -> Document:
    """Return a certificate as arrays, whatever it is now."""
    return document.arrays if isinstance(document, ArraysDocument) else from_document(document)


def _rows(content: Content, head: TableHead) -> list[list[str]]:
    table = Table(content, head)
    columns = table.columns()
    return [[integers.text(x, table.k) for x in row] for row in zip(*columns, strict=True)]


def _texts(values: Any) -> list[Any]:
    if values.ndim == 1:
        return [float(x).hex() for x in values.tolist()]
    return [[x.hex() for x in row] for row in values.tolist()]
