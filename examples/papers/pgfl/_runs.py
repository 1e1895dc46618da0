"""Runs of the methods of [PGFL] over seeds, beside the certified optimum of what each solves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from pgfl._setting import (
    ZETA,
    Method,
    Setting,
    System,
    algorithm_of,
    draw,
    network_of,
    nmsd,
    private_releases,
)

import verify
from gtvcvx import federated as fed
from gtvcvx._arrays import FloatArray
from gtvcvx.experiments import Curve, Level, Study, gap_text, proved_gap

# Relative gap to which optima are solved and certified: far below what an NMSD shows.
_RTOL = 1e-8
#: delta of every eps that is shown.
DELTA = 1e-5


@dataclass(frozen=True)
class Runs:
    """A method over several seeds.

    Attributes
    ----------
    label : str
    rounds : ndarray, shape (k,)
    nmsd : ndarray, shape (seeds, k)
        Mean over the clients (53).
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
    nmsd: FloatArray
    optimum: FloatArray
    of_clusters: FloatArray
    final: str
    assumed_eps: FloatArray
    proved_eps: FloatArray

    def at(self, round_: int) -> FloatArray:
        """Return the NMSD (seeds,) after a round, or after the last one if there are fewer."""
        return self.nmsd[:, np.searchsorted(self.rounds, min(round_, self.rounds[-1]))]

    @property
    def last(self) -> FloatArray:
        """NMSD (seeds,) after the last round."""
        return self.nmsd[:, -1]

    def curve(self, label: str = "") -> Curve:
        """Return the NMSD against rounds."""
        return Curve(label or self.label, self.rounds, self.nmsd, self.final)

    def levels(self) -> list[Level]:
        """Return the lines of the certified optimum: of all clients, and of single clusters."""
        of = self.of_clusters
        values = {
            "best cluster": of.min(axis=1),
            "all clients": self.optimum,
            "worst cluster": of.max(axis=1),
        }
        return [
            Level(f"pooled optimum, {who}", float(value.mean()), "optimum")
            for who, value in values.items()
        ]


def runs_of(study: Study, setting: Setting, method: Method, seeds: int | None = None) -> Runs:
    """Run a method for all seeds, or the first ones, or take what is stored."""
    used = list(study.seeds)[:seeds]
    optima = [_optimum(study, setting, method, seed) for seed in used]
    cells = [
        study.cell(f"{method} {setting} seed {seed}", partial(_run, setting, method, seed))
        for seed in used
    ]
    distances = [
        _distance(cell["w"], optimum["w"]) for cell, optimum in zip(cells, optima, strict=True)
    ]
    return Runs(
        method.label,
        cells[0]["rounds"],
        np.array([cell["nmsd"] for cell in cells]),
        np.array([float(optimum["nmsd"]) for optimum in optima]),
        np.array([optimum["of_clusters"] for optimum in optima]),
        _final(cells, max(distances)),
        np.array([float(cell["assumed_eps"]) for cell in cells]),
        np.array([float(cell["proved_eps"]) for cell in cells]),
    )


def _distance(w: FloatArray, optimum: FloatArray) -> float:
    """Return the largest distance of a pooled problem's farthest server, over the optimum."""
    return float(np.max(np.linalg.norm(w - optimum, axis=1) / np.linalg.norm(optimum, axis=1)))


def _final(cells: list[dict[str, np.ndarray]], distance: float) -> str:
    reason = str(cells[0]["reason"])
    if not reason:
        return gap_text([float(cell["gap"]) for cell in cells])
    return f"no certificate: {reason}; {distance:.1e} of the optimum's length away from it"


def _run(setting: Setting, method: Method, seed: int) -> Mapping[str, ArrayLike]:
    """Run a method once, and keep the NMSD of every record."""
    system = draw(setting, seed)
    net, truth = network_of(system, method), system.truth[system.labels]
    seen: list[tuple[int, float]] = []

    def watch(progress: fed.RoundProgress) -> None:
        seen.append((progress.round, float(nmsd(progress.models, truth).mean())))

    run = fed.simulate(
        algorithm_of(setting, method, seed),
        net,
        setting.rounds,
        sampling=None if method.scheduled is None else fed.Sampling(method.scheduled),
        seed=seed,
        record_every=1,
        callback=watch,
    )
    if run.status != "finished":
        raise RuntimeError(f"{method.label}, seed {seed}: {run.status}: {run.message}")
    rounds, values = zip(*seen, strict=True)
    gap = np.nan if run.problem is None else proved_gap(run.problem, run.w)
    return {
        "rounds": rounds,
        "nmsd": values,
        "w": run.w,
        "reason": run.reason,
        "gap": gap,
        **_budgets(setting, method, system, run),
    }


def _optimum(study: Study, setting: Setting, method: Method, seed: int) -> dict[str, np.ndarray]:
    """Return the certified optimum of the pooled problems of a method, and its NMSD.

    It depends on who is pooled and on nothing else of the method.
    """
    pooled = Method("pooled", linked=method.linked, one_model=method.one_model)
    # Rounds do not matter either.
    key = f"optimum: {pooled} {setting.at(rounds=1)} seed {seed}"
    return study.cell(key, partial(_solved, setting, pooled, seed))


def _solved(setting: Setting, method: Method, seed: int) -> Mapping[str, ArrayLike]:
    system = draw(setting, seed)
    net = network_of(system, method)
    target = algorithm_of(setting, method, seed).target(net)
    solution = target.solve(rtol=_RTOL)
    certificate = verify.certify(target, solution.w, solution.u, _RTOL, search=False)
    if certificate.status != "CERTIFIED":
        raise RuntimeError(f"seed {seed}: the pooled optimum is not certified:\n{certificate}")
    errors = nmsd(solution.w[pooled_problem_of(system, method)], system.truth[system.labels])
    sums = np.bincount(system.labels, weights=errors)
    return {
        "w": solution.w,
        "nmsd": errors.mean(),
        "of_clusters": sums / np.bincount(system.labels),
    }


def pooled_problem_of(system: System, method: Method) -> np.ndarray:
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
    private = private_releases(setting, method.variance, 0)
    present: dict[int, tuple[int, ...]] = {}
    for report in run.reports[run.net.n_clients :]:
        present |= report.present
    rows = [loss.X.shape[0] for loss in system.losses]
    proved = [
        private.answer(model, setting.rho, 0.0, f"client {k}").sensitivity
        for k, model in enumerate(run.net.models)
    ]
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
    return float(accountant.report(DELTA).epsilon_simple.max())
