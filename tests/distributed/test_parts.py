"""Shards at work: copies to ghosts and sums, the same whatever the number of workers."""

from pathlib import Path

import _distributed_tasks as tasks
import numpy as np
import pytest
from _problems import instance

from gtvcvx.distributed import Manifest, shard
from gtvcvx.distributed._parts import worker_of
from gtvcvx.distributed.engines import LocalEngine


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    # The processes have the search path of their parent.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shards")
    shard(instance(seed=3), path, 5)
    return path


def test_copies_and_sums(folder):
    alone = LocalEngine().run(tasks.copies_and_sums, str(folder), 1)
    for workers in (2, 3):
        arrays, sums = LocalEngine().run(tasks.copies_and_sums, str(folder), workers)
        assert sums.tobytes() == alone[1].tobytes()
        for one, other in zip(alone[0], arrays, strict=True):
            assert one.tobytes() == other.tobytes()
    manifest = Manifest.load(folder)
    rng = np.random.default_rng(7)
    total = rng.normal(size=manifest.n_nodes).sum()
    np.testing.assert_allclose(alone[1], [total, manifest.n_edges, 4.0, 0.0, 3.0], rtol=1e-12)
    for number, (node, edge) in enumerate(zip(alone[0][::2], alone[0][1::2], strict=True)):
        piece = manifest.shard(folder, number)
        assert np.array_equal(node[:, 0], piece.nodes)
        assert np.array_equal(node[:, 1], piece.owners)
        assert np.array_equal(edge[:, :2], piece.nodes[piece.edges])
        assert np.array_equal(edge[:, 2], piece.owners[piece.edges[:, 0]])


def test_more_workers_than_shards(tmp_path):
    shard(instance(seed=3), tmp_path, 1)
    with pytest.raises(ValueError, match="workers: at most one for each of the 1 shards"):
        LocalEngine().run(tasks.copies_and_sums, str(tmp_path), 2)


def test_workers_have_consecutive_shards():
    for shards, workers in ((16, 3), (5, 5), (7, 1)):
        found = worker_of(shards, workers)
        assert np.all(np.diff(found) >= 0)
        sizes = np.bincount(found, minlength=workers)
        assert sizes.min() >= 1
        assert sizes.max() - sizes.min() <= 1
