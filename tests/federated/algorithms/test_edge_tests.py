"""Edge selection as messages is edge selection."""

import numpy as np
import pytest
from _systems import clustered_rows, corrupted_edges

import gtvcvx as gtv
from gtvcvx import federated as fed
from gtvcvx.federated.selection import select_edges


@pytest.fixture(scope="module")
def problem() -> gtv.GTVProblem:
    rng = np.random.default_rng(3)
    labels, _, X, y = clustered_rows(12, 3, 20, 3, rng)
    graph = gtv.EmpiricalGraph(12, corrupted_edges(labels, 0.2, rng))
    return gtv.GTVProblem(graph, gtv.SquaredLoss.stack(X, y), "l1", 0.1)


@pytest.mark.parametrize("candidates", ["graph", "complete"])
@pytest.mark.parametrize("covariance", ["HC0", "HC3"])
def test_neighbours_find_what_one_place_finds(
    problem: gtv.GTVProblem, candidates: str, covariance: str
) -> None:
    tests = fed.EdgeTests(covariance=covariance, candidates=candidates)
    run = fed.simulate(tests, problem, 1)
    found = tests.selection(run)
    expected = select_edges(
        problem.graph, problem.losses, covariance=covariance, candidates=candidates
    )
    np.testing.assert_array_equal(found.candidates, expected.candidates)
    np.testing.assert_allclose(found.statistics, expected.statistics, rtol=1e-10)
    np.testing.assert_array_equal(found.kept, expected.kept)
    assert 0 < found.kept.sum() < len(found.kept)
    assert found.threshold == expected.threshold
    # Once to each neighbour: what the selection says that devices send, and the headers.
    messages = 2 * len(found.kept)
    assert run.history["bytes_up"][-1] == 8 * expected.floats_sent.sum() + 20 * messages
    assert run.certificate().status == "UNPROVED"


def test_selected_graph_is_one_to_run_on(problem: gtv.GTVProblem) -> None:
    graph = fed.EdgeTests.selection(fed.simulate(fed.EdgeTests(), problem, 1)).graph
    selected = gtv.GTVProblem(graph, problem.losses, "l1", 0.1)
    run = fed.simulate(fed.FedADMM(rho=0.3), selected, 400)
    assert run.certificate().status == "CERTIFIED"


def test_absent_clients_leave_links_untested(problem: gtv.GTVProblem) -> None:
    present = np.ones((3, 12), dtype=bool)
    present[0, 4] = False
    once = fed.simulate(fed.EdgeTests(), problem, 1, availability=fed.Trace(present))
    with pytest.raises(ValueError, match="has not heard"):
        fed.EdgeTests.selection(once)
    twice = fed.simulate(fed.EdgeTests(), problem, 2, availability=fed.Trace(present))
    everybody = fed.simulate(fed.EdgeTests(), problem, 1)
    found, expected = (fed.EdgeTests.selection(run) for run in (twice, everybody))
    np.testing.assert_array_equal(found.statistics, expected.statistics)


def test_bad_input_is_named(problem: gtv.GTVProblem) -> None:
    with pytest.raises(ValueError, match="alpha"):
        fed.EdgeTests(alpha=2.0)
    with pytest.raises(ValueError, match="covariance"):
        fed.EdgeTests(covariance="HC9")
    with pytest.raises(TypeError, match="EdgeTests"):
        fed.EdgeTests.selection(fed.simulate(fed.PrimalDual(), problem, 1))
    few = gtv.GTVProblem(
        gtv.EmpiricalGraph(2, [(0, 1)]), [gtv.SquaredLoss([[1.0, 2.0]], [1.0])] * 2, "l1", 0.1
    )
    with pytest.raises(ValueError, match="client 0"):
        fed.simulate(fed.EdgeTests(), few, 1)
