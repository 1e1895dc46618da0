"""Past one machine: problems in shards, and the default solver over them.

>>> import tempfile
>>> import gtvcvx as gtv
>>> graph = gtv.generators.chain(50, 0.1)
>>> problem = gtv.GTVProblem(graph, gtv.PointLoss.stack([[i] for i in range(100)]), "l2", 0.5)
>>> folder = tempfile.mkdtemp()
>>> gtv.distributed.shard(problem, folder, shards=4).cut_edges
3
>>> run = gtv.distributed.solve(folder, workers=1)
>>> run.status
'optimal'
>>> run.gather().w.shape
(100, 1)
"""

from gtvcvx.distributed._incumbent import ShardedProgress
from gtvcvx.distributed._manifest import Manifest, ShardRecord
from gtvcvx.distributed._run import Run
from gtvcvx.distributed._shard import Shard
from gtvcvx.distributed._sharding import shard
from gtvcvx.distributed._solve import solve
from gtvcvx.distributed._sources import Tables
from gtvcvx.distributed._whole_problem import solve_in_processes
from gtvcvx.distributed.engines import WorkerError, WorkerLostError

__all__ = [
    "Manifest",
    "Run",
    "Shard",
    "ShardRecord",
    "ShardedProgress",
    "Tables",
    "WorkerError",
    "WorkerLostError",
    "shard",
    "solve",
    "solve_in_processes",
]


def __dir__() -> list[str]:
    return sorted(__all__)
