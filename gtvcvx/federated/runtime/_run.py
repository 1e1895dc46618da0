"""What a simulation returns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import verify
from gtvcvx._arrays import FloatArray
from gtvcvx.federated._network import Network
from gtvcvx.federated.algorithms import Algorithm
from gtvcvx.federated.runtime._history import History
from gtvcvx.federated.runtime._saved import SavedRun, outcome_lines, run_html
from gtvcvx.problem import GTVProblem
from verify._display import fields_text, fitted


@dataclass(frozen=True)
class Uncertified:
    """In place of a certificate, where an algorithm solves no convex problem exactly.

    Attributes
    ----------
    status : str
        "UNPROVED".
    reason : str
    distance : float or None
        Largest distance of a node's vector from the optimum of the nearest problem.
    """

    reason: str
    distance: float | None = None
    status: str = "UNPROVED"

    def __repr__(self) -> str:
        return fields_text(self)


@dataclass
class Run:
    """A federated run: the models, how they came about, and how good they are.

    Attributes
    ----------
    w : ndarray
        Vectors of the nodes of ``problem``, (n, d) where there is none. A star has its centre as
        the last node; a pooled problem has one node.
    models : ndarray, shape (n, d)
        Each client's model.
    u : ndarray, shape (m, d), or None
        Feasible flow of the best lower bound.
    history : History
    status : str
        "finished", "diverged", "interrupted" or "time_limit".
    message : str
        Where and why a run ended early.
    rounds : int
        Rounds done.
    problem : GTVProblem or None
        What the algorithm solves.
    reason : str
        Why there is no certificate; "" where there can be one.
    algorithm : Algorithm
    net : Network
        With the links that the algorithm used.
    nodes : sequence
        Labels of the clients.
    reports : sequence of Report
        The participants' last states.
    seed : int
    seconds : float
    """

    w: FloatArray
    models: FloatArray
    u: FloatArray | None
    history: History
    status: str
    message: str
    rounds: int
    problem: GTVProblem | None
    reason: str
    algorithm: Algorithm
    net: Network
    nodes: Sequence[Any]
    reports: Sequence[Any] = field(repr=False)
    seed: int
    seconds: float

    @property
    def name(self) -> str:
        """How tables and pictures call the run: by its algorithm."""
        return self.algorithm.name

    def certificate(self, rtol: float = 1e-6, **options: Any) -> Any:
        """Return a certificate of ``w`` for ``problem``, by `verify.certify`.

        Parameters
        ----------
        rtol : float
            Relative gap that counts as proved.
        **options
            Others of `verify.certify`, such as ``search`` and ``time_limit``.

        Returns
        -------
        verify.Certificate or Uncertified
            The latter where there is no problem, or the run diverged.
        """
        if self.status == "diverged":
            return Uncertified(f"the run diverged: {self.message}")
        if self.problem is None:
            return Uncertified(*self._unproved())
        return verify.certify(self.problem, self.w, self.u, rtol, **options)

    def _unproved(self) -> tuple[str, float | None]:
        target = self.algorithm.target(self.net)
        if target is None:
            return self.reason, None
        # The distance is told to about three digits: a gap this small is beyond them.
        optimum = target.solve(rtol=1e-9)
        distance = float(np.linalg.norm(self.w - optimum.w, axis=1).max())
        return f"{self.reason}; distance to the optimum: {distance:.3g}", distance

    def privacy_report(self) -> Any:
        """Return what each client's releases amount to; see `gtvcvx.federated.privacy`.

        Raises
        ------
        ValueError
            The algorithm gives no guarantee of privacy.
        """
        report = getattr(self.algorithm, "privacy_report", None)
        if report is None:
            raise ValueError(
                f"{self.algorithm.name} gives no guarantee of privacy: what leaves a client is "
                "not noisy, or not by a known sensitivity"
            )
        return report(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write models, flow and history to an npz file, atomically; see `SavedRun.load`."""
        saved = SavedRun(
            name=self.name,
            algorithm=repr(self.algorithm),
            nodes=self.nodes,
            w=self.w,
            models=self.models,
            u=self.u,
            history=self.history,
            status=self.status,
            message=self.message,
            reason=self.reason,
            rounds=self.rounds,
            seed=self.seed,
            seconds=self.seconds,
        )
        saved.save(path)

    def __repr__(self) -> str:
        return fitted([f"Run of {self.algorithm!r}", f"  {self.net!r}", *outcome_lines(self)])

    def _repr_html_(self) -> str:
        return run_html(f"Run of {self.algorithm!r}", self)
