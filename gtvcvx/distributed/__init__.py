"""Past one machine: problems in shards, and what works on them.

Not part of ``import gtvcvx``: ``import gtvcvx.distributed`` loads it.
"""

from gtvcvx.distributed._manifest import Manifest, ShardRecord
from gtvcvx.distributed._shard import Shard
from gtvcvx.distributed._sharding import shard
from gtvcvx.distributed._sources import Tables

__all__ = ["Manifest", "Shard", "ShardRecord", "Tables", "shard"]
