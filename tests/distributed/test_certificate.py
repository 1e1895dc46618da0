"""Certificates that workers write together."""

from pathlib import Path

import pytest
from _certificate_tasks import certify
from _problems import instance

import verify
from gtvcvx.distributed import shard
from gtvcvx.distributed.engines import LocalEngine


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    # The processes have the search path of their parent.
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.parametrize("labels", [False, True])
def test_workers_write_the_same_file(labels, tmp_path):
    problem = instance(seed=3, labels=labels)
    solution = problem.solve(rtol=1e-7)
    shard(problem, tmp_path / "shards", 5)
    files = []
    for workers in (1, 2):
        path = tmp_path / f"{workers}.gtvc"
        given = str(tmp_path / "shards"), problem.graph.edges, solution.w, solution.u, str(path)
        result = LocalEngine().run(certify, given, workers)
        assert result.status == "CERTIFIED"
        files.append(path)
    assert files[0].read_bytes() == files[1].read_bytes()
    result = verify.check(files[0], problem.to_data())
    assert result.status == "CERTIFIED"
    assert result.to_json()["upper"] == verify.certify(problem, solution.w, solution.u).upper
