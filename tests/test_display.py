"""Every public object shows itself on one screen, and in a notebook without harm."""

import dataclasses
import importlib
import inspect
import tempfile
from fractions import Fraction
from functools import cache
from xml.etree import ElementTree

import cvxpy
import numpy as np
import pytest
from _made_up import EXPERIMENT
from sklearn.base import BaseEstimator

import gtvcvx as gtv
import verify
from gtvcvx import estimators, generators, graph_construction, interop
from gtvcvx import federated as fed
from gtvcvx.federated._streams import Streams
from gtvcvx.federated.transport import Deployment
from gtvcvx.graph_construction import connect_components
from gtvcvx.solution import ExactSolution, Record
from verify import _display as display
from verify.battery._report import ConformanceReport, Row
from verify.partitions._cluster_report import ClusterReport
from verify.partitions._report import WellConnectedReport

LABEL = "<script>alert('&')</script>\n\x00" + "long " * 30


@cache
def chain(n: int) -> tuple[gtv.GTVProblem, gtv.Solution]:
    """A chain whose nodes are called by what must not get into a page."""
    graph = gtv.EmpiricalGraph(n, [[i, i + 1] for i in range(n - 1)], nodes=names(n))
    targets = np.arange(n) // 4 + np.linspace(0.0, 0.3, n)
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(targets[:, None]), "l2", 0.2)
    return problem, problem.solve(verbose=False)


def names(n: int) -> list[str]:
    return [f"{i} {LABEL}" for i in range(n)]


