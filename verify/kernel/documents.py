"""The door of the exact kernel: a document of any kind in, one of three answers out.

The schema says who decides: `verify.kernel.checker` on certificates, `verify.kernel.partitions` on
partitions of the nodes. Neither knows of the other. Standard library only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from verify.kernel import checker, partitions
from verify.kernel.numbers import Verdict, malformed
from verify.kernel.result import Result


def check(
    document: Mapping[str, Any] | str | os.PathLike[str],
    data: Mapping[str, Any] | None = None,
    rtol: float | None = None,
) -> Result:
    """Check a certificate document, a dict or the path of a JSON file.

    Documents about a partition (schema "gtv-connectivity/1", `verify.kernel.partitions`) get the
    same three answers, without bounds.

    Parameters
    ----------
    document : mapping, str or path
        The document.
    data : mapping, optional
        Plain problem data, for a document that does not embed them (otherwise both must agree).
    rtol : float, optional
        Tolerance to use instead of the document's own.

    Returns
    -------
    Result
        CERTIFIED: gap <= rtol max(1, |upper|). REFUTED: w is proved not to be within rtol, or the
        document is malformed or false; the reason begins with which of the three.
        UNPROVED: neither, for instance a loss without a rule.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    try:
        read = document if isinstance(document, Mapping) else _load(document)
    except Verdict as answer:
        return Result(answer.status, answer.reason)
    if isinstance(read, Mapping) and read.get("schema") == partitions.SCHEMA:
        return Result(*partitions.check_document(read, data))
    return checker.check_certificate(read, data, rtol)


def _load(path: str | os.PathLike[str]) -> Any:
    with open(path, "rb") as file:
        raw = file.read()
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise malformed(f"not a JSON text: {error}") from None
