"""The door of the exact kernel: a document of any kind in, one of three answers out.

The schema says who decides: `verify.kernel.checker` on certificates, `verify.kernel.partitions` on
partitions of the nodes. Neither knows of the other. Whatever the document is, there is an answer,
within a budget of work. Standard library only.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from numbers import Rational, Real
from pathlib import Path
from typing import Any

from verify.kernel import checker, work
from verify.kernel.data import CONNECTIVITY
from verify.kernel.result import INTERNAL, Result
from verify.kernel.verdict import Verdict, malformed

#: How a large document begins: it is a zip file (SCHEMA.md, section 8).
_ZIP = b"PK\x03\x04"


def check(
    document: Mapping[str, Any] | str | os.PathLike[str],
    data: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    rtol: float = checker.RTOL,
    budget: int | None = None,
) -> Result:
    """Check a certificate document, a dict or the path of a file, JSON or `.gtvc`.

    Documents about a partition (schema "gtv-connectivity/1", `verify.kernel.partitions`) get the
    same three answers, without bounds.

    Parameters
    ----------
    document : mapping, str or path
        The document.
    data : mapping, str or path, optional
        Plain problem data, for a document that does not embed them (otherwise both must agree).
    rtol : float, default 1e-6
        Tolerance, finite and not negative. What the document asks for decides nothing.
    budget : int, optional
        Steps of work, counted and not clocked, after which the answer is UNPROVED; ten million take
        about a second. By default 50 million for documents of up to 1 MB, and in proportion beyond.

    Returns
    -------
    Result
        CERTIFIED: gap <= rtol max(1, |upper|). REFUTED: w is proved not to be within rtol, or the
        document is malformed or false; the reason begins with which of the three.
        UNPROVED: neither, for instance a loss without a rule.

    Raises
    ------
    OSError
        A file cannot be read.
    TypeError, ValueError
        ``rtol`` is no finite number >= 0, or ``budget`` no integer >= 1.
    """
    _check_options(rtol, budget)
    try:
        (read, size), (external, more) = _read(document, ""), _read(data, "data: ")
        limit = work.default_budget(size + more) if budget is None else budget
        with work.counted(limit):
            exact = Fraction(rtol if isinstance(rtol, Rational) else float(rtol))
            if isinstance(read, Path):
                return _in_arrays(read, external, exact)
            if isinstance(read, Mapping) and read.get("schema") == CONNECTIVITY:
                return _about_a_partition(read, external)
            return checker.check_certificate(read, external, exact)
    except Verdict as answer:
        return Result(answer.status, answer.reason)
    except OSError:
        raise
    except Exception as error:
        # A defect of ours, and no statement about the document.
        return Result("UNPROVED", f"{INTERNAL}: {type(error).__name__} in the kernel, report it")


def _about_a_partition(document: Mapping[str, Any], data: Any) -> Result:
    # loaded only here, so that whoever checks a certificate trusts, and runs, none of it
    partitions = import_module("verify.kernel.partitions")
    return Result(*partitions.check_document(document, data))


def _in_arrays(path: Path, data: Any, rtol: Fraction) -> Result:
    # loaded only here, as above: whoever checks JSON runs none of it
    large = import_module("verify.kernel.large.check")
    with open(path, "rb") as file:
        found: Result = large.check_archive(file, data, rtol, _parsed)
        return found


def _check_options(rtol: object, budget: object) -> None:
    if isinstance(rtol, bool) or not isinstance(rtol, Real):
        raise TypeError(f"rtol must be a number, got {type(rtol).__name__}")
    if not 0 <= float(rtol) < math.inf:
        raise ValueError(f"rtol must be finite and not negative, got {rtol!r}")
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool)):
        raise TypeError(f"budget must be an integer, got {type(budget).__name__}")
    if budget is not None and budget < 1:
        raise ValueError(f"budget must be at least 1, got {budget}")


def _read(
    document: Mapping[str, Any] | str | os.PathLike[str] | None, name: str
) -> tuple[Any, int]:
    """Return a parsed document, the path of one in arrays, and its size in bytes."""
    if not isinstance(document, str | os.PathLike):
        return document, work.size_of(document)
    with open(document, "rb") as file:
        raw = file.read(len(_ZIP))
        if raw == _ZIP and not name:
            return Path(document), file.seek(0, os.SEEK_END)
        raw += file.read()
    return _parsed(raw, name), len(raw)


def _parsed(raw: bytes, name: str = "") -> Any:
    """Read a JSON text, strictly: no two readers understand it differently."""
    try:
        return json.loads(raw.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise malformed(f"{name}not a JSON text: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; readers differ in which of two equal keys they believe."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same key twice")
    return found


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