@cache
def shown(n: int) -> list[object]:
    """Objects of every public class, and of what public functions return, of size n."""
    problem, solution = chain(n)
    rng = np.random.default_rng(0)
    wide = rng.standard_normal((n, n))
    path = gtv.lambda_path(problem, np.geomspace(1.0, 0.01, n))
    records = [dataclasses.replace(r, n_iter=k) for k, r in enumerate(solution.history * 3, 1)]
    labels = [i // 2 for i in range(n)]
    data = problem.to_data()
    plain = gtv.GTVProblem(gtv.EmpiricalGraph(n, problem.graph.edges), problem.losses, lam=0.2)
    exact = Fraction(10**5000 + 1, 3)
    ones, y = np.ones(n), wide[0]
    losses = [
        gtv.SquaredLoss(wide, y),
        gtv.LogisticLoss(wide, ones),
        gtv.MultinomialLogisticLoss(wide, ones, n_classes=30),
        gtv.HuberLoss(wide, y, delta=1),
    ]
    losses += [gtv.AbsoluteLoss(wide, y), gtv.PoissonLoss(wide, ones), gtv.HingeLoss(wide, ones)]
    losses += [gtv.QuantileLoss(wide, y, level=0.3), gtv.PseudoHuberLoss(wide, y, delta=1)]
    losses += [gtv.LassoLoss(wide, y, kappa=0.1)]
    losses += [gtv.Ridge(np.ones(n)), gtv.L1(np.ones(n)), gtv.Box(wide[0] - 1, wide[0])]
    losses += [gtv.PointLoss(wide[0]), gtv.Nonnegative(), gtv.Simplex(), gtv.ZeroLoss()]
    return [
        problem,
        problem.graph,
        problem.dual(),
        problem.losses,
        *losses,
        sum([gtv.L1(1.0)] * n, start=losses[0]),
        gtv.CvxpyLoss(cvxpy.sum_squares, dim=n),
        gtv.CvxpyPenalty(cvxpy.norm1),
        *(gtv.L1Norm(), gtv.L2Norm(), gtv.LinfNorm(), gtv.PNorm(3), gtv.SquaredNorm()),
        gtv.Quadratic(wide @ wide.T),
        gtv.GradientSteps(3),
        solution,
        dataclasses.replace(solution, history=records),
        solution.history[-1] if solution.history else Record(1, 0.1, 1 / 3, 1 / 7),
        ExactSolution([[exact]] * n, [], exact),
        gtv.Progress(1, 1 / 3, solution.w, solution.u, 1 / 3, 1 / 7, 1e-9, 1e-9),
        gtv.CrossValidationProgress(None, 5, 0, 1, 120, solution),
        path,
        *path.changes[:3],
        gtv.Clusterings(
            dict.fromkeys(range(1, n), np.arange(n)), dict.fromkeys(range(n), 0.1), [n], 1
        ),
        gtv.ClusterChange("merge", 1 / 3, 2 / 3, tuple(range(n)), (0,), np.arange(n)),
        dataclasses.replace(path, lams=path.lams[:0], solutions=[]),
        cross_validation(path, n),
        generators.regression_data(np.ones((n, 2)), 3, 0.1, 0.5, 0),
        gtv.datasets.load_us_income(),
        gtv.datasets.us_income_paths(),
        connect_components(gtv.EmpiricalGraph(n, [], nodes=names(n)), wide),
        graph_construction.knn_graph(wide, 1),
        interop.to_frames(solution, problem),
        interop.Rows(wide, wide[0], np.arange(n), names(n), 0),
        estimators.NetworkLinearRegression(graph=problem.graph),
        *(getattr(estimators, name)() for name in estimators.__all__),
        verify.certify(data, solution.w, solution.u),
        verify.check(verify.certify(data, solution.w, solution.u).document),
        verify.Result("CERTIFIED", "relative gap 0.1", exact, exact),
        verify.optimality(data, solution.w, solution.u),
        verify.well_connected(plain, labels),
        verify.well_connected(problem, labels, solution),
        verify.well_connected(problem, labels, solution).solution,
        *verify.well_connected(problem, labels).clusters.values(),
        *recovery(plain, labels),
        verify.critical_lambda(plain),
        ConformanceReport(rows(n), 3 * n, 1e-6, 0, 1.0, "time limit"),
        rows(1)[0],
        *federated(n),
        *(sharded(n) + experiments(n)),
    ]


def sharded(n: int) -> list[object]:
    """Shards of a problem, and what a run over them finds."""
    problem, _ = chain(n)
    with tempfile.TemporaryDirectory() as folder:
        manifest = gtv.distributed.shard(problem, folder, 3, partitioner="blocks")
        run = gtv.distributed.solve(folder, workers=1)
        shards = [manifest, manifest.shards[0], manifest.shard(folder, 0)]
    tables = gtv.distributed.Tables(
        edges="edges.csv", data="data.csv", node="node", target="y", lam=1
    )
    progress = gtv.distributed.ShardedProgress(1, 1 / 3, 1 / 3, 1 / 7, 1e-9, 1e-9)
    return [*shards, run, tables, progress]


def experiments(n: int) -> list[object]:
    """An experiment with its outcome, and data of experiments."""
    outcome = EXPERIMENT.run(gtv.experiments.Study(seeds=range(n)))
    panel = outcome.panels[0]
    return [
        *(EXPERIMENT, gtv.experiments.Study(seeds=range(n)), outcome, outcome.rows[0], panel),
        *(panel.curves[0], panel.levels[0], gtv.experiments.Verdict.REPRODUCED),
        gtv.datasets.synthetic_election(0)[0],
        gtv.datasets.load_digits_8x8(),
        gtv.datasets.synthetic_weather_stations(seed=0),
        gtv.experiments.run_experiment(EXPERIMENT, verbose=False),
    ]


def federated(n: int) -> list[object]:
    """Runs, what they are made of, and algorithms with a parameter for every client."""
    problem, solution = chain(n)
    net = fed.Network.from_problem(problem)
    recorded = fed.Recorded(fed.InMemory())
    chances = np.full(n, 0.9)
    algorithm = fed.FedADMM(absence="inverse", presence=chances, decay=9.0)
    run = fed.simulate(algorithm, net, 30, transport=recorded, reference=solution, truth=solution.w)
    mixed = fed.simulate(fed.FedAvg(steps=2), net, 3)
    frame = recorded.frames[-1]
    view = Deployment(fed.FedADMM(), net, Streams(0), 9).view(0)
    return [
        fed.RoundProgress(3, run.history.last(), run.w, run.models),
        *(net, run, run.history, run.reports[-1], frame, frame.message, recorded.steps[-1]),
        *(mixed, mixed.certificate(), algorithm, algorithm.schema, algorithm.schema["theta"][0]),
        *(fed.Message("theta", {"w": np.zeros(n)}), fed.Inbox([frame.message] * n), view),
        *(fed.Bernoulli(chances), fed.Markov(chances, 0.2), fed.Always(), fed.Sampling(2)),
        *(fed.Trace(np.ones((n, n), bool)), fed.Delay([0.5, 0.5]), fed.Loss(0.1), fed.Crash(0, 3)),
        *(recorded, fed.InMemory(), fed.Processes(), view.model, fed.FedADMM().client()),
        *(saved(run), fed.Uncertified("because " * 30), fed.FedADMM(absence="inverse").server()),
        *(
            fed.IFCA(2),
            fed.MOCHA(),
            fed.FedAvg(lam=1.0),
            fed.ClusteredFedAvg(),
            fed.EdgeTests(),
            fed.PrimalDual(),
        ),
        *(fed.FedRelax(noise=chances), fed.FedSGD(), fed.Local(), fed.Global(), fed.PFedMe(lam=1)),
        *(fed.PGFL(rho=1.0), fed.PGFLExact(rho=1.0), fed.GeometricTau(0.4, 0.98)),
        fed.PrivateReleases(variance=1.0, row_bound=1.0),
        fed.FedRelaxNonparametric(lam=1.0),
    ]


def saved(run: fed.Run) -> fed.SavedRun:
    with tempfile.TemporaryDirectory() as folder:
        run.save(f"{folder}/run.npz")
        return fed.SavedRun.load(f"{folder}/run.npz")


def recovery(problem: gtv.GTVProblem, labels: list[int]) -> list[object]:
    report = verify.recovers(problem, labels)
    many = [(f"{a} {LABEL}", LABEL) for a in labels]
    return [report, dataclasses.replace(report, merged=many), report.prove()]


def cross_validation(path: gtv.LambdaPath, n: int) -> gtv.CrossValidation:
    errors = 1.0 + np.abs(np.linspace(-1.0, 1.0, n))
    sizes = np.ones(5, int)
    many = np.tile(errors, (5, 1))
    return gtv.CrossValidation(
        path.lams,
        many,
        sizes,
        sizes * 1.0,
        many,
        errors,
        errors / 9,
        np.arange(n),
        "points",
        "min",
        path,
    )


def rows(n: int) -> tuple:
    return tuple(
        Row(f"{i} {LABEL}", 3, 2, 1, "l2", "squared", "ERROR", np.inf, 0.1, LABEL * (i + 1))
        for i in range(n)
    )


# Their text is a report, with a line or more for each instance or cluster.
REPORTS = (ConformanceReport, WellConnectedReport, ClusterReport)


@pytest.mark.parametrize("n", [3, 60])
def test_every_object_fits_one_screen(n):
    for each in shown(n):
        texts = [repr(each)] if isinstance(each, REPORTS) else [repr(each), str(each)]
        for text in texts:
            lines = text.splitlines()
            assert 1 <= len(lines) <= display.LINES, text
            assert max(map(len, lines)) <= display.COLUMNS, text
            assert " object at 0x" not in text
            assert "\x00" not in text


def test_every_public_class_is_among_them():
    types = {type(each) for n in (3, 60) for each in shown(n)}
    modules = [gtv, verify, *(importlib.import_module(f"gtvcvx.{name}") for name in gtv._MODULES)]
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            protocol = getattr(value, "_is_protocol", False)  # of users' functions: no objects
            if inspect.isclass(value) and not (protocol or issubclass(value, Exception)):
                known = any(issubclass(each, value) for each in types)
                assert known or name in INSIDE, (module.__name__, name)


# Never in a user's hands by themselves: what batches hand on inside.
INSIDE = {
    *("AffineProx", "BatchedLoss", "CompiledForm", "DualDomain", "QuadraticForm", "ScalarForm"),
}


def in_notebooks(n: int) -> list[object]:
    return [each for each in shown(n) if hasattr(type(each), "_repr_html_")]


@pytest.mark.parametrize("n", [3, 60])
def test_notebooks_get_small_valid_tables_without_harm(n):
    found = {type(each).__name__ for each in in_notebooks(n)}
    assert found >= {"Solution", "Certificate", "LambdaPath", "CrossValidation"}
    assert found >= {"WellConnectedReport", "ClusterReport", "RecoveryReport", "RecoveryProof"}
    assert found >= {"CriticalLambda", "ConformanceReport", "OptimalityReport"}
    for each in in_notebooks(n):
        if isinstance(each, BaseEstimator):  # scikit-learn's own
            continue
        text = each._repr_html_()
        root = ElementTree.fromstring(text)
        tags = {node.tag.rpartition("}")[2] for node in root.iter()}
        assert not tags & {"script", "link", "img", "style", "iframe", "object"}
        kinds = {name for node in root.iter() for name in node.attrib}
        assert not any(name.startswith("on") or "href" in name or name == "src" for name in kinds)
        assert len(list(root.iter("tr"))) <= display.LINES
        assert len(text) < 20_000


def test_labels_are_shown_as_text():
    problem, solution = chain(3)
    root = ElementTree.fromstring(solution._repr_html_())
    cells = ["".join(cell.itertext()) for cell in root.iter("td")]
    assert any(cell.startswith("0 <script>alert('&')</script>\\n\\x00long") for cell in cells)
    root = ElementTree.fromstring(verify.certify(problem, solution.w + 0.1)._repr_html_())
    assert any("<script>" in "".join(cell.itertext()) for cell in root.iter("td"))


def test_what_a_solution_says():
    _, solution = chain(60)
    lines = repr(solution).splitlines()
    assert lines[0] == f"Solution by {solution.solver}: optimal"
    assert lines[1].split() == ["nodes", "60,", "dimension", "1"]
    assert lines[2].split() == ["clusters", str(solution.clusters().max() + 1)]
    assert f"{solution.value:.12g}" in lines[3]
    assert "clusters" not in repr(dataclasses.replace(solution, edges=solution.edges[:0]))


def test_what_a_path_and_a_cross_validation_say():
    path = gtv.lambda_path(chain(60)[0], np.geomspace(1.0, 0.01, 60))
    lines = repr(path).splitlines()
    assert lines[0] == "LambdaPath: 60 of 60 values, complete"
    assert len(lines) == 2 + display.ROWS
    first = lines[2].split()
    assert first[:2] == ["1", str(path.n_clusters[0])]
    assert lines[-1].split()[:2] == ["0.01", str(path.n_clusters[-1])]
    assert path._repr_html_().count("<polyline") == 1
    chosen = cross_validation(path, 60)
    text = repr(chosen)
    assert f"lambda = {chosen.lam:.6g} by rule 'min', 5 folds over points" in text
    (line,) = (line for line in text.splitlines() if "chosen" in line)
    assert line.split()[0] == f"{chosen.lam:.6g}"
    assert chosen._repr_html_().count("<circle") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5"),
        ("a\nb", "'a\\nb'"),
        ([1, "b", None], "[1, 'b', None]"),
        (list(range(7)), "<list of 7>"),
        ([[1]], "<list of 1>"),
        ({"a": 1}, "{'a': 1}"),
        (np.arange(3), "[0 1 2]"),
        (np.zeros((7, 2)), "<array of shape (7, 2)>"),
        (np.float64(0.5), "np.float64(0.5)"),
        (Fraction(1, 3), "1/3"),
        (Fraction(10**100, 3), "<fraction, about 3.33333333333e+99>"),
        (Fraction(10**5000), "<fraction beyond the range of floats>"),
        ("x" * 100, "'" + "x" * 56 + "..."),
    ],
)
def test_values_within_a_line(value, text):
    assert display.short(value) == text


