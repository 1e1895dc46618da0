"""Roots and inverses that prove the constants of a witness, for the kernel to multiply out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from verify.instance import _integers as integers
from verify.instance._roots import inverted, root_of, texts
from verify.kernel.constants import (
    SIGN_DIMENSION,
    Quadratics,
    is_lower_alpha,
    norm_of,
)
from verify.kernel.data import canonical
from verify.kernel.matrices import EMPTY, Matrix, Root
from verify.kernel.verdict import Verdict

#: Entries of a guess of H^-1 are rounded to 2^-60 of the largest, about as well as floats know
#: them: what is lost is the square of that, and alpha is known to floats.
_BITS = 60


class LocalHessians:
    """Exact Hessians of the nodes of a problem, read when they are asked for."""

    def __init__(self, plain: Mapping[str, Any]) -> None:
        self._plain = plain

    @cached_property
    def _read(self) -> tuple[Quadratics, str] | None:
        try:
            data = canonical(self._plain)
            return Quadratics(data), norm_of(data["penalty"])
        except Verdict:
            return None

    def roots(self, witness: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry `roots` of a witness, none where the kernel has no rule for a loss."""
        nodes = witness["cluster"]
        if self._read is None or len(nodes) == 1 or witness["center"] is None:
            return {}
        losses, norm = self._read
        try:
            local = [losses.local(node)[0] for node in nodes]
        except Verdict:
            return {}
        lower = witness["modulus"] if "sets" in witness else witness["alpha"]
        found: dict[str, Any] = {}
        if lower is not None:
            total = [
                [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]
                for rows in zip(*local, strict=True)
            ]
            found |= _of_total(total, _fraction(lower), norm)
        if norm == "l2" and "sets" not in witness:
            pairs = zip(local, witness["beta"], strict=True)
            roots = [root_of(_shifted(h, _fraction(beta), -1)) for h, beta in pairs]
            found["local"] = [None if root is None else texts(root) for root in roots]
        return {"roots": found} if found else {}


def _of_total(total: Matrix, alpha: Fraction, norm: str) -> dict[str, Any]:
    """Return a root of H, and perhaps a guess of its inverse, that prove alpha from below."""
    spectral = _shifted(total, alpha * (len(total) if norm == "l1" else 1), 1)
    for root, inverse in (
        (EMPTY, None),
        (root_of(spectral), None),
        *_with_inverse(total, norm),
    ):
        if root is not None and is_lower_alpha(total, alpha, norm, root, inverse):
            found = {"total": texts(root)}
            return found | ({} if inverse is None else {"inverse": texts(inverse)})
    return {}


def _with_inverse(total: Matrix, norm: str) -> list[tuple[Root | None, Root | None]]:
    """Return a root with the inverse rounded, and with the exact one, which ties need."""
    if norm == "l2":
        return []
    root = root_of(total, strict=True)
    if root is None:
        return []
    found: list[tuple[Root | None, Root | None]] = []
    floats = np.linalg.pinv(np.array([[float(x) for x in row] for row in total]), hermitian=True)
    if np.isfinite(floats).all():
        k = integers.grid_exponent(floats, _BITS)
        found.append((root, (integers.to_grid(floats, k).tolist(), k)))
    if len(total) <= SIGN_DIMENSION and (exact := inverted(total)) is not None:
        found.append((root, (exact, 0)))
    return found


def _shifted(h: Matrix, c: Fraction, sign: int) -> Matrix:
    """Return H - c I for sign = 1, c I - H for sign = -1."""
    return [[sign * (x - (c if i == j else 0)) for j, x in enumerate(r)] for i, r in enumerate(h)]


def _fraction(text: str) -> Fraction:
    """Read a number as `_demands` writes it."""
    numerator, denominator = (int(part, 16) for part in text.split("/"))
    return Fraction(numerator, denominator)
