"""What is expected of a run before it begins: numbers counted by hand."""

import numpy as np
import pytest
from _problems import instance

import gtvcvx as gtv
from gtvcvx.distributed import shard
from gtvcvx.distributed._efficiency import Machine, expectation, in_bytes

# Whole seconds, so that sums can be done in the head.
SLOW = Machine(coordinate=1.0, shard=5.0, latency=4.0, bandwidth=8.0, sums=0.5, memory=1e9)


@pytest.fixture
def path(tmp_path):
    """A path of six nodes in three shards of two: the cut edges are 1-2 and 3-4."""
    graph = gtv.EmpiricalGraph(6, [(k, k + 1) for k in range(5)])
    problem = gtv.GTVProblem(graph, gtv.PointLoss.stack(np.zeros((6, 2))))
    return shard(problem, tmp_path, 3, partitioner=[0, 0, 1, 1, 2, 2])


def test_a_path_by_hand(path):
    assert (path.cut_edges, path.halo_bytes) == (2, 4 * 16)
    found = expectation(path, 2, SLOW)
    # Shards 0 and 1 are one worker's: only the edge 3-4 leaves it, two numbers each way.
    np.testing.assert_array_equal(found.sent, [16.0, 16.0])
    # Four nodes and two; four edges that are counted and one, and the two cut ones by their share
    # of the halo, 1 + 2 of 4: two coordinates each. Two shards and one.
    np.testing.assert_array_equal(found.compute, [2 * (4 + 5.5) + 10, 2 * (2 + 1.5) + 5])
    assert found.alone == 2 * (6 + 5)
    assert found.exchange == 4 + 16 / 8 + 0.5 * 4 * 1
    assert found.iteration == 29 + 8
    assert found.speedup == 22 / 37
    assert found.efficiency == 22 / 37 / 2


def test_three_workers(path):
    found = expectation(path, 3, SLOW)
    np.testing.assert_array_equal(found.sent, [16.0, 32.0, 16.0])
    # Sums go through two rounds.
    assert found.exchange == 4 + 32 / 8 + 0.5 * 4 * 2


def test_one_worker_exchanges_nothing(path):
    found = expectation(path, 1, SLOW)
    assert (found.exchange, found.sent.tolist()) == (0.0, [0.0])
    assert found.iteration > found.alone  # cut edges are computed twice
    assert "one machine does it" in found.advice()


def test_memory_is_that_of_the_solver_and_the_data(path):
    found = expectation(path, 1, SLOW)
    # Numbers a node: 8 d + 4; an edge: 3 d + 3; a row: its values and two more.
    assert found.bytes_alone == 8 * (6 * 20 + 5 * 9 + 6 * 4)
    assert found.bytes_a_worker > found.bytes_alone


@pytest.mark.parametrize(
    ("workers", "changes", "words"),
    [
        (2, {}, "one machine does it: 1.51 kB fit, and 2 workers are 0.59 times"),
        (2, {"memory": 2000.0}, "the whole takes 1.51 kB, more than one machine of 2 kB"),
        (3, {"latency": 0.0, "bandwidth": 1e9, "shard": 0.0}, "3 workers are 2.2 times as fast"),
        (3, {"coordinate": 1e-4, "latency": 0.0, "shard": 0.0, "bandwidth": 1e9}, "process 2.2 ms"),
        (3, {"latency": 0.0, "bandwidth": 5.5, "shard": 0.0}, "exchange takes 37%"),
    ],
)
def test_advice(path, workers, changes, words):
    machine = Machine(**{**SLOW.__dict__, **changes})
    assert words in expectation(path, workers, machine).advice()


def test_what_is_printed(tmp_path):
    manifest = shard(instance(), tmp_path, 4, partitioner="order")
    lines = expectation(manifest, 2).lines()
    assert [line.split()[0] for line in lines] == [
        *("partition", "halo", "memory", "model", "advice")
    ]
    assert f"4 shards by order, {manifest.cut_edges} of {manifest.n_edges} edges" in lines[0]


def test_more_workers_than_shards_are_refused(path):
    with pytest.raises(ValueError, match="workers: 1 to 3, one for each shard"):
        expectation(path, 4)


def test_bytes_in_words():
    assert [in_bytes(x) for x in (12.0, 1234.0, 5e6, 7.25e9, 1e13)] == [
        *("12 bytes", "1.23 kB", "5 MB", "7.25 GB", "10 TB")
    ]


def test_this_machine_has_memory():
    assert Machine.here().memory > 1e6
