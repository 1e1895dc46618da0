"""The exact checker: trusted, small, and on the Python standard library alone.

`verify.kernel.checker` decides on certificates and hands documents about partitions on to
`verify.kernel.partitions`; numbers, data, losses and constants are what both are made of.
"""

from verify.kernel.checker import Result, check

__all__ = ["Result", "check"]
