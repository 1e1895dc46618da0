"""A certificate of a problem in pieces, written by all processes together."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from verify.certificates.pieces._data import members_of
from verify.certificates.pieces._exact_point import exact_points
from verify.certificates.pieces._file import Contents, written
from verify.certificates.pieces._float_point import Read, float_points, read
from verify.certificates.pieces._numbers import Numbers, numbered
from verify.certificates.pieces._piece import Piece, Team, Whole
from verify.certificates.pieces._tables import Member, flow, multipliers, points, table
from verify.certificates.pieces._terms import TermForm, common_terms, head_of
from verify.kernel.data import ROWS
from verify.kernel.result import Result

#: Bytes of a member that each process sends at once.
WINDOW = 1 << 24
#: Labels of JSON text that a file may have (`verify.kernel.large.content`), and what one of n
#: numbers takes at most.
_MOST_LABELS, _LABEL = 1 << 26, 11


def certify_pieces(
    team: Team,
    whole: Whole,
    pieces: list[Piece],
    path: str | os.PathLike[str],
    rtol: float = 1e-6,
    *,
    window: int = WINDOW,
) -> Result | None:
    """Prove how far w is from optimal, where no process has all of it, and write the document.

    All processes call this with their pieces, at least one each. The flow has to be one of a
    solution, conserved up to rounding: nothing is solved here.

    Parameters
    ----------
    team : Team
    whole : Whole
    pieces : list of Piece
        Those of this process, in order of their numbers; rows of ghosts and of cut edges equal
        those of their owners.
    path : str or path
        Of the document, a `.gtvc` file, for the first process.
    rtol : float
        As of `verify.certify`.
    window : int
        Bytes of a member that the first process holds at once.

    Returns
    -------
    Result or None
        What the kernel says of the file, at the first process; None elsewhere. UNPROVED, and a
        document without bound, where no exact witness is found next to u.

    Raises
    ------
    NoPieces
        Data that have no form in arrays, a penalty with a matrix; raised in all processes.
    ValueError
        Bad data, a path that is no regular file, more than 4 GB.
    OSError
        The file cannot be written.
    """
    if not (np.isfinite(rtol) and rtol >= 0):
        raise ValueError(f"rtol must be finite and not negative, got {rtol!r}")
    forms, places = common_terms(team, whole, pieces)
    parts = read(team, whole, pieces, rtol)
    numbers, rows = numbered(team, whole, pieces, places, len(forms), window)
    labelled = whole.labelled or _LABEL * whole.n_nodes <= _MOST_LABELS
    data = members_of(whole, parts, numbers, forms, places, rows, labelled)
    w, own = points(team, parts, numbers, whole.n_nodes)
    dual, witness = _dual(team, whole, parts, numbers, forms, places, rows)
    head = head_of(whole, forms, rows, labelled)
    contents = Contents(head, data, {"w": w, "dual": dual}, [*own, *witness])
    return written(team, contents, path, float(rtol), window)


def _dual(
    team: Team,
    whole: Whole,
    parts: list[Read],
    numbers: list[Numbers],
    forms: list[TermForm],
    places: list[list[int]],
    rows: list[int],
) -> tuple[dict[str, Any] | None, list[Member]]:
    """Return the exact witness next to u and its arrays; None where there is none."""
    floats = float_points(team, parts)
    found = None if floats is None else exact_points(team, parts, floats, places, len(forms))
    if found is None:
        return None, []
    grid, absorbers = found
    own = [flow(one, at) for one, at in zip(absorbers, numbers, strict=True)]
    u, members = table(team, "u", own, grid.k_u, grid.k, whole.n_edges)
    r = []
    for t, form in enumerate(forms):
        columns = 1 if form.kind in ROWS else whole.dim
        given = zip(absorbers, numbers, places, strict=True)
        own = [multipliers(one, at, of, t, columns) for one, at, of in given]
        layers, more = table(team, f"r/{t}", own, grid.k_r[t], grid.k, rows[t])
        r.append(layers)
        members += more
    return {"u": u, "r": r}, members
