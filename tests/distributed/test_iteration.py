"""The iteration over shards: the single machine's to rounding, the same bits for all workers."""

from pathlib import Path

import _distributed_tasks as tasks
import numpy as np
import pytest
from _problems import CASES

from gtvcvx.distributed import shard
from gtvcvx.distributed.engines import LocalEngine
from gtvcvx.solvers.primal_dual._primal_dual import PrimalDual
from gtvcvx.solvers.primal_dual._restarts import Restarted


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    # The processes have the search path of their parent.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def sharded(problem, folder, count, workers=1, shards=5):
    shard(problem, folder, shards, partitioner="blocks")
    argument = (str(folder), problem.graph.edges, count)
    return LocalEngine().run(tasks.iterations, argument, workers)


@pytest.mark.parametrize("name", CASES)
def test_they_are_those_of_one_machine(name, tmp_path):
    problem = CASES[name]
    alone = PrimalDual(problem)
    w, u, facts, differ = sharded(problem, tmp_path, 30)
    alone.run(30)
    assert differ == 0.0
    assert facts["n_iter"] == alone.n_iter == 30
    scale = np.abs(alone.w).max(), np.abs(alone.u).max()
    np.testing.assert_allclose(w, alone.w, rtol=1e-9, atol=1e-10 * scale[0])
    np.testing.assert_allclose(u, alone.u, rtol=1e-9, atol=1e-10 * scale[1])
    np.testing.assert_allclose(facts["weight"], alone.weight, rtol=1e-10)
    assert facts["moved"] == pytest.approx(alone.residual(), rel=1e-9)


@pytest.mark.parametrize("name", ["l2", "raw units", "absolute"])
def test_they_restart_as_on_one_machine(name, tmp_path):
    problem = CASES[name]
    restarts = []
    alone = PrimalDual(problem)
    original = Restarted._restart
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Restarted,
            "_restart",
            lambda self: (restarts.append((type(self), self.n_iter)), original(self)),
        )
        alone.run(300)
        w, _, facts, _ = sharded(problem, tmp_path, 300)
    one, many = ([at for kind, at in restarts if (kind is PrimalDual) == here] for here in (1, 0))
    assert len(one) >= 2
    assert one == many
    np.testing.assert_allclose(facts["weight"], alone.weight, rtol=1e-6)
    np.testing.assert_allclose(w, alone.w, rtol=1e-5, atol=1e-6 * np.abs(alone.w).max())


def test_bits_do_not_depend_on_the_workers(tmp_path):
    problem = CASES["raw units"]
    one = sharded(problem, tmp_path / "one", 400)
    two = sharded(problem, tmp_path / "two", 400, workers=2)
    for k in range(2):
        assert one[k].tobytes() == two[k].tobytes()
    assert one[2] == two[2]
