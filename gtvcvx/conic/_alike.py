"""Conic forms of functions that differ in their constants alone, from one canonicalization.

Losses of many nodes are mostly one expression with other data. Constants become CVXPY's parameters
here: where its rules for these hold, the conic data are affine in them (Agrawal et al. 2019,
"Differentiable convex optimization layers").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx._deadline import look
from gtvcvx._lazy import cp, sp
from gtvcvx.conic._form import ConicForm, cones_of
from gtvcvx.conic._joint import Part

# Of fewer functions parameters save nothing.
FEWEST = 6
# Larger expressions and constants are left to CVXPY: with many parameters it takes its time.
MOST_TERMS, MOST_ENTRIES = 1_000, 5_000


# From tensors the constants come as CVXPY itself makes them, but for so much of the largest.
ROUNDING = 1e-12


class Kind(NamedTuple):
    """A function, and its constants apart: those of a kind have equal keys."""

    key: tuple[Any, ...]
    values: list[FloatArray]  # in the order in which they are met


class UnknownTermError(Exception):
    """A term of CVXPY about which it is not known what it consists of."""


def forms_of_kinds(parts: Sequence[Part]) -> list[ConicForm | None]:
    """Return the forms of functions of which there are many of a kind; None of others."""
    kinds: dict[tuple[Any, ...], list[tuple[int, list[FloatArray]]]] = {}
    found: list[ConicForm | None] = [None] * len(parts)
    if len(parts) < FEWEST:
        return found
    for i, part in enumerate(parts):
        look()
        kind = kind_of(part)
        if kind is not None:
            kinds.setdefault(kind.key, []).append((i, kind.values))
    for alike in kinds.values():
        if len(alike) < FEWEST:
            continue
        try:
            forms = forms_alike(parts[alike[0][0]], [values for _, values in alike])
        except (cp.error.DCPError, cp.error.SolverError, ValueError):
            continue  # it takes no parameters there
        except (AttributeError, ImportError, LookupError, TypeError):
            continue  # another version of CVXPY may have other tensors
        for (i, _), form in zip(alike, forms or (), strict=False):
            found[i] = form
    return found


def kind_of(part: Part) -> Kind | None:
    """Return what a function consists of; None where that is not known."""
    reader = _Reader(part.w)
    try:
        cost = reader.arguments([part.cost])
        rules = [reader.rule(rule) for rule in part.constraints]
    except UnknownTermError:
        return None
    return Kind((part.w.size, cost, *rules), reader.values)


def forms_alike(part: Part, values: Sequence[Sequence[FloatArray]]) -> list[ConicForm] | None:
    """Return the forms of functions of one kind, for the constants of each.

    Parameters
    ----------
    part : Part
        One of them.
    values : sequence of sequence of ndarray
        What `Kind.values` is of each.

    Returns
    -------
    None where CVXPY's rules for parameters do not hold, or its tensors are other than known.
    """
    leaves = [_leaf(np.array(each)) for each in zip(*values, strict=True)]
    [cost], *rules = _copied(part, leaves)
    problem = cp.Problem(cp.Minimize(cost), [rule for [rule] in rules])
    if not problem.is_dcp(dpp=True):
        return None
    data, _, inverse = problem.get_problem_data(cp.CLARABEL)
    stacked = {
        leaf.id: np.array([of_one[i].ravel(order="F") for of_one in values]).T
        for i, leaf in enumerate(leaves)
        if isinstance(leaf, cp.Parameter)
    }
    forms = list(_forms(data, part.w, stacked, len(values)))
    # CVXPY's tensors are not public: where another version lays them out otherwise, it shows here.
    first = ConicForm.read(data, float(inverse[-1]["offset"]), part.w)
    return forms if agree(forms[0], first) else None


def agree(one: ConicForm, other: ConicForm) -> bool:
    """Say whether two forms are the same but for rounding."""
    if (one.dim, one.cones) != (other.dim, other.cones):
        return False
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("P", "A", "q", "b")]
    pairs.append((np.array([one.offset]), np.array([other.offset])))
    return all(
        a.shape == b.shape and abs(a - b).max() <= ROUNDING * abs(b).max()
        for a, b in pairs
        if a.shape != b.shape or 0 not in a.shape
    )


def _leaf(values: FloatArray) -> cp.Constant | cp.Parameter:
    """Return what stands for a constant (K, ...): a parameter where functions differ in it."""
    first = values[0]
    if (values == first).all():
        return cp.Constant(first)
    signs = {"nonneg": bool((values >= 0.0).all()), "nonpos": bool((values <= 0.0).all())}
    return cp.Parameter(first.shape, value=first, **signs)


class _Reader:
    """Reads expressions; what no variable is in counts as one constant.

    Attributes
    ----------
    values : list of ndarray
        The constants that were met.
    """

    def __init__(self, w: cp.Variable) -> None:
        self.values: list[FloatArray] = []
        self._variables = {w.id: 0}  # in the order in which they are met
        self._left = MOST_TERMS

    def rule(self, rule: cp.Constraint) -> tuple[Any, ...]:
        """Return what is equal for constraints of a kind."""
        if not type(rule).__module__.startswith("cvxpy.constraints."):
            raise UnknownTermError
        *data, own = rule.get_data()
        if own != rule.id:
            raise UnknownTermError
        return type(rule), _plain(data), self.arguments(rule.args)

    def arguments(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return what is equal for arguments of a kind, and take notice of the constants."""
        keys = [self._key(arg) for arg in args]
        return tuple(
            self._constant(arg) if key is None else key for arg, key in zip(args, keys, strict=True)
        )

    def _key(self, term: Any) -> tuple[Any, ...] | None:
        """Return the same for a term; None for a constant, of which no notice is taken yet."""
        self._left -= 1
        if self._left < 0:
            raise UnknownTermError
        if isinstance(term, cp.Variable):
            number = self._variables.setdefault(term.id, len(self._variables))
            return "variable", number, term.shape, _plain(term.attributes)
        if isinstance(term, cp.Constant):
            return None
        atom = isinstance(term, cp.atoms.atom.Atom)
        if not atom or not type(term).__module__.startswith("cvxpy.atoms."):
            raise UnknownTermError
        if not term.variables():
            return None
        return type(term), _plain(term.get_data()), term.shape, self.arguments(term.args)

    def _constant(self, term: cp.Expression) -> tuple[Any, ...]:
        self.values.append(_value(term))
        return "constant", term.shape


