"""Runs of the methods of [PGFL] over seeds, beside the certified optimum of what each solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pgfl._setting import REGRESSION
from pgfl._systems import (
    ZETA,
    Method,
    Setting,
    Source,
    System,
    algorithm_of,
    network_of,
    releases,
)

import verify
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray, IntArray
from gtvcvx.experiments import Curve, Level, Study, gap_text

# Relative gap to which optima are solved and certified: far below what a figure shows.
_RTOL = 1e-8
#: delta of every eps that is shown.
DELTA = 1e-5
_Cell = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Runs:
    """A method over several seeds.

    Attributes
    ----------
    label : str
    rounds : ndarray, shape (k,)
    scores : ndarray, shape (seeds, k)
        Mean over the clients, of NMSD (53) or of accuracy.
    optimum : ndarray, shape (seeds,)
        The same at the certified optimum of the pooled problems that the method aims at.
    of_clusters : ndarray, shape (seeds, Q)
        The same for the clients of each cluster.
    final : str
        What is proved of the last round.
    assumed_eps, proved_eps : ndarray, shape (seeds,)
        (51) with C_k = 1, and with the bound that holds; NaN without noise.
    """

    label: str
    rounds: FloatArray
    scores: FloatArray
    optimum: FloatArray
    of_clusters: FloatArray
    final: str
    assumed_eps: FloatArray
    proved_eps: FloatArray

    def at(self, round_: int) -> FloatArray:
        """Return the scores (seeds,) after a round, or after the last one if there are fewer."""
        return self.scores[:, np.searchsorted(self.rounds, min(round_, self.rounds[-1]))]

    @property
    def last(self) -> FloatArray:
        """Scores (seeds,) after the last round."""
        return self.scores[:, -1]

    def curve(self) -> Curve:
        """Return the scores against rounds."""
        return Curve(self.label, self.rounds, self.scores, self.final)

    def levels(self) -> list[Level]:
        """Return the lines of the certified optimum: of all clients, and of single clusters."""
        of = self.of_clusters
        values = {
            "lowest of clusters": of.min(axis=1),
            "all clients": self.optimum,
            "highest of clusters": of.max(axis=1),
        }
        return [
            Level(
                f"pooled optimum, {who}",
                float(value.mean()),
                "optimum" if value is self.optimum else "other",
            )
            for who, value in values.items()
        ]


def runs_of(
    study: Study,
    setting: Setting,
    method: Method,
    seeds: int | None = None,
    source: Source = REGRESSION,
) -> Runs:
    """Run a method for all seeds, or the first ones, or take what is stored."""
    used = list(study.seeds)[:seeds]
    optima = [_optimum(study, setting, method, seed, source) for seed in used]
    cells = [
        study.cell(
            f"{source.name}{method} {setting} seed {seed}",
            partial(_run, setting, method, seed, source),
        )
        for seed in used
    ]
    far = max(_distance(c["w"], best["w"]) for c, best in zip(cells, optima, strict=True))
    return Runs(
        method.label,
        cells[0]["rounds"],
        np.array([cell["scores"] for cell in cells]),
        np.array([float(optimum["score"]) for optimum in optima]),
        np.array([optimum["of_clusters"] for optimum in optima]),
        _final(cells, far),
        np.array([float(cell["assumed_eps"]) for cell in cells]),
        np.array([float(cell["proved_eps"]) for cell in cells]),
    )


def _distance(w: FloatArray, optimum: FloatArray) -> float:
    """Return the largest distance of a pooled problem's farthest server, over the optimum."""
    lengths = np.linalg.norm(optimum, axis=1)
    return float(np.max(np.linalg.norm(w - optimum, axis=1) / lengths))


def _final(cells: list[_Cell], distance: float) -> str:
    reason = str(cells[0]["reason"])
    if not reason:
        return gap_text([float(cell["gap"]) for cell in cells])
    return f"no certificate: {reason}; {distance:.1e} of the optimum's length away from it"


def _run(setting: Setting, method: Method, seed: int, source: Source) -> Mapping[str, ArrayLike]:
    """Run a method once, and keep the score after every round."""
    system = source.draw(setting, seed)
    seen: list[tuple[int, float]] = []

    def watch(progress: fed.RoundProgress) -> None:
        seen.append((progress.round, float(system.score(progress.models).mean())))

    run = fed.simulate(
        algorithm_of(setting, method, system, seed),
        network_of(system, method),
        setting.rounds,
        sampling=None if method.scheduled is None else fed.Sampling(method.scheduled),
        seed=seed,
        record_every=1,
        callback=watch,
    )
    if run.status != "finished":
        raise RuntimeError(f"{method.label}, seed {seed}: {run.status}: {run.message}")
    rounds, scores = zip(*seen, strict=True)
    return {
        "rounds": rounds,
        "scores": scores,
        "w": run.w,
        "reason": run.reason,
        "gap": _proved_gap(run),
        **_budgets(setting, method, system, run),
    }


