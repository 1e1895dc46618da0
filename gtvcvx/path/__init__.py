"""The regularization parameter: its largest useful value, and solutions along a path of values."""

from gtvcvx._callbacks import PathCallback
from gtvcvx.path._clusterings import Clusterings
from gtvcvx.path._critical import lambda_max
from gtvcvx.path._events import ClusterChange
from gtvcvx.path._path import LambdaPath
from gtvcvx.path._solve import lambda_path

__all__ = [
    "ClusterChange",
    "Clusterings",
    "LambdaPath",
    "PathCallback",
    "lambda_max",
    "lambda_path",
]


def __dir__() -> list[str]:
    return sorted(__all__)
