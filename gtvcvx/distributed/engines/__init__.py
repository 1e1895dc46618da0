"""Engines: who starts the workers of a distributed run, and what carries their numbers."""

from gtvcvx.distributed.engines._errors import WorkerError, WorkerLostError
from gtvcvx.distributed.engines._fabric import Engine, Fabric, Task
from gtvcvx.distributed.engines._local import LocalEngine

__all__ = [
    "Engine",
    "Fabric",
    "LocalEngine",
    "Task",
    "WorkerError",
    "WorkerLostError",
]