def test_texts_are_cut_and_what_is_left_out_is_counted():
    assert display.fitted(["a", "b\nc"]) == "a\nb\nc"
    text = display.fitted(map(str, range(100)))
    assert text.splitlines()[-2:] == ["22", "... 77 more lines"]
    assert display.few(5, 4) == [0, 1, None, 4]
    assert display.few(4, 4) == [0, 1, 2, 3]
    assert display.aligned(["a", "b"], [["1", "x"], None]) == ["    a  b", "    1  x", "  ...  ..."]


def test_a_curve_leaves_out_what_is_not_finite():
    text = display.html_curve("<c>", [0.0, 1.0, 2.0, 3.0], [1.0, np.nan, 3.0, 2.0], 3)
    root = ElementTree.fromstring(text)
    (line,) = root.iter("{http://www.w3.org/2000/svg}polyline")
    assert line.attrib["points"] == "8.0,112.0 210.7,8.0 312.0,60.0"
    (dot,) = root.iter("{http://www.w3.org/2000/svg}circle")
    assert (dot.attrib["cx"], dot.attrib["cy"]) == ("312.0", "60.0")
    assert "".join(root.find("figcaption").itertext()) == "<c>"
    assert display.html_curve("", [1.0, 2.0], [np.inf, 1.0]) == ""
