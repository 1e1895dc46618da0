"""Penalties from their names and from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gtvcvx.penalties._base import Penalty
from gtvcvx.penalties._l1 import L1Norm
from gtvcvx.penalties._l2 import L2Norm
from gtvcvx.penalties._linf import LinfNorm
from gtvcvx.penalties._pnorm import PNorm
from gtvcvx.penalties._quadratic import Quadratic
from gtvcvx.penalties._squared import SquaredNorm

_BY_NAME: dict[str, type[Penalty]] = {
    "l1": L1Norm,
    "l2": L2Norm,
    "linf": LinfNorm,
    "squared": SquaredNorm,
}
_NAMES = ", ".join(repr(name) for name in _BY_NAME)


def as_penalty(spec: str | Penalty, dim: int) -> Penalty:
    """Return the penalty that ``spec`` names, checked against the dimension d = ``dim``.

    Parameters
    ----------
    spec : {"l1", "l2", "linf", "squared"} or Penalty
    dim : int

    Raises
    ------
    ValueError
        If the name is unknown (the message lists the known ones) or the penalty is made for
        another d.
    TypeError
        If ``spec`` is neither a name nor a penalty.
    """
    if isinstance(spec, str):
        if spec not in _BY_NAME:
            raise ValueError(
                f"penalty must be one of {_NAMES} or an object such as PNorm(p) or Quadratic(Q), "
                f"got {spec!r}"
            )
        return _BY_NAME[spec]()
    if not isinstance(spec, Penalty):
        raise TypeError(
            f"penalty must be one of {_NAMES} or a Penalty object, got {type(spec).__name__}"
        )
    if spec.dim is not None and spec.dim != dim:
        raise ValueError(
            f"penalty {spec.name!r} is made for d = {spec.dim}, but the problem has d = {dim}"
        )
    spec.span_projector(dim)  # where d is new to a penalty, it is checked now
    return spec


def penalty_from_data(data: Mapping[str, Any]) -> Penalty:
    """Return the penalty that ``Penalty.to_data`` wrote down.

    Parameters
    ----------
    data : mapping
        {"kind": "l1" | "l2" | "linf" | "squared"}, {"kind": "pnorm", "p": p} or
        {"kind": "quadratic", "Q": (d, d) array or nested lists}.

    Raises
    ------
    TypeError, ValueError
        If the kind is unknown, a field is missing or unknown, or a value is refused.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"penalty data must be a dict, got {type(data).__name__}")
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in (*_BY_NAME, "pnorm", "quadratic"):
        raise ValueError(
            f"penalty kind must be one of {_NAMES}, 'pnorm', 'quadratic', got {kind!r}"
        )
    fields = {"pnorm": {"kind", "p"}, "quadratic": {"kind", "Q"}}.get(kind, {"kind"})
    if set(data) != fields:
        raise ValueError(
            f"penalty data of kind {kind!r} must have the fields {sorted(fields)}, "
            f"got {sorted(map(str, data))}"
        )
    if kind == "pnorm":
        return PNorm(data["p"])
    if kind == "quadratic":
        return Quadratic(np.asarray(data["Q"]))
    return _BY_NAME[kind]()
