"""[GTV] Table I (VI-A): Algorithm 1, IFCA and FedAvg on a stochastic block model.

Two clusters of 100 nodes, p_in 0.5, p_out 0.01, ten points a node with 100 features, noise 1e-3,
true parameters with entries 0 or 0.5, all data accessible, 1,000 iterations. Printed are errors of
1.42e-5, 2.82 and 2.86. Not given: penalty, lambda of this table (1e-2 in the section), number of
runs, and how IFCA and FedAvg are run.

The authors' notebook tells: one draw, l1, a loss that is a sum, and errors of labels. Its draw can
be made again to the last bit (`_notebook`). It has a slip, by which update (32) of a node uses the
degree of node 0 or 1; such a run tends to the optimum for losses L_i deg_i/deg_0 (or deg_1), which
is the reference here.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gtv_minimization._notebook import draw as notebook_draw
from gtv_minimization._notebook import ifca_start, wrong_degrees
from gtv_minimization._setting import (
    CLAIM,
    MEASURES,
    READINGS,
    Array,
    Instance,
    Method,
    algorithm1,
    near,
    optimum,
    places,
    proved,
    reproduced,
    stack,
)

from gtvcvx import federated as fed
from gtvcvx.experiments import (
    Curve,
    Experiment,
    Level,
    Outcome,
    Panel,
    Row,
    Study,
    Verdict,
    gap_text,
)
from gtvcvx.generators import regression_data, sbm

PRINTED = {"Algorithm 1": 1.42e-5, "IFCA": 2.82, "FedAvg": 2.86}
LAM = 1e-2
METHODS = (Method("l1", LAM), Method("l2", LAM))
SIGMA = 1e-3
P_IN, P_OUT = 0.5, 0.01
# Of the notebook's IFCA: length of steps and rounds. FedAvg with one local step of this length
# contracts by .8 or better here, so that 200 rounds are its limit, the pooled least squares.
IFCA_STEP, IFCA_ROUNDS = 0.1, 300
FEDAVG_STEP, FEDAVG_ROUNDS = 0.3, 200
# A number of two or three digits from another draw counts as the same up to this factor.
FACTOR = 1.5
# A claim about a method that some starts take to an error near zero and others far off is one about
# the starts: so many of them have to agree.
AGREED = 0.9

SETTING = {
    "graph": "given: two clusters of 100 nodes, p_in 0.5, p_out 0.01",
    "data": "given: m_i = 10, d = 100, sigma 1e-3, all accessible, entries of w_bar 0 or 0.5",
    "R": "given: 1,000",
    "lambda": "given for the section: 1e-2",
    "penalty": "not given: l1 and l2; the notebook has l1",
    "runs": "not given: ours are draws of our own; the notebook's is one, seed 0",
    "IFCA": "not given: as in the notebook steps 0.1, 300 rounds, sums of gradients divided by the "
    "number of all clients, starts with entries 0 or 1; ours as well: by the model's own clients",
    "FedAvg": "not given: one local step 0.3, 200 rounds",
}


def own_draw(seed: int, half: int, rows: int, dim: int) -> Instance:
    """Draw an instance of the text's setting."""
    rng = np.random.default_rng([seed, half, dim])
    true_w = np.repeat(0.5 * rng.integers(0, 2, (2, dim)), half, axis=0)
    graph = sbm([half, half], P_IN, P_OUT, rng)
    return Instance(graph, regression_data(true_w, rows, SIGMA, 1.0, rng), true_w)


def curve(instance: Instance, method: Method, at: Sequence[int], reading: str) -> dict[str, Any]:
    """Errors of Algorithm 1 on its way, its optimum's, and what is proved of both."""
    problem = instance.problem(method, reading)
    points, solved = algorithm1(problem, at), optimum(problem)
    return {
        "errors": [instance.error(points[k], reading) for k in at],
        "optimum": instance.error(solved.w, reading),
        "least": instance.least_mse(method, at),
        "gap": proved(problem, points[at[-1]], solved),
        "optimum gap": solved.rel_gap,
    }


