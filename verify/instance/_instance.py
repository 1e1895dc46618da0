"""Plain problem data as NumPy arrays: the builder's view of an instance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from verify._arrays import FloatArray, IntArray
from verify._real_numbers import real_numbers
from verify.instance._blocks import Part
from verify.instance._penalties import Penalty, penalty_from
from verify.instance._terms import Term, term_from
from verify.kernel.data import canonical
from verify.kernel.verdict import Verdict

ALIKE = 16.0  # columns of root mean squares within this factor need no units of their own


@dataclass(frozen=True)
class Instance:
    """A GTV problem in floats.

    Attributes
    ----------
    plain : dict
        Canonical plain data (what the certificate embeds and hashes).
    n, d : int
        Numbers of nodes and dimensions.
    edges : ndarray of int, shape (m, 2)
        Head < tail.
    cap : ndarray, shape (m,)
        Capacities lam A_e in floats (infinite where that overflows).
    penalty, terms : Penalty and tuple of Term
        Float views of the penalty and of the loss terms that have one.
    opaque : tuple of str
        Names of the losses, and of the penalty, that cannot be written down.
    """

    plain: dict[str, Any]
    n: int
    d: int
    edges: IntArray
    cap: FloatArray
    penalty: Penalty
    terms: tuple[Term, ...]
    opaque: tuple[str, ...]

    @cached_property
    def incidence(self) -> sp.csr_array:
        """D, (m, n): +1 at the head and -1 at the tail of each edge."""
        m = len(self.edges)
        signs = np.tile([1.0, -1.0], m)
        return sp.csr_array(
            (signs, self.edges.ravel(), np.arange(0, 2 * m + 1, 2)), shape=(m, self.n)
        )

    @cached_property
    def units(self) -> FloatArray:
        """Powers of two, one a coordinate, in which the columns of the data rows are alike.

        The least is 1; all are where the columns are alike as they are, or are not only rounded but
        lost in other units. Whatever depends on what counts as small is computed for w * units.
        """
        rows = [term.x for term in self.terms if term.x is not None and len(term.x)]
        if not rows:
            return np.ones(self.d)
        with np.errstate(over="ignore", under="ignore"):
            size = np.sqrt(np.mean(np.concatenate(rows) ** 2, axis=0))
        known = (size > 0) & np.isfinite(size)
        if not known.any() or size[known].max() <= ALIKE * size[known].min():
            return np.ones(self.d)
        exponent = np.round(np.log2(np.where(known, size, size[known].min())))
        units = np.exp2(exponent - exponent.min())
        exact = all(((x / units) * units == x).all() for x in rows)
        return units if exact else np.ones(self.d)

    def rescaled(self) -> Instance:
        """Return the problem as one in w * units; its flows are u / units, its multipliers r."""
        if (self.units == 1).all():
            return self
        terms = tuple(term.rescaled(self.units) for term in self.terms)
        return replace(self, penalty=self.penalty.rescaled(self.units), terms=terms)

    def beside(self, w: FloatArray) -> Instance:
        """Return the problem with its losses told as is best close to w (n, d)."""
        return replace(self, terms=tuple(term.beside(w) for term in self.terms))

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What the terms are sums of, in order."""
        return tuple(part for term in self.terms for part in term.parts)

    def joined(self, r: list[FloatArray]) -> list[FloatArray]:
        """Return multipliers per term from multipliers per part."""
        source = iter(r)
        return [term.join([next(source) for _ in term.parts]) for term in self.terms]

    def differences(self, w: FloatArray) -> FloatArray:
        """Return D w, (m, d)."""
        return w[self.edges[:, 0]] - w[self.edges[:, 1]]

    def divergence(self, u: FloatArray) -> FloatArray:
        """Return D^T u, (n, d)."""
        return np.asarray(self.incidence.T @ u)

    def edge_costs(self, w: FloatArray) -> FloatArray:
        """Return lam A_e phi((D w)_e), (m,)."""
        phi = self.penalty.value(self.differences(w))
        with np.errstate(over="ignore"):
            return np.where(phi > 0, self.cap * np.where(phi > 0, phi, 1.0), 0.0)

    def value(self, w: FloatArray) -> float:
        """Return P(w) in floats; infinite where w breaks a bound (a simplex may be missed)."""
        with np.errstate(over="ignore"):
            return float(self.edge_costs(w).sum() + sum(t.value(w) for t in self.terms))


def plain_data(problem: Any) -> Mapping[str, Any]:
    """Return the plain data of a problem object (its `to_data`), or the dict itself."""
    data = problem.to_data() if hasattr(problem, "to_data") else problem
    if not isinstance(data, Mapping):
        raise TypeError(
            "problem must be a dict of plain data (verify/SCHEMA.md) or have a method to_data, "
            f"got {type(problem).__name__}"
        )
    return data


def load(problem: Any) -> Instance:
    """Read and validate a problem.

    Parameters
    ----------
    problem : object or mapping
        Object with a method `to_data`, or the dict itself.

    Raises
    ------
    ValueError
        A field is not as SCHEMA.md says; the message names it.
    TypeError
        Not a problem at all.
    """
    data = plain_data(problem)
    try:
        plain = canonical(data)
    except Verdict as refusal:
        raise ValueError(f"problem data: {refusal}") from None
    n, d = plain["n_nodes"], plain["dim"]
    with np.errstate(over="ignore", under="ignore"):
        cap = float(data["lam"] if not isinstance(data["lam"], str) else
                    float.fromhex(data["lam"])) * floats(plain["weights"])  # fmt: skip
    return Instance(
        plain,
        n,
        d,
        np.array(plain["edges"], dtype=np.int64).reshape(-1, 2),
        cap,
        penalty_from(decoded(plain["penalty"])),
        tuple(term_from(decoded(t), n, d) for t in plain["terms"] if t["kind"] != "opaque"),
        tuple(t["name"] for t in (*plain["terms"], plain["penalty"]) if t["kind"] == "opaque"),
    )


def floats(values: list[str]) -> FloatArray:
    """Return canonical hexadecimal floats as an array."""
    return np.array([float.fromhex(v) for v in values], dtype=np.float64)


def decoded(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return one penalty or term with its hexadecimal floats as arrays."""
    out: dict[str, Any] = {}
    for key, value in field.items():
        if key == "node":
            out[key] = np.array(value, dtype=np.int64)
        elif key in ("kind", "name"):
            out[key] = value
        elif isinstance(value, str):
            out[key] = float.fromhex(value)
        elif value and isinstance(value[0], list):
            out[key] = np.array([[float.fromhex(v) for v in row] for row in value])
        else:
            out[key] = floats(value)
    return out


def as_table(value: Any, shape: tuple[int, int], name: str) -> FloatArray:
    """Return an array of finite doubles of the given shape, or raise an error that names it."""
    try:
        array = np.array(real_numbers(value, name), dtype=np.float64)
    except OverflowError:
        raise ValueError(f"{name} must be an array of numbers of shape {shape}") from None
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        kind = "node" if name != "u" else "edge"
        raise ValueError(f"{name} has NaN or infinity at {kind} {row}")
    return array
