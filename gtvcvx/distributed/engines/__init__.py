"""Engines: who starts the workers of a distributed run, and what carries their numbers."""

from gtvcvx.distributed.engines._choice import ENGINES, engine_named
from gtvcvx.distributed.engines._errors import WorkerError, WorkerLostError
from gtvcvx.distributed.engines._fabric import Engine, Fabric, Task
from gtvcvx.distributed.engines._local import LocalEngine
from gtvcvx.distributed.engines._mpi import MPIEngine, mpi_world
from gtvcvx.distributed.engines._ray import RayEngine

__all__ = [
    "ENGINES",
    "Engine",
    "Fabric",
    "LocalEngine",
    "MPIEngine",
    "RayEngine",
    "Task",
    "WorkerError",
    "WorkerLostError",
    "engine_named",
    "mpi_world",
]