def federated(
    instance: Instance, algorithm: fed.Algorithm, rounds: int, clusters: Array | None = None
) -> Array:
    """Models of the clients after so many rounds."""
    net = fed.Network.star(instance.losses("paper"), clusters=clusters)
    with warnings.catch_warnings():
        # The notebook's steps of IFCA are longer than what is safe for every choice of a client.
        warnings.simplefilter("ignore", fed.StabilityWarning)
        run = fed.simulate(algorithm, net, rounds=rounds, record_every=rounds, seed=0)
    return np.asarray(run.w[: len(instance.true_w)])


def ifca(instance: Instance, start: Array, average: str) -> Array:
    """Models of the clients after IFCA, its sums divided by "all" or the "cluster"'s clients."""
    method = fed.IFCA(len(start), lr=IFCA_STEP, average=average, initial=start)
    return federated(instance, method, IFCA_ROUNDS)


def fedavg(instance: Instance) -> Array:
    """One model for all clients."""
    return federated(instance, fed.FedAvg(steps=1, lr=FEDAVG_STEP), FEDAVG_ROUNDS)


def own_cell(instance: Instance, at: Sequence[int], seed: int, reading: str) -> dict[str, Any]:
    """All methods on a draw of our own."""
    found = {
        f"{method.penalty} {name}": value
        for method in METHODS
        for name, value in curve(instance, method, at, reading).items()
    }
    start = np.random.default_rng([seed, 1]).integers(0, 2, (2, instance.true_w.shape[1]))
    for average in ("all", "cluster"):
        w = ifca(instance, start.astype(float), average)
        found[f"IFCA {average}"] = instance.error(w, reading)
    found["FedAvg"] = instance.error(fedavg(instance), reading)
    return found


def notebook_cell(instance: Instance, iterations: int) -> dict[str, Any]:
    """Algorithm 1 (l1, with the notebook's slip) and FedAvg on the notebook's draw."""
    half = len(instance.true_w) // 2
    degrees = wrong_degrees(instance.graph, half)
    run = instance.problem(METHODS[0], "notebook")
    w = algorithm1(run, [iterations], degrees)[iterations]
    tends_to = instance.problem(METHODS[0], "notebook", instance.graph.degrees / degrees)
    solved = optimum(tends_to)
    average = fedavg(instance)
    return {
        "label error": instance.label_error(w),
        "(39)": instance.mse(w),
        "optimum": instance.label_error(solved.w),
        "gap": proved(tends_to, w, solved),
        "FedAvg": instance.label_error(average),
        "FedAvg (39)": instance.mse(average),
    }


def verdict(
    printed: float, ours: Mapping[str, Any], elsewhere: Sequence[float], reading: str
) -> Verdict:
    """Reproduced where nearly all seeds of one of ours give the printed number, up to a factor.

    Not the mean: IFCA's errors are either small or large. Under another reading where the study's
    is another one, or where only one of the values ``elsewhere``, of the notebook's draw, is near.
    """
    for values in ours.values():
        if np.mean([near(printed, value, FACTOR) for value in np.atleast_1d(values)]) >= AGREED:
            return reproduced(reading)
    found = any(near(printed, value, FACTOR) for value in elsewhere)
    return Verdict.OTHER_READING if found else Verdict.NOT_REPRODUCED


def fails(errors: Array, reference: Array, reading: str) -> Verdict:
    """Say whether IFCA fails: nearly all starts end above half of FedAvg's error."""
    agreed = np.mean(errors > 0.5 * reference) >= AGREED
    return reproduced(reading) if agreed else Verdict.NOT_REPRODUCED


