"""The experiments of [GTV] on digits: data, graph, methods, and their rule of who is better."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")
from _papers import experiments, module_of, tiny
from gtv_minimization import _digits

from gtvcvx import federated as fed
from gtvcvx.experiments import Study, Verdict

NAMES = ("gtv-figure-5", "gtv-figure-6", "gtv-figure-7", "gtv-table-2")


@pytest.fixture(scope="module")
def nodes():
    """The nodes of the first seed of a run for tests, two clusters."""
    return _digits.federation(Study("tiny"), 0, 2)


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_have_a_verdict_and_say_what_is_proved(name):
    outcome = tiny(name)
    assert any(row.verdict is not None for row in outcome.rows)
    assert outcome.data == "8x8 digits (scikit-learn)"
    for panel in outcome.panels:
        for curve in panel.curves:
            assert curve.final.startswith(("not convex", "CERTIFIED"))
    assert any("between clusters" in note for note in outcome.notes)


def test_nodes_see_their_digits_and_no_image_is_at_two_places(nodes):
    (X, y), (test_X, test_y) = nodes.train, nodes.test
    assert X.shape == (8, 13, 16)
    assert test_X.shape == (8, 4, 16)
    both = np.concatenate([X, test_X], axis=1).reshape(-1, 16)
    assert len(np.unique(both, axis=0)) == len(both)
    for i in range(8):
        labels = {*y[i].tolist(), *test_y[i].tolist()}
        assert labels <= ({0, 1} if nodes.cluster[i] == 0 else {2, 3})


def test_the_paper_size_uses_nearly_all_8x8_digits():
    """100 nodes with 17 images each; there are not enough for 18."""
    labels = _digits.images(Study("tiny")).labels
    fewest = min(np.isin(labels, (k, k + 1)).sum() for k in range(0, 10, 2))
    assert fewest // _digits.PAPER.nodes == _digits.OFFLINE == 17
    assert 100 * 17 / len(labels) > 0.9


def test_algorithm_1_takes_the_steps_of_the_text(nodes):
    """One round from the common start is one proximal map, whatever lambda; then flows count."""
    networks, start = nodes.networks(), nodes.start()
    w = [one.prox(start, 1.0 / nodes.graph.degrees[i]) for i, one in enumerate(networks)]
    predicted = [one.predict(w[i], nodes.test[0][i]) for i, one in enumerate(networks)]
    for lam in (0.0, 1e3):
        assert _digits.algorithm1(nodes, lam)[0] == nodes.accuracy(predicted)


def test_lambda_zero_is_training_alone(nodes):
    net = fed.Network(nodes.networks(), nodes.graph)
    run = fed.simulate(fed.PrimalDual(_digits.NONE, "l2", nodes.start()), net, 3)
    for i, one in enumerate(nodes.networks()):
        w = nodes.start()
        for _ in range(3):
            w = one.prox(w, 1.0 / nodes.graph.degrees[i])
        np.testing.assert_allclose(run.w[i], w, atol=1e-9)


def test_variation_has_the_slope_of_its_formula(nodes):
    rng = np.random.default_rng(0)
    w, direction = rng.standard_normal((2, 8, 3))

    def variation(at):
        jumps = [np.linalg.norm(at[i] - at[j]) for i, j in nodes.graph.edges]
        return float(nodes.graph.weights @ jumps)

    slope = np.sum(_digits.variation_slope(nodes.graph, w) * direction)
    change = variation(w + 1e-6 * direction) - variation(w - 1e-6 * direction)
    assert slope == pytest.approx(change / 2e-6, rel=1e-6)
    np.testing.assert_array_equal(_digits.variation_slope(nodes.graph, np.ones((8, 3))), 0)


def test_adam_lowers_the_objective_of_all_nodes(nodes, monkeypatch):
    """Accuracies alone would not tell: what Adam has at the end is caught on its way."""
    seen = []
    monkeypatch.setattr(_digits._Accuracies, "see", lambda self, w: seen.append(w))
    _digits.adam(nodes)

    def objective(w):
        jumps = np.linalg.norm(nodes.graph.incidence @ w, axis=1)
        losses = [one.value(x) for one, x in zip(nodes.networks(), w, strict=True)]
        return sum(losses) + float(nodes.graph.weights @ jumps)

    assert len(seen) == nodes.sizes.rounds
    values = [objective(np.tile(nodes.start(), (8, 1))), *map(objective, seen)]
    assert (np.diff(values) < 0).all()


def test_rewiring_moves_one_end_of_a_share_of_the_edges(nodes):
    graph = _digits.rewired(nodes, 0.5)
    own = {tuple(edge) for edge in nodes.graph.edges.tolist()}
    new = np.array([edge for edge in graph.edges.tolist() if tuple(edge) not in own])
    assert 0.2 * len(own) < len(new) <= 0.5 * len(own) + 1
    assert (nodes.cluster[new[:, 0]] != nodes.cluster[new[:, 1]]).all()
    np.testing.assert_array_equal(graph.weights, 1)


def test_the_twin_is_a_softmax_classifier_at_each_node(nodes):
    problem = _digits.twin(nodes, nodes.graph, 0.1)
    w = np.random.default_rng(0).standard_normal((8, 16 * 4))
    losses, right = [], []
    for i in range(8):
        logits = nodes.train[0][i] @ w[i].reshape(16, 4)
        chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        rows = np.arange(13), nodes.train[1][i]
        losses.append(-np.log(chances[rows]).mean() + _digits.RIDGE / 2 * np.sum(w[i] ** 2))
        predicted = (nodes.test[0][i] @ w[i].reshape(16, 4)).argmax(axis=1)
        right += (predicted == nodes.test[1][i]).tolist()
    np.testing.assert_allclose(problem.losses.value(w), losses)
    assert _digits.twin_accuracy(nodes, w) == np.mean(right)


def test_who_is_better_is_decided_beyond_chance():
    assert _digits.beats([0.05, 0.06, 0.04], 160) is Verdict.REPRODUCED
    assert _digits.beats([0.05, -0.03, 0.01], 160) is Verdict.NOT_REPRODUCED
    assert _digits.beats([0.0, 0.0], 160) is Verdict.NOT_REPRODUCED
    assert _digits.beats([0.005, 0.005], 160) is Verdict.NOT_REPRODUCED
    assert _digits.beats([0.03], 160) is Verdict.REPRODUCED
    assert _digits.beats([0.02], 160) is Verdict.NOT_REPRODUCED
    assert _digits.beats([-0.05, -0.06], 160) is Verdict.NOT_REPRODUCED


def test_table_2_compares_with_the_best_other_method():
    rows = module_of("gtv-table-2").rows
    found = {"Algorithm 1": [[0.5, 0.9], [0.5, 0.92]], "IFCA": [[0.99, 0.8], [0.99, 0.8]]}
    found |= {"Adam on (16)": [[0.1, 0.84], [0.1, 0.86]]}
    table = rows({name: np.array(values) for name, values in found.items()}, 400)
    assert table[-1].verdict is Verdict.REPRODUCED
    np.testing.assert_allclose(table[-1].ours, [0.06, 0.06])
    np.testing.assert_allclose(table[0].ours, [0.9, 0.92])
    assert "Adam" in table[-1].reason


def test_a_users_mnist_is_asked_for_by_name(tmp_path):
    experiment = experiments()["gtv-figure-6"]
    with pytest.raises(FileNotFoundError, match="ubyte"):
        experiment.run(experiment.study("tiny", data=tmp_path))
