"""Weather stations as a network: edges between near stations, and which weights they get.

Exercise 6.1 of [Notes] makes a network of the stations of the Finnish Meteorological Institute,
each tied to its five nearest neighbours. The code of the notes takes the DISTANCE between two
stations as the weight of their edge. Total variation minimization ties the ends of an edge the
more, the larger its weight is; so distant neighbours are tied most, and a decreasing function of
the distance is what is meant. Here each station predicts the highest temperature of a day from the
lowest by a line of its own; both weightings, and none, are compared on days that no fit has seen.

The data of the institute are not part of this package: by default the stations are a synthetic
stand-in; a table of your own is taken from `--data DIR`, where it is called stations.csv.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import spearmanr

import gtvcvx as gtv
from gtvcvx.datasets import WeatherStations, load_weather_stations, synthetic_weather_stations
from gtvcvx.experiments import (
    Curve,
    Experiment,
    Outcome,
    Panel,
    Row,
    Study,
    Verdict,
    gap_text,
    proved_gap,
)
from gtvcvx.graph_construction import knn_graph

NEIGHBOURS = 5
# Days to fit to, and to choose lambda on; all others are for the comparison.
TRAIN, VALIDATION = 4, 6
LAMS = np.geomspace(1e-3, 10.0, 13)
RTOL = 1e-7

WEIGHTINGS: dict[str, str | Callable[[np.ndarray], np.ndarray]] = {
    "decreasing kernel (Gaussian)": "gaussian",
    "all weights 1": "binary",
    "distance, as in the notes' code": lambda distance: distance,
}


def problem_of(
    data: WeatherStations, weighting: str | Callable[[np.ndarray], np.ndarray], lam: float
) -> gtv.GTVProblem:
    """Fit a line for each station to its first days; weights have the mean 1."""
    graph = knn_graph(data.places, NEIGHBOURS, metric="haversine", weights=weighting)
    scaled = gtv.EmpiricalGraph(graph.n_nodes, graph.edges, graph.weights / graph.weights.mean())
    X, y = rows_of(data, slice(0, TRAIN))
    return gtv.GTVProblem(scaled, gtv.SquaredLoss.stack(X, y), "l2", lam)


def rows_of(data: WeatherStations, days: slice) -> tuple[np.ndarray, np.ndarray]:
    """Features (constant and lowest temperature, in tens of degrees) and highest temperature."""
    low = data.minimum[:, days] / 10.0
    return np.stack([np.ones_like(low), low], axis=-1), data.maximum[:, days]


def error(data: WeatherStations, w: np.ndarray, days: slice) -> float:
    """Mean squared error of predictions on some days, in squared degrees."""
    X, y = rows_of(data, days)
    return float(np.mean((y - np.einsum("nmd,nd->nm", X, w)) ** 2))


def one_draw(data: WeatherStations) -> dict[str, np.ndarray]:
    """Errors for each weighting and lambda, on the days for choosing and on the others."""
    choosing, others = slice(TRAIN, TRAIN + VALIDATION), slice(TRAIN + VALIDATION, None)
    found: dict[str, list[list[float]]] = {"chosen_by": [], "error": [], "gap": []}
    alike = []
    for weighting in WEIGHTINGS.values():
        problem = problem_of(data, weighting, LAMS[0])
        alike.append(likeness(data, problem.graph))
        errors, tests, gaps = [], [], []
        for lam in LAMS:
            solution = problem.with_lam(lam).solve(rtol=0.1 * RTOL)
            errors.append(error(data, solution.w, choosing))
            tests.append(error(data, solution.w, others))
            gaps.append(proved_gap(problem.with_lam(lam), solution.w, RTOL, solution=solution))
        for name, values in zip(found, (errors, tests, gaps), strict=True):
            found[name].append(values)
    first = rows_of(data, slice(0, TRAIN))
    pooled = np.tile(lines(*first, pooled=True), (len(data.places), 1))
    return {name: np.array(values) for name, values in found.items()} | {
        "alike": np.array(alike),
        "alone": error(data, lines(*first), others),
        "pooled": error(data, pooled, others),
    }


def lines(X: np.ndarray, y: np.ndarray, *, pooled: bool = False) -> np.ndarray:
    """Ordinary least squares for each station, or for all of them together."""
    if pooled:
        return np.linalg.lstsq(X.reshape(-1, 2), y.ravel())[0]
    return np.array([np.linalg.lstsq(*rows)[0] for rows in zip(X, y, strict=True)])


def likeness(data: WeatherStations, graph: gtv.EmpiricalGraph) -> float:
    """Rank correlation of the weights with how alike the lines of the ends are, on all days."""
    if np.ptp(graph.weights) == 0:
        return 0.0
    w = lines(*rows_of(data, slice(None)))
    apart = np.linalg.norm(w[graph.edges[:, 0]] - w[graph.edges[:, 1]], axis=1)
    return float(spearmanr(graph.weights, -apart).statistic)


def verdict(distance: np.ndarray, kernel: np.ndarray) -> Verdict:
    """Judge "weights are large where ends are alike" by the mean correlations over the draws.

    REPRODUCED if it is positive for weights that are distances; under another reading if it is
    positive for a decreasing function of them.
    """
    if np.mean(distance) > 0:
        return Verdict.REPRODUCED
    return Verdict.OTHER_READING if np.mean(kernel) > 0 else Verdict.NOT_REPRODUCED


def run(study: Study) -> Outcome:
    """Compare weightings, each with the lambda that is best on days for choosing."""
    source, cells = stations(study)
    found = {name: np.array([cell[name] for cell in cells]) for name in cells[0]}
    chosen = found["chosen_by"].argmin(axis=-1)  # (draws, weightings)
    best = np.take_along_axis(found["error"], chosen[..., None], axis=-1)[..., 0]
    rows = [_likeness_row(found["alike"]), *_error_rows(best)]
    why = "no problem of a network: ordinary least squares, in closed form"
    for name, key in (("each station alone", "alone"), ("all stations together", "pooled")):
        rows.append(Row(f"error: {name}", "not given", found[key], None, None, why))
    curves = [
        Curve(name, LAMS, found["error"][:, k], gap_text(found["gap"][:, k], RTOL))
        for k, name in enumerate(WEIGHTINGS)
    ]
    panel = Panel(
        "which weights near stations get",
        "lambda (weights have the mean 1)",
        "mean squared error on other days in squared degrees Celsius",
        curves,
        xlog=True,
    )
    setting = {
        "edges": f"given: {NEIGHBOURS} nearest neighbours",
        "weights": "given in code: the distance; ours: exp(-t^2/(2 h^2)), h the median distance",
        "local model": "not given: ours is a line, highest from lowest temperature of a day",
        "days": f"not given: ours are {TRAIN} to fit to, {VALIDATION} to choose lambda on, and "
        "all others to compare on",
    }
    measure = "mean squared error on other days, in squared degrees Celsius; first a correlation"
    return Outcome(rows, [panel], setting, measure=measure, data=source)


def _likeness_row(alike: np.ndarray) -> Row:
    _, _, distance = range(len(WEIGHTINGS))
    return Row(
        "weights are large where ends are alike",
        "what weights are for",
        alike[:, distance],
        None,
        verdict(alike[:, distance], alike[:, 0]),
        "rank correlation of the weights with how alike the lines of both ends are (fitted to all "
        f"days): with distances as weights; it is {alike[:, 0].mean():.2f} with the kernel. "
        "No problem is solved for it",
    )


def _error_rows(best: np.ndarray) -> list[Row]:
    reason = "ours is the certified optimum, with the lambda that is best on days for choosing"
    rows = []
    for k, name in enumerate(WEIGHTINGS):
        worse = f"; the kernel is better in {100 * np.mean(best[:, 0] < best[:, k]):.0f} % of draws"
        said = reason + (worse if k else "")
        rows.append(Row(f"error: {name}", "not given", best[:, k], best[:, k], None, said))
    return rows


def stations(study: Study) -> tuple[str, list[dict[str, np.ndarray]]]:
    """Return which stations these are, and what was found of each draw of them."""
    if study.data is not None:
        data = load_weather_stations(study.data / "stations.csv")
        if len(data.days) <= TRAIN + VALIDATION:
            raise ValueError(f"stations.csv: more than {TRAIN + VALIDATION} days are needed")
        return data.source, [study.cell("stations.csv", lambda: one_draw(data))]
    count = study.choose(tiny=40, default=120, paper=200)
    cells = [
        study.cell(f"seed={seed}, stations={count}",
                   lambda seed=seed: one_draw(synthetic_weather_stations(seed, count)))
        for seed in study.seeds
    ]  # fmt: skip
    return "synthetic stand-in for weather stations", cells


EXPERIMENT = Experiment(
    name="notes-exercise-6-1",
    paper="Notes",
    item="Exercise 6.1",
    title="a network of weather stations",
    run=run,
    seeds=5,
    paper_seeds=20,
    data="synthetic stand-in for weather stations",
    remark="The weight of an edge should fall with the distance between its stations.",
)