def count(errors: Array, reference: float) -> str:
    """Say how many starts end near FedAvg's error, and where the others do."""
    bad = errors > 0.5 * reference
    rest = f", the others at {np.median(errors[~bad]):.2g}" if not bad.all() else ""
    return f"{bad.sum()} of {len(bad)} starts end above {0.5 * reference:.2g}{rest}"


class Table:
    """The rows and panels, made of what the cells hold."""

    def __init__(self, study: Study) -> None:
        half, rows, dim = study.choose(tiny=(5, 4, 8), default=(40, 5, 40), paper=(100, 10, 100))
        book_half, book_rows, book_dim = study.choose(
            tiny=(5, 4, 8), default=(100, 10, 100), paper=(100, 10, 100)
        )
        last = study.choose(tiny=100, default=1_000, paper=1_000)
        self.at = places(last)
        self.reading = study.reading
        size = f"{half} nodes, {rows} rows, {dim} features"
        self.own = []
        for seed in study.seeds:
            self.own.append(
                study.cell(
                    f"own draw {seed}, {size}, R {last}",
                    lambda seed=seed: own_cell(
                        own_draw(seed, half, rows, dim), self.at, seed, study.reading
                    ),
                )
            )
        book = notebook_draw(book_half, book_rows, book_dim, SIGMA)
        self.book = study.cell(f"notebook {book_dim}", lambda: notebook_cell(book, last))
        self.starts = range(study.choose(tiny=1, default=2, paper=10))
        self.ifca = {
            average: np.array([self._start(study, book, s, average) for s in self.starts])
            for average in ("all", "cluster")
        }

    def _start(self, study: Study, book: Instance, start: int, average: str) -> tuple[float, float]:
        def compute() -> dict[str, float]:
            w = ifca(book, ifca_start(2, book.true_w.shape[1], start), average)
            return {"label error": book.label_error(w), "(39)": book.mse(w)}

        key = f"notebook {book.true_w.shape[1]}, IFCA {average}, start {start}"
        found = study.cell(key, compute)
        return float(found["label error"]), float(found["(39)"])

    def of(self, name: str) -> Array:
        """One entry of our own draws, a value a seed."""
        return stack(self.own, name)

    def rows(self) -> list[Row]:
        """Return the table."""
        return [*self._algorithm1(), *self._ifca(), *self._fedavg()]

    def _algorithm1(self) -> list[Row]:
        printed, book = PRINTED["Algorithm 1"], self.book
        ends = {m.penalty: self.of(f"{m.penalty} errors")[:, -1] for m in METHODS}
        label, mse = float(book["label error"]), float(book["(39)"])
        found = verdict(printed, ends, [label], self.reading)
        reason = (
            f"the notebook's own draw gives the label error {label:.3g} and (39) {mse:.3g}; the "
            "printed number is a label error, of a loss that is a sum"
        )
        return [
            Row("Algorithm 1, l1", printed, ends["l1"], self.of("l1 optimum"), found, reason),
            Row("Algorithm 1, l2", "not given", ends["l2"], self.of("l2 optimum"), None,
                "after R iterations l2 is far from its optimum, which is the better one"),
            Row("Algorithm 1, l1, label error on the notebook's draw", printed, [label],
                [float(book["optimum"])], verdict(printed, {}, [label], self.reading),
                f"of what this run tends to, {gap_text(book['gap'], CLAIM)}"),
        ]  # fmt: skip

    def _ifca(self) -> list[Row]:
        printed, label = PRINTED["IFCA"], self.ifca["all"][:, 0]
        reason = "not convex, so that there is no certified optimum"
        reference = float(self.book["FedAvg"])
        own = {"all": self.of("IFCA all")}
        rows = [
            Row("IFCA", printed, own["all"], None, verdict(printed, own, label[:1], self.reading),
                f"the notebook's seed 0 gives the label error {label[0]:.3g}; {reason}"),
            Row("IFCA fails here", "an error like FedAvg's", own["all"], None,
                fails(np.concatenate([own["all"], label]),
                      np.concatenate([self.of("FedAvg"), np.full(len(label), reference)]),
                      self.reading),
                f"one start is no result. The notebook's draw: {count(label, reference)}; with "
                "sums divided by the model's own clients "
                f"{count(self.ifca['cluster'][:, 0], reference)}; {reason}"),
        ]  # fmt: skip
        for average, name in (("all", "all clients"), ("cluster", "the model's own clients")):
            rows.append(
                Row(f"IFCA, label errors on the notebook's draw, divided by {name}", "not given",
                    self.ifca[average][:, 0], None, None,
                    f"a value a start; {count(self.ifca[average][:, 0], reference)}")
            )  # fmt: skip
        return rows

    def _fedavg(self) -> list[Row]:
        printed, label = PRINTED["FedAvg"], float(self.book["FedAvg"])
        ours = self.of("FedAvg")
        found = verdict(printed, {"FedAvg": ours}, [label], self.reading)
        reason = (
            f"one model for all, the pooled least squares; on the notebook's draw the label error "
            f"is {label:.3g}. Its problem is another one: GTV minimization's optimum is no measure"
        )
        return [Row("FedAvg", printed, ours, None, found, reason)]

    def panels(self) -> list[Panel]:
        """Draw errors against iterations, and the ends of IFCA's starts."""
        return [self._way(), self._starts()]

    def _way(self) -> Panel:
        curves = []
        for m in METHODS:
            final = gap_text(self.of(f"{m.penalty} gap"), CLAIM)
            curves.append(Curve(m.label, self.at, self.of(f"{m.penalty} errors"), final))
            if self.reading == "paper":
                least = self.of(f"{m.penalty} least")
                label = f"speed limit of all runs, {m.penalty}"
                values = np.where(least > 0, least, np.nan)
                curves.append(Curve(label, self.at, values, "proved", kind="limit"))
        levels = [
            Level(
                f"certified optimum, {m.penalty}", self.of(f"{m.penalty} optimum").mean(), "optimum"
            )
            for m in METHODS
        ]
        levels += [Level(f"printed, {name}", value, "printed") for name, value in PRINTED.items()]
        return Panel("Algorithm 1, draws of our own", "iterations", MEASURES[self.reading], curves,
                     levels, ylog=True)  # fmt: skip

    def _starts(self) -> Panel:
        number = np.arange(1, len(self.starts) + 1)
        why = "not convex"
        curves = [
            Curve(f"sums divided by {name}", number, np.sort(self.ifca[average][:, 0]), why)
            for average, name in (("all", "all clients"), ("cluster", "the model's own clients"))
        ]
        levels = [
            Level("printed, IFCA", PRINTED["IFCA"], "printed"),
            Level("optimum of GTV, l1", float(self.book["optimum"]), "optimum"),
        ]
        return Panel("IFCA, the notebook's draw: all starts, sorted", "start",
                     "mean squared label error", curves, levels, ylog=True)  # fmt: skip


def run(study: Study) -> Outcome:
    """Run all three, on draws of our own and on the notebook's."""
    table = Table(study)
    notes = [
        "Speed limit: in what its ten points do not determine, a node moves by at most lambda an "
        "iteration (l1: ten times that), which is drawn.",
        "The notebook's draw is made again without PyTorch, whose numbers are computed as it does.",
    ]
    return Outcome(table.rows(), table.panels(), SETTING, notes, MEASURES[study.reading])


EXPERIMENT = Experiment(
    "gtv-table-1",
    "GTV",
    "Table I",
    "Algorithm 1, IFCA and FedAvg on a stochastic block model",
    run,
    readings=READINGS,
    seeds=2,
    paper_seeds=5,
    remark="Table I's numbers are label errors of a loss that is a sum, l1, from one draw; and its "
    "row of IFCA is one start of several, of which others end below the GTV optimum.",
)
