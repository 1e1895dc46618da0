"""Certificates of distributed runs: each worker gives its rows, and no process holds the whole.

Small problems that have no certificate in pieces are gathered at rank 0, where there is more that
can be tried.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import verify
from gtvcvx._arrays import FloatArray
from gtvcvx.distributed._alone import alone
from gtvcvx.distributed._gathered import gathered_pair, gathered_problem
from gtvcvx.distributed._gathering import Gathering
from gtvcvx.distributed._parts import Part, Parts
from gtvcvx.losses.batched._terms import FIELDS
from verify import Result
from verify.certificates.pieces import NoPieces, Piece, Whole, certify_pieces

_UNPROVED = "UNPROVED"


def certify_parts(
    parts: Parts,
    w: Sequence[FloatArray],
    u: Sequence[FloatArray],
    path: str | os.PathLike[str],
    rtol: float = 1e-6,
) -> Result | None:
    """Write a certificate of (w, u) and let the kernel check it; all workers call this.

    Parameters
    ----------
    parts : Parts
    w, u : sequence of ndarray, shapes (k, d) and (l, d) a part
        A solution, its flow conserved up to rounding. Ghosts and cut edges need not be fresh.
    path : str or path-like
        Of the document, which rank 0 writes, whole or not at all; ``.gtvc`` by custom.
    rtol : float
        Relative gap that is to be proved.

    Returns
    -------
    Result or None
        What the kernel says of the file, at rank 0; None elsewhere.

    Raises
    ------
    ValueError
        Losses or a penalty that have no form there, of a problem that is not small
        (`verify.certify` may know a gathered solution of them), or more than 4 GB.
    OSError
        The file cannot be written.
    """
    nodes, edges = [a.copy() for a in w], [a.copy() for a in u]
    parts.refresh(nodes)
    parts.refresh_edges(edges)
    pieces = [_piece(*some) for some in zip(parts, nodes, edges, strict=True)]
    small = Gathering.fits(parts)
    result: Result | None = None
    try:
        result = certify_pieces(parts, whole_of(parts), pieces, path, rtol)
    except NoPieces:  # in all workers
        if not small:
            raise
    unproved = parts.fabric.rank == 0 and (result is None or result.status == _UNPROVED)
    if not (float(parts.most([float(unproved) for _ in parts])) and small):
        return result
    return _certified_alone(parts, nodes, edges, path, rtol)


def _certified_alone(
    parts: Parts,
    w: Sequence[FloatArray],
    u: Sequence[FloatArray],
    path: str | os.PathLike[str],
    rtol: float,
) -> Result | None:
    """Certify the gathered problem at rank 0."""
    whole, pair = gathered_problem(parts), gathered_pair(parts, w, u)
    results: list[Result] = []

    def work() -> list[FloatArray]:
        assert whole is not None
        assert pair is not None
        found = whole.start(pair, {})
        verify.certify(whole.problem, found.w, found.u, rtol).save(path)
        results.append(verify.check(path, rtol=rtol))
        return []

    alone(parts, work)
    return results[0] if results else None


def whole_of(parts: Parts) -> Whole:
    """Return what is known of the whole."""
    manifest = parts.manifest
    return Whole(
        n_nodes=manifest.n_nodes,
        n_edges=manifest.n_edges,
        dim=manifest.dim,
        lam=manifest.lam,
        penalty=manifest.penalty,
        labelled=manifest.labelled,
        kinds=tuple(FIELDS),
    )


def _piece(part: Part, w: FloatArray, u: FloatArray) -> Piece:
    shard = part.shard
    return Piece(
        number=shard.number,
        nodes=shard.nodes,
        owners=shard.owners,
        edges=shard.edges,
        weights=shard.weights,
        terms=shard.terms,
        labels=shard.labels,
        w=w,
        u=u,
    )