def _value(term: cp.Expression) -> FloatArray:
    """Return the value of a constant as a real array."""
    if term.size > MOST_ENTRIES or not term.is_real():
        raise UnknownTermError
    value = term.value
    value = value.toarray() if sp.issparse(value) else value
    return np.asarray(value, dtype=np.float64).reshape(term.shape)


def _plain(data: Any) -> Any:
    """Return what an expression is made of beside its arguments, to be compared."""
    if data is None or isinstance(data, (bool, int, float, str, np.number)):
        return type(data).__name__, data
    if isinstance(data, (tuple, list)):
        return tuple(_plain(item) for item in data)
    if isinstance(data, dict):
        return tuple((key, _plain(item)) for key, item in data.items())
    if isinstance(data, slice):
        return "slice", data.start, data.stop, data.step
    if isinstance(data, np.ndarray) and data.dtype != object:
        return "array", data.shape, data.dtype.str, data.tobytes()
    if isinstance(data, cp.Constant):
        return _plain(_value(data))
    raise UnknownTermError


def _copied(part: Part, leaves: Sequence[cp.Expression]) -> list[list[Any]]:
    """Return the cost, and each constraint, with other constants in the order of `_Reader`."""
    numbers = count()

    def copied(args: Sequence[Any]) -> list[Any]:
        # The constants among arguments come after those inside them.
        inner = [
            arg.copy(copied(arg.args)) if arg.variables() and arg.args else arg for arg in args
        ]
        return [arg if arg.variables() else leaves[next(numbers)] for arg in inner]

    return [copied([part.cost]), *([r.copy(copied(r.args))] for r in part.constraints)]


def _forms(
    data: Mapping[str, Any], w: cp.Variable, given: Mapping[int, FloatArray], K: int
) -> Iterator[ConicForm]:
    """Yield the form for each column of the parameters given, (size, K) by number."""
    program = data["param_prob"]
    parameters = np.ones((program.total_param_size + 1, K))  # constants are times one
    for number, column in program.param_id_to_col.items():
        if number in given:
            parameters[column : column + len(given[number])] = given[number]
    N, M, start = len(data["c"]), len(data["b"]), program.var_id_to_col[w.id]
    place = np.arange(N + 1)  # the variable w goes first; constants are the last column
    place[:start] += w.size
    place[start : start + w.size] -= start
    q = _Entries.of(program.q, 1, place, parameters)
    A = _Entries.of(program.A, M, place, parameters)
    P = None if program.P is None else _Entries.of(program.P, N, place, parameters)
    P = None if P is None else P._replace(row=place[P.row])
    sides, rows = A.of_column(N, M), A.before(N)
    slopes = np.zeros((N + 1, K))
    slopes[q.column] = q.value
    cones = tuple(cones_of(data["dims"]))
    for k in range(K):
        yield ConicForm(
            dim=w.size,
            P=sp.csc_array((N, N)) if P is None else P.matrix(k, N, N),
            q=slopes[:N, k].copy(),
            A=rows.matrix(k, M, N),
            b=sides[:, k].copy(),
            offset=float(slopes[N, k]),
            cones=cones,
        )


class _Entries(NamedTuple):
    """Entries of K matrices that differ in their values, by columns."""

    row: IntArray  # (E,)
    column: IntArray  # (E,)
    value: FloatArray  # (E, K)

    @staticmethod
    def of(tensor: Any, rows: int, place: IntArray, parameters: FloatArray) -> _Entries:
        """Apply parameters (p, K) to CVXPY's tensor (rows columns, p), columns in new places."""
        tensor = sp.csr_array(tensor)
        filled = np.flatnonzero(np.diff(tensor.indptr))
        column, row = np.divmod(filled, max(rows, 1))
        column = place[column]
        order = np.lexsort((row, column))
        return _Entries(row[order], column[order], tensor[filled[order], :] @ parameters)

    def before(self, column: int) -> _Entries:
        """Return those of the first columns, with the other sign."""
        some = self.column < column
        return _Entries(self.row[some], self.column[some], -self.value[some])

    def of_column(self, column: int, rows: int) -> FloatArray:
        """Return one column of each matrix, (rows, K)."""
        some = self.column == column
        found = np.zeros((rows, self.value.shape[1]))
        found[self.row[some]] = self.value[some]
        return found

    def matrix(self, k: int, rows: int, columns: int) -> sp.csc_array:
        """Return one of the matrices."""
        value = self.value[:, k]
        some = value != 0.0
        ends = np.cumsum(np.bincount(self.column[some], minlength=columns))
        entries = value[some], self.row[some], np.concatenate([[0], ends])
        return sp.csc_array(entries, shape=(rows, columns))
