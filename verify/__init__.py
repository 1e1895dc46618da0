"""Independent verification of generalized total variation (GTV) solutions.

Nothing here imports the solver package `gtvcvx`; problems come in as plain data (SCHEMA.md) or as
objects with a method `to_data`.  `verify.check` is the exact kernel and needs the standard library
alone; everything else loads NumPy, SciPy or CVXPY on first use.
"""

from importlib import import_module
from typing import Any

from verify.kernel import Result, check

_LAZY = {
    "Certificate": "verify._certificate_object",
    "certify": "verify._certificate",
    "assert_certified": "verify._assertion",
    "conformance": "verify._conformance",
    "OptimalityReport": "verify._optimality",
    "optimality": "verify._optimality",
    "well_connected": "verify._connectivity",
    "recovers": "verify._connectivity",
    "critical_lambda": "verify._connectivity",
}

__all__ = ["Result", "check", *_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'verify' has no attribute {name!r}")
    value = getattr(import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
