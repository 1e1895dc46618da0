"""Regularizers and constraints of single nodes: losses by themselves, mostly added to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gtvcvx._arrays import FloatArray, finite_array, integer_array, real_array
from gtvcvx.losses._loss import PlainLoss
from gtvcvx.losses.batched._terms import Term, check_bounds, check_parameter
from verify._display import short

_NODE = np.zeros(1, dtype=np.int64)


def entries(name: str, value: Any, dim: int | None) -> FloatArray:
    """Return a parameter >= 0 for each entry of w (dim,); a number where the dimension is open."""
    array = real_array(value, name)
    by_entry = array.ndim == 1 and array.size > 0 and dim in (None, array.size)
    if array.ndim and not by_entry:
        expected = "(d,)" if dim is None else f"({dim},)"
        raise ValueError(
            f"{name}: a number or an array of shape {expected} is expected, got {array.shape}"
        )
    array = finite_array(np.atleast_1d(array), name, 1)
    check_parameter(name, array)
    return np.broadcast_to(array, (len(array) if dim is None else dim,)).copy()


def entries_but_intercept(
    name: str, value: Any, dim: int, intercept: int | Sequence[int] | None
) -> FloatArray:
    """Return a parameter >= 0 for each entry of w (dim,), zero at constant columns."""
    out = entries(name, value, dim)
    if intercept is not None:
        columns = np.atleast_1d(integer_array(intercept, "intercept"))
        wrong = np.flatnonzero((columns < 0) | (columns >= dim))
        if wrong.size:
            raise ValueError(
                f"intercept: a column 0..{dim - 1} is expected, got {int(columns[wrong[0]])}"
            )
        out[columns] = 0.0
    return out


class _EntryTerm(PlainLoss):
    """A ridge or an l1 term: one number >= 0 for all entries of w, or one for each."""

    _kind: str
    _name: str

    def _set(self, value: ArrayLike) -> None:
        self._values = entries(self._name, value, None)
        self.dim: int | None = len(self._values) if np.ndim(value) else None

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the term, at node 0."""
        values = np.broadcast_to(self._values, (1, dim)).copy()
        return [{"kind": self._kind, "node": _NODE, self._name: values}]

    def __repr__(self) -> str:
        value = short(self._values) if self.dim else float(self._values[0])
        return f"{type(self).__name__}({value})"


class Ridge(_EntryTerm):
    r"""Squared Euclidean norm, ``L(w) = (1/2) sum_j mu_j w_j^2``.

    Parameters
    ----------
    mu : float or array_like of shape (d,)
        mu >= 0; zero where an entry, an intercept say, is not penalized.
    """

    _kind, _name = "ridge", "mu"

    def __init__(self, mu: ArrayLike) -> None:
        self._set(mu)


class L1(_EntryTerm):
    r"""l1 norm, ``L(w) = sum_j kappa_j |w_j|``.

    Parameters
    ----------
    kappa : float or array_like of shape (d,)
        kappa >= 0; zero where an entry, an intercept say, is not penalized.
    """

    _kind, _name = "l1", "kappa"

    def __init__(self, kappa: ArrayLike) -> None:
        self._set(kappa)


class Box(PlainLoss):
    """Constraint ``lower <= w <= upper``.

    Parameters
    ----------
    lower, upper : float or array_like of shape (d,)
        -inf and +inf stand for no bound.
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        self._lower, self._upper = (
            np.atleast_1d(real_array(bound, name)).copy()
            for name, bound in (("lower", lower), ("upper", upper))
        )
        lengths = set()
        for name, bound in (("lower", lower), ("upper", upper)):
            if np.ndim(bound) > 1:
                raise ValueError(
                    f"{name}: a number or an array of shape (d,) is expected, got {np.shape(bound)}"
                )
            if np.ndim(bound) == 1:
                lengths.add(np.shape(bound)[0])
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(f"lower, upper: equal lengths >= 1 are expected, got {lengths}")
        self.dim: int | None = lengths.pop() if lengths else None
        check_bounds(*np.broadcast_arrays(self._lower, self._upper))

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the term, at node 0."""
        lower, upper = (
            np.broadcast_to(bound, (1, dim)).copy() for bound in (self._lower, self._upper)
        )
        return [{"kind": "box", "node": _NODE, "lower": lower, "upper": upper}]

    def __repr__(self) -> str:
        lower, upper = (short(b) if self.dim else float(b[0]) for b in (self._lower, self._upper))
        return f"Box({lower}, {upper})"


class Nonnegative(Box):
    """Constraint ``w >= 0``."""

    def __init__(self) -> None:
        super().__init__(0.0, np.inf)

    def __repr__(self) -> str:
        return "Nonnegative()"


class Simplex(PlainLoss):
    """Constraint ``w >= 0, sum_j w_j = total``.

    Parameters
    ----------
    total : float, default 1.0
        > 0.
    """

    dim = None

    def __init__(self, total: float = 1.0) -> None:
        array = real_array(total, "total")
        if array.ndim:
            raise ValueError(f"total: a number is expected, got shape {array.shape}")
        check_parameter("total", finite_array(np.atleast_1d(array), "total", 1))
        self.total = float(array)

    def plain_terms(self, dim: int) -> list[Term]:
        """Return the term, at node 0."""
        return [{"kind": "simplex", "node": _NODE, "total": np.array([self.total])}]

    def __repr__(self) -> str:
        return f"Simplex({self.total})"