def _proved_gap(run: fed.Run) -> float:
    """Return the relative gap of the last state, NaN where there is no problem.

    Pooled problems have no edges, and need no flow as a witness.
    """
    if run.problem is None:
        return np.nan
    certificate = run.certificate(search=False)
    proved = certificate.exact and certificate.status != "REFUTED"
    return float(certificate.rel_gap) if proved else np.inf


def _optimum(study: Study, setting: Setting, method: Method, seed: int, source: Source) -> _Cell:
    """Return the certified optimum of the pooled problems of a method, and its score.

    It depends on who is pooled and on nothing else of the method, nor on rounds.
    """
    pooled = Method("pooled", linked=method.linked, one_model=method.one_model)
    key = f"{source.name}optimum: {pooled} {setting.at(rounds=1)} seed {seed}"
    return study.cell(key, partial(_solved, setting, pooled, seed, source))


def _solved(setting: Setting, pooled: Method, seed: int, source: Source) -> Mapping[str, ArrayLike]:
    system = source.draw(setting, seed)
    net = network_of(system, pooled)
    target = algorithm_of(setting, pooled, system, seed).target(net)
    if target is None:
        raise RuntimeError("the clients' losses cannot be pooled")
    solution = target.solve(rtol=_RTOL)
    certificate = verify.certify(target, solution.w, solution.u, _RTOL, search=False)
    if certificate.status != "CERTIFIED":
        raise RuntimeError(f"seed {seed}: the pooled optimum is not certified:\n{certificate}")
    scores = system.score(solution.w[pooled_problem_of(system, pooled)])
    sums = np.bincount(system.labels, weights=scores)
    return {
        "w": solution.w,
        "score": scores.mean(),
        "of_clusters": sums / np.bincount(system.labels),
    }


def pooled_problem_of(system: System, method: Method) -> IntArray:
    """Return which pooled problem each client belongs to (n,): by server, then by cluster."""
    n = len(system.labels)
    if method.one_model:
        return np.zeros(n, dtype=np.int64)
    if method.linked:
        return np.asarray(system.labels)
    server = np.repeat(np.arange(system.graph.n_nodes), n // system.graph.n_nodes)
    pairs = server * (system.labels.max() + 1) + system.labels
    return np.asarray(np.unique(pairs, return_inverse=True)[1])


def _budgets(
    setting: Setting, method: Method, system: System, run: fed.Run
) -> Mapping[str, ArrayLike]:
    """Return eps (51), the largest of all clients, for C_k = 1 and for the bound that holds.

    Noise of a fixed seed, by which a run can be repeated, protects nothing: this is the budget of
    the same run with fresh noise.
    """
    if method.variance is None:
        return {"assumed_eps": np.nan, "proved_eps": np.nan}
    private = releases(system, method.variance, 0)
    present: dict[int, tuple[int, ...]] = {}
    for report in run.reports[run.net.n_clients :]:
        present |= report.present
    rows = [model.n_rows for model in run.net.models]
    # One loss, and the same bounds for all: sensitivities differ by the number of rows alone.
    first = private.answer(run.net.models[0], setting.rho, 0.0, "client 0").sensitivity
    proved = [first * rows[0] / m for m in rows]
    assumed = [2.0 / (setting.rho * m) for m in rows]
    return {
        "assumed_eps": largest_eps(assumed, present, method.variance),
        "proved_eps": largest_eps(proved, present, method.variance),
    }


def largest_eps(
    sensitivities: list[float], present: Mapping[int, tuple[int, ...]], variance: float
) -> float:
    """Return (51), the largest over the clients, of releases in the rounds in which each was there.

    Parameters
    ----------
    sensitivities : list of float
        Of each client.
    present : mapping of int to tuple of int
        Rounds of each client.
    variance : float
        delta^2(1).
    """
    accountant = fed.privacy.ZcdpAccountant(range(len(sensitivities)))
    variances = fed.privacy.GeometricVariance(variance, ZETA)
    for k, rounds in present.items():
        for n in rounds:
            accountant.record(k, n, sensitivities[k], variances.variance(n))
    return max(fed.privacy.epsilon_simple(accountant.rho(k), DELTA) for k in present)
