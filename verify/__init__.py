"""Independent verification of generalized total variation (GTV) solutions.

Nothing here imports the solver package `gtvcvx`; problems come in as plain data (SCHEMA.md) or as
objects with a method `to_data`. `verify.check` is the exact kernel and needs the standard library
alone; everything else loads NumPy, SciPy or CVXPY on first use.
"""

from importlib import import_module
from typing import Any

from verify.kernel import Result, check
from verify.kernel import __version__ as __version__

_LAZY = {
    "Certificate": "verify.certificates._certificate",
    "certify": "verify.certificates._entry",
    "assert_certified": "verify.certificates._assertion",
    "conformance": "verify.battery._run",
    "OptimalityReport": "verify.certificates._optimality",
    "optimality": "verify.certificates._optimality",
    "well_connected": "verify.partitions.well_connected._check",
    "recovers": "verify.partitions.recovery._recovers",
    "critical_lambda": "verify.partitions.recovery._critical_lambda",
}

__all__ = ["Result", "check", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'verify' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
