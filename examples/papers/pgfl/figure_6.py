"""Figure 6 of [PGFL]: the NMSD after 200 rounds against the budget of the first release.

Scheduled clients with privacy noise whose variance follows from phi(0), the zCDP of a release
(46): ``delta^2 = Delta^2 / (2 phi)`` with the sensitivity ``Delta = 2 C_k / (rho D_k)``. The paper
prints no values of phi(0), nor C_k; C_k = 1 is a choice of the unit of phi. Ours is phi of the
first release of a client with two rows, the largest of all. Beside each stands eps (51) of all
releases together, delta = 1e-5, which is what a client loses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from pgfl._claims import NEAR, eps_text, order_of, verdict_of_order
from pgfl._runs import Runs, runs_of
from pgfl._setting import stated
from pgfl._systems import LEARNING, NO_LEARNING, SCHEDULED, Method, Setting, setting_of

from gtvcvx.experiments import Curve, Experiment, Level, Outcome, Panel, Row, Study

ROUNDS = 200
#: The fewest rows of a client, whose answer one row moves most.
FEWEST = 2
PHIS = {
    "tiny": (0.01, 1.0),
    "default": (0.001, 0.01, 0.1, 1.0),
    "paper": (0.001, 0.01, 0.1, 1.0, 10.0),
}


def variance_of(phi: float, rho: float) -> float:
    """Return delta^2(1) for which the largest zCDP (46) of a first release is phi, if C_k = 1."""
    sensitivity = 2.0 / (rho * FEWEST)
    return sensitivity**2 / (2.0 * phi)


def along_phi(
    study: Study, setting: Setting, method: Method, phis: tuple[float, ...]
) -> list[Runs]:
    """Run a method for every phi."""
    return [
        runs_of(
            study,
            setting,
            replace(
                method,
                label=f"{method.label}, phi(1) = {phi:g}",
                scheduled=SCHEDULED,
                variance=variance_of(phi, setting.rho),
            ),
        )
        for phi in phis
    ]


def errors(runs: list[Runs]) -> np.ndarray:
    """Return the NMSD (seeds, k) after the last round."""
    return np.column_stack([each.last for each in runs])


def budgets(runs: list[Runs]) -> np.ndarray:
    """Return eps (51) with C_k = 1, (k,), mean over the seeds."""
    return np.array([each.assumed_eps.mean() for each in runs])


def claim(method: Method, runs: list[Runs]) -> Row:
    """State that errors fall as the budget grows: by the ends, and by the means in between.

    REPRODUCED if the largest phi has smaller errors than the smallest one, by `order_of`, and no
    mean is above the one before it.
    """
    values = errors(runs)
    falls = bool((np.diff(values.mean(axis=0)) <= 0.0).all())
    order = order_of(values[:, -1], values[:, 0]) if falls else 0
    return Row(
        f"{method.label}: largest phi against smallest",
        "errors fall as phi(0) grows",
        values[:, -1] / values[:, 0],
        "the same problem for all phi",
        verdict_of_order(order),
        "means fall along all phi" if falls else "means do not fall along all phi",
    )


def price(method: Method, runs: list[Runs], phis: tuple[float, ...], quiet: Runs) -> Row:
    """Find the least budget with which noise does not matter."""
    enough = errors(runs).mean(axis=0) <= (1.0 + NEAR) * quiet.last.mean()
    if not enough.any():
        said = f"more than {budgets(runs)[-1]:.3g}, the largest tried"
    else:
        k = int(enough.argmax())
        said = f"eps (51) {budgets(runs)[k]:.3g}, phi(1) {phis[k]:g}"
    return Row(
        f"{method.label}: least budget tried within {NEAR:.0%} of no noise",
        "not given",
        said,
        None,
        None,
        "eps as it were with C_k = 1; a budget has no optimum of its own",
    )


def run(study: Study) -> Outcome:
    """Run tau = 0 and .4 for every phi, and without noise."""
    setting = setting_of(study, rounds=ROUNDS)
    phis = PHIS[study.size]
    claims, values, by_phi, by_eps, levels = [], [], [], [], []
    for method in (NO_LEARNING, LEARNING):
        runs = along_phi(study, setting, method, phis)
        quiet = runs_of(study, setting, replace(method, scheduled=SCHEDULED))
        claims += [claim(method, runs), price(method, runs, phis, quiet)]
        values += [
            Row(each.label, "not given", each.last, each.optimum, None, eps_text(each))
            for each in runs
        ]
        by_phi.append(Curve(method.label, phis, errors(runs), runs[0].final))
        by_eps.append(Curve(method.label, budgets(runs), errors(runs), runs[0].final))
        levels.append(Level(f"{method.label}, no noise", float(quiet.last.mean()), "other"))
        optimum = Level("pooled optimum, all clients", float(quiet.optimum.mean()), "optimum")
    levels.append(optimum)
    ylabel = f"NMSD (53) after {setting.rounds} rounds"
    logs = {"xlog": True, "ylog": True}
    first, whole = "phi(1), if C_k = 1", "eps (51), if C_k = 1, delta = 1e-5"
    return Outcome(
        rows=[*claims, *values],
        panels=[
            Panel("budget of the first release", first, ylabel, by_phi, levels, **logs),
            Panel("budget of the whole run", whole, ylabel, by_eps, levels, **logs),
        ],
        setting={
            **stated(setting, scheduled=True, private=True),
            "delta^2(1), zeta": "variance from phi(1); zeta not given: ours is .98",
        },
        measure="NMSD (53) after 200 rounds; where two budgets are compared, their ratio",
    )


EXPERIMENT = Experiment(
    "pgfl-figure-6",
    "PGFL",
    "Figure 6",
    "NMSD after 200 rounds against the privacy budget",
    run,
    seeds=3,
    paper_seeds=10,
    remark=(
        "The budget of one release says little: with zeta below one later releases cost more, and "
        "eps (51) of the whole run is what a client loses."
    ),
)
