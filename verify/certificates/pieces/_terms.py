"""The terms of the whole, which pieces have some of, and the head of its data."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from verify.certificates.pieces._piece import Piece, Team, Whole, gathered, told
from verify.kernel.data import canonical, term_arrays


class TermForm(NamedTuple):
    """What terms of different pieces have in common if they are one of the whole."""

    kind: str
    weighted: bool
    wide: bool  # two axes where one is possible, too
    number: int  # among those of this kind that a piece has

    @property
    def arrays(self) -> dict[str, bool | None]:
        """Its arrays but the nodes, and whether their rows are d wide (None: as `wide` says)."""
        return term_arrays(self.kind, self.weighted)

    def columns(self, key: str, dim: int) -> int:
        """Return the columns of an array."""
        found = self.arrays[key]
        return dim if (self.wide if found is None else found) else 1

    def head(self, rows: int) -> dict[str, Any]:
        """Return what the head of the data says of it."""
        out: dict[str, Any] = {"kind": self.kind, "rows": rows}
        if self.weighted:
            out["weighted"] = True
        if None in self.arrays.values():
            out["wide"] = self.wide
        return out


def common_terms(
    team: Team, whole: Whole, pieces: list[Piece]
) -> tuple[list[TermForm], list[list[int]]]:
    """Return the terms of the whole, and which of them each piece's are.

    Where nodes have several terms of a kind, the second one of the whole has those that the first
    one has, too, and so in every piece: terms of a kind and a number belong together.
    """
    forms = [_forms(piece) for piece in pieces]
    found = gathered(team, forms)
    answer = None
    if found is not None:
        every = {TermForm(*form) for some in found for form in some}
        answer = sorted(every, key=lambda f: (whole.kinds.index(f.kind), f.weighted, f[2:][::-1]))
    terms = [TermForm(*form) for form in told(team, answer)]
    return terms, [[terms.index(form) for form in some] for some in forms]


def _forms(piece: Piece) -> list[TermForm]:
    seen: Counter[tuple[str, bool]] = Counter()
    out = []
    for term in piece.terms:
        key = term["kind"], "weight" in term
        open_ended = [name for name, wide in term_arrays(*key).items() if wide is None]
        wide = any(np.ndim(term[name]) == 2 for name in open_ended)
        out.append(TermForm(*key, wide, seen[key]))
        seen[key] += 1
    return out


def head_of(whole: Whole, terms: list[TermForm], rows: list[int], labelled: bool) -> dict[str, Any]:
    """Return the head of the data, in canonical form."""
    plain = canonical(
        {
            "schema": "gtv-problem/1",
            "n_nodes": whole.n_nodes,
            "dim": whole.dim,
            "edges": [],
            "weights": [],
            "lam": whole.lam,
            "penalty": whole.penalty,
            "terms": [],
        }
    )
    head = {k: v for k, v in plain.items() if k not in ("edges", "weights", "terms")}
    head |= {
        "n_edges": whole.n_edges,
        "terms": [term.head(n) for term, n in zip(terms, rows, strict=True)],
    }
    return head | ({"nodes": True} if labelled else {})
